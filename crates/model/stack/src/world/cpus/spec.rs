//! Detailed CPUs of a machine as numbers, and which of them work for each drive.

use serde::Deserialize;

use super::call::Call;
use super::dma::DmaSpec;
use block_layer::QueueMap;
use block_layer::completion::{Affinity, CompletionSpec, CompletionVariant};
use block_layer::scheduler::hooks::Hooks;
use events::SpecError;
use events::smp::SmpSpec;
use events::spec_error::{share, within};

/// Everything about them, of a machine with this many drives.
#[derive(Clone, Debug)]
pub struct DetailedSpec {
    /// Topology, clock, caches and scheduling.
    pub smp: SmpSpec,
    /// The way from an interrupt to a completed request.
    pub completion: CompletionSpec,
    /// What tasks do on them.
    pub calls: CallCycles,
    /// Which CPUs work for each drive, in the order of the drives.
    pub drives: Vec<DriveCpus>,
}

/// What tasks do on CPUs, in cycles. Cache lines that move come on top.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallCycles {
    /// Of a system call that submits I/O.
    #[schemars(range(max = CYCLES_MAX))]
    pub submit_cycles: u32,
    /// Of the application before each operation, in user mode.
    #[schemars(range(max = CYCLES_MAX))]
    pub user_cycles: u32,
    /// Of what a completed I/O costs its task.
    #[schemars(range(max = CYCLES_MAX))]
    pub reap_cycles: u32,
    /// Of copying a page between a task and the page cache, and looking it up.
    #[schemars(range(max = CYCLES_MAX))]
    pub page_copy_cycles: u32,
    /// Of one look for completions, of a task that polls.
    #[serde(default = "poll_cycles")]
    #[schemars(range(min = 1, max = CYCLES_MAX))]
    pub poll_cycles: u32,
    /// Each cost is drawn evenly from this share below to this share above it: 0.1 is 10 %.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
}

/// One pass of the loop without a completion, of a ring or of `blk_poll`: an estimate.
fn poll_cycles() -> u32 {
    300
}

/// Which CPUs work for a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveCpus {
    /// The CPU that it interrupts.
    pub interrupts: Interrupts,
    /// On which CPU its requests complete.
    pub affinity: Affinity,
    /// Where tasks run that have no place of their own; None: anywhere.
    pub application: Option<u16>,
    /// Its adapter's transfers; None: they take no time of their own.
    pub dma: Option<DmaSpec>,
    /// What its scheduler costs.
    pub hooks: Hooks,
    /// The hardware queue that each CPU submits to.
    pub queue_map: QueueMap,
}

impl DriveCpus {
    /// See `Affinity::by_rules_of`. A drive with several interrupts has no CPU that would be its interrupt's.
    pub fn by_rules_of(self, variant: CompletionVariant) -> DriveCpus {
        let interrupt = match self.interrupts {
            Interrupts::On(interrupt) => interrupt,
            Interrupts::OfQueues(_) => return self,
        };
        let affinity = self.affinity.by_rules_of(variant, self.application, interrupt);
        DriveCpus { affinity, ..self }
    }
}

/// Which CPU a drive interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupts {
    /// Always this one.
    On(u16),
    /// Each hardware queue the first CPU that submits to it: by the CPU that submitted.
    OfQueues(Vec<u16>),
}

/// Longer calls are mistakes, and keep sums far from overflow.
pub(super) const CYCLES_MAX: u64 = 100_000_000;

impl CallCycles {
    /// Refuses values outside their limits; the error names the key.
    pub fn check(&self) -> Result<(), SpecError> {
        for (key, cycles) in [
            ("submit_cycles", self.submit_cycles),
            ("user_cycles", self.user_cycles),
            ("reap_cycles", self.reap_cycles),
            ("page_copy_cycles", self.page_copy_cycles),
        ] {
            within(key, u64::from(cycles), 0, CYCLES_MAX)?;
        }
        within("poll_cycles", u64::from(self.poll_cycles), 1, CYCLES_MAX)?;
        share("jitter", self.jitter)
    }

    /// Of a call whose cost is no mount's.
    pub(super) fn of(&self, call: Call) -> u64 {
        match call {
            Call::Reap { .. } | Call::Resume | Call::Retry { .. } => u64::from(self.reap_cycles),
            Call::Submit { .. } | Call::Sync => u64::from(self.submit_cycles),
            Call::Copy { pages } | Call::Write { pages, .. } => {
                u64::from(self.submit_cycles) + u64::from(self.page_copy_cycles) * pages
            }
            Call::CopyOn { pages } => u64::from(self.page_copy_cycles) * pages,
            Call::Work { .. } => unreachable!("it is a time, in no cycles"),
        }
    }
}

impl Interrupts {
    pub(super) fn for_request(&self, submitted_on: u16) -> u16 {
        match self {
            Interrupts::On(cpu) => *cpu,
            Interrupts::OfQueues(by_cpu) => by_cpu[usize::from(submitted_on)],
        }
    }
}
