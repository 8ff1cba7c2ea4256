//! When a transaction of the journal commits, and who continues after that.

use crate::cache::device::{DeviceId, journal_task};
use crate::cache::flushers::Purpose;
use crate::cache::page_cache::PageCache;
use block_layer::TaskId;

impl PageCache {
    pub(super) fn commit_what_is_due(&mut self) {
        (0..self.devices.count()).for_each(|device| self.commit_if_due(device));
    }

    fn commit_if_due(&mut self, device: DeviceId) {
        if self.journals.begin_if_due(self.now, device) {
            let task = journal_task(device);
            self.flushers.start(Purpose::Commit, task, device, u64::MAX, u64::MAX);
        }
    }

    /// The task waits for what is to be committed. False: that is nothing.
    pub(super) fn commit_for(&mut self, task: TaskId, device: DeviceId) -> bool {
        let waits = self.journals.wait(self.now, device, task);
        self.commit_if_due(device);
        waits
    }

    pub(super) fn committed(&mut self, device: DeviceId) {
        for task in self.journals.committed(device) {
            self.await_file(task);
        }
        self.commit_if_due(device);
    }
}
