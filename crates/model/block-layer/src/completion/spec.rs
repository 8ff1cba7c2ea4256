//! How a kernel completes requests, and what that costs.

use serde::Deserialize;

pub use kernels::completion::CompletionVariant;

use events::SpecError;
use events::smp::Distance;
use events::spec_error::within;
use events::time::SECOND;

/// Cycles, unless the name has another unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = events::spec_error::optional("variant"))]
pub struct CompletionSpec {
    /// Which kernel's completion path it is.
    pub variant: CompletionVariant,
    /// The driver's handler, for each request.
    #[schemars(range(max = CYCLES_MAX))]
    pub interrupt_cycles: u32,
    /// The part of these cycles in which the CPU waits for the device's registers.
    #[schemars(range(max = CYCLES_MAX))]
    pub interrupt_stalled_cycles: u32,
    /// The cycles to raise and run the softirq, once for a list that was empty.
    #[schemars(range(max = CYCLES_MAX))]
    pub softirq_cycles: u32,
    /// The cycles to complete one request, whichever CPU does it.
    #[schemars(range(max = CYCLES_MAX))]
    pub complete_cycles: u32,
    /// The cycles of one bio or request that another CPU's thread or softirq puts into its queue.
    #[schemars(range(max = CYCLES_MAX))]
    pub enter_cycles: u32,
    /// Putting a request on another CPU's list, with its lock.
    #[schemars(range(max = CYCLES_MAX))]
    pub hand_over_cycles: u32,
    /// Taking a list over, with its lock.
    #[schemars(range(max = CYCLES_MAX))]
    pub splice_cycles: u32,
    /// What it costs besides when a request is completed where it arrived: the first variant's only.
    #[serde(default)]
    #[schemars(range(max = CYCLES_MAX))]
    pub local_cycles: u32,
    /// What a function call on another CPU takes beyond an interrupt's way: the first variant's only.
    #[serde(default)]
    #[schemars(range(max = SECOND))]
    pub call_ns: u64,
    /// CPUs at most this far apart share a cache.
    pub shares_cache: Distance,
    /// Cache lines.
    #[schemars(range(max = LINES_MAX))]
    pub request_lines: u16,
    /// Cache lines of a request's bios.
    #[schemars(range(max = LINES_MAX))]
    pub bio_lines: u16,
    /// Cache lines of what the submitting task sees of it: control block and pages.
    #[schemars(range(max = LINES_MAX))]
    pub control_block_lines: u16,
    /// Cache lines of a list of requests or calls, lock included.
    #[schemars(range(max = LINES_MAX))]
    pub list_lines: u16,
}

/// The affinity of one request queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// The CPU that puts bios into the queue; None: the submitter's.
    pub queue: Option<u16>,
    /// The CPU that completes requests; None: chosen by `requests`.
    pub completion: Option<u16>,
    /// Where requests are completed if no completion CPU is set.
    pub requests: RequestAffinity,
}

/// `rq_affinity`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestAffinity {
    /// 0: where the interrupt landed.
    #[default]
    Interrupted,
    /// 1: at the submitter, or near it as the variant has it.
    Near,
    /// 2: on the very CPU of the submitter.
    Exact,
}

/// Longer pieces of work are mistakes, and keep sums far from overflow.
const CYCLES_MAX: u64 = 100_000_000;
/// The cache lines of one object.
const LINES_MAX: u64 = 4_096;

impl CompletionSpec {
    /// Checks that every value lies in its range. The error names the first key whose value does not.
    pub fn check(&self) -> Result<(), SpecError> {
        for (key, cycles) in [
            ("interrupt_cycles", self.interrupt_cycles),
            ("softirq_cycles", self.softirq_cycles),
            ("complete_cycles", self.complete_cycles),
            ("enter_cycles", self.enter_cycles),
            ("hand_over_cycles", self.hand_over_cycles),
            ("splice_cycles", self.splice_cycles),
            ("local_cycles", self.local_cycles),
        ] {
            within(key, u64::from(cycles), 0, CYCLES_MAX)?;
        }
        let stalled = u64::from(self.interrupt_stalled_cycles);
        let all = u64::from(self.interrupt_cycles);
        within("interrupt_stalled_cycles", stalled, 0, all)?;
        within("call_ns", self.call_ns, 0, SECOND)?;
        for (key, lines) in [
            ("request_lines", self.request_lines),
            ("bio_lines", self.bio_lines),
            ("control_block_lines", self.control_block_lines),
            ("list_lines", self.list_lines),
        ] {
            within(key, u64::from(lines), 0, LINES_MAX)?;
        }
        Ok(())
    }
}

impl Affinity {
    /// The same in the variant's own words, if it has no settings of these names and its rules are equivalent: bios are
    /// queued by the application itself, and requests completed where the interrupt lands, or by `rq_affinity` 2 where
    /// they were queued.
    pub fn by_rules_of(self, variant: CompletionVariant, application: Option<u16>, interrupt: u16) -> Affinity {
        let mut found = self;
        if matches!(variant, CompletionVariant::RemoteSoftirq | CompletionVariant::Thread) {
            return found;
        }
        if found.queue == application {
            found.queue = None;
        }
        let requests = match found.completion {
            Some(cpu) if cpu == interrupt => RequestAffinity::Interrupted,
            Some(_) if found.completion == application && variant.has_exact() => RequestAffinity::Exact,
            _ => return found,
        };
        found.completion = None;
        Affinity { requests, ..found }
    }

    /// The variant has these settings; the error names the drive's key.
    pub fn check(&self, variant: CompletionVariant) -> Result<(), SpecError> {
        let of_2008 = matches!(variant, CompletionVariant::RemoteSoftirq | CompletionVariant::Thread);
        for (is_set, is_there, key, setting) in [
            (self.queue.is_some(), of_2008, "affinity.queue", "queue_affinity"),
            (self.completion.is_some(), of_2008, "affinity.completion", "completion_affinity"),
            (
                self.requests != RequestAffinity::Interrupted,
                variant != CompletionVariant::Softirq,
                "queue.rq_affinity",
                "rq_affinity",
            ),
            (self.requests == RequestAffinity::Exact, variant.has_exact(), "queue.rq_affinity", "rq_affinity = 2"),
        ] {
            if is_set && !is_there {
                let what = format!("completions of the variant {} have no {setting}", variant.name());
                return Err(SpecError::of(key, what));
            }
        }
        Ok(())
    }
}

impl RequestAffinity {
    /// The tunable's value; None: there is no such.
    pub fn of(rq_affinity: u8) -> Option<RequestAffinity> {
        match rq_affinity {
            0 => Some(RequestAffinity::Interrupted),
            1 => Some(RequestAffinity::Near),
            2 => Some(RequestAffinity::Exact),
            _ => None,
        }
    }
}
