//! Which queue is served, for how long it is waited, and what it deserves next time.

use std::collections::BTreeMap;

use crate::scheduler::bfq::hierarchy::ROOT;
use crate::scheduler::bfq::{BUDGETS_ENOUGH, Bfq, DEFAULT_MAX_BUDGET, QueueId};
use crate::{RequestId, Requests};
use events::time::{MILLISECOND, Time};

/// Why a queue's turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It was idled for in vain.
    TooIdle,
    /// It took too long.
    BudgetTimeout,
    BudgetExhausted,
    NoMoreRequests,
    /// Another queue has come that is to be served first.
    Preempted,
}

/// Async requests are charged this many times, unless weights or groups have to be kept.
const ASYNC_FACTOR: u64 = 3;
/// Only turns longer than this show whether a queue is slow.
const LONG_TURN_NS: Time = 20 * MILLISECOND;
const MEASURABLE_TURN_NS: Time = MILLISECOND;

impl Bfq {
    /// The queue to dispatch from now (`bfq_select_queue`); None: nothing is there, or what is there has to wait.
    pub(super) fn select(&mut self, requests: &Requests) -> Option<QueueId> {
        loop {
            let Some(active) = self.active else {
                self.set_active()?;
                continue;
            };
            if self.may_time_out(active) && !self.must_idle(active) {
                self.expire(requests, Reason::BudgetTimeout);
                continue;
            }
            let queue = &mut self.queues[active];
            if queue.next.is_some() {
                if self.charge_of_next(requests, active) > self.budget_left(active) {
                    self.expire(requests, Reason::BudgetExhausted);
                    continue;
                }
                return Some(active);
            }
            let in_flight = queue.dispatched > 0;
            if self.idle_timer.is_some() || (in_flight && self.better_to_idle(active)) {
                return self
                    .waker_or_woken(requests, active)
                    .or_else(|| self.choose_for_injection(requests));
            }
            self.expire(requests, Reason::NoMoreRequests);
        }
    }

    /// `bfq_set_in_service_queue`.
    fn set_active(&mut self) -> Option<QueueId> {
        let entity = self.hierarchy.serve_next(self.now)?;
        let id = self.queue_of_entity[entity].expect("entities that are served are queues");
        self.queues[id].fifo_looked_at = false;
        self.budgets_given = (self.budgets_given * 7 + 256) / 8;
        self.active = Some(id);
        self.active_since = self.now;
        self.times_out_at = self.now + self.tunables.timeout_ns;
        Some(id)
    }

    /// `bfq_bfqq_budget_timeout`.
    pub(super) fn has_timed_out(&self) -> bool {
        self.now >= self.times_out_at
    }

    /// A queue that is waited for, and has had most of its budget, keeps its turn (`bfq_may_expire_for_budg_timeout`).
    pub(super) fn may_time_out(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let much_left = self.budget_left(id) >= self.hierarchy.entity(queue.entity).budget / 3;
        self.has_timed_out() && (!queue.waits_for_request || much_left)
    }

    /// `bfq_bfqq_budget_left`.
    pub(super) fn budget_left(&self, id: QueueId) -> u64 {
        self.hierarchy.entity(self.queues[id].entity).budget_left()
    }

    /// What the queue's next request takes of its budget.
    pub(super) fn charge_of_next(&self, requests: &Requests, id: QueueId) -> u64 {
        let next = self.queues[id].next;
        next.map_or(0, |next| self.charge(requests, next, id))
    }

    /// `bfq_serv_to_charge`.
    pub(super) fn charge(&self, requests: &Requests, id: RequestId, queue: QueueId) -> u64 {
        let request = &requests[id];
        let sectors = u64::from(request.sectors);
        if request.sync || self.is_asymmetric(queue) {
            sectors
        } else {
            ASYNC_FACTOR * sectors
        }
    }

