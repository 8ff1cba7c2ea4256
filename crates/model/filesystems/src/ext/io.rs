//! I/O on the drive: what is on its way, and what its end leads to.

use super::Ext;
use super::journal::{CommitStep, Journal};
use crate::effect::{BlockIo, Effect, FlushNumber, Submitter};
use block_layer::{Direction, Priority, TaskId};
use events::smp::TaskNumber;
use events::time::{SECOND, Time};

/// What a write is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// A file's, by its inode.
    Data(u64),
    /// A piece of the transaction that commits.
    Log,
    /// Blocks of metadata in a row, in place.
    Home { block: u64, blocks: u32 },
}

/// The flush that a commit waits for; those of threads follow.
const OF_COMMIT: FlushNumber = 0;
/// Between two looks for what has been dirty for too long, and how long that is (`dirty_writeback_centisecs`,
/// `dirty_expire_centisecs`).
pub(super) const LOOK_EVERY_NS: Time = 5 * SECOND;
pub(super) const EXPIRE_NS: Time = 30 * SECOND;

impl Ext {
    fn write(&mut self, purpose: Purpose, task: TaskNumber, sync: bool, (block, blocks): (u64, u32)) {
        self.in_flight += 1;
        let tag = self.io.put(purpose).number();
        let writes_record = self.journal.as_ref().is_some_and(Journal::writes_record);
        let behind_flush = self.variant.barrier && writes_record && matches!(purpose, Purpose::Log);
        let priority = match purpose {
            Purpose::Log => self.variant.journal_priority,
            Purpose::Data(_) | Purpose::Home { .. } => Priority::default(),
        };
        self.effects.push(Effect::Io(BlockIo {
            tag,
            by: Submitter::Own(task),
            priority,
            direction: Direction::Write,
            sync,
            metadata: !matches!(purpose, Purpose::Data(_)),
            behind_flush,
            writeback: !matches!(purpose, Purpose::Log),
            block,
            blocks,
        }));
    }

    /// What of the file is dirty goes to the drive, on behalf of that task.
    pub(super) fn write_back(&mut self, inode: u64, task: TaskNumber, sync: bool) {
        let Some(dirty) = self.files.take_dirty(inode) else {
            return;
        };
        let file = self.files.get(inode).file;
        if !self.allocator.allocates_at_write() {
            // Room was kept for it, so that only what the map needs can fail; then the pages are lost.
            let _ = self.allocate(0, inode, (dirty.first, dirty.blocks));
        }
        let (mut at, end) = (dirty.first, dirty.first + dirty.blocks);
        self.files.begin_piece(inode);
        while at < end {
            let Some((physical, run)) = self.allocator.map(file, at) else {
                at += 1;
                continue;
            };
            let blocks = run.min(end - at);
            self.files.begin_piece(inode);
            self.write(Purpose::Data(inode), task, sync, (physical, blocks as u32));
            at += blocks;
        }
        if self.files.piece_done(inode) {
            self.data_is_written(inode);
        }
    }

    /// The blocks of the file get their places, and what describes these changes.
    pub(super) fn allocate(&mut self, task: TaskId, inode: u64, (first, blocks): (u64, u64)) -> Result<(), ()> {
        let file = self.files.get(inode).file;
        let tables = self.allocator.map_blocks(file);
        let result = self.allocator.allocate(task, file, first, blocks);
        let (mut at, end) = (first, first + blocks);
        while at < end {
            let run = match self.allocator.map(file, at) {
                Some((physical, run)) => {
                    self.change_bitmaps(physical);
                    run
                }
                None => 1,
            };
            at += run;
        }
        for table in self.allocator.map_blocks(file) {
            if !tables.contains(&table) {
                self.change_bitmaps(table);
            }
            self.change(table);
        }
        self.touch(inode);
        if let Some(journal) = self.journal.as_mut().filter(|_| self.variant.orders_data) {
            journal.orders(inode);
        }
        result.map_err(|_| ())
    }

    /// Those of the blocks that are dirty and in no transaction go to their places.
    pub(super) fn write_home(&mut self, blocks: Vec<u64>, task: TaskNumber, sync: bool) {
        let journal = self.journal.as_ref();
        let free = |block: &u64| journal.is_none_or(|journal| !journal.holds(*block));
        let runs = self.home.begin(blocks.into_iter().filter(free));
        for (block, count) in runs {
            let purpose = Purpose::Home { block, blocks: count };
            self.write(purpose, task, sync, (block, count));
        }
    }

