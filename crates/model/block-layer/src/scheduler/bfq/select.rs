//! Which queue is served, for how long it is waited, and what it deserves next time.

use std::collections::BTreeMap;

use crate::scheduler::bfq::hierarchy::ROOT;
use crate::scheduler::bfq::{BUDGETS_ENOUGH, Bfq, QueueId};
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
/// Shorter turns are charged as one of 8 ms, or 2 ms if seeking is free.
const MEASURABLE_TURN_NS: Time = MILLISECOND;
const SHORT_TURN_ROTATIONAL_NS: Time = 8 * MILLISECOND;
const SHORT_TURN_NS: Time = 2 * MILLISECOND;
/// The parts of the largest budget that are the smallest one.
const MIN_BUDGET_PARTS: u64 = 32;

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
                return self.waker_or_woken(requests, active).or_else(|| self.choose_for_injection(requests));
            }
            self.expire(requests, Reason::NoMoreRequests);
        }
    }

    /// `bfq_set_in_service_queue`.
    fn set_active(&mut self) -> Option<QueueId> {
        let entity = self.hierarchy.serve_next()?;
        let id = self.queue_of_entity[entity].expect("entities that are served are queues");
        self.queues[id].fifo_looked_at = false;
        self.budgets_given = (self.budgets_given * 7 + 256) / 8;
        self.active = Some(id);
        self.active_since = self.now;
        self.prolong_soft_raise(id);
        let tick = self.now / self.tick_ns * self.tick_ns;
        self.times_out_at = tick + self.timeout_ns * self.timeout_factor(id);
        self.queues[id].budget_timeout = Some(self.times_out_at);
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
        let is_raised = self.queues[queue].raised.is_some();
        if request.sync || is_raised || self.is_asymmetric(queue) { sectors } else { ASYNC_FACTOR * sectors }
    }

    /// Queues differ in weight, and this one is raised or not of the smallest; or they differ in class or in group: only
    /// idling keeps the queue's share (`bfq_asymmetric_scenario` of 6.2). Until then one group was enough that is not the
    /// root's, which was never counted (the cover letter of "support concurrent sync io for bfq on a specail occasion", Yu
    /// Kuai, 2022).
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
        let idled = self.idle_timer.take().is_none() && self.queues[id].waits_for_request;
        self.queues[id].waits_for_request = false;
        self.end_measuring();
        self.charge_time(id, reason, idled);
        if self.queues[id].raised.is_none() {
            self.queues[id].last_unraised = self.now;
        }
        self.judge_pace(id);
        let entity_id = self.queues[id].entity;
        let entity = *self.hierarchy.entity(entity_id);
        if let Some(budget) = self.deserved_budget(id, reason, entity.service) {
            self.queues[id].max_budget = budget;
            if self.queues[id].next.is_some() {
                let needs = self.charge_of_next(requests, id);
                self.hierarchy.set_budget(entity_id, budget.max(needs));
            }
        }
        // One that was idled for when another took its place waits for its request in line.
        let waits = reason == Reason::Preempted && self.shares_need_idling(id);
        let has_more = !self.queues[id].is_empty() || waits;
        self.hierarchy.expire(entity_id, has_more);
        if !has_more {
            if self.queues[id].dispatched == 0 {
                self.queues[id].budget_timeout = Some(self.now);
            }
            self.went_idle(id);
            let spent = matches!(reason, Reason::BudgetTimeout | Reason::BudgetExhausted);
            self.queues[id].went_to_wait = !spent;
        } else {
            self.settle_weight(id);
            self.move_to_front(id);
        }
    }

    /// Of the kernel's list of active queues, whose front is the end of `busy_queues`.
    fn move_to_front(&mut self, id: QueueId) {
        self.busy_queues.retain(|&busy| busy != id);
        self.busy_queues.push(id);
    }

    /// Another request than before is the queue's next: a queue that waits for its turn gets its whole budget
    /// (`bfq_updated_next_req`).
    pub(super) fn next_changed(&mut self, requests: &Requests, id: QueueId) {
        let queue = &self.queues[id];
        if queue.next.is_none() || self.active == Some(id) {
            return;
        }
        let entity_id = queue.entity;
        let entity = self.hierarchy.entity(entity_id);
        let budget = queue.max_budget.max(self.charge_of_next(requests, id)).max(entity.service);
        if entity.budget != budget {
            self.hierarchy.rebudget(entity_id, budget);
            self.move_to_front(id);
        }
    }

    /// The queue has nothing more to do (`bfq_del_bfqq_busy`).
    pub(super) fn went_idle(&mut self, id: QueueId) {
        self.set_busy(id, false);
        self.queues[id].went_to_wait = false;
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
        if (holes || is_higher || !self.better_to_idle(active)) && self.hierarchy.another_is_next() {
            self.expire(requests, Reason::Preempted);
        }
    }

    /// Slow sync queues pay for the time that they took, in whole milliseconds, as if they had been served for all of it
    /// (`bfq_bfqq_is_slow`, `bfq_bfqq_charge_time`). `idled`: the end of the turn was idled away, which is free.
    fn charge_time(&mut self, id: QueueId, reason: Reason, idled: bool) {
        let queue = &self.queues[id];
        if !queue.sync || queue.raised.is_some() {
            return;
        }
        let until = if idled { self.idling_since } else { self.now };
        let took = until.saturating_sub(self.active_since);
        let entity = *self.hierarchy.entity(queue.entity);
        let slow = match took > LONG_TURN_NS {
            true => entity.service < self.device_budget() / 2,
            false => queue.is_seeky(),
        };
        let late = reason == Reason::BudgetTimeout && self.budget_left(id) >= entity.budget / 3;
        if !(slow || late) {
            return;
        }
        let charged_ns = match (took < MEASURABLE_TURN_NS, self.rotational) {
            (true, true) => SHORT_TURN_ROTATIONAL_NS,
            (true, false) => SHORT_TURN_NS,
            (false, _) => took / MILLISECOND * MILLISECOND,
        };
        let timeout = self.timeout_ns;
        let share = u128::from(charged_ns.min(timeout)) * u128::from(self.device_budget());
        let due = (share / u128::from(timeout.max(1))) as u64;
        let more = due.saturating_sub(entity.service);
        self.hierarchy.served(queue.entity, more);
    }

    /// By how the queue used its last budget (`__bfq_bfqq_recalc_budget`); the point is that queues which continue get
    /// large ones. None: it keeps the one that it has.
    pub(super) fn deserved_budget(&self, id: QueueId, reason: Reason, service: u64) -> Option<u64> {
        let (max, min) = (self.device_budget(), self.min_budget());
        let queue = &self.queues[id];
        let budget = queue.max_budget;
        let deserved = match reason {
            _ if !queue.sync => max,
            _ if queue.raised.is_some() => self.raised_budget(),
            Reason::Preempted => return None,
            Reason::TooIdle if queue.dispatched > 0 => (budget * 2).min(max),
            Reason::TooIdle if budget > 5 * min => budget - 4 * min,
            Reason::TooIdle => min,
            Reason::BudgetTimeout => (budget * 2).min(max),
            Reason::BudgetExhausted => (budget * 4).min(max),
            Reason::NoMoreRequests => service.max(min),
        };
        let is_known = self.budgets_given >= BUDGETS_ENOUGH && self.tunables.max_budget == 0;
        Some(if is_known { deserved.min(max) } else { deserved })
    }

    /// `bfq_min_budget`.
    fn min_budget(&self) -> u64 {
        self.max_budget() / MIN_BUDGET_PARTS
    }

    /// The budget of a queue whose weight is raised: small, so that its next turn comes soon.
    pub(super) fn raised_budget(&self) -> u64 {
        2 * self.min_budget()
    }

    /// Whether the queue is among those by which symmetry is judged: it has requests, here or at the device, and its weight,
    /// if that is to count, is not raised (`bfq_add_bfqq_busy`, `bfq_weights_tree_add`, `bfq_weights_tree_remove`).
    pub(super) fn count(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        let counts = queue.busy || queue.dispatched > 0;
        let weight = (counts && queue.raised.is_none()).then_some(queue.weight);
        let before = std::mem::replace(&mut queue.counted, weight);
        if before != weight {
            for (weight, more) in [(before, false), (weight, true)] {
                if let Some(weight) = weight {
                    change(&mut self.weights, weight, more);
                }
            }
        }
        if std::mem::replace(&mut queue.counted_in_group, counts) != counts {
            change(&mut self.counted_in_groups, queue.group, counts);
        }
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
