//! What fsync and sync wait for: the cache of a drive, and all of the page cache between phases.

use std::collections::BTreeSet;

use super::{HOUSEKEEPER, World};
use block_layer::TaskId;
use events::time::Time;
use memory::cache::{FileId, Outcome, PageCache};

/// Calls that sync.
#[derive(Default)]
pub(super) struct Syncs {
    /// fsync asks whether the drive's cache forgets.
    pub(super) looks_at_caches: bool,
    /// Tasks whose fsync has only to return: the drive's cache is on the medium.
    pub(super) flushed: BTreeSet<TaskId>,
    /// Files of which something could not be written back for want of space: the next sync of each says so.
    pub(super) full: BTreeSet<FileId>,
    /// Who syncs between phases has what it waited for.
    pub(super) housekeeper_woken: bool,
}

impl World {
    /// Writes back what is dirty: sync(2).
    pub fn sync(&mut self) {
        self.settle_files(|cache, now, file, _| cache.fsync(now, HOUSEKEEPER, file));
    }

    /// Writes back what is dirty and forgets all: `sync; echo 3 > /proc/sys/vm/drop_caches`.
    pub fn drop_caches(&mut self) {
        self.settle_files(|cache, now, file, bytes| cache.direct(now, HOUSEKEEPER, file, 0, bytes));
    }

    /// Makes the call for each file, with its size, until it is done; meanwhile time goes on.
    fn settle_files(&mut self, call: impl Fn(&mut PageCache, Time, FileId, u64) -> Outcome) {
        let files = match self.cached.cache {
            Some(_) => self.files.len() as FileId,
            None => 0,
        };
        self.progressed(self.now);
        for file in 0..files {
            let bytes = self.files[file as usize].size_bytes;
            let mut now = self.now;
            while self.with_cache(now, |cache, _| call(cache, now, file, bytes)) == Outcome::Wait {
                while !std::mem::take(&mut self.syncs.housekeeper_woken) {
                    let (at, event) = self.next_event().expect("writes are under way");
                    self.handle(at, event);
                    now = at;
                }
            }
        }
    }
}
