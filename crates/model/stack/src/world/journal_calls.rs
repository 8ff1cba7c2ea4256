//! Commits of the journals of ext3 and ext4 that a load's fsync waits for: their writes and flushes on the drive.

use super::World;
use super::cpus::{Cost, Origin};
use super::filesystem_calls::OF_FILESYSTEM;
use super::operations::has_data_to_write;
use super::vfs::{CheckpointWork, FileExtent, JournalWrite, LoadJournal, NextStep, Page, SyncDemand};
use crate::key_reader::KeyReader;
use block_layer::{Bio, Direction, KERNEL_TASKS, TaskId};
use events::time::Time;
use memory::cache::{FileId, Io, PAGE_BYTES, PageCache};
use std::ops::Range;
use workload::job::{Op, OpKind};

/// Who waits for a drive's flush on behalf of its journal, and of a checkpoint.
const FLUSHES: TaskId = KERNEL_TASKS + (1 << 27);
const CHECKPOINT_FLUSHES: TaskId = FLUSHES + 1;
/// What a bio of the journal is of.
const OF_COMMIT: u32 = 0;
const OF_CHECKPOINT: u32 = 1;

impl World {
    /// The same with a journal on a drive with ext3 or ext4.
    pub fn with_load_journal(mut self, drive: usize, journal: LoadJournal) -> World {
        self.vfs.add_journal(drive, journal);
        self
    }

    /// Whether the task waits for a commit of the drive's journal before its sync is over.
    pub(super) fn commits_for(&mut self, now: Time, drive: usize, task: TaskId, changes: SyncDemand) -> bool {
        if !self.vfs.has_journal(drive) {
            return false;
        }
        if !self.vfs.journal_mut(drive).wait(task, changes) {
            return false;
        }
        self.touched.insert(KeyReader::MetadataJournal(drive as u16));
        if !self.vfs.journal_mut(drive).commits() {
            self.wake_journal(now, drive);
        }
        true
    }

    /// Whether the task, which reads or writes the file, waits before the file's times can change.
    pub(super) fn is_kept_out(&mut self, now: Time, task: TaskId, file: FileId, op: &Op) -> bool {
        let drive = self.vfs.file(file).drive;
        if !self.vfs.has_journal(drive) {
            return false;
        }
        if has_data_to_write(op.kind) {
            let gets_blocks =
                self.vfs.journals_data(drive) && self.vfs.lacks_blocks(file, op.offset, u64::from(op.bytes));
            let journal = self.vfs.journal_mut(drive);
            return journal.keeps_data_out(task, file, pages_of(op))
                || (gets_blocks || self.vfs.syncs().would_change(now, file))
                    && self.vfs.journal_mut(drive).keeps_out(task, file);
        }
        op.kind == OpKind::Read
            && self.vfs.syncs().read_would_change(now, file)
            && self.vfs.journal_mut(drive).keeps_out(task, file)
    }

    /// Whether the task, which was woken by the end of a commit, waits for another.
    pub(super) fn awaits_commit(&mut self, task: TaskId, file: FileId) -> bool {
        let drive = self.vfs.file(file).drive;
        self.vfs.has_journal(drive) && self.vfs.journal_mut(drive).awaits(task)
    }

    /// Whether the task, which writes to the file, waits for room in the log of `data=journal`. `make_room_in_log` follows.
    pub(super) fn lacks_room_in_log(&mut self, task: TaskId, file: FileId, op: &Op) -> bool {
        let drive = self.vfs.file(file).drive;
        let has_written = |cache: &PageCache| cache.has_written(task);
        if !self.vfs.journals_data(drive) || self.vfs.cache().is_some_and(has_written) {
            return false;
        }
        self.touched.insert(KeyReader::MetadataJournal(drive as u16));
        let pages = pages_of(op);
        let count = (pages.end - pages.start) as u32;
        self.vfs.journal_mut(drive).lacks_room(task, count)
    }

    /// Somebody waits for room in the log: a commit or a checkpoint makes it, unless one is under way.
    pub(super) fn make_room_in_log(&mut self, now: Time, drive: usize) {
        if let Some(work) = self.vfs.journal_mut(drive).begin_checkpoint() {
            self.follow_checkpoint(now, drive, work);
        }
        self.commit_if_wanted(now, drive);
    }

