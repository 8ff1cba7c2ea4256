//! fsync, and what direct I/O needs of the cache.

use crate::cache::flushers::Purpose;
use crate::cache::page_cache::PageCache;
use crate::cache::{Effect, FileId, Outcome, PAGE_BYTES};
use block_layer::TaskId;
use events::time::Time;

/// Those a sync finds at once that are in flight (`find_get_pages_range_tag`, `PAGEVEC_SIZE` of 6.1, which counts pages; 6.12
/// has 31).
const WRITES_LOOKED_UP: usize = 15;

impl PageCache {
    /// Done when all that was written to the file before the call is on the device. Until `fsync_is_over` it may hold the inode.
    pub fn fsync(&mut self, now: Time, task: TaskId, file: FileId) -> Outcome {
        self.now = now;
        if self.sync_goes_on(task) {
            return Outcome::Wait;
        }
        if self.syncs.take_done(task) {
            return Outcome::Done;
        }
        let device = self.backlog.device_of(file);
        if self.pages.unwritten_of(file) == 0 && self.journals.is_idle(device) {
            return Outcome::Done;
        }
        self.inode_locks.fsync_begins(device, task, file);
        self.start_sync(task, file, true);
        Outcome::Wait
    }

    /// The filesystem begins to commit what the task's fsync is for.
    pub fn fsync_commits(&mut self, task: TaskId, file: FileId) {
        let device = self.backlog.device_of(file);
        self.inode_locks.fsync_commits(device, task, file);
    }

    /// The task's fsync returns.
    pub fn fsync_is_over(&mut self, now: Time, task: TaskId, file: FileId) {
        self.now = now;
        let writers = self.inode_locks.fsync_ends(task, file);
        self.effects.extend(writers.into_iter().map(Effect::Wake));
    }

    /// Before direct I/O on a range: what is dirty there is written first, then the cache forgets the range.
    pub fn direct(&mut self, now: Time, task: TaskId, file: FileId, offset: u64, bytes: u64) -> Outcome {
        self.now = now;
        if self.sync_goes_on(task) {
            return Outcome::Wait;
        }
        self.syncs.take_done(task);
        let (first, end) = (offset / PAGE_BYTES, (offset + bytes).div_ceil(PAGE_BYTES));
        let is_clean =
            self.pages.unwritten_of(file) == 0 || (first..end).all(|page| !self.pages.is_unwritten(file, page));
        if is_clean {
            self.pages.forget(file, first, end - first);
            return Outcome::Done;
        }
        self.start_sync(task, file, false);
        Outcome::Wait
    }

    fn start_sync(&mut self, task: TaskId, file: FileId, commit: bool) {
        let again = self.pages.rewritten_of(file) > 0;
        let commit = commit && self.rules.commit_interval.is_some();
        if self.syncs.begin(task, file, again, commit) {
            self.flush_file(task, file);
        }
    }

    fn flush_file(&mut self, task: TaskId, file: FileId) {
        let purpose = Purpose::Sync(file, 0, self.backlog.size(file));
        let device = self.backlog.device_of(file);
        self.begins_inode(device);
        self.flushers.start(purpose, task, device, u64::MAX, u64::MAX);
    }

    /// All that was dirty of the file is in flight.
    pub(super) fn file_is_submitted(&mut self, task: TaskId, file: FileId) {
        let device = self.backlog.device_of(file);
        if self.syncs.take_commit(task) && self.commit_for(task, device) {
            self.fsync_commits(task, file);
        } else {
            self.await_file(task);
        }
    }

    /// What is in flight of the task's file is waited for, one after the other in the order of its pages
    /// (`__filemap_fdatawait_range` of mm/filemap.c, 6.1). That older kernels do so too is inferred.
    pub(super) fn await_file(&mut self, task: TaskId) {
        if !self.waits_for_write(task) && !self.is_written_again(task) {
            self.effects.push(Effect::Wake(task));
        }
    }

    /// The task's sync waits for the next write. False: none is left.
    fn waits_for_write(&mut self, task: TaskId) -> bool {
        let Some(file) = self.syncs.file_of(task) else {
            return false;
        };
        let device = self.backlog.device_of(file);
        loop {
            while let Some(number) = self.syncs.pop_write(task) {
                if self.writes.wait_for(task, device, number) {
                    self.syncs.sleeps(task);
                    return true;
                }
            }
            let Some(behind) = self.syncs.behind(task) else {
                return false;
            };
            let (writes, behind) = self.writes.first_of(file, behind, WRITES_LOOKED_UP);
            self.syncs.found(task, writes, behind);
        }
    }

    pub(super) fn sync_is_woken(&mut self, task: TaskId) {
        if self.syncs.wake(task) {
            self.effects.push(Effect::Wake(task));
        }
    }

    /// The task, which was woken by the end of a write, looks for the next. False: it waits for none.
    fn sync_goes_on(&mut self, task: TaskId) -> bool {
        self.syncs.is_woken(task) && (self.waits_for_write(task) || self.is_written_again(task))
    }

    /// Nothing of the task's file is in flight any more. False: it was not dirtied meanwhile either, and the sync is done.
    fn is_written_again(&mut self, task: TaskId) -> bool {
        let file = self.syncs.file_of(task);
        let again = self.syncs.is_written(task);
        if let Some(file) = file.filter(|_| again) {
            self.flush_file(task, file);
        }
        again
    }
}
