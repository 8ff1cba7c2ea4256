//! What the filesystem hands over to the machine that it is mounted on, after each time that it was told something.

use super::{Actor, Timer};
use crate::block::{Direction, TaskId};
use crate::smp::{Context, TaskNumber, TaskSpec};
use crate::time::Time;

/// To be done in the order in which they come.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// A task is made. The filesystem numbers its own from 0.
    Task(TaskSpec),
    /// A task has more to do. `by`: the CPU that wakes it, if it sleeps.
    Work {
        task: TaskNumber,
        by: Option<u16>,
        cycles: u32,
        /// Of them, with the checkpoint's list locked.
        locked_cycles: u32,
        context: Context,
        /// Who goes on then; None: nobody has to be told.
        of: Option<Actor>,
    },
    /// `Mounted::ring` is to be called then.
    Timer(Time, Timer),
    /// Blocks in a row are read or written.
    Io(BlockIo),
    /// The drive's cache is to be on the medium.
    Flush(FlushNumber),
    /// What the load's task has waited for has happened.
    Unblock(TaskId),
    /// The task has ended.
    Exit(TaskNumber),
}

/// What comes back to `Mounted::flushed`.
pub(crate) type FlushNumber = u32;

/// Of blocks of the volume, in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockIo {
    /// What comes back to `Mounted::completed`.
    pub(crate) tag: u32,
    pub(crate) task: TaskNumber,
    pub(crate) direction: Direction,
    /// Somebody waits for it.
    pub(crate) sync: bool,
    /// Not a file's data.
    pub(crate) metadata: bool,
    /// Written back from memory, by nobody in a hurry.
    pub(crate) writeback: bool,
    pub(crate) block: u64,
    pub(crate) blocks: u32,
}
