//! The page cache: what of files is in memory, what is read ahead, and what is written back when.
//!
//! It has files and pages, not sectors: its requests leave as `Io`, and the code that maps files to devices reports
//! when that is done.

mod backlog;
mod commit;
mod device;
mod dirty_order;
mod dirty_rate;
#[cfg(test)]
mod drive_tests;
mod flush;
mod flushers;
mod folios;
mod inode_lock;
#[cfg(test)]
mod invariants;
mod journal;
mod limits;
mod page_cache;
mod pages;
mod part;
mod pdflush;
mod pdflush_threads;
mod proportions;
mod read;
mod read_ahead;
mod readers;
mod spec;
mod sync;
mod syncs;
#[cfg(test)]
mod tests;
mod write;
mod writes;

use block_layer::{Direction, TaskId};
pub use device::journal_task;
pub use inode_lock::FsyncHolds;
pub use kernels::dirty_limits::DirtyLimits;
pub use page_cache::PageCache;
pub use proportions::WriteoutPeriod;
pub use spec::{CacheSpec, CacheVariant, ReadAhead};
pub use spec::{DIRTY_PERCENT, INTERVAL_NS, MEMORY_BYTES};

/// Size of a page, the only one that is simulated.
pub const PAGE_BYTES: u64 = 4096;

/// Index into the machine's files.
pub type FileId = u32;

/// Consecutive pages to read or write. Its `tag` comes back when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The cache's number for it.
    pub tag: u32,
    /// Whose pages they are.
    pub file: FileId,
    /// The first page, from 0 at the start of the file.
    pub page: u64,
    /// How many pages follow one another, the first included.
    pub pages: u32,
    /// Read: into the cache. Write: back to the device.
    pub direction: Direction,
    /// A task waits for it.
    pub sync: bool,
    /// Nobody has asked for the pages yet.
    pub read_ahead: bool,
    /// On whose account: the reader's, or that of the task that writes back.
    pub task: TaskId,
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is over; the task continues.
    Done,
    /// This many pages are copied, which takes its time; then the task makes the same call again.
    Copies(u64),
    /// The task sleeps until it is woken, and makes the same call again.
    Wait,
}

/// What the machine does for the cache: all that is to be submitted first, then each woken task continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// To be submitted in this order.
    Io(Io),
    /// Who submitted has no more, and waits or sleeps: what is held back in plugs goes to the device.
    Unplug,
    /// The task is to make its call again.
    Wake(TaskId),
    /// The flusher of that number is woken: it begins when the cache hears that it has had a CPU (`PageCache::unblocked`).
    Start(TaskId),
    /// These pages are written to, on a drive whose journal has data (`set_journals_data`).
    Journaled {
        /// Whose they are.
        file: FileId,
        /// The first of them.
        first: u64,
        /// The one behind the last.
        end: u64,
    },
}
