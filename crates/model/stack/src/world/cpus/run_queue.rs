//! Who waits for a simple CPU, and in which order: in line, or by the CPU time that each has had.
//!
//! Source: `kernel/sched/fair.c` of 6.1 (`place_entity`, `update_min_vruntime`, `wakeup_preempt_entity`): the first is who
//! has had the least; who slept comes back at most half a latency behind the others.

use std::collections::BTreeMap;

use block_layer::TaskId;
use events::time::{MILLISECOND, Time};
use kernels::scheduling::TaskOrder;

/// Half of `sysctl_sched_latency` on one CPU: a sleeper's credit (`GENTLE_FAIR_SLEEPERS`).
const SLEEPER_CREDIT_NS: Time = 3 * MILLISECOND;
/// `sysctl_sched_wakeup_granularity` on one CPU.
const PREEMPTS_BEYOND_NS: Time = MILLISECOND;

#[derive(Clone, Debug)]
pub(super) struct RunQueue {
    order: TaskOrder,
    /// By the time that each has had, then in line.
    ready: BTreeMap<(Time, u64), TaskId>,
    /// Who has come up to now.
    came: u64,
    /// The CPU time of each task, counted from the floor when it came.
    had_ns: BTreeMap<TaskId, Time>,
    /// `min_vruntime`: what the least of all have had, which never falls.
    floor_ns: Time,
}

impl RunQueue {
    pub(super) fn new(order: TaskOrder) -> RunQueue {
        RunQueue {
            order,
            ready: BTreeMap::new(),
            came: 0,
            had_ns: BTreeMap::new(),
            floor_ns: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// The task wakes up (`place_entity`).
    pub(super) fn wakes(&mut self, task: TaskId) {
        let least = self.floor_ns.saturating_sub(SLEEPER_CREDIT_NS);
        let had_ns = self.had_ns.entry(task).or_insert(least);
        *had_ns = (*had_ns).max(least);
    }

    /// Who is awake waits for a CPU.
    pub(super) fn push(&mut self, task: TaskId) {
        let key = match self.order {
            TaskOrder::InLine => 0,
            TaskOrder::ByTimeHad => self.had(task),
        };
        self.ready.insert((key, self.came), task);
        self.came += 1;
    }

    /// Who is next.
    pub(super) fn pop(&mut self) -> Option<TaskId> {
        let (_, task) = self.ready.pop_first()?;
        Some(task)
    }

    /// The task has the CPU for so long (`update_curr`).
    pub(super) fn runs_for(&mut self, task: TaskId, ns: Time) {
        if self.order == TaskOrder::InLine {
            return;
        }
        let had_ns = self.had_ns.entry(task).or_default();
        *had_ns += ns;
        let least = self
            .ready
            .first_key_value()
            .map_or(*had_ns, |((first, _), _)| *first);
        self.floor_ns = self.floor_ns.max(least.min(*had_ns));
    }

    /// Whether somebody who waits has had so much less than the running task that it takes the CPU from it.
    pub(super) fn preempts(&self, running: TaskId) -> bool {
        let first = self.ready.first_key_value().map(|((first, _), _)| *first);
        self.order == TaskOrder::ByTimeHad
            && first.is_some_and(|first| self.had(running) > first + PREEMPTS_BEYOND_NS)
    }

    fn had(&self, task: TaskId) -> Time {
        self.had_ns.get(&task).copied().unwrap_or(self.floor_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(queue: &mut RunQueue) -> Vec<TaskId> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    fn waiting(order: TaskOrder, had_ns: &[(TaskId, Time)]) -> RunQueue {
        let mut queue = RunQueue::new(order);
        for &(task, ns) in had_ns {
            queue.wakes(task);
            queue.runs_for(task, ns);
        }
        for &(task, _) in had_ns {
            queue.wakes(task);
            queue.push(task);
        }
        queue
    }

    #[test]
    fn who_has_had_the_least_is_first_since_2_6_23() {
        let had = [(1, 30_000), (2, 10_000), (3, 20_000)];
        assert_eq!(
            order_of(&mut waiting(TaskOrder::ByTimeHad, &had)),
            [2, 3, 1]
        );
        assert_eq!(order_of(&mut waiting(TaskOrder::InLine, &had)), [1, 2, 3]);
    }

    #[test]
    fn equals_stay_in_line() {
        let had = [(3, 1000), (1, 1000), (2, 1000)];
        assert_eq!(
            order_of(&mut waiting(TaskOrder::ByTimeHad, &had)),
            [3, 1, 2]
        );
    }

    #[test]
    fn a_long_sleep_earns_no_more_than_the_credit() {
        let mut queue = RunQueue::new(TaskOrder::ByTimeHad);
        queue.wakes(1);
        queue.runs_for(1, 1_000 * MILLISECOND);
        queue.wakes(2);
        queue.runs_for(2, SLEEPER_CREDIT_NS + 1);
        queue.push(2);
        queue.push(1);
        assert_eq!(order_of(&mut queue), [1, 2]);
    }

    #[test]
    fn a_waiter_preempts_who_has_had_much_more() {
        let mut queue = RunQueue::new(TaskOrder::ByTimeHad);
        queue.wakes(1);
        queue.runs_for(1, 10 * MILLISECOND);
        queue.wakes(2);
        queue.push(2);
        assert!(queue.preempts(1));
        let mut queue = waiting(TaskOrder::ByTimeHad, &[(2, 0)]);
        queue.wakes(1);
        queue.runs_for(1, PREEMPTS_BEYOND_NS / 2);
        assert!(!queue.preempts(1));
    }
}
