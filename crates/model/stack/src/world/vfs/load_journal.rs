//! The journal of ext3 and ext4 under a load: what an fsync has it write (`fs/jbd2/commit.c` and
//! `fs/ext4/fsync.c` of 6.1).
//!
//! Descriptor and changed blocks go to the journal in a row, then with barriers a flush, the record of the commit, and a flush
//! again. Who syncs while one commits shares the next. Commits that no task waits for write no blocks here.

use block_layer::{SECTOR_BYTES, TaskId};
use filesystems::allocator::BLOCK_BYTES;

use super::file::FileExtent;

/// A journal, and who waits for it.
///
/// Whoever has it does what its steps ask for and reports when a bio (`bio_done`) or a flush (`next_step`) has ended.
#[derive(Clone, Debug)]
pub struct LoadJournal {
    /// Where it lies on the drive, in blocks of 4 KiB.
    first: u64,
    blocks: u32,
    head: u32,
    barrier: bool,
    step: Option<CommitStep>,
    /// Bios of the step that are in flight.
    left: u32,
    committing: Vec<TaskId>,
    waiting: Vec<TaskId>,
    /// What the next commit changes.
    metadata_blocks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitStep {
    Log,
    FlushBefore,
    Record,
    FlushAfter,
}

/// What comes next of a commit.
pub(in crate::world) enum NextStep {
    /// These have to be written.
    Write(JournalWrite),
    /// The drive's cache has to be emptied.
    Flush,
    /// Nothing: these tasks have waited for it.
    Over(Vec<TaskId>),
}

/// Blocks of a journal that are to be written.
pub(in crate::world) struct JournalWrite {
    pub(in crate::world) places: Vec<FileExtent>,
    /// Only after a flush that it waited for.
    pub(in crate::world) behind_flush: bool,
}

const SECTORS_PER_BLOCK: u64 = BLOCK_BYTES / SECTOR_BYTES;

impl LoadJournal {
    /// In the middle of a filesystem of that many blocks, where mke2fs puts it (`ext2fs_add_journal_inode`).
    pub fn new(filesystem_blocks: u64, blocks: u32, barrier: bool) -> LoadJournal {
        let first = filesystem_blocks / 2;
        let room = (filesystem_blocks - first).min(u64::from(blocks));
        LoadJournal {
            first,
            blocks: room.max(8) as u32,
            head: 0,
            barrier,
            step: None,
            left: 0,
            committing: Vec::new(),
            waiting: Vec::new(),
            metadata_blocks: 0,
        }
    }

    /// The next blocks of it: first and how many. A run continues at its beginning.
    fn take(&mut self, count: u32) -> Vec<(u64, u32)> {
        let count = count.min(self.blocks);
        let here = count.min(self.blocks - self.head);
        let mut found = vec![(self.first + u64::from(self.head), here)];
        if here < count {
            found.push((self.first, count - here));
        }
        self.head = (self.head + count) % self.blocks;
        found
    }
    /// An fsync that has nothing to commit empties the drive's cache.
    pub(super) fn has_barrier(&self) -> bool {
        self.barrier
    }

    /// The task waits for the next commit, which writes this many blocks more.
    pub(in crate::world) fn wait(&mut self, task: TaskId, metadata_blocks: u32) {
        self.waiting.push(task);
        self.metadata_blocks += metadata_blocks;
    }

    /// The first write of a commit, if a task waits for one and none is in flight.
    pub(in crate::world) fn begin_commit(&mut self) -> Option<JournalWrite> {
        if self.step.is_some() || self.waiting.is_empty() {
            return None;
        }
        self.committing = std::mem::take(&mut self.waiting);
        self.step = Some(CommitStep::Log);
        let count = 1 + std::mem::take(&mut self.metadata_blocks);
        Some(self.write(count))
    }

    /// A bio has ended. True: it was the last of its step.
    pub(in crate::world) fn bio_done(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// The current step is done.
    pub(in crate::world) fn next_step(&mut self) -> NextStep {
        let next = match (self.step.expect("one commits"), self.barrier) {
            (CommitStep::Log, true) => Some(CommitStep::FlushBefore),
            (CommitStep::Log, false) | (CommitStep::FlushBefore, _) => Some(CommitStep::Record),
            (CommitStep::Record, true) => Some(CommitStep::FlushAfter),
            (CommitStep::Record, false) | (CommitStep::FlushAfter, _) => None,
        };
        self.step = next;
        match next {
            Some(CommitStep::Record) => NextStep::Write(self.write(1)),
            Some(_) => NextStep::Flush,
            None => NextStep::Over(std::mem::take(&mut self.committing)),
        }
    }

    fn write(&mut self, blocks: u32) -> JournalWrite {
        let places: Vec<FileExtent> = self.take(blocks).into_iter().map(extent).collect();
        self.left = places.len() as u32;
        JournalWrite {
            places,
            behind_flush: self.barrier && self.step == Some(CommitStep::Record),
        }
    }
}

fn extent((block, blocks): (u64, u32)) -> FileExtent {
    FileExtent {
        start: block * SECTORS_PER_BLOCK,
        sectors: blocks * SECTORS_PER_BLOCK as u32,
        at: 0,
    }
}
