//! Injection: while a queue is idled for, as many requests of others are sent as do not delay its own.
//!
//! Source: `bfq_update_inject_limit`, `bfq_choose_bfqq_for_injection`, `bfq_reset_inject_limit` and `bfq_add_request`
//! in `block/bfq-iosched.c` of 6.x (by measured service times since 5.3). Left out: async requests of the task that is
//! idled for, which are injected without a limit there.

use crate::scheduler::bfq::{Bfq, QueueId};
use crate::{RequestId, Requests};
use events::time::{MILLISECOND, SECOND, Time};

/// What a queue bears.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Injection {
    /// Requests at the device up to which others' may be sent while it has none.
    pub(super) limit: u32,
    /// From the arrival of a first request to its completion, without others'; None: not known yet.
    alone_ns: Option<Time>,
    /// When the limit fell, or was forgotten.
    lowered_at: Time,
}

/// The measuring of one first request: of the queue in service, which had none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InjectionMeasurement {
    /// The next request of the queue is the one.
    awaits_dispatch: bool,
    request: Option<RequestId>,
    arrived_at: Time,
    /// Something has been injected meanwhile.
    injected: bool,
}

/// From one measuring to the next, at least.
const MEASURE_AFTER_NS: Time = 10 * MILLISECOND;
/// What is known is forgotten after this time.
const FORGET_AFTER_NS: Time = SECOND;
/// The limit is learnt only when think times change from long to short.
const THINK_AFTER_NS: Time = 100 * MILLISECOND;
/// If seeking is free, larger requests are injected one at a time.
const LARGE_SECTORS: u32 = 2 * 32;

impl Injection {
    /// Nothing is known of what a queue bears (`bfq_reset_inject_limit`): one that thinks for long bears one.
    pub(super) fn unknown(now: Time, short_think: bool) -> Injection {
        Injection { limit: u32::from(!short_think), alone_ns: None, lowered_at: now }
    }

    fn think_changed(&mut self, now: Time, short_think: bool, late: bool) {
        if self.alone_ns.is_none() && (late || !short_think) {
            *self = Injection::unknown(now, short_think);
        }
    }
}

impl Bfq {
    /// The queue thinks for long now, or no longer.
    pub(super) fn think_changed(&mut self, id: QueueId) {
        let late = self.has_passed(THINK_AFTER_NS, self.queues[id].injection.lowered_at);
        let queue = &mut self.queues[id];
        queue.injection.think_changed(self.now, queue.short_think, late);
    }

    /// The queue's task sends a request while it has no other (`bfq_add_request`).
    pub(super) fn begin_measuring(&mut self, id: QueueId) {
        let now = self.now;
        if self.has_passed(FORGET_AFTER_NS, self.queues[id].injection.lowered_at) {
            let queue = &mut self.queues[id];
            queue.injection = Injection::unknown(now, queue.short_think);
            self.measuring.request = None;
        }
        let known = self.queues[id].injection;
        let alone = self.in_driver == 0;
        let among = known.alone_ns.is_some() && self.measuring.injected && !alone;
        let due = self.has_passed(MEASURE_AFTER_NS, known.lowered_at);
        if self.active == Some(id) && due && (alone || among) {
            self.measuring.awaits_dispatch = true;
            self.measuring.arrived_at = now;
            self.measuring.injected &= !alone;
        }
    }

    /// The queue in service sends a request.
    pub(super) fn measure_dispatch(&mut self, id: RequestId) {
        if std::mem::take(&mut self.measuring.awaits_dispatch) {
            self.measuring.request = Some(id);
        }
    }

    /// A request has completed and still counts as at the device (`bfq_update_inject_limit`): the limit of its queue
    /// follows from how long it took.
    pub(super) fn measure_completion(&mut self, id: RequestId, queue: QueueId) {
        if self.measuring.request != Some(id) {
            return;
        }
        let took_ns = self.now - self.measuring.arrived_at;
        let (injected, alone) = (self.measuring.injected, self.in_driver == 1);
        let now = self.now;
        let deepest = self.depth.peak;
        let injection = &mut self.queues[queue].injection;
        if injected && let Some(alone_ns) = injection.alone_ns {
            if took_ns < alone_ns * 3 / 2 {
                injection.limit += u32::from(injection.limit <= deepest);
            } else if injection.limit > 0 {
                injection.limit -= 1;
                injection.lowered_at = now;
            }
        }
        match injection.alone_ns {
            None if alone => {
                injection.limit = injection.limit.max(1);
                injection.alone_ns = Some(took_ns);
            }
            Some(before) if took_ns < before || alone && !injected => {
                injection.alone_ns = Some(took_ns);
            }
            _ => {}
        }
        self.measuring.request = None;
        self.measuring.injected = false;
    }

    /// A turn has ended: nothing of it is measured any more.
    pub(super) fn end_measuring(&mut self) {
        self.measuring = InjectionMeasurement::default();
    }

    /// While the active queue is idled for (`bfq_choose_bfqq_for_injection`): the queue of which a request may be sent
    /// meanwhile.
    pub(super) fn choose_for_injection(&mut self, requests: &Requests) -> Option<QueueId> {
        let active = self.active.expect("one is idled for");
        let queue = &self.queues[active];
        let may = queue.raised.is_none() || self.raised_busy > 1 || !queue.short_think;
        if !may || self.boosts_throughput(active) || self.in_driver >= queue.injection.limit {
            return None;
        }
        let always = queue.raised.is_none() || !queue.short_think;
        let fits = |&id: &QueueId| {
            let queue = &self.queues[id];
            let Some(next) = queue.next.filter(|_| id != active) else {
                return false;
            };
            let is_large = !self.rotational && requests[next].sectors >= LARGE_SECTORS;
            (always || queue.raised.is_some())
                && self.charge_of_next(requests, id) <= self.budget_left(id)
                && !(is_large && self.in_driver >= 1)
        };
        // The one that has come last is the first of the kernel's list.
        let found = self.busy_queues.iter().rev().copied().find(fits)?;
        self.measuring.injected = true;
        Some(found)
    }
}
