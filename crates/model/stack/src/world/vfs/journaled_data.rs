//! `data=journal`: which transaction has a page, the room that transactions take in the log, and what is to be written in place
//! (`fs/jbd2/checkpoint.c` and `fs/jbd2/transaction.c` of 6.12).
//!
//! A page that is written to joins the running transaction. The log gets it with the commit, its place after that: from
//! whoever writes the file back, or from a checkpoint. A later transaction that has it takes it over. The room of a transaction
//! is free when all its pages are in place, and the superblock says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use memory::cache::FileId;

/// A page of a file.
pub(in crate::world) type Page = (FileId, u64);

/// Blocks that a descriptor names: 16 bytes each (`journal_block_tag3_t`) as long as another and 16 bytes fit, behind a head
/// of 12 and the 16 of the first, before a tail of 4.
const TAGS_PER_DESCRIPTOR: u32 = (4096 - 12 - 16 - 4 - 32) / 16 + 1;
/// `jbd2_log_space_left` keeps them for errors of rounding.
const SPARE_BLOCKS: u32 = 32;

#[derive(Clone, Debug)]
pub(super) struct JournaledData {
    blocks: u32,
    /// A transaction has no more blocks (`j_max_transaction_buffers`).
    transaction_max: u32,
    /// Blocks of committed transactions that the superblock does not have as free.
    used: u32,
    /// Blocks of these whose transactions are in place: the superblock is to say so.
    freed: u32,
    running: BTreeSet<Page>,
    committing: BTreeSet<Page>,
    committing_blocks: u32,
    /// Of the last that was committed.
    number: u64,
    /// Committed, and not in place; oldest first.
    checkpoints: VecDeque<Checkpoint>,
    /// Whose checkpoint a page is of.
    committed: BTreeMap<Page, u64>,
    /// Pages on their way to their places, as that transaction has them.
    writing: BTreeMap<Page, u64>,
}

#[derive(Clone, Debug)]
struct Checkpoint {
    number: u64,
    log_blocks: u32,
    pages: BTreeSet<Page>,
}

/// Whether the log takes another handle (`add_transaction_credits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// When the running transaction has begun to commit, or the one before it has come to its end.
    AfterCommit,
    /// When older transactions are in place (`__jbd2_log_wait_for_space`).
    AfterCheckpoint,
}

impl JournaledData {
    /// Of a log of that many blocks, of which a transaction has at most one of that many parts.
    pub(super) fn new(blocks: u32, parts: u32) -> JournaledData {
        JournaledData {
            blocks,
            transaction_max: blocks / parts,
            used: 0,
            freed: 0,
            running: BTreeSet::new(),
            committing: BTreeSet::new(),
            committing_blocks: 0,
            number: 0,
            checkpoints: VecDeque::new(),
            committed: BTreeMap::new(),
            writing: BTreeMap::new(),
        }
    }

    /// The page is written to.
    pub(super) fn change(&mut self, page: Page) {
        self.running.insert(page);
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.running.is_empty()
    }

    /// Whether another handle of that many pages fits, beside so many blocks of metadata. One that is larger than a transaction
    /// has one of its own.
    pub(super) fn room_for(&self, pages: u32, metadata: u32) -> Room {
        let overhead = 1 + self.transaction_max.div_ceil(TAGS_PER_DESCRIPTOR);
        let running = self.running.len() as u32 + metadata + overhead;
        if !self.running.is_empty() && running + pages > self.transaction_max {
            return Room::AfterCommit;
        }
        let taken = self.used + self.committing_blocks + SPARE_BLOCKS;
        if self.blocks.saturating_sub(taken) >= self.transaction_max {
            Room::Free
        } else if self.used > 0 {
            Room::AfterCheckpoint
        } else if self.committing_blocks > 0 {
            Room::AfterCommit
        } else {
            Room::Free
        }
    }

    /// The running transaction begins to commit, with so many blocks of metadata: the blocks that go to the log before its
    /// record.
    pub(super) fn begin_commit(&mut self, metadata: u32) -> u32 {
        self.committing = std::mem::take(&mut self.running);
        let blocks = self.committing.len() as u32 + metadata;
        let before_record = blocks + blocks.div_ceil(TAGS_PER_DESCRIPTOR).max(1);
        self.committing_blocks = before_record + 1;
        before_record
    }

