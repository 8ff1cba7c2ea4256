//! Who is served, for how long, and who is waited for.

use super::{CfqLists, List, QueueId, Version};
use crate::scheduler::task_queues::IoContext;
use crate::{IoClass, RequestId, Requests};

/// So long a task that seeks is waited for.
const TICKS_FOR_SEEKERS: u64 = 2;
/// Longer mean steps are seeks.
const SEEK_SECTORS: u64 = 131_072;

impl CfqLists {
    /// The queue to dispatch from (`cfq_select_queue`); None: what is there has to wait.
    fn select(&mut self) -> Option<QueueId> {
        if let Some(active) = self.active {
            let queue = &self.queues[active];
            let ended = queue.slice_is_over(self.jiffies);
            if !ended && queue.queued > 0 {
                return Some(active);
            }
            let is_in_slice = queue.slice_end.is_some_and(|end| self.jiffies < end);
            if !ended && queue.is_tasks && is_in_slice && self.wait_for_more(active) {
                return None;
            }
            self.expire(active, false);
        }
        self.activate_next()
    }

    /// `cfq_set_active_queue`.
    fn activate_next(&mut self) -> Option<QueueId> {
        let mut moved = Vec::new();
        let mut next = self.lists.next(&mut moved);
        for id in moved {
            self.queues[id].list = Some(List::Current);
        }
        if self.version == Version::Linux2_6_18 {
            next = next.or(self.lists.first_in_flight());
        }
        if next.is_none()
            && let Some(idle) = self.lists.first_idle()
        {
            let end = self.last_end + self.ticks.idle_grace;
            match self.jiffies >= end {
                true => next = Some(idle),
                false => self.idle_class_timer = Some(end),
            }
        }
        self.active = None;
        if let Some(id) = next {
            self.activate(id);
        }
        next
    }

    /// `__cfq_set_active_queue`.
    fn activate(&mut self, id: QueueId) {
        self.idle_class_timer = None;
        let queue = &mut self.queues[id];
        queue.slice_end = None;
        queue.has_exceeded_pool = false;
        queue.has_served_expired = false;
        self.active = Some(id);
    }

    /// The queue's slice is over, or interrupted (`__cfq_slice_expired`).
    pub(super) fn expire(&mut self, id: QueueId, interrupted: bool) {
        if self.queues[id].waits_for_request {
            self.idle_timer = None;
        }
        let queue = &mut self.queues[id];
        if !interrupted && !queue.is_in_flight() {
            queue.served_at = self.jiffies;
            self.kick();
        }
        let queue = &mut self.queues[id];
        queue.must_dispatch = false;
        queue.waits_for_request = false;
        if queue.list.is_some() {
            self.stand(id, interrupted);
        }
        if self.active == Some(id) {
            self.active = None;
        }
        self.active_task = None;
        self.dispatched_in_slice = 0;
        self.release_if_over(id);
    }

    /// Puts the queue into its list, or moves it there (`cfq_resort_rr_list`): at the front if its turn was
    /// interrupted, else behind those that were served before it. One with requests in flight has to wait for them,
    /// unless it is of another class.
    pub(super) fn stand(&mut self, id: QueueId, at_front: bool) {
        if let Some(old) = self.queues[id].list {
            self.lists.remove(old, id);
        }
        let queue = &self.queues[id];
        let list = match queue.priority.class {
            IoClass::RealTime => List::Current,
            IoClass::Idle => List::Idle,
            IoClass::BestEffort if queue.is_in_flight() => List::InFlight,
            IoClass::BestEffort => List::Level(queue.priority.level),
        };
        let (queues, mine) = (&self.queues, queue.served_at);
        let waiting = self.lists.of(list);
        let place = if at_front || list == List::InFlight {
            0
        } else {
            let served_before = |&other: &QueueId| {
                let other = queues[other].served_at;
                other == 0 || other < mine
            };
            let last = waiting.iter().rposition(served_before);
            last.map_or(0, |last| last + 1)
        };
        waiting.insert(place, id);
        self.queues[id].list = Some(list);
    }

    /// `cfq_prio_to_slice`.
    fn slice_of(&self, id: QueueId) -> u64 {
        let queue = &self.queues[id];
        let base = self.ticks.slice[usize::from(queue.is_sync())] as i64;
        (base + base / 5 * (4 - i64::from(queue.priority.level))).max(0) as u64
    }

    /// Arms the idle timer (`cfq_arm_slice_timer`); false: the queue's task is not waited for.
    fn wait_for_more(&mut self, id: QueueId) -> bool {
        let task = self.active_task.and_then(|task| self.queues.io_context(task));
        let is_gone = match self.version {
            Version::Linux2_6_15 => task.is_some_and(|task: &IoContext| task.exited),
            Version::Linux2_6_18 => task.is_none_or(|task| task.exited),
        };
        let mean_seek = task.and_then(IoContext::usual_seek);
        let is_seeky = mean_seek.is_some_and(|mean| mean > SEEK_SECTORS);
        let queue = &mut self.queues[id];
        if self.ticks.slice_idle == 0 || !queue.idle_window || is_gone {
            return false;
        }
        queue.must_dispatch = true;
        queue.waits_for_request = true;
        let ticks = match self.version == Version::Linux2_6_18 && is_seeky {
            true => TICKS_FOR_SEEKERS,
            false => self.ticks.slice_idle,
        };
        self.idle_timer = Some(self.jiffies + ticks);
        true
    }

