//! Who waits for a simple CPU, and in which order: in line, or by the CPU time that each has had.
//!
//! Source: `kernel/sched/fair.c` of 6.1 (`place_entity`, `update_min_vruntime`, `wakeup_preempt_entity`): the first is who
//! has had the least; who slept comes back at most half a latency behind the others.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::call::CALL_NS_MAX;
use block_layer::TaskId;
use events::SpecError;
use events::spec_error::within;
use events::time::{MILLISECOND, Time};

/// Half of `sysctl_sched_latency` on one CPU: a sleeper's credit (`GENTLE_FAIR_SLEEPERS`).
const SLEEPER_CREDIT_NS: Time = 3 * MILLISECOND;
/// `sysctl_sched_latency` and `sysctl_sched_min_granularity` on one CPU.
const LATENCY_NS: Time = 6 * MILLISECOND;
const SLICE_NS_MIN: Time = MILLISECOND * 3 / 4;
/// `sysctl_sched_wakeup_granularity` on one CPU.
const PREEMPTS_BEYOND_NS: Time = MILLISECOND;

/// How far behind others a load's tasks begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StartSpec {
    /// What the thread that makes the tasks has of the CPU before they begin.
    #[schemars(range(max = CALL_NS_MAX))]
    pub lead_ns: Time,
    /// Tasks that want the CPU when the first is made: the thread that makes it, and whoever told it to.
    #[schemars(range(min = 1, max = BESIDE_MAX))]
    pub beside: u32,
    /// What a task has of the CPU, for each operation that it may have in flight, before its first one.
    #[schemars(range(max = CALL_NS_MAX))]
    pub op_ns: Time,
}

const BESIDE_MAX: u64 = 1024;

impl Default for StartSpec {
    fn default() -> StartSpec {
        StartSpec { lead_ns: 0, beside: 1, op_ns: 0 }
    }
}

impl StartSpec {
    /// The error names the key.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        within("lead_ns", self.lead_ns, 0, CALL_NS_MAX)?;
        within("beside", u64::from(self.beside), 1, BESIDE_MAX)?;
        within("op_ns", self.op_ns, 0, CALL_NS_MAX)
    }
}

#[derive(Clone, Debug)]
pub(super) struct TimeQueue {
    /// Who has had the least CPU time is first; false: who came first.
    by_time: bool,
    /// By the time that each has had, then in line.
    ready: BTreeMap<(Time, u64), TaskId>,
    /// Who has come up to now.
    came: u64,
    /// The CPU time of each task, counted from the floor when it came.
    had_ns: BTreeMap<TaskId, Time>,
    /// `min_vruntime`: what the least of all have had, which never falls.
    floor_ns: Time,
}

