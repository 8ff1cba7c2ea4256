//! What sorting processes hand over to the machine that they run on, after each time that they were told something.

use super::slots::SlotNumber;
use crate::block::{Direction, TaskId};
use crate::time::Time;

/// To be done in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The task has so much for a CPU to do; then `Sorting::worked`.
    Work { task: TaskId, ns: Time },
    /// `Sorting::alarm` is to be called then.
    Alarm(Time, TaskId),
    /// Slots in a row are read or written; `Sorting::granted` when all the task's are in the queue, `Sorting::moved` when
    /// they have been.
    Io {
        task: TaskId,
        direction: Direction,
        first: SlotNumber,
        slots: u32,
    },
    /// Somebody waits for what is in the queue.
    Unplug,
    /// The task has ended.
    Exit(TaskId),
}