    /// I/O of that tag has ended.
    pub(super) fn io_ended(&mut self, tag: u32) {
        self.in_flight -= 1;
        let id = self.io.id(tag);
        match self.io.take(id) {
            Purpose::Data(inode) => {
                if self.files.piece_done(inode) {
                    self.data_is_written(inode);
                }
            }
            Purpose::Log => self.log_piece_written(),
            Purpose::Home { block, blocks } => {
                let mut woken = Vec::new();
                for block in block..block + u64::from(blocks) {
                    woken.extend(self.home.written(block));
                    // One that was committed again meanwhile has another write to come.
                    if let Some(journal) = &mut self.journal
                        && !self.home.is_dirty(block)
                    {
                        journal.in_place(block);
                    }
                }
                self.wake(woken);
                self.room_may_be_there();
                self.all_may_be_written();
            }
        }
    }

    /// The running transaction commits if it is time, and the current commit continues.
    pub(super) fn commit_if_wanted(&mut self) {
        let (journal, now) = (self.journal.as_mut(), self.now);
        let Some(files) = journal.and_then(|journal| journal.begin_commit(now)) else {
            return;
        };
        for &inode in &files {
            self.write_back(inode, self.journal_task, true);
        }
        let Some(journal) = &mut self.journal else {
            return;
        };
        let Some(committing) = &mut journal.committing else {
            return;
        };
        // Those whose last piece is still on its way are waited for.
        let pending = &self.files;
        committing.files.retain(|&inode| pending.is_in_flight(inode));
        if committing.step == CommitStep::Data && committing.files.is_empty() {
            self.write_log();
        }
    }

    pub(super) fn write_log(&mut self) {
        let journal = self.journal.as_mut().expect("a transaction commits");
        let places = journal.begin_log();
        self.write_to_journal(&places);
    }

    fn write_to_journal(&mut self, places: &[(u64, u64)]) {
        let journal = self.journal.as_ref().expect("a transaction commits");
        let file = journal.file;
        let mut pieces = Vec::new();
        for &(first, blocks) in places {
            let (mut at, end) = (first, first + blocks);
            while at < end {
                let (physical, run) = self.allocator.map(file, at).expect("it has its blocks");
                let here = run.min(end - at);
                pieces.push((physical, here as u32));
                at += here;
            }
        }
        let journal = self.journal.as_mut().expect("a transaction commits");
        let committing = journal.committing.as_mut().expect("one commits");
        committing.left = pieces.len() as u32;
        for piece in pieces {
            self.write(Purpose::Log, self.journal_task, true, piece);
        }
    }

    fn log_piece_written(&mut self) {
        let (barrier, fua) = (self.variant.barrier, self.variant.fua);
        let journal = self.journal.as_mut().expect("it has a log");
        let committing = journal.committing.as_mut().expect("one commits");
        committing.left -= 1;
        if committing.left > 0 {
            return;
        }
        match (committing.step, barrier) {
            (CommitStep::Log, true) => {
                committing.step = CommitStep::FlushBefore;
                self.flush(OF_COMMIT);
            }
            (CommitStep::Log, false) => self.write_record(),
            (_, true) if !fua => {
                committing.step = CommitStep::FlushAfter;
                self.flush(OF_COMMIT);
            }
            (_, _) => self.is_committed(),
        }
    }

    fn write_record(&mut self) {
        let journal = self.journal.as_mut().expect("a transaction commits");
        let places = journal.begin_record();
        self.write_to_journal(&places);
    }

    fn is_committed(&mut self) {
        let now = self.now;
        let journal = self.journal.as_mut().expect("a transaction commits");
        let (blocks, woken) = journal.committed(now);
        blocks.into_iter().for_each(|block| self.home.dirty(block, now));
        self.wake(woken);
        self.room_may_be_there();
        self.commit_if_wanted();
        self.all_may_be_written();
    }

    fn flush(&mut self, number: FlushNumber) {
        self.in_flight += 1;
        self.effects.push(Effect::Flush(number));
    }

    pub(super) fn flush_for(&mut self, thread: u32) {
        self.flush(OF_COMMIT + 1 + thread);
    }

    /// The drive's cache is on the medium.
    pub(super) fn flush_ended(&mut self, number: FlushNumber) {
        self.in_flight -= 1;
        if let Some(thread) = number.checked_sub(OF_COMMIT + 1) {
            return self.go_on(thread, None);
        }
        let journal = self.journal.as_ref().expect("a transaction commits");
        match journal.committing.as_ref().map(|committing| committing.step) {
            Some(CommitStep::FlushBefore) => self.write_record(),
            _ => self.is_committed(),
        }
    }
}
