//! Which queue is served: groups by their share, then classes, then kinds of workload, then queues.

use crate::scheduler::cfq::group::SavedWorkload;
use crate::scheduler::cfq::message::Event;
use crate::scheduler::cfq::queue::{QueueId, Workload};
use crate::scheduler::cfq::{CLOSE_SECTORS, Cfq, Version};
use crate::{IoClass, Requests};

/// A workload's turn lasts at least this many ticks.
const TURN_TICKS_MIN: u64 = 2;

impl Cfq {
    /// The queue to dispatch from now (`cfq_select_queue`); None: nothing is there, or what is there has to wait.
    pub(super) fn select(&mut self) -> Option<QueueId> {
        let Some(active) = self.active else {
            return self.choose(None);
        };
        if self.queued == 0 {
            return None;
        }
        let now = self.jiffies();
        let queue = &self.queues[active];
        if queue.wait_busy && !queue.is_empty() {
            return self.turn_to_next(None);
        }
        if queue.slice_used(now) && !queue.must_dispatch {
            let alone = self.groups.get(queue.group).queues == 1;
            if alone && queue.is_empty() && queue.dispatched > 0 && self.should_idle(active) {
                return None;
            }
            if self.holds_for_group(active) {
                return None;
            }
            return self.turn_to_next(None);
        }
        if !queue.is_empty() {
            return Some(active);
        }
        if let Some(close) = self.close_cooperator(active) {
            self.set_up_merge(active, close);
            return self.turn_to_next(Some(close));
        }
        if self.idle_timer.is_some()
            || (self.queues[active].dispatched > 0 && self.should_idle(active))
            || self.holds_for_group(active)
        {
            return None;
        }
        self.turn_to_next(None)
    }

    /// The label `check_group_idle` of `cfq_select_queue`. group_idle: the group's only queue is kept until its
    /// requests have come back from the device.
    fn holds_for_group(&self, active: QueueId) -> bool {
        let group = self.groups.get(self.queues[active].group);
        self.ticks.group_idle > 0 && group.queues == 1 && group.dispatched > 0
    }

    fn turn_to_next(&mut self, chosen: Option<QueueId>) -> Option<QueueId> {
        self.expire_active(false);
        self.choose(chosen)
    }

    /// `cfq_set_active_queue`.
    fn choose(&mut self, chosen: Option<QueueId>) -> Option<QueueId> {
        let queue = match chosen {
            Some(queue) => queue,
            None => {
                self.choose_group();
                self.first_in_line()?
            }
        };
        let now = self.jiffies();
        self.queues[queue].activate(now);
        self.queues[queue].wait_busy = false;
        self.idle_timer = None;
        self.active = Some(queue);
        self.active_task = None;
        let (class, workload) = (self.serving_class, self.serving_workload);
        self.say(queue, Event::Activated { class, workload });
        Some(queue)
    }

    /// `cfq_get_next_queue`.
    fn first_in_line(&self) -> Option<QueueId> {
        if self.queued == 0 {
            return None;
        }
        let group = self.groups.get(self.serving_group?);
        let tree = group.tree(self.serving_class, self.serving_workload);
        tree.first().map(|(.., queue)| queue)
    }

    /// `cfq_choose_cfqg`.
    fn choose_group(&mut self) {
        let now = self.jiffies() as i64;
        self.serving_group = self.groups.next();
        let Some(group) = self.serving_group else {
            self.serving_class = IoClass::Idle;
            self.workload_ends = now + 1;
            return;
        };
        match self.groups.get(group).saved {
            Some(saved) => {
                self.workload_ends = now + saved.ticks as i64;
                self.serving_workload = saved.workload;
                self.serving_class = saved.class;
            }
            None => self.workload_ends = now - 1,
        }
        self.choose_workload(group);
    }

