//! Requests come in: into which queue, and what is learned of their task.

use crate::scheduler::bfq::queue::{Queue, weight_of};
use crate::scheduler::bfq::select::Reason;
use crate::scheduler::bfq::{Bfq, DEFAULT_GROUP_WEIGHT, QueueId};
use crate::{Priority, Request, RequestId, Requests, TaskId};

impl Bfq {
    /// `__bfq_insert_request`, `bfq_add_request`, `bfq_rq_enqueued`.
    pub(super) fn enqueue(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let queue_id = self.queue_for(request);
        self.learn(request, queue_id);
        let of_task = self.requests_of_task.get_or_insert_with(request.task, || 0);
        *of_task += 1;
        let is_only_one = *of_task == 1;
        let was_raised = self.queues[queue_id].raised.is_some();
        if request.sync {
            if is_only_one {
                self.look_for_waker(queue_id);
                self.begin_measuring(queue_id);
            }
            self.queues[queue_id].judge_intensity(self.now);
        }
        let expire_ns =
            if request.sync { self.tunables.fifo_expire_sync_ns } else { self.tunables.fifo_expire_async_ns };
        let deadline = self.now + expire_ns;
        self.fifos.add(requests, id, queue_id, deadline);
        self.queues[queue_id].queued += 1;
        self.queued += 1;
        let before = self.queues[queue_id].next;
        let next = self.backwards.better(requests, self.last_position, before, Some(id));
        self.queues[queue_id].next = next;
        let was_busy = self.queues[queue_id].busy;
        if !was_busy {
            self.becomes_busy(requests, queue_id);
        } else {
            if !request.sync {
                self.raise_if_starved(queue_id);
            }
            if next != before {
                self.next_changed(requests, queue_id);
            }
        }
        if !(was_raised && self.queues[queue_id].raised.is_some()) {
            self.queues[queue_id].last_unraised = self.now;
        }
        if was_busy && self.active == Some(queue_id) && self.queues[queue_id].waits_for_request {
            self.queues[queue_id].waits_for_request = false;
            self.idle_timer = None;
            if self.has_timed_out() {
                self.expire(requests, Reason::BudgetTimeout);
            }
            self.kick();
        }
    }

    /// `bfq_requests_merged`.
    pub(super) fn merge_requests(&mut self, requests: &Requests, survivor: RequestId, merged: RequestId) {
        let queue = &mut self.queues[self.fifos.fifo_of(merged)];
        if queue.next == Some(merged) {
            queue.next = Some(survivor);
        }
        queue.queued -= 1;
        self.fifos.merged_requests(requests, survivor, merged);
        self.queued -= 1;
        self.forget_request_of(requests[merged].task);
    }

    /// One request of the task less.
    pub(super) fn forget_request_of(&mut self, task: TaskId) {
        if let Some(requests) = self.requests_of_task.get_mut(task) {
            *requests -= 1;
        }
    }

    pub(super) fn known_queue(&self, task: TaskId, group: u16, sync: bool, priority: Priority) -> Option<QueueId> {
        if sync {
            return self.sync_queues.get(task).copied();
        }
        let key = (usize::from(group), priority.class, priority.level);
        self.async_queues.get(&key).copied()
    }

    /// `bfq_get_queue`, `bfq_init_bfqq`.
    fn queue_for(&mut self, request: &Request) -> QueueId {
        let (sync, priority) = (request.sync, request.priority);
        if let Some(known) = self.known_queue(request.task, request.group, sync, priority) {
            return match sync {
                true => self.merge_late(known, request.task),
                false => known,
            };
        }
        let group = usize::from(request.group);
        // The first budget weighs throughput against latency.
        let budget = 2 * self.max_budget() / 3;
        self.hierarchy.ensure_group(group, DEFAULT_GROUP_WEIGHT);
        let weight = weight_of(priority);
        let entity = self.hierarchy.add_queue(group, priority.class, weight);
        let id = self.queues.len();
        let queue = Queue::new(entity, sync, priority, group, budget, self.now);
        self.queues.push(queue);
        self.queue_of_entity.resize(entity + 1, None);
        self.queue_of_entity[entity] = Some(id);
        if sync {
            *self.sync_queues.get_or_insert_with(request.task, || id) = id;
            let goes_to = self.merge_if_soon(id, request.task);
            if goes_to == id {
                self.note_burst(id);
            }
            return goes_to;
        } else {
            let key = (group, priority.class, priority.level);
            self.async_queues.insert(key, id);
        }
        id
    }

    /// `bfq_update_io_thinktime`, `bfq_update_has_short_ttime`, `bfq_update_io_seektime`.
    fn learn(&mut self, request: &Request, queue_id: QueueId) {
        let (now, slice_idle) = (self.now, self.tunables.slice_idle_ns);
        let rotational = self.rotational;
        let queue = &mut self.queues[queue_id];
        if queue.dispatched == 0 && !queue.busy {
            queue.note_think(now, slice_idle);
        }
        let thought_shortly = queue.short_think;
        queue.judge_think(slice_idle);
        let has_changed = queue.short_think != thought_shortly;
        queue.note_seek(request, rotational);
        if has_changed {
            self.think_changed(queue_id);
        }
    }

    /// The queue may use the rest of its budget if it was idle for a short time only
    /// (`bfq_bfqq_handle_idle_busy_switch`, `bfq_bfqq_update_budg_for_activation`).
    fn becomes_busy(&mut self, requests: &Requests, queue_id: QueueId) {
        let soon = self.now <= self.queues[queue_id].last_end + 3 * self.tunables.slice_idle_ns;
        let needs = self.charge_of_next(requests, queue_id);
        let queue = &mut self.queues[queue_id];
        let entity = *self.hierarchy.entity(queue.entity);
        let left = entity.budget_left();
        let in_time = queue.went_to_wait && soon && left > 0;
        let budget = if in_time { left.min(queue.max_budget) } else { queue.max_budget.max(needs) };
        queue.went_to_wait = false;
        let id = queue.entity;
        self.set_busy(queue_id, true);
        let budget = match self.raise_if_interactive(queue_id) {
            true => budget.min(self.raised_budget()),
            false => budget,
        };
        self.queues[queue_id].is_new = false;
        self.queues[queue_id].pace.begin(self.now);
        self.hierarchy.forget_service(id);
        self.hierarchy.set_budget(id, budget);
        let raised = self.queues[queue_id].coefficient();
        self.hierarchy.activate(id, in_time, raised);
        self.count(queue_id);
        self.preempt_if_due(requests, queue_id, in_time);
    }
}