    /// Queues differ in weight, and this one is not of the smallest; or they differ in class or in group: only idling keeps
    /// the queue's share (`bfq_asymmetric_scenario` of 6.2). Until then one group was enough that is not the root's, which was
    /// never counted (the cover letter of "support concurrent sync io for bfq on a specail occasion", Yu Kuai, 2022).
    pub(super) fn is_asymmetric(&self, id: QueueId) -> bool {
        let classes = self.busy.iter().filter(|&&count| count > 0).count();
        let smallest = self.weights.first_key_value().map(|(&weight, _)| weight);
        let varied = self.weights.len() > 1 && self.queues[id].counted != smallest;
        let groups = match self.counts_root {
            true => self.counted_in_groups.len() > 1,
            false => self.counted_in_groups.keys().any(|&group| group != ROOT),
        };
        varied || classes > 1 || groups
    }

    /// `bfq_bfqq_must_idle`.
    pub(super) fn must_idle(&self, id: QueueId) -> bool {
        self.queues[id].is_empty() && self.better_to_idle(id)
    }

    /// `bfq_better_to_idle`.
    pub(super) fn better_to_idle(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if self.tunables.strict_guarantees {
            return true;
        }
        if self.tunables.slice_idle_ns == 0 || !queue.sync || queue.is_idle_class() {
            return false;
        }
        self.boosts_throughput(id) || self.shares_need_idling(id)
    }

    /// Without idling for it the queue would not get its share (`idling_needed_for_service_guarantees`).
    fn shares_need_idling(&self, id: QueueId) -> bool {
        let is_alone = self.busy_queues.len() == 1;
        let needs = self.is_asymmetric(id) || self.raised_needs_idling(id) || is_alone;
        needs && !self.queues[id].exited
    }

    /// Idling for it makes the device faster, and nobody whose weight is raised needs the device
    /// (`idling_boosts_thr_without_issues`).
    pub(super) fn boosts_throughput(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let queues_commands = self.depth.known != Some(false);
        let sequential = !queue.is_seeky() && queue.io_bound && queue.short_think;
        let boosts = match (self.rotational, queues_commands) {
            (true, false) => true,
            (false, true) => false,
            _ => sequential,
        };
        boosts && !queue.exited && self.raised_busy == 0
    }

    /// Ends the active queue's turn (`bfq_bfqq_expire`, `__bfq_bfqq_expire`).
    pub(super) fn expire(&mut self, requests: &Requests, reason: Reason) {
        let id = self.active.take().expect("a queue is in service");
        self.idle_timer = None;
        self.queues[id].waits_for_request = false;
        self.end_measuring();
        self.charge_time(id, reason);
        self.judge_pace(id);
        let entity_id = self.queues[id].entity;
        let entity = *self.hierarchy.entity(entity_id);
        if reason != Reason::Preempted {
            self.queues[id].max_budget = self.deserved_budget(id, reason, entity.service);
            let budget = self.queues[id].max_budget;
            let needs = self.charge_of_next(requests, id);
            self.hierarchy.set_budget(entity_id, budget.max(needs));
        }
        // One that was idled for when another took its place waits for its request in line.
        let waits = reason == Reason::Preempted && self.shares_need_idling(id);
        let has_more = !self.queues[id].is_empty() || waits;
        self.hierarchy.expire(entity_id, has_more);
        self.settle_weight(id);
        if !has_more {
            self.went_idle(id);
            let spent = matches!(reason, Reason::BudgetTimeout | Reason::BudgetExhausted);
            self.queues[id].went_to_wait = !spent;
        } else {
            // To the front of the kernel's list.
            self.busy_queues.retain(|&busy| busy != id);
            self.busy_queues.push(id);
        }
    }

    /// The queue has nothing more to do (`bfq_del_bfqq_busy`).
    pub(super) fn went_idle(&mut self, id: QueueId) {
        self.set_busy(id, false);
        let queue = &mut self.queues[id];
        queue.went_idle_at = Some(self.now);
        queue.went_to_wait = false;
        self.count(id);
    }

    /// Nobody sends requests to the queue any more: there is no point in its waiting in line.
    pub(super) fn leave_line(&mut self, id: QueueId) {
        if self.queues[id].busy && self.queues[id].is_empty() && self.active != Some(id) {
            self.hierarchy.withdraw(self.queues[id].entity);
            self.went_idle(id);
        }
    }

