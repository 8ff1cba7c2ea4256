//! Requests come in: into which queue, what is learned of their task, and whether they interrupt who is being served.

use crate::scheduler::cfq::message::Event;
use crate::scheduler::cfq::queue::{IoContext, Queue, QueueId, TreePlace, Workload};
use crate::scheduler::cfq::{CLOSE_SECTORS, Cfq, Version};
use crate::{IoClass, Request, RequestId, Requests, TaskId};

/// Larger than a page: worth sending at once.
const PAGE_SECTORS: u32 = 8;

impl Cfq {
    /// `cfq_insert_request`.
    pub(super) fn enqueue(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let queue_id = self.queue_for(requests, id);
        let number = id.number() as usize;
        if self.group_of.len() <= number {
            self.group_of.resize(number + 1, 0);
        }
        self.say(queue_id, Event::Inserted);
        self.group_of[number] = self.queues[queue_id].group;
        let deadline = self.jiffies() + self.ticks.fifo_expire[usize::from(request.sync)];
        self.fifos.add(requests, id, queue_id, deadline);
        let queue = &mut self.queues[queue_id];
        queue.queued += 1;
        queue.metadata_queued += u32::from(request.metadata);
        self.queued += 1;
        if self.queues[queue_id].standing.is_none() {
            self.begin_standing(queue_id);
        }
        let next = self.queues[queue_id].next;
        self.queues[queue_id].next = self.backwards.better(requests, self.last_position, next, Some(id));
        self.settle_place(requests, queue_id);
        self.learn(requests, id, queue_id);
        self.notice(requests, id, queue_id);
    }

    /// `cfq_merged_requests`.
    pub(super) fn merge_requests(&mut self, requests: &Requests, survivor: RequestId, merged: RequestId) {
        let own = self.fifos.fifo_of(merged);
        if self.queues[own].next == Some(merged) {
            self.queues[own].next = Some(survivor);
        }
        self.fifos.merged_requests(requests, survivor, merged);
        self.count_out(requests, merged, own);
        self.settle_place(requests, own);
    }

    /// What is best in its queue once a request has gone, seen from where that starts (`cfq_find_next_rq`).
    pub(super) fn next_after(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let (before, after) = self.fifos.around_cyclically(requests, id);
        let from = requests[id].start;
        self.backwards.better(requests, from, after, before)
    }

    /// The request has left its FIFO (`cfq_remove_request`).
    pub(super) fn count_out(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        let queue = &mut self.queues[queue_id];
        queue.queued -= 1;
        queue.metadata_queued -= u32::from(requests[id].metadata);
        self.queued -= 1;
    }

    /// The queue for a request's task (`cfq_set_request`); tasks that read close to each other share one for a while.
    fn queue_for(&mut self, requests: &Requests, id: RequestId) -> QueueId {
        let request = &requests[id];
        let (task, sync) = (request.task, request.sync);
        self.groups.ensure(usize::from(request.group));
        let now = self.jiffies();
        let io_context = self.io_contexts.get_or_insert_with(task, || IoContext::new(now));
        if io_context.exited && sync {
            // Another task, which has the number now.
            *io_context = IoContext::new(now);
        }
        if let Some(known) = io_context.queues[usize::from(sync)]
            && let Some(queue) = self.still_its_own(known)
        {
            return self.followed(task, queue, sync);
        }
        let queue = self.queue_to_get(request);
        self.queues[queue].tasks += 1;
        self.assign(task, sync, queue);
        queue
    }

    /// `cfq_get_queue`.
    fn queue_to_get(&mut self, request: &Request) -> QueueId {
        let priority = request.priority;
        if request.sync {
            let group = usize::from(request.group);
            return self.new_queue(Queue::new(request.task, true, priority, group));
        }
        // Async I/O belongs to the root group, whichever task caused it.
        let key = (priority.class, priority.level);
        if let Some(&queue) = self.async_queues.get(&key) {
            return queue;
        }
        let queue = self.new_queue(Queue::new(request.task, false, priority, 0));
        self.async_queues.insert(key, queue);
        queue
    }

