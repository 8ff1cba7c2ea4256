//! The machine's CPUs in one of two forms: simply as many as tasks can run at once, or in detail, as processors with
//! contexts, interrupts and messages.

mod detailed;
mod dma;
mod runner;
mod simple;
mod spec;

use block_layer::TaskId;
pub(super) use detailed::Finished;
pub use detailed::{Detailed, Tag};
pub use dma::DmaSpec;
use events::smp::{CpuSet, SchedulerEvent, TaskSpec, TaskUsage};
use events::time::Time;
pub(crate) use runner::{Cost, LockNumber, Piece, RUNNERS, runner_of};
pub use runner::{Origin, RunnerNumber};
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
    /// Goes on with a call that has waited: what the call costs was spent before.
    Resume,
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

    /// A runner that sleeps. Simple CPUs are all alike: it may run on any.
    pub(super) fn add_runner(&mut self, spec: TaskSpec) -> RunnerNumber {
        match self {
            Cpus::Simple(cpus) => cpus.add_runner(),
            Cpus::Detailed(cpus) => cpus.add_runner(spec),
        }
    }

    /// A spinning lock for pieces of work.
    pub(super) fn add_lock(&mut self) -> LockNumber {
        match self {
            Cpus::Simple(cpus) => cpus.add_lock(),
            Cpus::Detailed(cpus) => cpus.add_lock(),
        }
    }

    /// One more piece for the runner, which wakes if it sleeps. `by`: the CPU that does so. Some: the CPU begins with it at
    /// once, until then.
    pub(super) fn give(
        &mut self,
        now: Time,
        runner: RunnerNumber,
        by: Option<u16>,
        piece: Piece,
    ) -> Option<(u16, Time)> {
        match self {
            Cpus::Simple(cpus) => cpus.give_runner(now, runner, piece),
            Cpus::Detailed(cpus) => {
                cpus.give_runner(now, runner, by, piece);
                None
            }
        }
    }

    /// The runner that the CPU has been given to begins its next piece: until when.
    pub(super) fn begin_piece(&mut self, now: Time, runner: RunnerNumber) -> Time {
        match self {
            Cpus::Simple(cpus) => cpus.begin_piece(now, runner),
            Cpus::Detailed(_) => unreachable!("their runners begin by themselves"),
        }
    }

    /// The piece under way is done: who is to be told.
    pub(super) fn end_piece(&mut self, runner: RunnerNumber) -> Option<Origin> {
        match self {
            Cpus::Simple(cpus) => cpus.end_piece(runner),
            Cpus::Detailed(_) => unreachable!("their runners end by themselves"),
        }
    }

    /// All that follows from the piece has happened: who has the CPU next.
    pub(super) fn after_piece(
        &mut self,
        now: Time,
        cpu: u16,
        runner: RunnerNumber,
    ) -> Option<TaskId> {
        match self {
            Cpus::Simple(cpus) => cpus.after_piece(now, cpu, runner),
            Cpus::Detailed(_) => unreachable!("their runners go on by themselves"),
        }
    }

    /// What the runner has had of the CPUs so far.
    pub(super) fn runner_usage(&self, runner: RunnerNumber) -> TaskUsage {
        match self {
            Cpus::Simple(cpus) => cpus.runner_usage(runner),
            Cpus::Detailed(cpus) => cpus.runner_usage(runner),
        }
    }

    /// From now on, or no more, switches are kept for `take_scheduled`; simple CPUs keep none.
    pub(super) fn tap(&mut self, is: bool) {
        if let Cpus::Detailed(cpus) = self {
            cpus.tap(is);
        }
    }

    /// Appends who has left a CPU for whom since the last time.
    pub(super) fn take_scheduled(&mut self, into: &mut Vec<SchedulerEvent>) {
        if let Cpus::Detailed(cpus) = self {
            cpus.take_scheduled(into);
        }
    }

    /// Which runner a processors' task is; None: a load's.
    pub(super) fn runner_of_task(&self, task: events::smp::TaskNumber) -> Option<RunnerNumber> {
        match self {
            Cpus::Simple(_) => None,
            Cpus::Detailed(cpus) => cpus.runner_of_task(task),
        }
    }
}
