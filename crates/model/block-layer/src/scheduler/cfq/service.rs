//! Requests go out and come back: how many of a queue at a time, when its slice begins, and waiting for more of it.

use crate::scheduler::cfq::message::{Event, SchedulerMessage};
use crate::scheduler::cfq::queue::{QueueId, Workload};
use crate::scheduler::cfq::{Cfq, DEEP_DEVICE, DEPTH_SAMPLES, Version};
use crate::{IoClass, RequestId, Requests};

/// Dispatches of an async queue in a slice for each step of priority: 16 at the default.
const LEVELS: u32 = 8;

impl Cfq {
    /// `cfq_dispatch_requests`.
    pub(super) fn dispatch_one(&mut self, requests: &Requests) -> Option<RequestId> {
        let queue_id = self.select()?;
        if !self.may_dispatch(queue_id) {
            return None;
        }
        let id = self.next_of(queue_id);
        self.send(requests, id, queue_id);
        let busy = self.busy_queues > 1;
        let now = self.jiffies();
        let queue = &mut self.queues[queue_id];
        queue.slice_dispatch += 1;
        queue.must_dispatch = false;
        let steps = LEVELS - u32::from(queue.priority.level);
        let asynchronous_max = self.tunables.slice_async_rq.saturating_mul(2 * steps);
        let had_enough = !queue.sync && queue.slice_dispatch >= asynchronous_max;
        if busy && (had_enough || queue.is_idle_class()) {
            queue.slice_end = now + 1;
            self.expire_active(false);
        }
        self.say(queue_id, Event::Dispatched);
        Some(id)
    }

    /// The one that has waited too long, looked at once a slice (`cfq_check_fifo`); else the next in order.
    fn next_of(&mut self, queue_id: QueueId) -> RequestId {
        let now = self.jiffies();
        let queue = &mut self.queues[queue_id];
        if !queue.fifo_looked_at {
            queue.fifo_looked_at = true;
            if let Some(expired) = self.fifos.due(queue_id, now) {
                return expired;
            }
        }
        queue.next.expect("a queue that is chosen has requests")
    }

    /// `cfq_dispatch_insert`.
    fn send(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        let request = &requests[id];
        self.say(queue_id, Event::SentToDevice);
        self.queues[queue_id].next = self.next_after(requests, id);
        self.fifos.remove(requests, id);
        self.count_out(requests, id, queue_id);
        self.settle_place(requests, queue_id);
        self.last_position = request.end();
        let queue = &mut self.queues[queue_id];
        queue.dispatched += 1;
        queue.sectors_dispatched += u64::from(request.sectors);
        let group = self.group_of[id.number() as usize];
        self.groups.get_mut(group).dispatched += 1;
        self.in_driver += 1;
        self.in_flight[usize::from(request.sync)] += 1;
        if self.active_task.is_none() {
            self.active_task = Some(request.task);
        }
    }

    /// `cfq_may_dispatch`.
    fn may_dispatch(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if self.should_idle(id) && self.in_flight[0] > 0 {
            return false;
        }
        if !queue.sync && self.in_flight[1] > 0 {
            return false;
        }
        let mut limit = (self.tunables.quantum / 2).max(1);
        if queue.is_idle_class() {
            limit = 1;
        }
        if queue.dispatched >= limit {
            if queue.is_idle_class() || (self.busy_queues > 1 && self.slice_used_soon(id)) {
                return false;
            }
            limit = if self.busy_queues == 1 { u32::MAX } else { self.tunables.quantum };
        }
        if !queue.sync && self.tunables.low_latency {
            let since = self.jiffies() - self.last_delayed_sync;
            let depth = (since / self.ticks.slice[1].max(1)) as u32;
            let depth = if depth == 0 && queue.dispatched == 0 { 1 } else { depth };
            limit = limit.min(depth);
        }
        queue.dispatched < limit
    }

    /// Whether what is at the device already will take the rest of the slice (`cfq_slice_used_soon`).
    fn slice_used_soon(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let needed = self.ticks.slice_idle * u64::from(queue.dispatched);
        queue.slice_new || self.jiffies() + needed > queue.slice_end
    }

    /// `cfq_completed_request`.
    pub(super) fn complete(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let number = id.number() as usize;
        let queue_id = self.fifos.fifo_of(id);
        let now = self.jiffies();
        let no_idle = request.no_idle;
        self.say(queue_id, Event::Completed { no_idle });
        self.learn_depth();
        self.in_driver -= 1;
        self.queues[queue_id].dispatched -= 1;
        self.groups.get_mut(self.group_of[number]).dispatched -= 1;
        self.in_flight[usize::from(request.sync)] -= 1;
        if request.sync {
            if let Some(io_context) = self.io_contexts.get_mut(request.task) {
                io_context.last_end = now;
            }
            let queued_at = self.tick.count(request.queued_at);
            if queued_at + self.ticks.fifo_expire[1] <= now {
                self.last_delayed_sync = now;
            }
        }
        if self.active == Some(queue_id) {
            self.active_completed(requests, id, queue_id);
        }
        self.release_if_over(queue_id);
        if self.in_driver == 0 {
            self.kick();
        }
    }

