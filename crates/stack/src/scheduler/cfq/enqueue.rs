//! Requests come in: into which queue, what is learned of their task, and whether they interrupt who is being served.

use crate::block::{IoClass, RequestId, Requests};
use crate::scheduler::cfq::queue::{Habits, Queue, QueueId, Standing, Workload, owner};
use crate::scheduler::cfq::{CLOSE_SECTORS, Cfq, Version};

/// Larger than a page: worth sending at once.
const PAGE_SECTORS: u32 = 8;

impl Cfq {
    pub(super) fn enqueue(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let queue_id = self.queue_for(requests, id);
        let number = id.number() as usize;
        if self.queue_of.len() <= number {
            self.queue_of.resize(number + 1, 0);
            self.group_of.resize(number + 1, 0);
        }
        self.queue_of[number] = queue_id;
        let deadline = self.jiffies() + self.ticks.fifo_expire[usize::from(request.sync)];
        let queue = &mut self.queues[queue_id];
        queue.fifo.push(id, deadline);
        queue.sorted.insert(request.start, id);
        queue.metadata_queued += u32::from(request.metadata);
        self.queued += 1;
        if self.queues[queue_id].standing.is_none() {
            self.begin_standing(queue_id);
        }
        let next = self.queues[queue_id].next;
        self.queues[queue_id].next = self.better(requests, next, Some(id));
        self.learn(requests, id, queue_id);
        self.notice(requests, id, queue_id);
    }

    pub(super) fn absorb(&mut self, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        let (own, other) = (
            self.queue_of[survivor.number() as usize],
            self.queue_of[absorbed.number() as usize],
        );
        debug_assert_eq!(own, other, "only a queue's own requests are neighbours");
        self.queues[own].fifo.absorb(survivor, absorbed);
        self.leave_order(requests, absorbed, own);
    }

    /// Takes a request out of its queue's order; what comes after it may be the queue's next.
    pub(super) fn leave_order(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        let request = &requests[id];
        if self.queues[queue_id].next == Some(id) {
            let sorted = &self.queues[queue_id].sorted;
            let before = sorted.before(request.start);
            let after = sorted
                .after(request, id)
                .or_else(|| sorted.first().filter(|&first| first != id));
            self.queues[queue_id].next = self.better(requests, after, before);
        }
        let queue = &mut self.queues[queue_id];
        queue.sorted.remove(request.start, id);
        queue.metadata_queued -= u32::from(request.metadata);
        self.queued -= 1;
    }

    /// The queue for a request's task; tasks that read close to each other share one for a while.
    fn queue_for(&mut self, requests: &Requests, id: RequestId) -> QueueId {
        let request = &requests[id];
        let (task, sync) = owner(request);
        let group = usize::from(request.group);
        self.groups.ensure(group);
        let known = self.habits.entry(task).or_default().queues[usize::from(sync)];
        if let Some(queue) = known {
            let moved = self.followed(task, queue, sync);
            if moved == queue || self.queues[moved].sync {
                return moved;
            }
        }
        let priority = request.priority;
        let queue = if sync {
            self.new_queue(Queue::new(true, priority, group))
        } else {
            // Async I/O is the root group's, whoever caused it.
            let key = (priority.class, priority.level);
            match self.async_queues.get(&key) {
                Some(&queue) => queue,
                None => {
                    let queue = self.new_queue(Queue::new(false, priority, 0));
                    self.async_queues.insert(key, queue);
                    queue
                }
            }
        };
        self.assign(task, sync, queue);
        queue
    }

    /// Where the task's I/O goes now: into the queue that its own was merged into, or out of a shared one again.
    fn followed(&mut self, task: u32, queue: QueueId, sync: bool) -> QueueId {
        if !sync {
            return queue;
        }
        if self.queues[queue].shared && self.queues[queue].to_split {
            if self.queues[queue].tasks == 1 {
                self.queues[queue].shared = false;
                self.queues[queue].to_split = false;
                return queue;
            }
            let own = Queue::new(
                true,
                self.queues[queue].priority,
                self.queues[queue].home_group,
            );
            self.queues[queue].tasks -= 1;
            let own = self.new_queue(own);
            self.assign(task, true, own);
            return own;
        }
        let Some(other) = self.queues[queue].merges_into else {
            return queue;
        };
        self.queues[queue].tasks -= 1;
        if self.queues[queue].tasks == 0 {
            self.queues[queue].merges_into = None;
        }
        self.queues[other].shared = true;
        self.assign(task, true, other);
        other
    }

    fn assign(&mut self, task: u32, sync: bool, queue: QueueId) {
        self.queues[queue].tasks += 1;
        self.habits.entry(task).or_default().queues[usize::from(sync)] = Some(queue);
    }

    fn new_queue(&mut self, queue: Queue) -> QueueId {
        self.queues.push(queue);
        self.queues.len() - 1
    }

    fn learn(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        let request = &requests[id];
        let now = self.jiffies();
        let fast = !self.rotational;
        let habits = self.habits.entry(request.task).or_default();
        habits.note_think(now, self.ticks.slice_idle);
        self.queues[queue_id].note_seek(request, fast);
        self.update_idle_window(requests, queue_id, request.task);
        self.queues[queue_id].last_position = request.end();
    }