    /// `cfq_idle_slice_timer`.
    pub(super) fn idled_long_enough(&mut self) {
        if let Some(id) = self.active {
            let queue = &mut self.queues[id];
            let end = queue.slice_end.unwrap_or(0);
            if self.jiffies <= end && self.busy == 0 {
                let then = (self.jiffies + self.ticks.slice_idle).min(end);
                self.idle_timer = Some(then.max(self.jiffies + 1));
                return;
            }
            if self.jiffies <= end && queue.queued > 0 {
                queue.must_dispatch = true;
            } else {
                self.expire(id, false);
            }
        }
        self.kick();
    }

    /// A sync request has come (`cfq_crq_enqueued`): its queue was waited for, or has its turn at once if nobody else has
    /// one.
    pub(super) fn notice(&mut self, id: QueueId) {
        if self.active == Some(id) {
            if self.queues[id].waits_for_request {
                self.queues[id].must_dispatch = true;
                self.idle_timer = None;
                self.kick();
            }
            return;
        }
        let is_idle = |id: QueueId| self.queues[id].priority.class == IoClass::Idle;
        if is_idle(id) || self.active.is_some_and(|active| !is_idle(active)) {
            return;
        }
        for other in self.lists.current().collect::<Vec<_>>() {
            self.stand(other, true);
        }
        self.expire(id, true);
        self.activate(id);
        self.queues[id].must_dispatch = true;
        self.kick();
    }

    // Requests go out.

    /// Moves up to a quantum of one queue's requests to those that leave (`__cfq_dispatch_requests`).
    pub(super) fn dispatch_round(&mut self, requests: &Requests) {
        let Some(id) = self.select() else {
            return;
        };
        let queue = &mut self.queues[id];
        if !queue.idle_window && self.in_driver >= self.tunables.max_depth {
            return;
        }
        queue.must_dispatch = false;
        queue.waits_for_request = false;
        self.idle_timer = None;
        let is_idle = queue.priority.class == IoClass::Idle;
        let most = if is_idle { 1 } else { self.tunables.common.quantum };
        for _ in 0..most {
            let next = self.next_of(id);
            self.leave(requests, next, id);
            self.dispatched_in_slice += 1;
            self.active_task.get_or_insert(requests[next].task);
            if self.queues[id].queued == 0 {
                break;
            }
        }
        if self.queues[id].slice_end.is_none() {
            self.queues[id].slice_end = Some(self.jiffies + self.slice_of(id));
        }
        let queue = &self.queues[id];
        let steps = 8 - u32::from(queue.priority.level);
        let of_async = self.tunables.common.slice_async_rq;
        let of_async = of_async.saturating_mul(2 * steps);
        if is_idle || !queue.is_sync() && self.dispatched_in_slice >= of_async {
            self.expire(id, false);
        }
    }

    /// The one that has waited too long, once a slice (`cfq_check_fifo`); else the next in order.
    fn next_of(&mut self, id: QueueId) -> RequestId {
        let queue = &mut self.queues[id];
        let expired = self.fifos.overdue(id, self.jiffies).filter(|_| !queue.has_served_expired);
        queue.has_served_expired |= expired.is_some();
        expired.or(queue.next).expect("a queue that is chosen has requests")
    }

    /// `cfq_dispatch_insert`.
    fn leave(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        let (before, after) = self.fifos.around_cyclically(requests, id);
        self.queues[queue_id].next = self.better(requests, after, before);
        self.fifos.remove(requests, id);
        self.queues[queue_id].dispatched[usize::from(requests[id].sync)] += 1;
        self.count_out(queue_id);
        let from = self.last_position;
        let place = self.dispatch_list.place_in_sweeps(requests, id, from, false);
        self.dispatch_list.insert(place, id);
    }

    // Requests come back.

    /// `cfq_completed_request`.
    pub(super) fn complete(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let queue_id = self.fifos.fifo_of(id);
        self.in_driver -= 1;
        let queue = &mut self.queues[queue_id];
        queue.dispatched[usize::from(request.sync)] -= 1;
        if queue.priority.class != IoClass::Idle {
            self.last_end = self.jiffies;
        }
        if !queue.is_in_flight() {
            if queue.list.is_some() {
                queue.served_at = self.jiffies;
                self.stand(queue_id, false);
            }
            self.kick();
        }
        if request.sync
            && let Some(io_context) = self.queues.io_context_mut(request.task)
        {
            io_context.last_end = self.jiffies;
        }
        self.release_if_over(queue_id);
    }
}
