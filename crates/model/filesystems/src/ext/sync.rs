//! fsync and sync(2), the journal's room, and who writes back what is dirty.

use super::io::{EXPIRE_NS, LOOK_EVERY_NS};
use super::thread::Stage;
use super::{Ext, Timer};
use events::time::{SECOND, Time};

/// Of the running transaction (`JBD_DEFAULT_MAX_COMMIT_AGE`).
const COMMIT_EVERY_NS: Time = 5 * SECOND;

impl Ext {
    /// A file's data. True: the thread waits for them.
    pub(super) fn syncs(&mut self, number: u32) -> bool {
        let inode = self.threads[number as usize].open;
        if self.files.is_written(inode) {
            return false;
        }
        // Before the I/O, which may end at once.
        self.files.get_mut(inode).waiting.push(number);
        let task = self.threads[number as usize].task;
        if self.files.dirty_of(inode).is_some() {
            self.write_back(inode, task, true);
        }
        true
    }

    /// A synchronous call has changed what the running transaction has. True: the thread waits for others to join it.
    pub(super) fn joins(&mut self, number: u32) -> bool {
        let thread = &self.threads[number as usize];
        if !thread.keeps_lock && !self.variant.fsync_has_handle {
            return false;
        }
        let Some((journal, times)) = self.journal.as_mut().zip(self.variant.joins) else {
            return false;
        };
        let Some(wait) = journal.joins(number, self.now, times) else {
            return false;
        };
        self.in_flight += 1;
        self.timers.put(self.now + wait, Timer::Joined(number));
        true
    }

    pub(super) fn has_joined(&mut self, number: u32) {
        self.in_flight -= 1;
        if let Some(journal) = &mut self.journal {
            journal.has_joined();
        }
        self.go_on(number, None);
    }

    /// What describes the file: the transaction that has it commits, or ext2 writes its inode. Some: the thread waits, and
    /// then does that.
    pub(super) fn commits(&mut self, number: u32) -> Option<Stage> {
        let thread = &self.threads[number as usize];
        let (inode, task) = (thread.open, thread.task);
        let block = self.inodes.table_block(inode);
        if let Some(journal) = &mut self.journal {
            let transaction = match (thread.keeps_lock, self.variant.fsync_has_handle) {
                (true, _) => thread.transaction,
                (false, true) if journal.has_changes() => journal.running(),
                (false, _) => self.files.get(inode).changed_in,
            };
            let waits = journal.wait_for(transaction, number);
            self.commit_if_wanted();
            // A commit has emptied the drive's cache.
            return waits.then_some(match self.variant.barrier {
                true => Stage::Over,
                false => Stage::Flushes,
            });
        }
        if self.home.is_written(block) {
            return None;
        }
        self.home.wait(block, number);
        self.write_home(vec![block], task, true);
        Some(Stage::Commits)
    }

    /// The drive's cache, if nothing has emptied it. True: the thread waits.
    pub(super) fn flushes(&mut self, number: u32) -> bool {
        let is_fsync = !self.threads[number as usize].keeps_lock;
        let empties = is_fsync && (self.variant.barrier || !self.variant.is_journaled);
        if empties {
            self.flush_for(number);
        }
        empties
    }

    /// All files' data. True: the thread waits.
    pub(super) fn syncs_all(&mut self, number: u32) -> bool {
        while let Some(inode) = self.files.oldest_dirty(Time::MAX) {
            self.write_back(inode, self.flusher_task, true);
        }
        let waits = self.files.unwritten_pages() > 0;
        if waits {
            self.all_waiting.push(number);
        }
        waits
    }

    /// All that describes them.
    pub(super) fn commits_all(&mut self, number: u32) -> Option<Stage> {
        if let Some(journal) = &mut self.journal {
            let waits = journal.wait_for(journal.last(), number);
            self.commit_if_wanted();
            return waits.then_some(Stage::Over);
        }
        self.write_home(self.home.expired(Time::MAX), self.flusher_task, true);
        if self.home.is_clean() {
            return None;
        }
        self.all_waiting.push(number);
        Some(Stage::CommitsAll)
    }