    fn commit_if_wanted(&mut self, now: Time, drive: usize) {
        let journal = self.vfs.journal_mut(drive);
        if journal.wants_commit() && !journal.commits() {
            self.wake_journal(now, drive);
        }
    }

    /// Whether a write of pages in place has to wait for the commit of what has them; that is wanted then.
    pub(super) fn waits_for_commit(&mut self, now: Time, drive: usize, io: &Io) -> bool {
        let journal = self.vfs.journal_mut(drive);
        let waits = journal.is_uncommitted(io.file, io.page..io.page + u64::from(io.pages));
        if waits {
            journal.want_commit();
            self.vfs.cache_io_mut().waits_for_commit(drive, *io);
            self.commit_if_wanted(now, drive);
        }
        waits
    }

    /// Where the pages of a write lie that are not in place.
    pub(super) fn extents_not_in_place(
        &mut self,
        drive: usize,
        io: &Io,
        sectors_max: u32,
        found: &mut Vec<FileExtent>,
    ) {
        let mut pages = Vec::new();
        for page in io.page..io.page + u64::from(io.pages) {
            let page = (io.file, page);
            if self.vfs.journal_mut(drive).begin_in_place(page) {
                self.vfs.cache_io_mut().brings_in_place(io.tag, page);
                pages.push(page);
            }
        }
        self.extents_of_pages(&pages, sectors_max, found);
    }

    /// Pages that follow one another are in one extent.
    fn extents_of_pages(&self, pages: &[Page], sectors_max: u32, found: &mut Vec<FileExtent>) {
        for run in pages.chunk_by(|one, next| (one.0, one.1 + 1) == *next) {
            let (file, first) = run[0];
            let bytes = run.len() as u64 * PAGE_BYTES;
            self.vfs.extents_of(file, first * PAGE_BYTES, bytes, sectors_max, found);
        }
    }

    /// The cache's I/O of that tag is over.
    pub(super) fn are_in_place(&mut self, now: Time, tag: u32) {
        let pages = self.vfs.cache_io_mut().take_in_place(tag);
        if let Some(&(file, _)) = pages.first() {
            let drive = self.vfs.file(file).drive;
            self.vfs.journal_mut(drive).end_in_place(pages);
            self.make_room_in_log(now, drive);
        }
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
        if let Some(write) = journal.take_prepared() {
            self.write_journal(now, drive, write, OF_COMMIT);
        } else if journal.commits() {
            let step = self.vfs.journal_mut(drive).next_step();
            self.follow(now, drive, step);
        } else {
            self.begin_commit(now, drive);
        }
    }

    fn begin_commit(&mut self, now: Time, drive: usize) {
        let Some(step) = self.vfs.journal_mut(drive).begin_commit() else {
            return;
        };
        let prepares_ns = self.vfs.journal_mut(drive).prepares_ns();
        if let (NextStep::Write(write), Some(ns)) = (&step, prepares_ns) {
            let (task, of) = (self.journal_task(drive), Origin::Journal(drive as u16));
            self.vfs.journal_mut(drive).prepares(write.clone());
            if self.works_for(now, task, of, Cost::Ns(ns)) {
                return;
            }
            self.vfs.journal_mut(drive).take_prepared();
            self.vfs.journal_mut(drive).goes_on();
        }
        self.follow(now, drive, step);
    }

    fn write_journal(&mut self, now: Time, drive: usize, write: JournalWrite, of: u32) {
        let task = self.journal_task(drive);
        // `submit_bio_noacct` takes the flush away for a drive without a volatile cache (`block/blk-core.c` of 6.1).
        let flushes = self.io[drive].flushes();
        let behind_flush = write.behind_flush && flushes;
        let force_unit_access = write.force_unit_access && flushes;
        let priority = self.vfs.journal_mut(drive).priority();
        let sectors_max = self.io[drive].bio_sectors_max();
        let mut parts = Vec::new();
        for place in write.places {
            place.parts(sectors_max, &mut parts);
        }
        let bios = parts.len() as u32;
        match of {
            OF_CHECKPOINT => self.vfs.journal_mut(drive).checkpoint_has(bios),
            _ => self.vfs.journal_mut(drive).commit_has(bios),
        }
        for place in parts {
            let bio = Bio {
                metadata: true,
                behind_flush,
                force_unit_access,
                priority,
                ..self.bio(now, task, Direction::Write, true, place, OF_FILESYSTEM | of)
            };
            self.submit(now, drive, bio);
        }
        self.send_to_drive(now, drive);
    }

