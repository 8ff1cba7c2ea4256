//! The machine's CPUs in one of two forms: simply as many as tasks can run at once, or in detail, as processors with
//! contexts, interrupts and messages.

mod detailed;
mod dma;
mod simple;
mod spec;

use crate::block::TaskId;
use crate::smp::CpuSet;
use crate::time::Time;
pub(super) use detailed::Finished;
pub use detailed::{Detailed, Tag};
pub use dma::DmaSpec;
pub(crate) use simple::CALL_NS_MAX;
pub use simple::{CpuSpec, Simple};
pub use spec::{CallCycles, DetailedSpec, DriveCpus, Interrupts};

/// The CPUs of a machine.
#[derive(Debug)]
pub enum Cpus {
    /// A number of CPUs that tasks take turns on.
    Simple(Simple),
    /// Processors with contexts, interrupts and messages.
    Detailed(Box<Detailed>),
}

/// What a task does on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Submits I/O, or finds that there is nothing to do.
    Submit,
    /// The same through the page cache.
    Copy { pages: u64 },
    /// Looks at a completed I/O.
    Reap,
}

impl From<CpuSpec> for Cpus {
    fn from(spec: CpuSpec) -> Cpus {
        Cpus::Simple(Simple::new(spec))
    }
}

impl From<Detailed> for Cpus {
    fn from(cpus: Detailed) -> Cpus {
        Cpus::Detailed(Box::new(cpus))
    }
}

impl Cpus {
    /// How many there are.
    pub(super) fn count(&self) -> u16 {
        match self {
            Cpus::Simple(cpus) => cpus.count(),
            Cpus::Detailed(cpus) => cpus.processors().cpus(),
        }
    }

    /// When they have something to do by themselves.
    pub(super) fn next_event(&mut self) -> Option<Time> {
        match self {
            Cpus::Simple(_) => None,
            Cpus::Detailed(cpus) => cpus.next_event(),
        }
    }

    /// The tasks of a phase, each with the CPUs that it may use (None: any) and the one where it begins.
    pub(super) fn begin_phase(&mut self, tasks: impl Iterator<Item = (Option<CpuSet>, u16)>) {
        if let Cpus::Detailed(cpus) = self {
            cpus.begin_phase(tasks);
        }
    }

    /// The task wants a CPU: which one it has at once, if any.
    pub(super) fn wants(&mut self, now: Time, task: TaskId) -> Option<u16> {
        match self {
            Cpus::Simple(cpus) => cpus.wants(now, task),
            Cpus::Detailed(cpus) => {
                cpus.wakes(now, task);
                None
            }
        }
    }

    /// The task goes to sleep or is done: who has its CPU at once.
    pub(super) fn leaves(
        &mut self,
        now: Time,
        cpu: u16,
        task: TaskId,
        for_io: bool,
    ) -> Option<TaskId> {
        match self {
            Cpus::Simple(cpus) => cpus.leaves(now, cpu),
            Cpus::Detailed(cpus) => {
                cpus.sleeps_for_io(task, for_io);
                None
            }
        }
    }

    /// The task could go on: who does.
    pub(super) fn goes_on(&mut self, now: Time, cpu: u16, task: TaskId) -> TaskId {
        match self {
            Cpus::Simple(cpus) => cpus.goes_on(now, cpu),
            Cpus::Detailed(_) => task,
        }
    }

    /// On whose work follows what happens now; None: on no CPU's.
    pub(super) fn here(&self) -> Option<u16> {
        match self {
            Cpus::Simple(_) => None,
            Cpus::Detailed(cpus) => cpus.here(),
        }
    }
}
