//! What sorting processes hand over to the machine that they run on, after each call.

use super::slots::SlotNumber;
use block_layer::{Direction, TaskId};
use events::time::Time;

/// To be done in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The task has this much for a CPU to do; then `SortProcesses::worked`.
    Work {
        /// Whose it is.
        task: TaskId,
        /// For how long.
        ns: Time,
    },
    /// Slots in a row are read or written; `SortProcesses::granted` when all the task's are in the queue, `SortProcesses::moved` when
    /// they have been.
    Io {
        /// Who waits for it.
        task: TaskId,
        /// Read for a fault, or written by reclaim.
        direction: Direction,
        /// The first slot.
        first: SlotNumber,
        /// How many slots.
        slots: u32,
    },
    /// A task waits for what is in the queue.
    Unplug,
    /// The task has ended.
    Exit(TaskId),
}
