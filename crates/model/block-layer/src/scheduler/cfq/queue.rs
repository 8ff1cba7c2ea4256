//! A queue: the requests of one task, or those of all tasks that no task waits for.

use crate::scheduler::mean::Mean;
use crate::{IoClass, Priority, Request, RequestId, Sector, TaskId};

pub(super) type QueueId = usize;
pub(super) type GroupId = usize;

/// Kinds of queue that take turns within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// Requests that no task waits for.
    Async,
    /// Sync, without idling on each queue: the tree as a whole is idled upon.
    SyncNoIdle,
    /// Sync requests of a task for which the scheduler idles.
    Sync,
}

pub(super) const WORKLOADS: [Workload; 3] = [Workload::Async, Workload::SyncNoIdle, Workload::Sync];

/// Where a queue stands in a service tree: which group's tree, and its key in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreePlace {
    pub(super) group: GroupId,
    pub(super) class: IoClass,
    pub(super) workload: Workload,
    pub(super) key: i64,
    /// The order of arrival: it decides between equal keys.
    pub(super) sequence: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The one that it was made for.
    pub(super) task: TaskId,
    pub(super) sync: bool,
    pub(super) priority: Priority,
    pub(super) group: GroupId,
    /// The group that it came from, while it stands in the root group for want of isolation.
    pub(super) home_group: GroupId,
    /// Tasks whose I/O goes here, or is about to (`merges_into`).
    pub(super) tasks: u32,
    pub(super) queued: u32,
    pub(super) next: Option<RequestId>,
    /// Where it stands among the queues of its level: at the start of its next request.
    pub(super) place: Option<Sector>,
    pub(super) metadata_queued: u32,
    /// At the device.
    pub(super) dispatched: u32,
    pub(super) standing: Option<TreePlace>,

    /// When the first request of this slice completed.
    pub(super) slice_start: Option<u64>,
    pub(super) slice_end: u64,
    /// No request of this slice has completed: its time has not begun.
    pub(super) slice_new: bool,
    pub(super) slice_dispatch: u32,
    pub(super) slice_allocated: u64,
    /// Left over, or overdrawn, when the last slice ended.
    pub(super) slice_residual: i64,
    pub(super) dispatch_start: u64,
    pub(super) sectors_dispatched: u64,

    pub(super) idle_window: bool,
    pub(super) waits_for_request: bool,
    pub(super) must_dispatch: bool,
    /// In this slice it was given a request although there was none left.
    pub(super) has_exceeded_pool: bool,
    pub(super) wait_busy: bool,
    pub(super) fifo_looked_at: bool,
    /// It has had several requests waiting: seeks or not, idling on it may pay.
    pub(super) deep: bool,

    /// A bit for each of the last 32 requests: it was far from the one before.
    seeks: u32,
    pub(super) last_position: Sector,
    /// It is to become part of this one.
    pub(super) merges_into: Option<QueueId>,
    pub(super) shared: bool,
    pub(super) to_split: bool,
    /// It is over, and may become another queue.
    pub(super) is_free: bool,
}

/// A jump of more sectors than this is a seek on a disk.
const SEEK_SECTORS: u64 = 8 * 100;
/// On flash, a request of fewer sectors counts as one.
const SMALL_SECTORS: u32 = 2 * 32;

impl Queue {
    pub(super) fn new(task: TaskId, sync: bool, priority: Priority, group: GroupId) -> Queue {
        Queue {
            task,
            sync,
            priority,
            group,
            home_group: group,
            tasks: 0,
            queued: 0,
            next: None,
            place: None,
            metadata_queued: 0,
            dispatched: 0,
            standing: None,
            slice_start: None,
            slice_end: 0,
            slice_new: false,
            slice_dispatch: 0,
            slice_allocated: 0,
            slice_residual: 0,
            dispatch_start: 0,
            sectors_dispatched: 0,
            idle_window: sync && priority.class != IoClass::Idle,
            waits_for_request: false,
            must_dispatch: false,
            has_exceeded_pool: false,
            wait_busy: false,
            fifo_looked_at: false,
            deep: false,
            seeks: 0,
            last_position: 0,
            merges_into: None,
            shared: false,
            to_split: false,
            is_free: false,
        }
    }

    /// Nobody's I/O goes here any more, and none is left.
    pub(super) fn is_over(&self) -> bool {
        self.tasks == 0 && self.is_empty() && self.dispatched == 0 && self.standing.is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    pub(super) fn is_idle_class(&self) -> bool {
        self.priority.class == IoClass::Idle
    }

    /// `cfqq_type`.
    pub(super) fn workload(&self) -> Workload {
        match (self.sync, self.idle_window) {
            (false, _) => Workload::Async,
            (true, false) => Workload::SyncNoIdle,
            (true, true) => Workload::Sync,
        }
    }

    /// Whether the time of its slice is over (`cfq_slice_used`); one that has not begun is not.
    pub(super) fn slice_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }

    /// More than 4 of its last 32 requests were seeks (`CFQQ_SEEKY`).
    pub(super) fn is_seeky(&self) -> bool {
        self.seeks.count_ones() > 32 / 8
    }

    /// `cfq_update_io_seektime`.
    pub(super) fn note_seek(&mut self, request: &Request, flash: bool) {
        let distance = match self.last_position {
            0 => 0,
            last => last.abs_diff(request.start),
        };
        let seek = if flash { request.sectors < SMALL_SECTORS } else { distance > SEEK_SECTORS };
        self.seeks = self.seeks << 1 | u32::from(seek);
    }

    /// A new slice (`__cfq_set_active_queue`); its time begins with the first completion.
    pub(super) fn activate(&mut self, now: u64) {
        self.slice_start = None;
        self.slice_end = 0;
        self.slice_new = true;
        self.slice_dispatch = 0;
        self.slice_allocated = 0;
        self.dispatch_start = now;
        self.sectors_dispatched = 0;
        self.waits_for_request = false;
        self.must_dispatch = false;
        self.has_exceeded_pool = false;
        self.fifo_looked_at = false;
    }
}

/// What is known of a task's I/O.
#[derive(Clone, Debug)]
pub(super) struct IoContext {
    /// Its queues for async and sync I/O.
    pub(super) queues: [Option<QueueId>; 2],
    pub(super) last_end: u64,
    think: Mean,
    pub(super) exited: bool,
}

impl IoContext {
    /// The I/O context of a task that has just come: it has no think time yet.
    pub(super) fn new(now: u64) -> IoContext {
        IoContext { queues: [None; 2], last_end: now, think: Mean::default(), exited: false }
    }

    /// Between its last completion and now, at most twice as long as anybody would idle for it (`cfq_update_io_thinktime`).
    pub(super) fn note_think(&mut self, now: u64, slice_idle: u64) {
        let think = now.saturating_sub(self.last_end).min(2 * slice_idle);
        self.think.add(7, think);
    }

    /// Its usual think time (`sample_valid`); None: too little has been seen to judge by, fewer than three samples.
    pub(super) fn usual_think(&self) -> Option<u64> {
        self.think.get().filter(|_| self.think.samples() > 80)
    }
}