    /// `choose_service_tree`.
    fn choose_workload(&mut self, id: usize) {
        let now = self.jiffies() as i64;
        let group = self.groups.get(id);
        self.serving_class = group.class_to_serve();
        if self.serving_class == IoClass::Idle {
            self.workload_ends = now + 1;
            return;
        }
        let class = self.serving_class;
        let goes_on = !group.tree(class, self.serving_workload).is_empty();
        if goes_on && now <= self.workload_ends {
            return;
        }
        self.serving_workload = group.workload_to_serve(class);
        let count = group.tree(class, self.serving_workload).len() as u64;
        let group_slice = self.group_slice(id);
        let mean = group.busy_mean[usize::from(class == IoClass::RealTime)];
        let mut turn = group_slice * count / mean.max(group.busy(class)).max(1);
        if self.serving_workload == Workload::Async {
            let of_async = self.ticks.target_latency * group.busy_async() / u64::from(self.busy_queues).max(1);
            turn = turn.min(of_async) * self.ticks.slice[0] / self.ticks.slice[1].max(1);
        } else {
            turn = turn.max(2 * self.ticks.slice_idle);
        }
        self.workload_ends = now + turn.max(TURN_TICKS_MIN) as i64;
        self.no_idle_tree_requires_idle = false;
    }

    /// A group's share of everybody's turn (`cfq_group_slice`).
    pub(super) fn group_slice(&self, id: usize) -> u64 {
        self.ticks.target_latency * self.groups.get(id).weight / self.groups.total_weight.max(1)
    }

    /// Whether the queue is worth waiting for (`cfq_should_idle`).
    pub(super) fn should_idle(&self, id: QueueId) -> bool {
        if self.version.has_group_idle() && self.ticks.slice_idle == 0 {
            return false;
        }
        let queue = &self.queues[id];
        if queue.is_idle_class() {
            return false;
        }
        if queue.idle_window && !self.is_fast_device() {
            return true;
        }
        let last_in_tree =
            queue.standing.is_some_and(|at| self.groups.get(at.group).tree(at.class, at.workload).len() == 1);
        last_in_tree && queue.sync
    }

    /// Ends the active queue's slice (`__cfq_slice_expired`). `timed_out`: what was left of it, or overdrawn, counts
    /// next time.
    pub(super) fn expire_active(&mut self, timed_out: bool) {
        let Some(id) = self.active else {
            return;
        };
        let now = self.jiffies();
        self.say(id, Event::SliceExpired { timed_out });
        let queue = &mut self.queues[id];
        if queue.waits_for_request {
            self.idle_timer = None;
        }
        queue.waits_for_request = false;
        queue.wait_busy = false;
        if queue.shared && queue.is_seeky() {
            queue.to_split = true;
        }
        if timed_out && !queue.slice_new {
            let ticks = queue.slice_end as i64 - now as i64;
            queue.slice_residual = ticks;
            self.say(id, Event::Residual { ticks });
        }
        self.charge_group(id);
        if self.queues[id].is_empty() {
            self.leave_line(id);
        } else {
            self.stand(id, false);
        }
        self.active = None;
        self.active_task = None;
        self.release_if_over(id);
    }

    /// `cfq_del_cfqq_rr`.
    fn leave_line(&mut self, id: QueueId) {
        if let Some(old) = self.queues[id].standing.take() {
            self.groups.get_mut(old.group).leave(id, old);
            self.groups.queue_leaves(old.group);
            self.busy_queues -= 1;
            self.say(id, Event::LeftLine);
        }
    }