    /// The file's pages are on the drive.
    pub(super) fn data_is_written(&mut self, inode: u64) {
        let waiting = std::mem::take(&mut self.files.get_mut(inode).waiting);
        if self.files.is_unlinked(inode) {
            self.free(inode);
        }
        let journal = self.journal.as_mut();
        if journal.is_some_and(|journal| journal.data_written(inode)) {
            self.write_log();
        }
        self.wake(waiting);
        if !self.holds_writers() {
            let throttled = std::mem::take(&mut self.throttled);
            self.wake(throttled);
        }
        self.flush_if_over();
        self.all_may_be_written();
    }

    /// Who syncs all looks again when no page is unwritten, or nothing is to be written in place.
    pub(super) fn all_may_be_written(&mut self) {
        if self.files.unwritten_pages() == 0 || self.home.is_clean() {
            let waiting = std::mem::take(&mut self.all_waiting);
            self.wake(waiting);
        }
    }

    /// A thread that writes while twice as many pages as start writeback are dirty or on their way waits.
    pub(super) fn holds_writers(&self) -> bool {
        self.files.unwritten_pages() > 2 * self.background_pages
    }

    pub(super) fn flush_if_over(&mut self) {
        while self.files.unwritten_pages() > self.background_pages
            && let Some(inode) = self.files.oldest_dirty(Time::MAX)
        {
            self.write_back(inode, self.flusher_task, false);
        }
    }

    pub(super) fn commit_if_large(&mut self) {
        if let Some(journal) = &mut self.journal
            && journal.is_large()
        {
            journal.want_commit();
            self.commit_if_wanted();
        }
    }

    /// Whether the journal takes what the thread is about to change; if not, it waits for the oldest transaction to be in
    /// place (`__log_wait_for_space`).
    pub(super) fn has_room_for(&mut self, number: u32) -> bool {
        let Some(journal) = &mut self.journal else {
            return true;
        };
        if journal.has_room() {
            return true;
        }
        self.without_room.push(number);
        self.make_room();
        false
    }

    fn make_room(&mut self) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        let oldest = journal.oldest();
        if oldest.iter().any(|&block| journal.holds(block)) || oldest.is_empty() {
            journal.want_commit();
            self.commit_if_wanted();
        }
        self.write_home(oldest, self.journal_task, true);
    }

    pub(super) fn room_may_be_there(&mut self) {
        if self.without_room.is_empty() {
            return;
        }
        if self.journal.as_ref().is_some_and(|journal| journal.has_room()) {
            let waiting = std::mem::take(&mut self.without_room);
            self.wake(waiting);
        } else {
            self.make_room();
        }
    }

    /// Timers run while there is something that they are for.
    pub(super) fn arm(&mut self) {
        if !std::mem::replace(&mut self.is_armed, true) {
            let at = self.now + LOOK_EVERY_NS;
            self.timers.put(at, Timer::WriteBack);
        }
        if self.variant.is_journaled && !std::mem::replace(&mut self.is_commit_armed, true) {
            let at = self.now + COMMIT_EVERY_NS;
            self.timers.put(at, Timer::Commit);
        }
    }

    /// What has been dirty for too long is written.
    pub(super) fn look_for_expired(&mut self) {
        self.is_armed = false;
        if let Some(before) = self.now.checked_sub(EXPIRE_NS) {
            while let Some(inode) = self.files.oldest_dirty(before) {
                self.write_back(inode, self.flusher_task, false);
            }
            self.write_home(self.home.expired(before), self.flusher_task, false);
        }
        if self.files.has_dirty() || self.home.has_dirty() {
            self.arm();
        }
    }

    pub(super) fn commit_by_time(&mut self) {
        self.is_commit_armed = false;
        if let Some(journal) = &mut self.journal {
            journal.want_commit();
            self.commit_if_wanted();
        }
    }
}
