//! A queue of CFQ, and its place in the line.

use crate::scheduler::task_queues::QueueId;
use crate::{IoClass, Priority, RequestId};

/// Where a queue stands: classes one after the other, within a class by the time of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServiceOrder {
    pub(super) class: IoClass,
    pub(super) key: i64,
    /// Orders equal keys: the queue that came first goes first.
    pub(super) sequence: u64,
    pub(super) queue: QueueId,
}

/// A task's sync requests, or everybody's async ones of a priority.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) sync: bool,
    pub(super) priority: Priority,
    pub(super) queued: u32,
    pub(super) metadata_queued: u32,
    /// On the dispatch list or at the device.
    pub(super) dispatched: u32,
    pub(super) next: Option<RequestId>,
    /// None: it has nothing queued.
    pub(super) place: Option<ServiceOrder>,
    pub(super) slice_end: u64,
    /// Nothing has completed in its slice.
    pub(super) slice_new: bool,
    pub(super) slice_residual: i64,
    pub(super) idle_window: bool,
    pub(super) waits_for_request: bool,
    pub(super) has_exceeded_pool: bool,
    pub(super) fifo_looked_at: bool,
    pub(super) has_task: bool,
    pub(super) is_free: bool,
}

impl Queue {
    pub(super) fn new(sync: bool, priority: Priority) -> Queue {
        Queue {
            sync,
            priority,
            queued: 0,
            metadata_queued: 0,
            dispatched: 0,
            next: None,
            place: None,
            slice_end: 0,
            slice_new: false,
            slice_residual: 0,
            idle_window: sync && priority.class != IoClass::Idle,
            waits_for_request: false,
            has_exceeded_pool: false,
            fifo_looked_at: false,
            has_task: true,
            is_free: false,
        }
    }

    /// A new slice; its time begins with the first completion.
    pub(super) fn activate(&mut self) {
        self.slice_end = 0;
        self.slice_new = true;
        self.has_exceeded_pool = false;
        self.fifo_looked_at = false;
    }

    pub(super) fn slice_used(&self, jiffies: u64) -> bool {
        !self.slice_new && jiffies >= self.slice_end
    }

    /// Its task is gone, and nothing is left of its requests.
    pub(super) fn is_over(&self) -> bool {
        !self.has_task && !self.is_free && self.queued == 0 && self.dispatched == 0
    }
}
