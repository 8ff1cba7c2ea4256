//! A journal in ordered mode: before a transaction commits, the data that it is about is written, in the order of dirtying
//! (`fs/jbd/commit.c` of 2.5.59; docs/model/sources/page-cache.md#commits). The journal's own blocks are left out.

use crate::cache::FileId;
use crate::cache::dirty_order::DirtyOrder;
use block_layer::TaskId;
use events::time::Time;

#[derive(Clone, Debug)]
pub(super) struct Journal {
    interval: Time,
    /// The transaction that writers are in; the one before it is committing or committed.
    pub(super) running: u64,
    pub(super) order: DirtyOrder,
    /// When the running transaction commits; None: nothing is in it.
    pub(super) commit_at: Option<Time>,
    pub(super) committing: Option<DirtyOrder>,
    pub(super) waiters: Vec<(u64, TaskId)>,
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

    /// `journal_dirty_data`.
    pub(super) fn dirtied(&mut self, now: Time, file: FileId, page: u64) {
        self.order.push(file, page, now);
        if self.commit_at.is_none() {
            self.commit_at = Some(now + self.interval);
        }
    }

    pub(super) fn tidy(&mut self, dirty: u64, is_dirty: impl Fn(FileId, u64) -> bool) {
        self.order.tidy(dirty, is_dirty);
    }

    /// The data of `journal_commit_transaction`.
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