    /// A queue has something to do again: whether the one in service makes room for it (end of
    /// `bfq_bfqq_handle_idle_busy_switch`). `in_time`: it is back soon, and has a hole in its service to make up for.
    pub(super) fn preempt_if_due(&mut self, requests: &Requests, id: QueueId, in_time: bool) {
        let Some(active) = self.active.filter(|&active| active != id) else {
            return;
        };
        let (queue, served) = (&self.queues[id], &self.queues[active]);
        let holes = in_time && queue.coefficient() >= served.coefficient();
        let [weight, other] = self.hierarchy.weights_against(queue.entity, served.entity);
        let is_higher = queue.priority.class < served.priority.class || weight > other;
        if (holes || is_higher || !self.better_to_idle(active)) && self.hierarchy.another_is_next()
        {
            self.expire(requests, Reason::Preempted);
        }
    }

    /// Slow queues pay for the time that they took, as if they had been served for all of it (`bfq_bfqq_is_slow`,
    /// `bfq_bfqq_charge_time`).
    fn charge_time(&mut self, id: QueueId, reason: Reason) {
        let until = if reason == Reason::TooIdle {
            self.idling_since
        } else {
            self.now
        };
        let took = until.saturating_sub(self.active_since);
        let queue = &self.queues[id];
        let entity = *self.hierarchy.entity(queue.entity);
        let slow = if queue.sync && took > LONG_TURN_NS {
            entity.service < self.max_budget() / 2
        } else {
            queue.is_seeky()
        };
        let late = reason == Reason::BudgetTimeout && self.budget_left(id) >= entity.budget / 3;
        if took < MEASURABLE_TURN_NS || !(slow || late) || queue.raised.is_some() {
            return;
        }
        let timeout = self.tunables.timeout_ns;
        let share = u128::from(took.min(timeout)) * u128::from(self.max_budget());
        let due = (share / u128::from(timeout.max(1))) as u64;
        let more = due.saturating_sub(entity.service);
        self.hierarchy.served(queue.entity, more);
    }

    /// By how the queue used its last budget (`__bfq_bfqq_recalc_budget`); the point is that queues which continue get
    /// large ones.
    pub(super) fn deserved_budget(&self, id: QueueId, reason: Reason, service: u64) -> u64 {
        let (max, queue) = (self.max_budget(), &self.queues[id]);
        let min = max / 32;
        if !queue.sync {
            return max;
        }
        // Small ones, so that a raised queue's turn comes soon.
        let budget = match queue.raised {
            Some(_) => 2 * min,
            None => queue.max_budget,
        };
        let deserved = match reason {
            Reason::TooIdle if queue.dispatched > 0 => (budget * 2).min(max),
            Reason::TooIdle if budget > 5 * min => budget - 4 * min,
            Reason::TooIdle => min,
            Reason::BudgetTimeout => (budget * 2).min(max),
            Reason::BudgetExhausted => (budget * 4).min(max),
            Reason::NoMoreRequests => service.max(min),
            Reason::Preempted => budget,
        };
        let is_known = self.budgets_given >= BUDGETS_ENOUGH || self.tunables.max_budget > 0;
        deserved.min(if is_known { max } else { DEFAULT_MAX_BUDGET })
    }

    /// Whether the queue is among those by which symmetry is judged (`bfq_weights_tree_add`, `bfq_weights_tree_remove`): it
    /// has requests, here or at the device.
    pub(super) fn count(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        let counts = queue.busy || queue.dispatched > 0;
        let group = queue.group;
        match (queue.counted, counts) {
            (None, true) => {
                let weight = queue.weight_in_use();
                queue.counted = Some(weight);
                change(&mut self.weights, weight, true);
                change(&mut self.counted_in_groups, group, true);
            }
            (Some(weight), false) => {
                queue.counted = None;
                change(&mut self.weights, weight, false);
                change(&mut self.counted_in_groups, group, false);
            }
            _ => {}
        }
    }

    /// Its weight may be another by now.
    pub(super) fn recount(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        let weight = queue.weight_in_use();
        let Some(before) = queue.counted else {
            return;
        };
        if before == weight {
            return;
        }
        queue.counted = Some(weight);
        change(&mut self.weights, before, false);
        change(&mut self.weights, weight, true);
    }
}

/// One more or one less; what there is none of is not there.
fn change<K: Ord + Copy>(counts: &mut BTreeMap<K, u32>, key: K, more: bool) {
    let count = counts.entry(key).or_insert(0);
    if more {
        *count += 1;
    } else {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}