    /// The transaction is committed. The blocks of metadata of those before it are in it again, or in place.
    pub(super) fn end_commit(&mut self) {
        self.number += 1;
        let pages = std::mem::take(&mut self.committing);
        for &page in &pages {
            let before = self.committed.insert(page, self.number);
            if let Some(before) = before.and_then(|number| self.checkpoint_mut(number)) {
                before.pages.remove(&page);
            }
        }
        let log_blocks = std::mem::take(&mut self.committing_blocks);
        self.used += log_blocks;
        self.checkpoints.push_back(Checkpoint { number: self.number, log_blocks, pages });
        self.free_oldest();
    }

    fn checkpoint_mut(&mut self, number: u64) -> Option<&mut Checkpoint> {
        let oldest = self.checkpoints.front()?.number;
        let at = number.checked_sub(oldest)?;
        self.checkpoints.get_mut(at as usize)
    }

    /// All but the last, whose metadata no other has.
    fn free_oldest(&mut self) {
        while self.checkpoints.len() > 1
            && let Some(oldest) = self.checkpoints.front()
            && oldest.pages.is_empty()
        {
            self.freed += oldest.log_blocks;
            self.checkpoints.pop_front();
        }
    }

    /// The page is in a transaction that is not committed: it is not written in place before.
    pub(super) fn is_uncommitted(&self, page: Page) -> bool {
        self.running.contains(&page) || self.committing.contains(&page)
    }

    /// The page is in the transaction that commits.
    pub(super) fn commits(&self, page: Page) -> bool {
        self.committing.contains(&page)
    }

    /// Somebody is about to write the page in place. False: it is there, or on its way.
    pub(super) fn begin_in_place(&mut self, page: Page) -> bool {
        let number = match self.writing.contains_key(&page) {
            true => None,
            false => self.committed.get(&page),
        };
        let Some(&number) = number else {
            return false;
        };
        self.writing.insert(page, number);
        true
    }

    /// The page is in place.
    pub(super) fn end_in_place(&mut self, page: Page) {
        let number = self.writing.remove(&page);
        if number.is_some() && self.committed.get(&page) == number.as_ref() {
            self.committed.remove(&page);
            let of = number.and_then(|number| self.checkpoint_mut(number));
            of.expect("its checkpoint").pages.remove(&page);
            self.free_oldest();
        }
    }

    /// What a checkpoint writes: pages of the oldest transaction that are in no later one, and not on their way.
    pub(super) fn begin_checkpoint(&mut self) -> Vec<Page> {
        let oldest = self.checkpoints.front();
        let pages = oldest.map_or_else(Vec::new, |oldest| oldest.pages.iter().copied().collect());
        let mut to_write = pages;
        to_write.retain(|&page| !self.is_uncommitted(page) && self.begin_in_place(page));
        to_write
    }

    /// The oldest transaction has a page that the running one has as well: that has to commit (`jbd2_log_do_checkpoint`).
    pub(super) fn needs_commit(&self) -> bool {
        let oldest = self.checkpoints.front();
        oldest.is_some_and(|oldest| oldest.pages.iter().any(|page| self.running.contains(page)))
    }

    /// The last transaction is the only one, and in place but for its metadata, which a checkpoint writes too.
    pub(super) fn free_last(&mut self) {
        if self.checkpoints.iter().all(|last| last.pages.is_empty()) {
            let last = self.checkpoints.pop_front();
            self.freed += last.map_or(0, |last| last.log_blocks);
        }
    }

    /// Room that the superblock is to have as free, if it is worth a write of it during a commit.
    pub(super) fn take_much_freed(&mut self) -> u32 {
        match self.freed >= self.transaction_max {
            true => self.take_freed(),
            false => 0,
        }
    }

    /// Room that the superblock is to have as free (`jbd2_cleanup_journal_tail`).
    pub(super) fn take_freed(&mut self) -> u32 {
        std::mem::take(&mut self.freed)
    }

    /// What is used is what transactions have that are not in place, and what the superblock does not have as free;
    /// `told` of that are on their way to it.
    pub(super) fn counts_are_right(&self, told: u32) -> bool {
        let committed = self.checkpoints.iter().map(|one| one.log_blocks);
        self.used == committed.sum::<u32>() + self.freed + told && self.used + self.committing_blocks <= self.blocks
    }

    /// The superblock has it.
    pub(super) fn is_free(&mut self, blocks: u32) {
        self.used -= blocks;
    }
}
