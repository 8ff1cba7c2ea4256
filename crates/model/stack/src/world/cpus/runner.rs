//! Runners: tasks to which their owner gives work items: threads of metadata loads, kernel threads, processes that
//! sort. Between two items they sleep.

use block_layer::KERNEL_TASKS;
use block_layer::TaskId;
use events::smp::Context;
use events::time::{SECOND, Time};
use filesystems::actor::Actor;
use memory::cache::FileId;

/// From 0, in the order in which they were made.
pub type RunnerNumber = u32;

/// Among all tasks, runners have numbers from here on.
pub(crate) const RUNNERS: TaskId = KERNEL_TASKS + (1 << 20);

/// What a CPU does for a runner at a time; the next item begins when it is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkItem {
    pub(crate) cost: Cost,
    /// In user mode, in the kernel for the task, or a kernel thread's own.
    pub(crate) context: Context,
    /// A lock that the item begins by taking, and for how many of its cycles.
    pub(crate) lock: Option<(LockNumber, u32)>,
    /// Who learns that it is done; None: nobody.
    pub(crate) of: Option<Origin>,
}

/// How long an item takes on a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cost {
    Cycles(u32),
    Ns(Time),
}

/// A spinning lock, from 0 in the order in which they were made.
pub(crate) type LockNumber = u32;

/// Whose work item it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The filesystem of the drive with that number.
    Filesystem(u16, Actor),
    /// One of the processes that sort, or their daemon.
    Sorting(TaskId),
    /// A kernel thread that tries again to get a request.
    Retry(TaskId),
    /// A flusher that was woken.
    Flusher(TaskId),
    /// The journal of the drive with that number, for loads.
    Journal(u16),
    /// The worker that makes written blocks the file's.
    Conversion(FileId),
}

impl Cost {
    pub(super) fn cycles(self, clock_hz: u64) -> u32 {
        match self {
            Cost::Cycles(cycles) => cycles,
            Cost::Ns(ns) => {
                let cycles = u128::from(ns) * u128::from(clock_hz) / u128::from(SECOND);
                u32::try_from(cycles).unwrap_or(u32::MAX)
            }
        }
    }

    /// `clock_hz` is only used if the cost is in cycles.
    pub(super) fn ns(self, clock_hz: Option<u64>) -> Time {
        match self {
            Cost::Ns(ns) => ns,
            Cost::Cycles(cycles) => {
                let clock_hz = clock_hz.expect("who counts in cycles has asked for a clock");
                u64::from(cycles) * SECOND / clock_hz
            }
        }
    }
}

/// None: the task belongs to a load.
pub(super) fn runner_of(task: TaskId) -> Option<RunnerNumber> {
    task.checked_sub(RUNNERS)
}
