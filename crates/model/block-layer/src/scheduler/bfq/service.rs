//! Requests go out and come back, and waiting for more of a queue.

use crate::scheduler::bfq::select::Reason;
use crate::scheduler::bfq::{Bfq, DEEP_DEVICE, DEPTH_SAMPLES, QueueId};
use crate::{RequestId, Requests};
use events::time::{MILLISECOND, Time};

/// For a queue that seeks anyway, where nothing but throughput is at stake.
const SEEKY_IDLE_NS: Time = 2 * MILLISECOND;

/// For a queue with a raised weight, at least.
const RAISED_IDLE_NS: Time = 20 * MILLISECOND;

impl Bfq {
    /// Sends the queue's next request (`bfq_dispatch_rq_from_bfqq`, `bfq_dispatch_remove`). Another queue than the active
    /// one is served out of turn.
    pub(super) fn serve(&mut self, requests: &Requests, queue_id: QueueId) -> RequestId {
        if self.queues[queue_id].waits_for_request {
            self.queues[queue_id].waits_for_request = false;
            self.idle_timer = None;
        }
        let is_injected = self.active != Some(queue_id);
        let id = self.queues[queue_id].next.expect("a queue that is chosen has requests");
        let request = &requests[id];
        let charge = self.charge(requests, id, queue_id);
        let entity = self.queues[queue_id].entity;
        self.queues[queue_id].pace.service += charge;
        if self.queues[queue_id].raised.is_some() {
            self.queues[queue_id].raised_service += charge;
        }
        self.hierarchy.served(entity, charge);
        if !is_injected {
            self.measure_dispatch(id);
        }
        self.peak_rate.dispatched(self.now, request.start, request.sectors, self.in_driver);
        self.queues[queue_id].next = self.next_after(requests, id);
        self.next_changed(requests, queue_id);
        self.fifos.remove(requests, id);
        let queue = &mut self.queues[queue_id];
        queue.queued -= 1;
        queue.dispatched += 1;
        self.queued -= 1;
        self.in_driver += 1;
        self.last_position = request.end();
        self.count(queue_id);
        if is_injected {
            if self.queues[queue_id].is_empty() {
                self.hierarchy.withdraw(entity);
                self.hierarchy.set_budget(entity, 0);
                self.went_idle(queue_id);
            }
            return id;
        }
        self.lower_if_due(queue_id);
        if self.queues[queue_id].is_idle_class() && self.busy_queues.len() > 1 {
            self.expire(requests, Reason::BudgetExhausted);
        }
        id
    }

    /// What is best in its queue once a request has gone (`bfq_find_next_rq`): the one that has waited too long, looked at
    /// once a turn (`bfq_check_fifo`), or else what is near, seen from where that request starts. A request that comes
    /// before it is sent, and is nearer, takes its place.
    fn next_after(&mut self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let queue_id = self.fifos.fifo_of(id);
        if !std::mem::replace(&mut self.queues[queue_id].fifo_looked_at, true) {
            let due = self.fifos.due(queue_id, self.now);
            if let Some(due) = due.filter(|&due| due != id) {
                return Some(due);
            }
        }
        let (before, after) = self.fifos.around_cyclically(requests, id);
        let from = requests[id].start;
        self.backwards.better(requests, from, after, before)
    }

    /// `bfq_completed_request`.
    pub(super) fn complete(&mut self, requests: &Requests, id: RequestId) {
        let queue_id = self.fifos.fifo_of(id);
        self.measure_completion(id, queue_id);
        self.learn_depth();
        self.in_driver -= 1;
        self.peak_rate.completed(self.now);
        let queue = &mut self.queues[queue_id];
        queue.dispatched -= 1;
        queue.last_end = self.now;
        self.forget_request_of(requests[id].task);
        self.note_completion(queue_id);
        let queue = &self.queues[queue_id];
        let drained = queue.dispatched == 0;
        if drained && !queue.busy {
            self.queues[queue_id].budget_timeout = Some(self.now);
        }
        self.judge_pace_late(queue_id);
        self.count(queue_id);
        if self.active == Some(queue_id) {
            if self.must_idle(queue_id) {
                if drained {
                    self.wait_for_more(queue_id);
                }
                return;
            }
            if self.may_time_out(queue_id) {
                self.expire(requests, Reason::BudgetTimeout);
            } else if self.queues[queue_id].is_empty() {
                self.expire(requests, Reason::NoMoreRequests);
            }
        }
        if self.in_driver == 0 {
            self.kick();
        }
    }

    /// Nobody else is served until the queue's task sends its next request, or the time is over (`bfq_arm_slice_timer`).
    fn wait_for_more(&mut self, id: QueueId) {
        let full = self.tunables.slice_idle_ns;
        let queue = &mut self.queues[id];
        queue.waits_for_request = true;
        let (seeky, raised) = (queue.is_seeky(), queue.raised.is_some());
        let idle_ns = if raised {
            full.max(RAISED_IDLE_NS)
        } else if seeky && !self.is_asymmetric(id) {
            full.min(SEEKY_IDLE_NS)
        } else {
            full
        };
        self.idling_since = self.now;
        self.idle_timer = Some(self.now + idle_ns);
    }

    /// The idle timer has run out (`bfq_idle_slice_timer`).
    pub(super) fn idled_long_enough(&mut self, requests: &Requests) {
        if let Some(id) = self.active {
            if self.has_timed_out() {
                self.expire(requests, Reason::BudgetTimeout);
            } else if self.queues[id].is_empty() {
                self.expire(requests, Reason::TooIdle);
            } else {
                self.queues[id].waits_for_request = false;
            }
        }
        self.kick();
    }

    /// Whether the device takes several requests at once, judged by what it has been given when there was plenty
    /// (`bfq_update_hw_tag`).
    fn learn_depth(&mut self) {
        self.depth.peak = self.depth.peak.max(self.in_driver);
        if self.depth.known == Some(true) || self.in_driver + self.queued <= DEEP_DEVICE {
            return;
        }
        if let Some(id) = self.active {
            let queue = &self.queues[id];
            let own = queue.dispatched + queue.queued;
            if queue.short_think && own < DEEP_DEVICE && self.in_driver < DEEP_DEVICE {
                return;
            }
        }
        self.depth.samples += 1;
        if self.depth.samples > DEPTH_SAMPLES {
            self.depth.known = Some(self.depth.peak > DEEP_DEVICE);
            self.depth.peak = 0;
            self.depth.samples = 0;
        }
    }
}
