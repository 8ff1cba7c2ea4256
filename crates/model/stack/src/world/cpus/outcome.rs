//! What CPUs hand over to their user.

use super::runner::Origin;
use block_layer::{Bio, TaskId};
use events::time::Time;

/// They ask for a call then.
pub(in crate::world) type TimedReminder = Option<(Time, Reminder)>;

/// For the CPUs: opaque to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Reminder {
    /// What that one does has had its time.
    Worked(u16),
    /// That one takes who is first in line.
    Chooses(u16),
    /// A timer's interrupt begins, or has done with a completion.
    Interrupt,
    /// The adapter of that drive has moved a request's data.
    Moved(u16),
}

/// Who has a CPU next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Turn {
    Task(TaskId),
    /// A runner, whose work item takes until then.
    Runner(Time, Reminder),
}

/// What there is to continue with.
#[derive(Debug)]
pub(in crate::world) enum Continuation {
    /// The CPU has been given away.
    Next { cpu: u16, turn: Turn },
    /// The task's call has had its time.
    Called { task: TaskId, cpu: u16 },
    /// The task has looked for completions.
    Looked { task: TaskId },
    /// A runner's work item.
    WorkItem { origin: Origin, cpu: u16 },
    /// The bio may enter its queue, on this CPU.
    Entered { drive: usize, bio: Bio },
    /// A timer's interrupt has taken the CPU.
    Interrupted,
    /// It has given it back.
    Resumed,
    /// They ask for a call then.
    Later(Time, Reminder),
    /// The request with that tag is to be completed.
    Completed { drive: usize, tag: u32, cpu: u16 },
}
