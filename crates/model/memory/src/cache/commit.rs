//! When a transaction of the journal commits, and who waits for that.

use crate::cache::device::{DeviceId, task_of};
use crate::cache::flushers::{JOURNAL, Purpose};
use crate::cache::journal::Journal;
use crate::cache::page_cache::PageCache;
use block_layer::TaskId;
use events::time::Time;

impl PageCache {
    /// When the next is due, of any drive's.
    pub(super) fn next_commit(&self) -> Option<Time> {
        self.rules.commit_interval?;
        let journals = self
            .devices
            .iter()
            .filter_map(|device| device.journal.as_ref());
        journals.filter_map(Journal::next_commit).min()
    }

    pub(super) fn commit_what_is_due(&mut self) {
        if self.next_commit().is_some_and(|at| at <= self.now) {
            (0..self.devices.len()).for_each(|device| self.commit_if_due(device));
        }
    }

    /// One commits at a time on a drive (`journal_commit_transaction`); the next transaction's begins when that is over.
    fn commit_if_due(&mut self, device: DeviceId) {
        let Some(journal) = &mut self.devices[device].journal else {
            return;
        };
        if journal.next_commit().is_none_or(|at| self.now < at) {
            return;
        }
        journal.commit_at = None;
        journal.running += 1;
        journal.committing = Some(std::mem::take(&mut journal.order));
        let task = task_of(JOURNAL, device);
        self.flushers
            .start(Purpose::Commit, task, device, u64::MAX, u64::MAX);
    }

    /// The task waits for the running transaction, or if that is empty for the one that commits (`log_start_commit`,
    /// `log_wait_commit`). False: there is neither.
    pub(super) fn commit_for(&mut self, task: TaskId, device: DeviceId) -> bool {
        let Some(journal) = &mut self.devices[device].journal else {
            return false;
        };
        if journal.commit_at.is_some() {
            journal.commit_at = Some(self.now);
            journal.waiters.push((journal.running, task));
            self.commit_if_due(device);
            true
        } else if journal.committing.is_some() {
            journal.waiters.push((journal.running - 1, task));
            true
        } else {
            false
        }
    }

    pub(super) fn committed(&mut self, device: DeviceId) {
        let Some(journal) = &mut self.devices[device].journal else {
            return;
        };
        journal.committing = None;
        let over = journal.running - 1;
        let done: Vec<(u64, TaskId)> = journal
            .waiters
            .extract_if(.., |(transaction, _)| *transaction <= over)
            .collect();
        for (_, task) in done {
            self.commit_is_over(task);
        }
        self.commit_if_due(device);
    }
}