impl TimeQueue {
    pub(super) fn new(by_time: bool) -> TimeQueue {
        TimeQueue { by_time, ready: BTreeMap::new(), came: 0, had_ns: BTreeMap::new(), floor_ns: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// The task is made beside so many that want the one CPU, and begins behind them by the slice that it would have
    /// (`task_fork_fair`, `START_DEBIT`), and by what it has of the CPU before its first operation.
    pub(super) fn forks(&mut self, task: TaskId, beside: u32, before_ns: Time) {
        let slice_ns = SLICE_NS_MIN.max(LATENCY_NS / (Time::from(beside) + 1));
        self.had_ns.insert(task, self.floor_ns + slice_ns + before_ns);
    }

    /// Who is no task of these has the CPU for so long, and nobody waits (`update_min_vruntime`): what tasks began behind by
    /// is forgotten if it is less than that and a sleeper's credit.
    pub(super) fn leads(&mut self, ns: Time) {
        self.floor_ns += ns;
    }

    /// The task wakes up (`place_entity`).
    pub(super) fn wakes(&mut self, task: TaskId) {
        let least = self.floor_ns.saturating_sub(SLEEPER_CREDIT_NS);
        let had_ns = self.had_ns.entry(task).or_insert(least);
        *had_ns = (*had_ns).max(least);
    }

    /// Who is awake waits for a CPU.
    pub(super) fn push(&mut self, task: TaskId) {
        self.ready.insert((self.place(task), self.came), task);
        self.came += 1;
    }

    /// Who is next.
    pub(super) fn pop(&mut self) -> Option<TaskId> {
        let (_, task) = self.ready.pop_first()?;
        Some(task)
    }

    /// The task has the CPU for so long (`update_curr`).
    pub(super) fn runs_for(&mut self, task: TaskId, ns: Time) {
        if !self.by_time {
            return;
        }
        let had_ns = self.had_ns.entry(task).or_default();
        *had_ns += ns;
        let least = self.ready.first_key_value().map_or(*had_ns, |((first, _), _)| *first);
        self.floor_ns = self.floor_ns.max(least.min(*had_ns));
    }

    /// Whether somebody who waits has had so much less than the running task that it takes the CPU from it.
    pub(super) fn preempts(&self, running: TaskId) -> bool {
        let first = self.ready.first_key_value().map(|((first, _), _)| *first);
        self.by_time && first.is_some_and(|first| self.had(running) > first + PREEMPTS_BEYOND_NS)
    }

    /// Who has the least is first.
    pub(super) fn place(&self, task: TaskId) -> Time {
        if self.by_time { self.had(task) } else { 0 }
    }

    fn had(&self, task: TaskId) -> Time {
        self.had_ns.get(&task).copied().unwrap_or(self.floor_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order_of(queue: &mut TimeQueue) -> Vec<TaskId> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    fn waiting(by_time: bool, had_ns: &[(TaskId, Time)]) -> TimeQueue {
        let mut queue = TimeQueue::new(by_time);
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
        assert_eq!(order_of(&mut waiting(true, &had)), [2, 3, 1]);
        assert_eq!(order_of(&mut waiting(false, &had)), [1, 2, 3]);
    }

    #[test]
    fn who_is_made_first_is_the_furthest_behind() {
        let mut queue = TimeQueue::new(true);
        (0..8).for_each(|task| queue.forks(task, task + 1, 0));
        (0..8).for_each(|task| queue.push(task));
        assert_eq!(order_of(&mut queue), [6, 7, 5, 4, 3, 2, 1, 0]);
        let had_ms = [0, 1, 6].map(|task| queue.place(task) as f64 / MILLISECOND as f64);
        assert_eq!(had_ms, [3.0, 2.0, 6.0 / 8.0]);
    }

    proptest! {
        /// A task's place is where it was made, or a sleeper's credit behind the others, whichever is later.
        #[test]
        fn who_had_the_cpu_meanwhile_makes_tasks_alike(tasks in 2u64..9, lead_ns in 0..20 * MILLISECOND) {
            let mut queue = TimeQueue::new(true);
            (0..tasks).for_each(|task| queue.forks(task as TaskId, task as u32 + 1, 0));
            let made: Vec<Time> = (0..tasks).map(|task| queue.place(task as TaskId)).collect();
            queue.leads(lead_ns);
            (0..tasks).for_each(|task| queue.wakes(task as TaskId));
            for (task, made) in made.into_iter().enumerate() {
                let expected = made.max(lead_ns.saturating_sub(SLEEPER_CREDIT_NS));
                prop_assert_eq!(queue.place(task as TaskId), expected);
            }
        }
    }

    #[test]
    fn equals_stay_in_line() {
        let had = [(3, 1000), (1, 1000), (2, 1000)];
        assert_eq!(order_of(&mut waiting(true, &had)), [3, 1, 2]);
    }

    #[test]
    fn a_long_sleep_earns_no_more_than_the_credit() {
        let mut queue = TimeQueue::new(true);
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
        let mut queue = TimeQueue::new(true);
        queue.wakes(1);
        queue.runs_for(1, 10 * MILLISECOND);
        queue.wakes(2);
        queue.push(2);
        assert!(queue.preempts(1));
        let mut queue = waiting(true, &[(2, 0)]);
        queue.wakes(1);
        queue.runs_for(1, PREEMPTS_BEYOND_NS / 2);
        assert!(!queue.preempts(1));
    }
}
