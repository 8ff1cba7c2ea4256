//! fsync that continues, and sync and drop_caches between phases.

use super::{HOUSEKEEPER, World};
use block_layer::TaskId;
use events::time::Time;
use memory::cache::{FileId, FsyncHolds, Outcome, PageCache};

impl World {
    /// What the task's fsync waited for is on the medium.
    pub(super) fn sync_goes_on(&mut self, now: Time, task: TaskId) {
        self.vfs.syncs_mut().has_flushed(task);
        self.unblock(now, task);
    }

    /// The same if an fsync of files on the drive holds off writers.
    pub fn with_fsync_holds(mut self, drive: usize, holds: FsyncHolds) -> World {
        if let Some(cache) = self.vfs.cache_mut() {
            cache.set_fsync_holds(drive, holds);
        }
        self
    }

    /// The same if files on the drive have large folios.
    pub fn with_large_folios(mut self, drive: usize) -> World {
        if let Some(cache) = self.vfs.cache_mut() {
            cache.set_large_folios(drive);
        }
        self
    }

    /// The same if what is written back of the drive's files in a row ends as a whole.
    pub fn with_ioends(mut self, drive: usize) -> World {
        if let Some(cache) = self.vfs.cache_mut() {
            cache.set_ioends(drive);
        }
        self
    }

    /// The same if a journal gets the data of files on the drive.
    pub fn with_journaled_data(mut self, drive: usize) -> World {
        if let Some(cache) = self.vfs.cache_mut() {
            cache.set_journals_data(drive);
        }
        self
    }

    /// Writes back what is dirty: sync(2).
    pub fn sync(&mut self) {
        self.settle_files(|cache, now, file, _| cache.fsync(now, HOUSEKEEPER, file));
    }

    /// Writes back what is dirty and forgets all: `sync; echo 3 > /proc/sys/vm/drop_caches`.
    pub fn drop_caches(&mut self) {
        self.settle_files(|cache, now, file, bytes| cache.direct(now, HOUSEKEEPER, file, 0, bytes));
    }

    /// Makes the call for each file, with its size, until it is done; meanwhile time passes.
    fn settle_files(&mut self, call: impl Fn(&mut PageCache, Time, FileId, u64) -> Outcome) {
        let files = match self.vfs.has_cache() {
            true => self.vfs.file_count(),
            false => 0,
        };
        self.clock.progressed(self.clock.now());
        for file in 0..files {
            let bytes = self.vfs.file(file).size_bytes;
            let mut now = self.clock.now();
            while self.with_cache(now, |cache| call(cache, now, file, bytes)) == Outcome::Wait {
                while !self.vfs.syncs_mut().take_housekeeper_woken() {
                    let (at, event) = self.next_event().expect("writes are under way");
                    self.handle(at, event);
                    now = at;
                }
            }
            self.sync_is_over(now, HOUSEKEEPER, file);
        }
    }
}
