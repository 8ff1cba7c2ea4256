//! The page cache: what of files is in memory, what is read ahead, and what is written back when.
//!
//! It knows files and pages, not sectors: what it wants done leaves as `Io`, and whoever maps files to devices tells it
//! when that is done.

mod dirty_order;
mod flush;
mod journal;
#[cfg(test)]
mod laws;
mod page_cache;
mod pages;
mod read;
mod read_ahead;
mod spec;
mod sync;
#[cfg(test)]
mod tests;
mod write;

use crate::block::{Direction, TaskId};
pub use flush::{FLUSHER, JOURNAL, OLD_DATA_FLUSHER};
pub use page_cache::PageCache;
pub use spec::{CacheSpec, Generation};

pub const PAGE_BYTES: u64 = 4096;

/// Index into the machine's files.
pub type FileId = u32;

/// Consecutive pages to read or write. Its `tag` comes back when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    pub tag: u32,
    pub file: FileId,
    pub page: u64,
    pub pages: u32,
    pub direction: Direction,
    /// Somebody waits for it.
    pub sync: bool,
    pub read_ahead: bool,
    /// On whose account: the reader, or whoever writes back.
    pub task: TaskId,
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The task sleeps until it is named in `woken`, and makes the same call again.
    Wait,
}

/// What the cache asks for and whom it wakes.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    pub io: Vec<Io>,
    /// Who submitted has no more, and waits or sleeps: what is held back in plugs goes to the device.
    pub unplug: bool,
    pub woken: Vec<TaskId>,
}