    /// A bio of the journal's commit, or of its checkpoint, has ended.
    pub(super) fn journal_bio_done(&mut self, now: Time, drive: usize, of: u32) {
        let journal = self.vfs.journal_mut(drive);
        if of == OF_CHECKPOINT {
            if journal.checkpoint_bio_done() {
                self.checkpoint_goes_on(now, drive);
            }
        } else if journal.bio_done() {
            self.wake_journal(now, drive);
        }
    }

    /// True: the drive's cache was emptied for its journal.
    pub(super) fn flushed_for_journal(&mut self, now: Time, drive: usize, task: TaskId) -> bool {
        match task {
            FLUSHES => self.journal_goes_on(now, drive),
            CHECKPOINT_FLUSHES => self.checkpoint_goes_on(now, drive),
            _ => return false,
        }
        true
    }

    fn checkpoint_goes_on(&mut self, now: Time, drive: usize) {
        match self.vfs.journal_mut(drive).next_of_checkpoint() {
            Some(work) => self.follow_checkpoint(now, drive, work),
            None => self.commit_if_wanted(now, drive),
        }
    }

    fn follow_checkpoint(&mut self, now: Time, drive: usize, work: CheckpointWork) {
        match work {
            CheckpointWork::Pages(pages) => self.write_checkpoint(now, drive, &pages),
            CheckpointWork::Write(write) => self.write_journal(now, drive, write, OF_CHECKPOINT),
            CheckpointWork::Flush => {
                let waits = self.io[drive].flush_for(now, CHECKPOINT_FLUSHES);
                self.call_drive(now, drive);
                if !waits {
                    self.checkpoint_goes_on(now, drive);
                }
            }
            CheckpointWork::Over => self.let_in(now, drive),
        }
    }

    /// Pages of the oldest transaction go to their places. *Simplified*: on the account of the journal's thread.
    fn write_checkpoint(&mut self, now: Time, drive: usize, pages: &[Page]) {
        let mut found = Vec::new();
        let sectors_max = self.io[drive].write_bio_sectors_max();
        self.extents_of_pages(pages, sectors_max, &mut found);
        let journal = self.vfs.journal_mut(drive);
        journal.checkpoint_has(found.len() as u32);
        let task = self.journal_task(drive);
        for place in found {
            let tag = OF_FILESYSTEM | OF_CHECKPOINT;
            let bio = self.bio(now, task, Direction::Write, true, place, tag);
            self.submit(now, drive, bio);
        }
        self.send_to_drive(now, drive);
    }

    fn send_to_drive(&mut self, now: Time, drive: usize) {
        self.flush_task_plug(now);
        self.io[drive].unplug(now);
        self.call_drive(now, drive);
    }

    fn let_in(&mut self, now: Time, drive: usize) {
        for task in self.vfs.journal_mut(drive).take_let_in() {
            self.unblock(now, task);
        }
    }

    /// What waited for the commit that is over: writes of pages in place, and who makes room.
    fn after_commit(&mut self, now: Time, drive: usize) {
        if !self.vfs.journals_data(drive) {
            return;
        }
        let writes = self.vfs.cache_io_mut().take_behind_commit(drive);
        for io in &writes {
            self.start_cache_io(now, io);
        }
        if !writes.is_empty() {
            self.send_to_drive(now, drive);
        }
        self.make_room_in_log(now, drive);
    }

    fn follow(&mut self, now: Time, drive: usize, mut step: NextStep) {
        loop {
            self.let_in(now, drive);
            match step {
                NextStep::Write(write) => return self.write_journal(now, drive, write, OF_COMMIT),
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
                    for task in self.vfs.journal_mut(drive).wait_on() {
                        self.unblock(now, task);
                    }
                    self.begin_commit(now, drive);
                    return self.after_commit(now, drive);
                }
            }
            step = self.vfs.journal_mut(drive).next_step();
        }
    }
}

fn pages_of(op: &Op) -> Range<u64> {
    let end = (op.offset + u64::from(op.bytes)).div_ceil(PAGE_BYTES);
    op.offset / PAGE_BYTES..end
}
