//! A journal in ordered mode: before a transaction commits, the data that it is about is written, in the order of dirtying
//! (2.5.59 `fs/jbd/commit.c`; note on allocators). The journal's own blocks are left out.

use crate::block::TaskId;
use crate::cache::dirty_order::DirtyOrder;
use crate::cache::flush::{JOURNAL, Purpose};
use crate::cache::page_cache::PageCache;
use crate::cache::{Effects, FileId};
use crate::time::Time;

#[derive(Clone, Debug)]
pub(super) struct Journal {
    interval: Time,
    /// The transaction that writers are in; the one before it is committing or committed.
    running: u64,
    order: DirtyOrder,
    /// When the running transaction commits; None: nothing is in it.
    commit_at: Option<Time>,
    committing: Option<DirtyOrder>,
    waiters: Vec<(u64, TaskId)>,
}

impl Journal {
    pub(super) fn new(interval: Time) -> Journal {
        Journal {
            interval,
            running: 1,
            order: DirtyOrder::default(),
            commit_at: None,
            committing: None,
            waiters: Vec::new(),
        }
    }

    pub(super) fn dirtied(&mut self, now: Time, file: FileId, page: u64) {
        self.order.push(file, page, now);
        if self.commit_at.is_none() {
            self.commit_at = Some(now + self.interval);
        }
    }

    pub(super) fn tidy(&mut self, dirty: u64, is_dirty: impl Fn(FileId, u64) -> bool) {
        self.order.tidy(dirty, is_dirty);
    }

    pub(super) fn pop(
        &mut self,
        most: u64,
        is_dirty: impl Fn(FileId, u64) -> bool,
    ) -> Option<(FileId, u64, u64)> {
        self.committing.as_mut()?.pop(most, is_dirty)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.commit_at.is_none() && self.committing.is_none()
    }

    pub(super) fn next_commit(&self) -> Option<Time> {
        match self.committing {
            None => self.commit_at,
            Some(_) => None,
        }
    }
}

impl PageCache {
    /// One commits at a time; the next transaction's begins when that is over.
    pub(super) fn commit_if_due(&mut self) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        if journal.next_commit().is_none_or(|at| self.now < at) {
            return;
        }
        journal.commit_at = None;
        journal.running += 1;
        journal.committing = Some(std::mem::take(&mut journal.order));
        self.flushers
            .start(Purpose::Commit, JOURNAL, u64::MAX, u64::MAX);
    }

    /// The task waits for the running transaction, or if that is empty for the one that commits. False: there is neither.
    pub(super) fn commit_for(&mut self, task: TaskId) -> bool {
        let Some(journal) = &mut self.journal else {
            return false;
        };
        if journal.commit_at.is_some() {
            journal.commit_at = Some(self.now);
            journal.waiters.push((journal.running, task));
            self.commit_if_due();
            true
        } else if journal.committing.is_some() {
            journal.waiters.push((journal.running - 1, task));
            true
        } else {
            false
        }
    }

    pub(super) fn committed(&mut self, effects: &mut Effects) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        journal.committing = None;
        let over = journal.running - 1;
        let done: Vec<(u64, TaskId)> = journal
            .waiters
            .extract_if(.., |(transaction, _)| *transaction <= over)
            .collect();
        for (_, task) in done {
            self.commit_is_over(task, effects);
        }
        self.commit_if_due();
    }
}
