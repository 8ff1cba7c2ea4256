//! A queue of CFQ, its place in the line, and what is known of tasks.

use crate::block::{IoClass, Priority, Request, RequestId, Sector};
use crate::scheduler::mean::Mean;

pub(super) type QueueId = usize;

/// Where a queue stands: classes one after the other, within a class by the time of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) class: IoClass,
    pub(super) key: i64,
    /// Of equal keys, the one that came first.
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
    /// Leaving, or at the device.
    pub(super) dispatched: u32,
    pub(super) next: Option<RequestId>,
    /// None: it has nothing queued.
    pub(super) place: Option<Place>,
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

/// What is known of a task's I/O.
#[derive(Clone, Debug)]
pub(super) struct IoContext {
    /// Its queues for async and sync I/O.
    pub(super) queues: [Option<QueueId>; 2],
    pub(super) last_end: u64,
    pub(super) exited: bool,
    think: Mean,
    seek: Mean,
    last_position: Sector,
}

/// Means of so many samples are believed (`sample_valid`).
const SAMPLES_MIN: u64 = 80;
/// Longer steps are seeks (`CIC_SEEKY`).
const SEEK_SECTORS: u64 = 8 * 1024;

impl IoContext {
    pub(super) fn new(jiffies: u64) -> IoContext {
        IoContext {
            queues: [None; 2],
            last_end: jiffies,
            exited: false,
            think: Mean::default(),
            seek: Mean::default(),
            last_position: 0,
        }
    }

    /// How long the task thought before this request, at most twice as long as anybody idles, and how far it went, of which
    /// long steps count as shorter ones so that one does not hide many.
    pub(super) fn learn(&mut self, request: &Request, jiffies: u64, slice_idle: u64) {
        let think = jiffies.saturating_sub(self.last_end).min(2 * slice_idle);
        self.think.add(7, think);
        let beyond = match self.seek.samples() <= 60 {
            true => 2 * 1024 * 1024,
            false => 2 * 1024 * 64,
        };
        let most = self.seek.get().unwrap_or(0) * 4 + beyond;
        let distance = self.last_position.abs_diff(request.start);
        self.seek.add(7, distance.min(most));
        self.last_position = request.end();
    }

    /// Its mean step is a seek.
    pub(super) fn is_seeky(&self) -> bool {
        self.seek.get().is_some_and(|mean| mean > SEEK_SECTORS)
    }

    /// None: too little has been seen.
    pub(super) fn usual_seek(&self) -> Option<u64> {
        self.seek
            .get()
            .filter(|_| self.seek.samples() > SAMPLES_MIN)
    }

    /// None: too little has been seen.
    pub(super) fn usual_think(&self) -> Option<u64> {
        self.think
            .get()
            .filter(|_| self.think.samples() > SAMPLES_MIN)
    }
}