    /// `split_cfqq`. None: the task is to leave a shared queue that has become seeky. The last one in it keeps it.
    fn still_its_own(&mut self, id: QueueId) -> Option<QueueId> {
        let queue = &mut self.queues[id];
        if !(queue.shared && queue.to_split) {
            return Some(id);
        }
        if queue.tasks == 1 {
            queue.shared = false;
            queue.to_split = false;
            return Some(id);
        }
        self.task_leaves(id);
        None
    }

    /// Where the task's I/O goes now (`cfq_merge_cfqqs`): into the queue that its own is merged into.
    fn followed(&mut self, task: TaskId, id: QueueId, sync: bool) -> QueueId {
        let Some(other) = self.queues[id].merges_into else {
            return id;
        };
        self.queues[id].tasks -= 1;
        self.queues[other].shared = true;
        self.assign(task, sync, other);
        self.release_if_over(id);
        other
    }

    fn assign(&mut self, task: TaskId, sync: bool, queue: QueueId) {
        let io_context = self.io_contexts.get_mut(task).expect("the task is known");
        io_context.queues[usize::from(sync)] = Some(queue);
    }

    fn new_queue(&mut self, queue: Queue) -> QueueId {
        match self.free_queues.pop() {
            Some(id) => {
                self.queues[id] = queue;
                id
            }
            None => {
                self.queues.push(queue);
                self.queues.len() - 1
            }
        }
    }

    /// `cfq_exit_cfqq`.
    pub(super) fn task_exited(&mut self, task: TaskId) {
        let Some(io_context) = self.io_contexts.get_mut(task) else {
            return;
        };
        io_context.exited = true;
        for id in std::mem::take(&mut io_context.queues).into_iter().flatten() {
            if self.active == Some(id) {
                self.expire_active(false);
                self.kick();
            }
            self.task_leaves(id);
        }
    }

    /// One task less, also if the queue was to be merged into.
    fn task_leaves(&mut self, id: QueueId) {
        let mut leaves = Some(id);
        while let Some(id) = leaves {
            self.queues[id].tasks -= 1;
            leaves = self.queues[id].merges_into;
            self.release_if_over(id);
        }
    }

    /// Async queues stay (`cfq_put_queue`): they are everybody's.
    pub(super) fn release_if_over(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        if queue.sync && queue.is_over() && self.active != Some(id) && !queue.is_free {
            queue.is_free = true;
            self.free_queues.push(id);
        }
    }

    /// The first half of `cfq_rq_enqueued`.
    fn learn(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        let request = &requests[id];
        let now = self.jiffies();
        let fast = !self.rotational;
        let io_context = self.io_contexts.get_mut(request.task).expect("it has a queue");
        io_context.note_think(now, self.ticks.slice_idle);
        self.queues[queue_id].note_seek(request, fast);
        self.update_idle_window(requests, queue_id, request.task);
        self.queues[queue_id].last_position = request.end();
    }

    /// `cfq_update_idle_window`.
    fn update_idle_window(&mut self, requests: &Requests, queue_id: QueueId, task: u32) {
        let io_context = self.io_contexts.get(task).expect("it has a queue");
        let queue = &mut self.queues[queue_id];
        if !queue.sync || queue.is_idle_class() {
            return;
        }
        if queue.queued >= 4 {
            queue.deep = true;
        }
        let next_is_last =
            self.version == Version::Linux2_6_37 && queue.next.is_some_and(|next| requests[next].no_idle);
        if next_is_last || io_context.exited || self.ticks.slice_idle == 0 || (!queue.deep && queue.is_seeky()) {
            queue.idle_window = false;
        } else if let Some(think) = io_context.usual_think() {
            queue.idle_window = think <= self.ticks.slice_idle;
        }
    }

