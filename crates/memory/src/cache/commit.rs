//! When a transaction of the journal commits, and who waits for that.

use crate::cache::Effects;
use crate::cache::flushers::{JOURNAL, Purpose};
use crate::cache::page_cache::PageCache;
use block_layer::TaskId;

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
