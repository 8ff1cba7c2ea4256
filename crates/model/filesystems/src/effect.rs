//! What the filesystem hands over to the machine that it is mounted on, after each call.

use crate::actor::Actor;
use block_layer::{Direction, Priority, TaskId};
use events::smp::{Context, TaskNumber, TaskSpec};

/// To be done in the order in which they come.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A task is made. The filesystem numbers its own from 0.
    Task(TaskSpec),
    /// A task has more to do.
    Work {
        /// Whose it is.
        task: TaskNumber,
        /// The CPU that wakes it, if it sleeps.
        by: Option<u16>,
        /// How much, the locked ones among them; nanoseconds if the filesystem counts in these.
        cycles: u32,
        /// The cycles among them with the checkpoint's list locked.
        locked_cycles: u32,
        /// What the CPU does it as.
        context: Context,
        /// The task that continues then; None: no task waits for it.
        of: Option<Actor>,
    },
    /// Blocks in a row are read or written.
    Io(BlockIo),
    /// The drive's cache is to be on the medium.
    Flush(FlushNumber),
    /// What the load's task has waited for has happened.
    Unblock {
        /// Who waits.
        task: TaskId,
        /// It was on its account that the log was written, behind a flush of the drive's cache.
        flushed: bool,
    },
    /// The task has ended.
    Exit(TaskNumber),
}

/// What comes back to `Filesystem::flushed`.
pub type FlushNumber = u32;

/// Who submits I/O, and waits for its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitter {
    /// A task of the filesystem's, by its own number.
    Own(TaskNumber),
    /// A task of a load, in its call.
    Load(TaskId),
}

/// I/O of blocks of the volume, in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockIo {
    /// What comes back to `Filesystem::completed`.
    pub tag: u32,
    /// Who submits it.
    pub by: Submitter,
    /// The I/O priority of a task of the filesystem's.
    pub priority: Priority,
    /// Read or written.
    pub direction: Direction,
    /// A task waits for it.
    pub sync: bool,
    /// Not a file's data.
    pub metadata: bool,
    /// It follows a flush of the drive's cache as part of one write (`REQ_PREFLUSH`).
    pub behind_flush: bool,
    /// Written back from memory; no task waits for it.
    pub writeback: bool,
    /// The first block of the volume.
    pub block: u64,
    /// How many blocks.
    pub blocks: u32,
}