    /// `cfq_group_served`.
    fn charge_group(&mut self, id: QueueId) {
        let used = self.slice_usage(id);
        let queue = &self.queues[id];
        let group_id = queue.group;
        let group = self.groups.get(group_id);
        let by_requests =
            self.version == Version::Linux2_6_37 && self.ticks.slice_idle == 0 && self.depth.known != Some(false);
        let charge = if by_requests {
            u64::from(queue.slice_dispatch)
        } else if !queue.sync && group.busy_sync() == 0 {
            queue.slice_allocated
        } else {
            used
        };
        let event = Event::SliceUsed {
            version: self.version,
            ticks: used,
            requests: queue.slice_dispatch,
            sectors: queue.sectors_dispatched,
            charge,
            by_requests,
        };
        self.say(id, event);
        self.groups.charge(group_id, charge);
        let left = self.workload_ends - self.jiffies() as i64;
        let (workload, class) = (self.serving_workload, self.serving_class);
        self.groups.get_mut(group_id).saved =
            (left > 0).then_some(SavedWorkload { ticks: left.max(0) as u64, workload, class });
    }

    /// What the slice used, in ticks (`cfq_cfqq_slice_usage`); in group idle V2, in requests if time does not measure
    /// service.
    fn slice_usage(&self, id: QueueId) -> u64 {
        let queue = &self.queues[id];
        let now = self.jiffies();
        if let Some(start) = queue.slice_start
            && start != now
        {
            return (now - start).min(queue.slice_allocated);
        }
        if self.version == Version::GroupIdleV2 && self.depth.known != Some(false) {
            return u64::from(queue.slice_dispatch);
        }
        (now - queue.dispatch_start).max(1)
    }

    /// A queue of the same group whose next request is close to where the device is (`cfq_close_cooperator`): the two
    /// may be readers of one stream. Only the nearest of all is considered: if it won't do, no other is tried.
    pub(super) fn close_cooperator(&self, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        if queue.is_idle_class() || !queue.sync || queue.is_seeky() {
            return None;
        }
        if self.groups.get(queue.group).queues == 1 {
            return None;
        }
        let close = self.nearest(queue.priority.level)?;
        let that = &self.queues[close];
        let suits =
            that.group == queue.group && that.sync && !that.is_seeky() && that.priority.class == queue.priority.class;
        (close != id && suits).then_some(close)
    }

    /// The queue of that level whose next request is nearest to the position of the device, if that is close
    /// (`cfqq_close`).
    fn nearest(&self, level: u8) -> Option<QueueId> {
        let here = self.last_position;
        let places = &self.places[usize::from(level)];
        let ahead = places.from(&(here, 0));
        let (behind, _) = places.around(&(here, 0));
        [ahead, behind]
            .into_iter()
            .flatten()
            .map(|(start, queue)| (here.abs_diff(start), queue))
            .filter(|&(distance, _)| distance <= CLOSE_SECTORS)
            .min_by_key(|&(distance, _)| distance)
            .map(|(_, queue)| queue)
    }

    /// The queue's next request has changed, or moved (`cfq_prio_tree_add`).
    pub(super) fn settle_place(&mut self, requests: &Requests, id: QueueId) {
        let queue = &mut self.queues[id];
        let start = queue.next.map(|next| requests[next].start);
        let place = start.filter(|_| queue.priority.class != IoClass::Idle);
        if place == queue.place {
            return;
        }
        let places = &mut self.places[usize::from(queue.priority.level)];
        if let Some(old) = queue.place {
            places.remove(&(old, id));
        }
        if let Some(new) = place {
            places.insert((new, id));
        }
        queue.place = place;
    }

    /// The queue of fewer tasks is to become part of the other (`cfq_setup_merge`).
    fn set_up_merge(&mut self, id: QueueId, close: QueueId) {
        if self.queues[id].merges_into.is_some() {
            return;
        }
        let mut last = close;
        while let Some(further) = self.queues[last].merges_into {
            if further == id {
                return;
            }
            last = further;
        }
        let (own, other) = (self.queues[id].tasks, self.queues[last].tasks);
        if own == 0 || other == 0 {
            return;
        }
        // Tasks that are to come count already.
        if other >= own {
            self.queues[id].merges_into = Some(last);
            self.queues[last].tasks += own;
        } else {
            self.queues[last].merges_into = Some(id);
            self.queues[id].tasks += other;
        }
    }
}
