//! fsync, and what direct I/O needs of the cache.

use crate::cache::flushers::Purpose;
use crate::cache::page_cache::PageCache;
use crate::cache::syncs::Sync;
use crate::cache::{Effect, FileId, Outcome, PAGE_BYTES};
use block_layer::TaskId;
use events::time::Time;

impl PageCache {
    /// Done when all that was written to the file before the call is on the device. Until `fsync_is_over` it may hold the inode.
    pub fn fsync(&mut self, now: Time, task: TaskId, file: FileId) -> Outcome {
        self.now = now;
        if self.syncs.done.remove(&task) {
            return Outcome::Done;
        }
        let journal = self.devices[self.device_of(file)].journal.as_ref();
        let journal_is_clean = journal.is_none_or(|journal| journal.is_idle());
        if self.pages.unwritten_of(file) == 0 && journal_is_clean {
            return Outcome::Done;
        }
        self.fsync_begins(task, file);
        self.start_sync(task, file, true);
        Outcome::Wait
    }

    /// Before direct I/O on a range: what is dirty there is written first, then the cache forgets the range.
    pub fn direct(
        &mut self,
        now: Time,
        task: TaskId,
        file: FileId,
        offset: u64,
        bytes: u64,
    ) -> Outcome {
        self.now = now;
        self.syncs.done.remove(&task);
        let (first, end) = (offset / PAGE_BYTES, (offset + bytes).div_ceil(PAGE_BYTES));
        let is_clean = self.pages.unwritten_of(file) == 0
            || (first..end).all(|page| !self.pages.is_unwritten(file, page));
        if is_clean {
            self.pages.forget(file, first, end - first);
            return Outcome::Done;
        }
        self.start_sync(task, file, false);
        Outcome::Wait
    }

    fn start_sync(&mut self, task: TaskId, file: FileId, commit: bool) {
        // Called again before its time: it waits on.
        if self.syncs.waiting.contains_key(&task) {
            return;
        }
        let again = self.pages.rewritten_of(file) > 0;
        let sync = Sync {
            file,
            again,
            commit: commit && self.rules.commit_interval.is_some(),
        };
        self.syncs.waiting.insert(task, sync);
        self.flush_file(task, file);
    }

    fn flush_file(&mut self, task: TaskId, file: FileId) {
        let end = self.file(file).pages;
        let purpose = Purpose::Sync(file, 0, end);
        let of = self.device_of(file);
        self.flushers.start(purpose, task, of, u64::MAX, u64::MAX);
    }

    /// All that was dirty of the file is under way.
    pub(super) fn file_is_submitted(&mut self, task: TaskId, file: FileId) {
        let Some(sync) = self.syncs.waiting.get_mut(&task) else {
            return;
        };
        let commit = std::mem::take(&mut sync.commit);
        if commit && self.commit_for(task, self.device_of(file)) {
            return self.fsync_commits(task, file);
        }
        self.await_file(task, file);
    }

    /// The commit that the task waited for is over.
    pub(super) fn commit_is_over(&mut self, task: TaskId) {
        if let Some(sync) = self.syncs.waiting.get(&task) {
            self.await_file(task, sync.file);
        }
    }

    pub(super) fn file_is_written(&mut self, task: TaskId) {
        let Some(sync) = self.syncs.waiting.get_mut(&task) else {
            return;
        };
        if std::mem::take(&mut sync.again) {
            let file = sync.file;
            self.flush_file(task, file);
        } else {
            self.syncs.waiting.remove(&task);
            self.syncs.done.insert(task);
            self.effects.push(Effect::Wake(task));
        }
    }
}