    fn update_idle_window(&mut self, requests: &Requests, queue_id: QueueId, task: u32) {
        let habits: &Habits = &self.habits[&task];
        let queue = &mut self.queues[queue_id];
        if !queue.sync || queue.is_idle_class() {
            return;
        }
        if queue.sorted.len() >= 4 {
            queue.deep = true;
        }
        let next_is_last = self.version == Version::Linux2_6_37
            && queue.next.is_some_and(|next| requests[next].no_idle);
        if next_is_last
            || habits.exited
            || self.ticks.slice_idle == 0
            || (!queue.deep && queue.is_seeky())
        {
            queue.idle_window = false;
        } else if habits.is_known() {
            queue.idle_window = habits.think_mean <= self.ticks.slice_idle;
        }
    }

    /// What a new request means for who is being served.
    fn notice(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        if self.active == Some(queue_id) {
            if self.queues[queue_id].waits_for_request {
                // What it was waited for. A small request may grow yet, if nobody else waits.
                if requests[id].sectors > PAGE_SECTORS || self.busy_queues > 1 {
                    self.idle_timer = None;
                    self.queues[queue_id].waits_for_request = false;
                    self.kick();
                } else {
                    self.queues[queue_id].must_dispatch = true;
                }
            }
        } else if self.should_preempt(requests, id, queue_id) {
            self.log(queue_id, || "preempt".to_owned());
            self.expire_active(true);
            self.stand(queue_id, true);
            self.queues[queue_id].slice_end = 0;
            self.queues[queue_id].slice_new = true;
            self.kick();
        }
    }

    fn should_preempt(&self, requests: &Requests, id: RequestId, new_id: QueueId) -> bool {
        let Some(active_id) = self.active else {
            return false;
        };
        let (new, active) = (&self.queues[new_id], &self.queues[active_id]);
        let real_time = |queue: &Queue| queue.priority.class == IoClass::RealTime;
        if new.is_idle_class() {
            return false;
        }
        if active.is_idle_class() {
            return true;
        }
        if real_time(active) && !real_time(new) {
            return false;
        }
        let request = &requests[id];
        if request.sync && !active.sync {
            return true;
        }
        if new.group != active.group {
            return false;
        }
        if active.slice_used(self.jiffies()) {
            return true;
        }
        let tree = self.groups.get(new.group);
        if self.serving_workload == Workload::SyncNoIdle
            && new.workload() == Workload::SyncNoIdle
            && tree.tree(new.priority.class, Workload::SyncNoIdle).len() == 2
            && active.is_empty()
        {
            return true;
        }
        if request.metadata && active.metadata_queued == 0 {
            return true;
        }
        if real_time(new) && !real_time(active) {
            return true;
        }
        if self.active_task.is_none() || !active.waits_for_request {
            return false;
        }
        self.last_position.abs_diff(request.start) <= CLOSE_SECTORS
    }

    /// The queue has something to do from now on.
    fn begin_standing(&mut self, id: QueueId) {
        self.busy_queues += 1;
        self.stand(id, false);
    }

    /// Puts the queue in line, or in its new place there.
    pub(super) fn stand(&mut self, id: QueueId, at_front: bool) {
        let mut joins = self.queues[id].standing.is_none();
        joins |= self.settle_group(id);
        let queue = &self.queues[id];
        let (class, workload, group) = (queue.priority.class, queue.workload(), queue.group);
        let tree = self.groups.get(group).tree(class, workload);
        let now = self.jiffies() as i64;
        let key = if class == IoClass::Idle {
            match tree.last() {
                Some(&(last, ..)) => last + self.ticks.join_delay as i64,
                None => now + self.ticks.join_delay as i64,
            }
        } else if at_front {
            tree.first().map_or(now, |&(first, ..)| first) - self.ticks.second as i64
        } else {
            now + self.key_offset(id) - queue.slice_residual
        };
        if class != IoClass::Idle && !at_front {
            self.queues[id].slice_residual = 0;
        }
        let same = |old: &Standing| {
            (old.key, old.class, old.workload, old.group) == (key, class, workload, group)
        };
        if let Some(old) = self.queues[id].standing {
            if same(&old) {
                return;
            }
            self.groups.get_mut(old.group).leave(id, old);
        }
        let standing = Standing {
            group,
            class,
            workload,
            key,
            sequence: self.next_sequence,
        };
        self.next_sequence += 1;
        self.groups.get_mut(group).stand(id, standing);
        self.queues[id].standing = Some(standing);
        if joins && !at_front {
            self.groups.queue_joins(group, self.ticks.join_delay);
        }
    }

    /// Without isolation, a queue that is not idled upon stands in the root group. True: it has left another for it.
    fn settle_group(&mut self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let group = if queue.workload() == Workload::SyncNoIdle && !self.tunables.group_isolation {
            0
        } else {
            queue.home_group
        };
        if group == queue.group {
            return false;
        }
        let left = self.queues[id].standing.take();
        if let Some(old) = left {
            self.groups.get_mut(old.group).leave(id, old);
            self.groups.queue_leaves(old.group);
        }
        self.queues[id].group = group;
        left.is_some()
    }

    /// Queues of lower priority stand as much further behind as their slices are shorter, for each queue in the group.
    fn key_offset(&self, id: QueueId) -> i64 {
        let queue = &self.queues[id];
        let others = i64::from(self.groups.get(queue.group).queues) - 1;
        others
            * (self.slice_of_level(queue.sync, 0) as i64
                - self.slice_of_level(queue.sync, queue.priority.level) as i64)
    }

    pub(super) fn kick(&mut self) {
        self.kicked = Some(self.now);
    }
}
