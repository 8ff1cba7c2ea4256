//! Commits of the journals of ext3 and ext4 that a load's fsync waits for: their writes and flushes on the drive.

use super::World;
use super::cpus::Origin;
use super::filesystem_calls::OF_FILESYSTEM;
use super::vfs::{JournalWrite, LoadJournal, NextStep, SyncDemand};
use crate::key_reader::KeyReader;
use block_layer::{Bio, Direction, KERNEL_TASKS, TaskId};
use events::time::Time;
use memory::cache::FileId;

/// Who waits for a drive's flush on behalf of its journal.
const FLUSHES: TaskId = KERNEL_TASKS + (1 << 27);

impl World {
    /// The same with a journal on a drive with ext3 or ext4.
    pub fn with_load_journal(mut self, drive: usize, journal: LoadJournal) -> World {
        self.vfs.add_journal(drive, journal);
        self
    }

    /// Whether the task waits for a commit of the drive's journal before its sync is over.
    pub(super) fn commits_for(
        &mut self,
        now: Time,
        drive: usize,
        task: TaskId,
        changes: SyncDemand,
    ) -> bool {
        if !self.vfs.has_journal(drive) {
            return false;
        }
        if !self.vfs.journal_mut(drive).wait(task, changes) {
            return false;
        }
        self.touched
            .insert(KeyReader::MetadataJournal(drive as u16));
        if !self.vfs.journal_mut(drive).commits() {
            self.wake_journal(now, drive);
        }
        true
    }

    /// Whether the task, which writes to the file, waits before the file's times can change.
    pub(super) fn is_kept_out(&mut self, now: Time, task: TaskId, file: FileId) -> bool {
        let drive = self.vfs.file(file).drive;
        self.vfs.has_journal(drive)
            && self.vfs.syncs().would_change(now, file)
            && self.vfs.journal_mut(drive).keeps_out(task, file)
    }

    /// kjournald is woken: it continues when it has had a CPU, on simple ones. A fast commit goes on in the task that syncs.
    fn wake_journal(&mut self, now: Time, drive: usize) {
        if self.vfs.journal_mut(drive).commits_in_caller() {
            return self.journal_goes_on(now, drive);
        }
        if !self.vfs.journal_mut(drive).wakes() {
            return;
        }
        let task = self.journal_task(drive);
        if !self.works_as_kernel_thread(now, task, Origin::Journal(drive as u16)) {
            self.journal_goes_on(now, drive);
        }
    }

    /// With the step that is done, or with a commit that somebody waits for.
    pub(super) fn journal_goes_on(&mut self, now: Time, drive: usize) {
        let journal = self.vfs.journal_mut(drive);
        journal.goes_on();
        if journal.commits() {
            let step = self.vfs.journal_mut(drive).next_step();
            self.follow(now, drive, step);
        } else {
            self.begin_commit(now, drive);
        }
    }

    fn begin_commit(&mut self, now: Time, drive: usize) {
        if let Some(step) = self.vfs.journal_mut(drive).begin_commit() {
            self.follow(now, drive, step);
        }
    }

    fn write_journal(&mut self, now: Time, drive: usize, write: JournalWrite) {
        let task = self.journal_task(drive);
        // `submit_bio_noacct` takes the flush away for a drive without a volatile cache (`block/blk-core.c` of 6.1).
        let behind_flush = write.behind_flush && self.io[drive].flushes();
        let priority = self.vfs.journal_mut(drive).priority();
        for place in write.places {
            let bio = Bio {
                metadata: true,
                behind_flush,
                force_unit_access: behind_flush,
                priority,
                ..self.bio(now, task, Direction::Write, true, place, OF_FILESYSTEM)
            };
            self.submit(now, drive, bio);
        }
        self.flush_task_plug(now);
        self.io[drive].unplug(now);
        self.call_drive(now, drive);
    }

    /// A bio of the journal has ended.
    pub(super) fn journal_bio_done(&mut self, now: Time, drive: usize) {
        if self.vfs.journal_mut(drive).bio_done() {
            self.wake_journal(now, drive);
        }
    }

    /// True: the drive's cache was emptied for its journal.
    pub(super) fn flushed_for_journal(&mut self, now: Time, drive: usize, task: TaskId) -> bool {
        let is = task == FLUSHES;
        if is {
            self.journal_goes_on(now, drive);
        }
        is
    }

    fn follow(&mut self, now: Time, drive: usize, mut step: NextStep) {
        loop {
            for task in self.vfs.journal_mut(drive).take_let_in() {
                self.unblock(now, task);
            }
            match step {
                NextStep::Write(write) => return self.write_journal(now, drive, write),
                NextStep::Flush => {
                    let waits = self.io[drive].flush_for(now, FLUSHES);
                    self.call_drive(now, drive);
                    if waits {
                        return;
                    }
                }
                NextStep::Over(tasks) => {
                    for task in tasks {
                        self.sync_goes_on(now, task);
                    }
                    return self.begin_commit(now, drive);
                }
            }
            step = self.vfs.journal_mut(drive).next_step();
        }
    }
}
