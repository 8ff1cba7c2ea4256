//! The journal of ext3 and ext4 under a load: what an fsync has it write (`fs/jbd2/commit.c` and
//! `fs/ext4/fsync.c` of 6.1).
//!
//! Descriptor and changed blocks go to the journal in a row, then with barriers a flush, the record of the commit, and a flush
//! again. Who syncs while one commits shares the next. Commits that nobody waits for write no blocks here.

use super::World;
use super::files::FileExtent;
use super::mounted_filesystem::OF_FILESYSTEM;
use super::syncs::ToCommit;
use crate::key_reader::KeyReader;
use block_layer::{Bio, Direction, KERNEL_TASKS, TaskId};
use events::time::Time;

/// A journal, and who waits for it.
#[derive(Clone, Debug)]
pub struct LoadJournal {
    /// Where it lies on the drive, in blocks of 4 KiB.
    first: u64,
    blocks: u32,
    head: u32,
    barrier: bool,
    step: Option<CommitStep>,
    /// Bios of the step that are under way.
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

/// Who waits for a drive's flush on behalf of its journal.
const FLUSHES: TaskId = KERNEL_TASKS + (1 << 27);
const SECTORS_PER_BLOCK: u32 = 8;

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

    /// The next blocks of it: first and how many. A run goes on at its beginning.
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
}

impl World {
    /// The same with a journal on a drive with ext3 or ext4.
    pub fn with_load_journal(mut self, drive: usize, journal: LoadJournal) -> World {
        self.journals.insert(drive, journal);
        self
    }

    /// Whether an fsync that has nothing to commit empties the drive's cache: mounted with `nobarrier`, ext3 and ext4 do not.
    pub(super) fn fsync_flushes(&self, drive: usize) -> bool {
        self.filesystems.contains_key(&drive)
            || self
                .journals
                .get(&drive)
                .is_none_or(|journal| journal.barrier)
    }

    /// Whether the task waits for a commit of the drive's journal before its sync is over.
    pub(super) fn commits_for(
        &mut self,
        now: Time,
        drive: usize,
        task: TaskId,
        changes: ToCommit,
    ) -> bool {
        if self.filesystems.contains_key(&drive) {
            return false;
        }
        let Some(journal) = self.journals.get_mut(&drive) else {
            return false;
        };
        journal.waiting.push(task);
        journal.metadata_blocks += changes.metadata_blocks;
        self.touched
            .insert(KeyReader::MetadataJournal(drive as u16));
        self.begin_commit(now, drive);
        true
    }

    fn begin_commit(&mut self, now: Time, drive: usize) {
        let journal = self.journals.get_mut(&drive).expect("it has one");
        if journal.step.is_some() || journal.waiting.is_empty() {
            return;
        }
        journal.committing = std::mem::take(&mut journal.waiting);
        journal.step = Some(CommitStep::Log);
        let count = 1 + std::mem::take(&mut journal.metadata_blocks);
        let places = journal.take(count);
        self.write_journal(now, drive, places);
    }

    fn write_journal(&mut self, now: Time, drive: usize, places: Vec<(u64, u32)>) {
        let journal = self.journals.get_mut(&drive).expect("it has one");
        journal.left = places.len() as u32;
        let behind_flush = journal.barrier && journal.step == Some(CommitStep::Record);
        let task = self.journal_task(drive);
        for (block, blocks) in places {
            let place = FileExtent {
                start: block * u64::from(SECTORS_PER_BLOCK),
                sectors: blocks * SECTORS_PER_BLOCK,
                at: 0,
            };
            let bio = Bio {
                metadata: true,
                behind_flush,
                ..self.bio(now, task, Direction::Write, true, place, OF_FILESYSTEM)
            };
            self.submit(now, drive, bio);
        }
        self.flush_task_plug(now);
        self.drives[drive].unplug(now);
        self.call_drive(now, drive);
    }

    /// A bio of the journal has ended.
    pub(super) fn journal_bio_done(&mut self, now: Time, drive: usize) {
        let journal = self.journals.get_mut(&drive).expect("it has one");
        journal.left -= 1;
        if journal.left == 0 {
            self.next_step(now, drive);
        }
    }

    /// True: the drive's cache was emptied for its journal.
    pub(super) fn flushed_for_journal(&mut self, now: Time, drive: usize, task: TaskId) -> bool {
        let is = task == FLUSHES;
        if is {
            self.next_step(now, drive);
        }
        is
    }

    fn next_step(&mut self, now: Time, drive: usize) {
        loop {
            let journal = self.journals.get_mut(&drive).expect("it has one");
            let next = match (journal.step.expect("one commits"), journal.barrier) {
                (CommitStep::Log, true) => Some(CommitStep::FlushBefore),
                (CommitStep::Log, false) | (CommitStep::FlushBefore, _) => Some(CommitStep::Record),
                (CommitStep::Record, true) => Some(CommitStep::FlushAfter),
                (CommitStep::Record, false) | (CommitStep::FlushAfter, _) => None,
            };
            journal.step = next;
            match next {
                Some(CommitStep::Record) => {
                    let places = journal.take(1);
                    return self.write_journal(now, drive, places);
                }
                Some(_) => {
                    let waits = self.drives[drive].flush_for(now, FLUSHES);
                    self.call_drive(now, drive);
                    if waits {
                        return;
                    }
                }
                None => break,
            }
        }
        let journal = self.journals.get_mut(&drive).expect("it has one");
        for task in std::mem::take(&mut journal.committing) {
            self.sync_goes_on(now, task);
        }
        self.begin_commit(now, drive);
    }
}
