//! The journal in ordered mode (docs/model/sources/allocators.md#the-journal): a transaction's data are on the drive before its
//! blocks are in the journal, these before its commit record, and that before anything is written in place.

use std::collections::{BTreeSet, VecDeque};

use super::JoinTimes;
use events::time::Time;
use memory::cache::FileId;

#[derive(Clone, Debug)]
pub(super) struct Journal {
    /// The allocator's number of its file.
    pub(super) file: FileId,
    blocks: u32,
    head: u32,
    used: u32,
    running: Transaction,
    pub(super) committing: Option<CommittingTransaction>,
    /// Committed, and not in place yet; oldest first.
    checkpoints: VecDeque<Checkpoint>,
    /// The running transaction is to commit as soon as the one before it has.
    is_wanted: bool,
    /// Threads that wait for the commit of a transaction.
    waiting: Vec<(u64, u32)>,
    /// The last thread with a synchronous handle (`j_last_sync_writer`).
    last_to_sync: Option<u32>,
    /// Synchronous handles that wait for others: none of them lets its transaction commit.
    joining: u32,
    /// A weighted mean of the time of commits (`j_average_commit_time`); 0: there was none.
    average_commit_ns: Time,
}

#[derive(Clone, Debug, Default)]
struct Transaction {
    number: u64,
    /// Since when it has changes.
    began: Time,
    blocks: BTreeSet<u64>,
    /// Files, by inode, whose new blocks it is about.
    files: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct CommittingTransaction {
    number: u64,
    /// When it began to commit.
    began: Time,
    blocks: BTreeSet<u64>,
    /// Whose data are on their way.
    pub(super) files: BTreeSet<u64>,
    pub(super) step: CommitStep,
    /// Pieces of its log that are on their way.
    pub(super) left: u32,
    log_blocks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitStep {
    Data,
    Log,
    FlushBefore,
    Record,
    FlushAfter,
}

#[derive(Clone, Debug)]
struct Checkpoint {
    log_blocks: u32,
    blocks: BTreeSet<u64>,
}

/// Blocks that a descriptor names: 8 bytes each, behind a header of 12.
const TAGS_PER_DESCRIPTOR: u32 = (4096 - 12) / 8;

impl Journal {
    pub(super) fn new(file: FileId, blocks: u32) -> Journal {
        Journal {
            file,
            blocks,
            head: 0,
            used: 0,
            running: Transaction { number: 1, ..Transaction::default() },
            committing: None,
            checkpoints: VecDeque::new(),
            is_wanted: false,
            waiting: Vec::new(),
            last_to_sync: None,
            joining: 0,
            average_commit_ns: 0,
        }
    }

    pub(super) fn change(&mut self, block: u64, now: Time) {
        if self.running.blocks.is_empty() {
            self.running.began = now;
        }
        self.running.blocks.insert(block);
    }

    /// Its data are on the drive before the running transaction is committed (`journal_dirty_data`).
    pub(super) fn orders(&mut self, inode: u64) {
        self.running.files.insert(inode);
    }

    pub(super) fn forget(&mut self, inode: u64) {
        self.running.files.remove(&inode);
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.running.blocks.is_empty()
    }

    /// A transaction has at most a quarter of the journal.
    pub(super) fn is_large(&self) -> bool {
        self.running.blocks.len() as u32 >= self.blocks / 4
    }

    /// Whether another handle fits (`__log_space_left`): what runs and what commits has its room, and a transaction more.
    pub(super) fn has_room(&self) -> bool {
        let running = log_blocks(self.running.blocks.len() as u32);
        let committing = self.committing.as_ref();
        let committing = committing.map_or(0, |committing| log_blocks(committing.blocks.len() as u32));
        self.used + running + committing + self.blocks / 4 < self.blocks
    }

    /// Whether what goes to the journal now is the record that ends a transaction.
    pub(super) fn writes_record(&self) -> bool {
        let committing = self.committing.as_ref();
        committing.is_some_and(|committing| committing.step == CommitStep::Record)
    }

    /// Of the transaction that changes go into.
    pub(super) fn running(&self) -> u64 {
        self.running.number
    }

    /// The last one that is not committed; 0: all that was changed is.
    pub(super) fn last(&self) -> u64 {
        match (self.has_changes(), &self.committing) {
            (true, _) => self.running.number,
            (false, Some(committing)) => committing.number,
            (false, None) => 0,
        }
    }

    /// The thread waits for the commit of the transaction (`log_wait_commit`). False: it is committed.
    pub(super) fn wait_for(&mut self, number: u64, thread: u32) -> bool {
        let is_running = number == self.running.number && self.has_changes();
        let commits = self.committing.as_ref().is_some_and(|one| one.number == number);
        self.is_wanted |= is_running;
        if is_running || commits {
            self.waiting.push((number, thread));
        }
        is_running || commits
    }

    /// The thread ends a synchronous handle of the running transaction: how long it waits for others to join, unless it was
    /// the last to end one, or the transaction is as old already (`jbd2_journal_stop`).
    pub(super) fn joins(&mut self, thread: u32, now: Time, times: JoinTimes) -> Option<Time> {
        if self.last_to_sync.replace(thread) == Some(thread) {
            return None;
        }
        let wait = self.average_commit_ns.max(times.least_ns).min(times.most_ns);
        let waits = self.has_changes() && now - self.running.began < wait;
        self.joining += u32::from(waits);
        waits.then_some(wait)
    }

    /// It has waited.
    pub(super) fn has_joined(&mut self) {
        self.joining -= 1;
    }

    /// `log_start_commit`.
    pub(super) fn want_commit(&mut self) {
        self.is_wanted |= self.has_changes();
    }

    /// The running transaction begins to commit, if it is wanted and none does (the beginning of
    /// `journal_commit_transaction`); its files are still to be looked at.
    pub(super) fn begin_commit(&mut self, now: Time) -> Option<Vec<u64>> {
        if !self.is_wanted || self.committing.is_some() || self.joining > 0 {
            return None;
        }
        self.is_wanted = false;
        let next = Transaction { number: self.running.number + 1, ..Transaction::default() };
        let done = std::mem::replace(&mut self.running, next);
        let files = done.files.iter().copied().collect();
        self.committing = Some(CommittingTransaction {
            number: done.number,
            began: now,
            log_blocks: log_blocks(done.blocks.len() as u32),
            blocks: done.blocks,
            files: done.files,
            step: CommitStep::Data,
            left: 0,
        });
        Some(files)
    }

    /// The file's data are on the drive. True: those of all files of the transaction that commits are.
    pub(super) fn data_written(&mut self, inode: u64) -> bool {
        let Some(committing) = &mut self.committing else {
            return false;
        };
        committing.step == CommitStep::Data && committing.files.remove(&inode) && committing.files.is_empty()
    }

    /// Where in the journal's file its descriptors and blocks go: first block and how many.
    pub(super) fn begin_log(&mut self) -> Vec<(u64, u64)> {
        let committing = self.committing.as_mut().expect("one commits");
        committing.step = CommitStep::Log;
        let count = committing.log_blocks - 1;
        self.take(count)
    }

    /// Where its commit record goes.
    pub(super) fn begin_record(&mut self) -> Vec<(u64, u64)> {
        let committing = self.committing.as_mut().expect("one commits");
        committing.step = CommitStep::Record;
        self.take(1)
    }

    fn take(&mut self, count: u32) -> Vec<(u64, u64)> {
        let here = count.min(self.blocks - self.head);
        let mut found = vec![(u64::from(self.head), u64::from(here))];
        if here < count {
            found.push((0, u64::from(count - here)));
        }
        self.head = (self.head + count) % self.blocks;
        self.used += count;
        found
    }

    /// The transaction is committed: its blocks, which may be written in place now, and who has waited for it.
    pub(super) fn committed(&mut self, now: Time) -> (BTreeSet<u64>, Vec<u32>) {
        let done = self.committing.take().expect("one commits");
        let took = now - done.began;
        self.average_commit_ns = match self.average_commit_ns {
            0 => took,
            average => (took + average * 3) / 4,
        };
        for checkpoint in &mut self.checkpoints {
            // Who is in a later transaction is written with that.
            checkpoint.blocks.retain(|block| !done.blocks.contains(block));
        }
        self.checkpoints.push_back(Checkpoint { log_blocks: done.log_blocks, blocks: done.blocks.clone() });
        self.free_oldest();
        let mut woken = Vec::new();
        self.waiting.retain(|&(number, thread)| {
            let waits = number > done.number;
            if !waits {
                woken.push(thread);
            }
            waits
        });
        (done.blocks, woken)
    }

    /// The block is in its place.
    pub(super) fn in_place(&mut self, block: u64) {
        for checkpoint in &mut self.checkpoints {
            checkpoint.blocks.remove(&block);
        }
        self.free_oldest();
    }

    /// `cleanup_journal_tail`.
    fn free_oldest(&mut self) {
        while let Some(oldest) = self.checkpoints.front()
            && oldest.blocks.is_empty()
        {
            self.used -= oldest.log_blocks;
            self.checkpoints.pop_front();
        }
    }

    /// Blocks of the oldest transaction that has some to be written in place (`log_do_checkpoint`).
    pub(super) fn oldest(&self) -> Vec<u64> {
        let oldest = self.checkpoints.front();
        oldest.map_or(Vec::new(), |oldest| oldest.blocks.iter().copied().collect())
    }

    /// It is in a transaction that is not committed, and is not to be written in place before.
    pub(super) fn holds(&self, block: u64) -> bool {
        let committing = self.committing.as_ref();
        self.running.blocks.contains(&block) || committing.is_some_and(|committing| committing.blocks.contains(&block))
    }

    /// What it takes is what transactions have that are not in place.
    pub(super) fn counts_are_right(&self) -> bool {
        let committed: u32 = self.checkpoints.iter().map(|one| one.log_blocks).sum();
        match &self.committing {
            None => self.used == committed,
            Some(one) => (committed..=committed + one.log_blocks).contains(&self.used),
        }
    }
}

/// Descriptors, the blocks themselves and the commit record.
fn log_blocks(blocks: u32) -> u32 {
    blocks.div_ceil(TAGS_PER_DESCRIPTOR) + blocks + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(journal: &mut Journal, blocks: impl IntoIterator<Item = u64>) {
        blocks.into_iter().for_each(|block| journal.change(block, 0));
        journal.want_commit();
        assert_eq!(journal.begin_commit(0), Some(Vec::new()));
        journal.begin_log();
        journal.begin_record();
        journal.committed(0);
    }

    #[test]
    fn a_transaction_takes_its_blocks_a_descriptor_and_a_record() {
        let mut journal = Journal::new(0, 1024);
        journal.change(7, 0);
        journal.change(7, 0);
        journal.change(9, 0);
        journal.want_commit();
        journal.begin_commit(0);
        assert_eq!(journal.begin_log(), [(0, 3)]);
        assert_eq!(journal.begin_record(), [(3, 1)]);
        let (blocks, _) = journal.committed(0);
        assert_eq!(blocks.into_iter().collect::<Vec<_>>(), [7, 9]);
        assert_eq!(log_blocks(511), 2 + 511 + 1);
    }

    #[test]
    fn room_comes_back_when_the_oldest_is_in_place_or_has_been_changed_again() {
        let mut journal = Journal::new(0, 1024);
        commit(&mut journal, 0..400);
        commit(&mut journal, 0..399);
        assert_eq!(journal.oldest(), [399]);
        assert!(!journal.has_room());
        journal.in_place(399);
        assert!(journal.has_room() && journal.counts_are_right());
    }

    #[test]
    fn it_goes_on_at_its_beginning() {
        let mut journal = Journal::new(0, 1024);
        commit(&mut journal, 0..1000);
        (0..1000).for_each(|block| journal.in_place(block));
        (0..30).for_each(|block| journal.change(block, 0));
        journal.want_commit();
        journal.begin_commit(0);
        assert_eq!(journal.begin_log(), [(1003, 21), (0, 10)]);
    }

    #[test]
    fn a_synchronous_handle_waits_as_long_as_commits_take_unless_the_last_was_its_threads() {
        const TIMES: JoinTimes = JoinTimes { least_ns: 10, most_ns: 1000 };
        let mut journal = Journal::new(0, 1024);
        let mut commit_of = |began: Time, took: Time| {
            journal.change(1, began);
            let waits = [1, 1, 2].map(|thread| journal.joins(thread, began + 5, TIMES));
            journal.want_commit();
            let held = journal.begin_commit(began).is_none();
            (0..waits.iter().flatten().count()).for_each(|_| journal.has_joined());
            assert!(journal.begin_commit(began).is_some());
            journal.begin_log();
            journal.begin_record();
            journal.committed(began + took);
            (waits, held)
        };
        // Nothing was committed before, so that the least holds.
        assert_eq!(commit_of(0, 400), ([Some(10), None, Some(10)], true));
        assert_eq!(commit_of(1000, 800), ([Some(400), None, Some(400)], true));
        assert_eq!(commit_of(2000, 9000), ([Some(500), None, Some(500)], true));
        assert_eq!(commit_of(20_000, 0), ([Some(1000), None, Some(1000)], true));
        journal.change(1, 30_000);
        assert_eq!(journal.joins(3, 31_500, TIMES), None, "it is old enough");
        assert!(journal.joins(4, 30_999, TIMES).is_some());
    }
}