    /// The part of `cfq_completed_request` for the active queue.
    fn active_completed(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        let now = self.jiffies();
        if self.queues[queue_id].slice_new {
            self.begin_slice(queue_id);
        }
        if self.should_wait_busy(queue_id) {
            let extension = if self.ticks.slice_idle == 0 { self.ticks.group_idle } else { self.ticks.slice_idle };
            self.queues[queue_id].slice_end = now + extension;
            self.queues[queue_id].wait_busy = true;
            self.say(queue_id, Event::WaitsBusy);
        }
        let queue = &self.queues[queue_id];
        if queue.slice_used(now) || queue.is_idle_class() {
            self.expire_active(true);
        } else if requests[id].sync && queue.is_empty() && self.close_cooperator(queue_id).is_none() {
            self.no_idle_tree_requires_idle |= !requests[id].no_idle;
            let alone = self.groups.get(self.queues[queue_id].group).queues == 1;
            if self.version == Version::Linux2_6_37
                || self.serving_workload == Workload::Sync
                || self.no_idle_tree_requires_idle
                || alone
            {
                self.wait_for_more(queue_id);
            }
        }
    }

    /// The time of a slice begins with its first completion (the end of `cfq_set_prio_slice`).
    fn begin_slice(&mut self, id: QueueId) {
        let now = self.jiffies();
        let slice = self.slice_of(id);
        let queue = &mut self.queues[id];
        queue.slice_start = Some(now);
        queue.slice_end = now + slice;
        queue.slice_allocated = slice;
        queue.slice_new = false;
        self.say(id, Event::SliceBegun { ticks: slice });
    }

    /// A slice in ticks (`cfq_set_prio_slice`); with low latency, shorter when the group's queues would take more than its
    /// share of a turn.
    pub(super) fn slice_of(&mut self, id: QueueId) -> u64 {
        let queue = &self.queues[id];
        let (group, class) = (queue.group, queue.priority.class);
        let slice = self.slice_of_level(queue.sync, queue.priority.level);
        if !self.tunables.low_latency {
            return slice;
        }
        let class = match class {
            IoClass::Idle => IoClass::BestEffort,
            class => class,
        };
        let queues = self.groups.get_mut(group).update_busy_mean(class);
        let sync_slice = self.ticks.slice[1];
        let expected = sync_slice * queues;
        let group_slice = self.group_slice(group);
        if expected <= group_slice {
            return slice;
        }
        let least = slice.min(2 * self.ticks.slice_idle * slice / sync_slice.max(1));
        (slice * group_slice / expected).max(least)
    }

    /// `cfq_prio_slice`.
    pub(super) fn slice_of_level(&self, sync: bool, level: u8) -> u64 {
        let base = self.ticks.slice[usize::from(sync)] as i64;
        (base + base / 5 * (4 - i64::from(level))) as u64
    }

    /// The slice of the group's only queue is all but over (`cfq_should_wait_busy`): give it time to come back before the
    /// group loses its turn.
    fn should_wait_busy(&self, id: QueueId) -> bool {
        let now = self.jiffies();
        let queue = &self.queues[id];
        if self.groups.get(queue.group).queues > 1 {
            return false;
        }
        if queue.slice_used(now) {
            return true;
        }
        let left = queue.slice_end.saturating_sub(now);
        self.active_think().is_some_and(|think| left < think) || left == 1
    }

    /// The usual think time of the task that is waited for, in ticks.
    fn active_think(&self) -> Option<u64> {
        self.io_contexts.get(self.active_task?)?.usual_think()
    }

    /// Arms the idle timer (`cfq_arm_slice_timer`): nobody else is served until the queue's task sends its next request, or
    /// the time is over.
    fn wait_for_more(&mut self, id: QueueId) {
        if self.is_fast_device() {
            return;
        }
        let on_group = if self.ticks.slice_idle == 0 || !self.should_idle(id) {
            if self.ticks.group_idle == 0 {
                return;
            }
            true
        } else {
            false
        };
        if self.queues[id].dispatched > 0 {
            return;
        }
        let gone =
            self.active_task.and_then(|task| self.io_contexts.get(task)).is_none_or(|io_context| io_context.exited);
        if gone {
            return;
        }
        let now = self.jiffies();
        let left = self.queues[id].slice_end.saturating_sub(now);
        if self.active_think().is_some_and(|think| left < think) {
            return;
        }
        if on_group && self.groups.get(self.queues[id].group).queues > 1 {
            return;
        }
        let ticks = if on_group { self.ticks.group_idle } else { self.ticks.slice_idle };
        self.queues[id].waits_for_request = true;
        self.idle_timer = Some(now + ticks);
        let version = self.version;
        self.say(id, Event::IdleArmed { version, ticks, on_group });
    }

    /// The idle timer has run out (`cfq_idle_slice_timer`).
    pub(super) fn idled_long_enough(&mut self) {
        let now = self.jiffies();
        if let Some(messages) = &mut self.messages {
            messages.push(SchedulerMessage { at: self.now, queue: None, event: Event::IdleTimerFired });
        }
        if let Some(id) = self.active {
            let queue = &mut self.queues[id];
            if !queue.must_dispatch {
                let used = queue.slice_used(now);
                if !used && self.busy_queues == 0 {
                    return;
                }
                if used || queue.is_empty() {
                    if !used {
                        queue.deep = false;
                    }
                    self.expire_active(false);
                }
            }
        }
        self.kick();
    }

    /// Whether the device takes several requests at once, judged by what it has been given when there was plenty
    /// (`cfq_update_hw_tag`).
    fn learn_depth(&mut self) {
        self.depth.peak = self.depth.peak.max(self.in_driver);
        if self.depth.known == Some(true) {
            return;
        }
        if self.queued <= DEEP_DEVICE && self.in_driver <= DEEP_DEVICE {
            return;
        }
        if let Some(id) = self.active {
            let queue = &self.queues[id];
            let own = queue.dispatched + queue.queued;
            if queue.idle_window && own < DEEP_DEVICE && self.in_driver < DEEP_DEVICE {
                return;
            }
        }
        self.depth.samples += 1;
        if self.depth.samples > DEPTH_SAMPLES {
            self.depth.known = Some(self.depth.peak >= DEEP_DEVICE);
        }
    }
}
