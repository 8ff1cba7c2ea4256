//! The journal of ext3 and ext4 under a load: what an fsync has it write (`fs/jbd2/commit.c` and
//! `fs/ext4/fsync.c` of 6.1).
//!
//! Descriptor and changed blocks go to the journal in a row, then with barriers a flush, the record of the commit, and a flush
//! again. A commit takes all that has changed: who syncs what it takes waits for it, and who syncs what changed since shares
//! the next. A block that is being written to the log is not changed meanwhile. Commits that no task waits for write no blocks
//! here.
//!
//! With fast commits whoever syncs writes what it and others have changed in short, behind a flush, to an area behind the
//! journal; the transaction goes on. When the area is full, the transaction commits.
//!
//! With `data=journal` a commit also has the pages that were written to (`checkpoints` has what is for these alone).

use std::collections::BTreeSet;

use block_layer::{Priority, SECTOR_BYTES, TaskId};
use events::time::Time;
use filesystems::allocator::BLOCK_BYTES;

use memory::cache::FileId;

use super::fast_commits::FastCommits;
use super::file::FileExtent;
use super::journaled_data::JournaledData;
use super::log_room::LogRoom;
use super::syncs::SyncDemand;

/// A journal, and who waits for it.
///
/// Whoever has it does what its steps ask for and reports when a bio (`bio_done`) or a flush (`next_step`) has ended.
#[derive(Clone, Debug)]
pub struct LoadJournal {
    /// Where it lies on the drive, in blocks of 4 KiB.
    pub(super) first: u64,
    blocks: u32,
    head: u32,
    pub(super) barrier: bool,
    /// The record is on the medium by itself: no flush follows it.
    pub(super) fua: bool,
    converts_after_writes: bool,
    priority: Priority,
    /// CPU time of whoever syncs a file that has got blocks.
    allocation_ns: Time,
    /// CPU time of its thread for a commit, and the write that the thread prepares in it: meanwhile blocks may still change
    /// (`b_frozen_data`).
    commit_ns: Time,
    prepared: Option<JournalWrite>,
    /// None: all commits are full.
    fast: Option<FastCommits>,
    /// `data=journal`; None: data are not in the log.
    pub(super) data: Option<JournaledData>,
    pub(super) room: LogRoom,
    step: Option<CommitStep>,
    /// The commit under way is a fast one.
    is_fast: bool,
    /// Its thread is about to go on.
    is_awake: bool,
    /// Bios of the step that are in flight.
    left: u32,
    committing: Vec<TaskId>,
    waiting: Vec<TaskId>,
    /// Who changes a block that is being written to the log.
    pub(super) kept_out: Vec<TaskId>,
    /// The number of the transaction that changes go to.
    running: u64,
    /// Blocks of inodes that the running transaction changes, and those of the transaction that commits.
    inodes: BTreeSet<u64>,
    committing_inodes: BTreeSet<u64>,
    inodes_in_block: u64,
    /// What else the next commit changes.
    metadata_blocks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitStep {
    Log,
    FlushBefore,
    Record,
    FlushAfter,
    /// The superblock gets to know which transactions are in place.
    Superblock,
    FlushSuperblock,
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
#[derive(Clone, Debug)]
pub(in crate::world) struct JournalWrite {
    pub(in crate::world) places: Vec<FileExtent>,
    /// Only after a flush that it waited for.
    pub(in crate::world) behind_flush: bool,
    /// On the medium when it is done, where the drive has that.
    pub(in crate::world) force_unit_access: bool,
}

#[cfg(test)]
impl JournalWrite {
    /// Their numbers on the drive.
    pub(super) fn blocks(&self) -> Vec<u64> {
        let of = |place: &FileExtent| {
            let first = place.start / SECTORS_PER_BLOCK;
            first..first + u64::from(place.sectors) / SECTORS_PER_BLOCK
        };
        self.places.iter().flat_map(of).collect()
    }
}

/// Of a filesystem below this size mke2fs makes blocks of 1 KiB (`small` in mke2fs.conf of e2fsprogs 1.47), each of four inodes.
const SMALL_BYTES: u64 = 512 << 20;
const INODE_BYTES: u64 = 256;
/// The first inode of a file (`EXT2_GOOD_OLD_FIRST_INO` has lost+found), counted from 0.
const FIRST_INODE: u64 = 11;

const SECTORS_PER_BLOCK: u64 = BLOCK_BYTES / SECTOR_BYTES;

impl LoadJournal {
    /// In the middle of a filesystem of that many blocks, where mke2fs puts it (`ext2fs_add_journal_inode`).
    /// `converts_after_writes`: blocks that are written back change in the transaction that runs when their data are on the
    /// drive (`ext4_end_io_end` of fs/ext4/page-io.c, 6.1); else when the data are sent. `priority`: that of its thread's I/O.
    pub fn new(
        filesystem_blocks: u64,
        blocks: u32,
        barrier: bool,
        fua: bool,
        converts_after_writes: bool,
        priority: Priority,
    ) -> LoadJournal {
        let first = filesystem_blocks / 2;
        let room = (filesystem_blocks - first).min(u64::from(blocks));
        LoadJournal {
            first,
            blocks: room.max(8) as u32,
            head: 0,
            barrier,
            fua,
            converts_after_writes,
            priority,
            allocation_ns: 0,
            commit_ns: 0,
            prepared: None,
            fast: None,
            data: None,
            room: LogRoom::default(),
            step: None,
            is_fast: false,
            is_awake: false,
            left: 0,
            committing: Vec::new(),
            waiting: Vec::new(),
            kept_out: Vec::new(),
            running: 1,
            inodes: BTreeSet::new(),
            committing_inodes: BTreeSet::new(),
            inodes_in_block: match filesystem_blocks * BLOCK_BYTES < SMALL_BYTES {
                true => 1024 / INODE_BYTES,
                false => BLOCK_BYTES / INODE_BYTES,
            },
            metadata_blocks: 0,
        }
    }

    /// The same with CPU time for each sync of a file that has got blocks, and for each commit.
    pub fn with_costs(mut self, allocation_ns: Time, commit_ns: Time) -> LoadJournal {
        (self.allocation_ns, self.commit_ns) = (allocation_ns, commit_ns);
        self
    }

    /// The same with fast commits, whose area lies behind it.
    pub fn with_fast_commits(mut self) -> LoadJournal {
        let area = FastCommits::area(self.blocks);
        self.first = self.first.saturating_sub(u64::from(area));
        let end = self.first + u64::from(self.blocks);
        self.fast = Some(FastCommits::new(end, area));
        self
    }

    /// The same with data in the log, of which a transaction has at most one of that many parts.
    pub fn with_journaled_data(mut self, parts: u32) -> LoadJournal {
        self.data = Some(JournaledData::new(self.blocks, parts));
        self
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

    /// CPU time of whoever syncs a file that has got blocks.
    pub(super) fn allocation_ns(&self) -> Time {
        self.allocation_ns
    }

    /// An fsync that has nothing to commit empties the drive's cache.
    pub(super) fn has_barrier(&self) -> bool {
        self.barrier
    }

    pub(super) fn converts_after_writes(&self) -> bool {
        self.converts_after_writes
    }

    /// Of its I/O.
    pub(in crate::world) fn priority(&self) -> Priority {
        self.priority
    }

    /// The number of the transaction that changes go to.
    pub(in crate::world) fn running(&self) -> u64 {
        self.running
    }

    /// The task waits until what it demands is committed (`jbd2_complete_transaction`). False: it is. Who comes during a fast
    /// commit waits for its end and makes none of its own, also if that has not what it changed (`ext4_fc_commit` compares
    /// `s_fc_subtid` alone).
    pub(in crate::world) fn wait(&mut self, task: TaskId, demand: SyncDemand) -> bool {
        if demand.transaction == self.running {
            self.blocks_change(demand.metadata_blocks.saturating_sub(1));
            match self.is_fast {
                true => self.committing.push(task),
                false => self.waiting.push(task),
            }
            return true;
        }
        let commits = self.step.is_some() && !self.is_fast && demand.transaction + 1 == self.running;
        if commits {
            self.committing.push(task);
        }
        commits
    }

    /// The file's times change.
    pub(super) fn inode_changes(&mut self, file: FileId) {
        self.inodes.insert(self.inode_block(file));
        if let Some(fast) = &mut self.fast {
            fast.changes(file);
        }
    }

    /// The next commit has so many blocks that describe new ones.
    pub(super) fn blocks_change(&mut self, blocks: u32) {
        // A transaction of many fast commits has the same bitmap and descriptor in all of them, and one that data join has them
        // once.
        self.metadata_blocks = match self.fast.is_some() || self.data.is_some() {
            true => self.metadata_blocks.max(blocks),
            false => self.metadata_blocks + blocks,
        };
    }

    /// Blocks of metadata that the next commit has.
    pub(super) fn changed_metadata(&self) -> u32 {
        self.inodes.len() as u32 + self.metadata_blocks
    }

    /// The blocks of the transaction are on their way to the log.
    pub(super) fn is_logging(&self) -> bool {
        !self.is_fast && self.step == Some(CommitStep::Log) && self.prepared.is_none()
    }

    /// Files are made one after the other.
    fn inode_block(&self, file: FileId) -> u64 {
        (FIRST_INODE + u64::from(file)) / self.inodes_in_block
    }

    /// The task changes the file's times. True: it waits, because the inode's block is being written to the log
    /// (`BH_Shadow` in `do_get_write_access`), or because a fast commit has the inode (`ext4_fc_start_update`).
    pub(in crate::world) fn keeps_out(&mut self, task: TaskId, file: FileId) -> bool {
        let is_logged = self.prepared.is_none() && self.committing_inodes.contains(&self.inode_block(file));
        let keeps = is_logged || self.fast.as_ref().is_some_and(|fast| fast.commits(file));
        if keeps {
            self.kept_out.push(task);
        }
        keeps
    }

    /// Who was kept out and no longer is.
    pub(in crate::world) fn take_let_in(&mut self) -> Vec<TaskId> {
        let mut let_in = self.room.take_let_in();
        if !self.is_fast && self.step != Some(CommitStep::Log) {
            let_in.append(&mut self.kept_out);
        }
        let_in
    }

    /// What comes first of a commit, if a task waits for one and none is in flight.
    pub(in crate::world) fn begin_commit(&mut self) -> Option<NextStep> {
        if self.step.is_some() || self.waiting.is_empty() && !self.room.is_commit_wanted {
            return None;
        }
        self.committing = std::mem::take(&mut self.waiting);
        self.step = Some(CommitStep::Log);
        if let Some(fast) = &mut self.fast {
            if let Some(blocks) = fast.next_blocks() {
                fast.begin();
                return Some(self.begin_fast_commit(blocks));
            }
            fast.fall_back();
        }
        self.running += 1;
        let metadata = self.changed_metadata();
        self.committing_inodes = std::mem::take(&mut self.inodes);
        self.metadata_blocks = 0;
        let count = match &mut self.data {
            Some(data) => {
                self.room.may_be_there();
                data.begin_commit(metadata)
            }
            None => 1 + metadata + u32::from(self.committing_inodes.is_empty()),
        };
        Some(NextStep::Write(self.write(count)))
    }

    /// Its thread prepares the write for so long; None: at once, or in the task that syncs.
    pub(in crate::world) fn prepares_ns(&self) -> Option<Time> {
        (self.commit_ns > 0 && !self.is_fast).then_some(self.commit_ns)
    }

    /// Its thread has begun to prepare the write.
    pub(in crate::world) fn prepares(&mut self, write: JournalWrite) {
        self.prepared = Some(write);
        self.is_awake = true;
    }

    /// What its thread has prepared.
    pub(in crate::world) fn take_prepared(&mut self) -> Option<JournalWrite> {
        self.prepared.take()
    }

    /// Who is woken at the end of a commit and waits for a later one (`j_wait_done_commit` in
    /// `jbd2_log_wait_commit`).
    pub(in crate::world) fn wait_on(&self) -> Vec<TaskId> {
        self.waiting.clone()
    }

    /// The task waits for a commit that is not over.
    pub(in crate::world) fn awaits(&self, task: TaskId) -> bool {
        self.waiting.contains(&task) || self.committing.contains(&task)
    }

    /// All its blocks but the last, which is its record.
    fn begin_fast_commit(&mut self, blocks: u32) -> NextStep {
        self.is_fast = true;
        match blocks - 1 {
            0 => self.next_step(),
            before => NextStep::Write(self.write(before)),
        }
    }

    /// Who syncs commits by itself, without the journal's thread: it makes fast commits, or goes on with one.
    pub(in crate::world) fn commits_in_caller(&self) -> bool {
        match self.step {
            Some(_) => self.is_fast,
            None => self.fast.as_ref().is_some_and(|fast| fast.next_blocks().is_some()),
        }
    }

    /// Its thread is woken. False: it was before.
    pub(in crate::world) fn wakes(&mut self) -> bool {
        !std::mem::replace(&mut self.is_awake, true)
    }

    /// Its thread goes on.
    pub(in crate::world) fn goes_on(&mut self) {
        self.is_awake = false;
    }

    /// A commit is under way.
    pub(in crate::world) fn commits(&self) -> bool {
        self.step.is_some()
    }

    /// The write of its current step has become so many bios.
    pub(in crate::world) fn commit_has(&mut self, bios: u32) {
        self.left = bios;
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
            (CommitStep::Record, true) if !self.fua => Some(CommitStep::FlushAfter),
            (CommitStep::Record, _) | (CommitStep::FlushAfter, _) if self.room.frees() => Some(CommitStep::Superblock),
            (CommitStep::Superblock, true) if !self.fua => Some(CommitStep::FlushSuperblock),
            (CommitStep::Record | CommitStep::FlushAfter | CommitStep::Superblock | CommitStep::FlushSuperblock, _) => {
                None
            }
        };
        if let (Some(CommitStep::Log), Some(data)) = (self.step, &mut self.data) {
            self.room.look_at_tail(data);
        }
        self.step = next;
        self.committing_inodes.clear();
        match next {
            Some(CommitStep::Record) => NextStep::Write(self.write(1)),
            Some(CommitStep::Superblock) => NextStep::Write(self.superblock()),
            Some(_) => NextStep::Flush,
            None => {
                self.is_fast = false;
                self.fast.iter_mut().for_each(FastCommits::end);
                self.end_commit_of_data();
                NextStep::Over(std::mem::take(&mut self.committing))
            }
        }
    }

    fn write(&mut self, blocks: u32) -> JournalWrite {
        let taken = match &mut self.fast {
            Some(fast) if self.is_fast => vec![fast.take(blocks)],
            _ => self.take(blocks),
        };
        let places: Vec<FileExtent> = taken.into_iter().map(extent).collect();
        let is_record = self.step == Some(CommitStep::Record);
        JournalWrite { places, behind_flush: self.barrier && is_record, force_unit_access: self.barrier && is_record }
    }
}

pub(super) fn extent((block, blocks): (u64, u32)) -> FileExtent {
    FileExtent { start: block * SECTORS_PER_BLOCK, sectors: blocks * SECTORS_PER_BLOCK as u32, at: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(transaction: u64) -> SyncDemand {
        SyncDemand { metadata_blocks: 1, times: true, transaction }
    }

    #[test]
    fn what_its_thread_prepares_may_still_change_and_belongs_to_the_next_transaction() {
        let mut journal = LoadJournal::new(10_000, 100, true, false, true, Priority::default());
        journal = journal.with_costs(0, 5_000);
        journal.inode_changes(3);
        assert!(journal.wait(1, demand(1)));
        let Some(NextStep::Write(write)) = journal.begin_commit() else { panic!("descriptor and inode") };
        assert_eq!(journal.prepares_ns(), Some(5_000));
        journal.prepares(write);
        assert!(!journal.keeps_out(2, 3), "it is copied (b_frozen_data)");
        assert_eq!(journal.running(), 2);
        assert!(journal.wait(2, demand(2)));
        assert!(journal.awaits(1) && journal.awaits(2));
        assert!(journal.take_prepared().is_some());
        assert!(journal.keeps_out(4, 3), "it is on its way to the log");
        assert_eq!(end(&mut journal), [1]);
        assert_eq!(journal.wait_on(), [2], "who is woken in vain");
        assert!(!journal.awaits(1));
    }

    /// Ends the commit that is in flight: who has waited for it.
    fn end(journal: &mut LoadJournal) -> Vec<TaskId> {
        loop {
            if let NextStep::Over(tasks) = journal.next_step() {
                return tasks;
            }
        }
    }

    #[test]
    fn a_sync_waits_for_the_commit_that_has_its_change() {
        let mut journal = LoadJournal::new(10_000, 100, true, false, true, Priority::default());
        let first = journal.running();
        assert!(journal.wait(1, demand(first)));
        assert!(journal.begin_commit().is_some());
        assert!(journal.wait(2, demand(first)), "it is being committed");
        assert!(journal.wait(3, demand(journal.running())));
        assert_eq!(end(&mut journal), [1, 2]);
        assert!(!journal.wait(4, demand(first)), "it is committed");
        assert!(journal.begin_commit().is_some());
        assert_eq!(end(&mut journal), [3]);
        assert!(journal.begin_commit().is_none());
    }

    #[test]
    fn a_block_on_its_way_to_the_log_is_not_changed() {
        let mut journal = LoadJournal::new(10_000, 100, false, false, true, Priority::default());
        assert!(!journal.keeps_out(1, 0));
        journal.inode_changes(0);
        journal.wait(2, demand(journal.running()));
        journal.begin_commit();
        assert!(journal.keeps_out(1, 0));
        assert!(!journal.keeps_out(3, 1), "its inode is in the next block");
        assert!(journal.take_let_in().is_empty());
        assert!(matches!(journal.next_step(), NextStep::Write(_)));
        assert_eq!(journal.take_let_in(), [1]);
        assert!(!journal.keeps_out(1, 0));
    }
}