    /// What a new request means for who is being served (the second half of `cfq_rq_enqueued`, and `cfq_preempt_queue`).
    fn notice(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        if self.active == Some(queue_id) {
            if self.queues[queue_id].waits_for_request {
                // What it was waited for. A small request may grow yet, if no other task waits.
                if requests[id].sectors > PAGE_SECTORS || self.busy_queues > 1 {
                    self.idle_timer = None;
                    self.queues[queue_id].waits_for_request = false;
                    self.kick();
                } else {
                    self.queues[queue_id].must_dispatch = true;
                }
            }
        } else if self.should_preempt(requests, id, queue_id) {
            self.say(queue_id, Event::Preempted);
            self.expire_active(true);
            self.stand(queue_id, true);
            self.queues[queue_id].slice_end = 0;
            self.queues[queue_id].slice_new = true;
            self.kick();
        }
    }

    /// `cfq_should_preempt`.
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
        let in_its_tree = new.standing.map_or(0, |at| self.groups.get(at.group).tree(at.class, at.workload).len());
        if self.serving_workload == Workload::SyncNoIdle
            && new.workload() == Workload::SyncNoIdle
            && in_its_tree == 2
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

    /// The queue has something to do from now on (`cfq_add_cfqq_rr`).
    fn begin_standing(&mut self, id: QueueId) {
        self.say(id, Event::JoinedLine);
        self.busy_queues += 1;
        self.stand(id, false);
    }

    /// Puts the queue into its service tree, or moves it to its new place there (`cfq_service_tree_add`).
    pub(super) fn stand(&mut self, id: QueueId, at_front: bool) {
        let has_moved = self.settle_group(id);
        let is_new = self.queues[id].standing.is_none();
        let queue = &self.queues[id];
        let (class, workload, group) = (queue.priority.class, queue.workload(), queue.group);
        let tree = self.groups.get(group).tree(class, workload);
        let now = self.jiffies() as i64;
        let key = if class == IoClass::Idle {
            let last = tree.last().filter(|&(.., last)| last != id);
            last.map_or(now, |(key, ..)| key) + self.ticks.join_delay as i64
        } else if at_front {
            tree.first().map_or(now, |(first, ..)| first) - self.ticks.second as i64
        } else {
            now + self.key_offset(id) - queue.slice_residual
        };
        if class != IoClass::Idle && !at_front {
            self.queues[id].slice_residual = 0;
        }
        let same = |old: &TreePlace| (old.key, old.class, old.workload, old.group) == (key, class, workload, group);
        if let Some(old) = self.queues[id].standing {
            if same(&old) {
                return;
            }
            self.groups.get_mut(old.group).leave(id, old);
        }
        let standing = TreePlace { group, class, workload, key, sequence: self.next_sequence };
        self.next_sequence += 1;
        self.groups.get_mut(group).stand(id, standing);
        self.queues[id].standing = Some(standing);
        if has_moved || (is_new && !at_front) {
            self.groups.queue_joins(group, self.ticks.join_delay);
        }
    }

    /// Without isolation, a queue that is not idled upon stands in the root group (the beginning of
    /// `cfq_service_tree_add`). True: it was in another before.
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
        if let Some(old) = self.queues[id].standing.take() {
            self.groups.get_mut(old.group).leave(id, old);
            self.groups.queue_leaves(old.group);
        }
        self.queues[id].group = group;
        true
    }

    /// Queues of lower priority, and async ones, stand as much further behind as their slices are shorter than the longest sync
    /// one, for each queue in the group (`cfq_slice_offset`).
    pub(super) fn key_offset(&self, id: QueueId) -> i64 {
        let queue = &self.queues[id];
        let others = i64::from(self.groups.get(queue.group).queues) - 1;
        others * (self.slice_of_level(true, 0) as i64 - self.slice_of_level(queue.sync, queue.priority.level) as i64)
    }

    /// `cfq_schedule_dispatch`.
    pub(super) fn kick(&mut self) {
        self.kicked = Some(self.now);
    }
}
