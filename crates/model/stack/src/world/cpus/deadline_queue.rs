//! Tasks that want a simple CPU, by eligibility and virtual deadline: EEVDF.
//!
//! Source: `kernel/sched/fair.c` of 6.6 and 6.12 (docs/model/sources/blk-mq.md). All tasks have one weight. All CPUs share
//! one queue, where the kernel has one for each: a simplification.

use std::collections::{BTreeMap, BTreeSet};

use block_layer::TaskId;
use events::time::{MILLISECOND, Time};

/// A tick with `HZ` 250: a lag is no larger, or than two slices (`update_entity_lag`).
const TICK_NS: i64 = 4 * MILLISECOND as i64;

#[derive(Clone, Debug)]
pub(super) struct DeadlineQueue {
    slice_ns: i64,
    /// Who sleeps and has had more than the mean stays in the queue until it has not (`DELAY_DEQUEUE`).
    delays: bool,
    tasks: BTreeMap<TaskId, Entity>,
    /// By deadline and then in line.
    queued: BTreeSet<(i64, u64, TaskId)>,
    /// What all that are queued have had.
    queued_ns: i128,
    /// Of those that are queued, those that do not sleep.
    ready: usize,
    running: BTreeSet<TaskId>,
    /// The last mean of all that were queued or had a CPU.
    mean_ns: i64,
    /// Who has come up to now.
    came: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entity {
    state: State,
    /// Of the CPU, in virtual time.
    had_ns: i64,
    deadline_ns: i64,
    /// Its place in line while it is queued.
    place: u64,
    /// How much less than the mean it had had when it went to sleep.
    lag_ns: i64,
    /// What it does with its CPU: since when, and for how long.
    work: (Time, Time),
    /// Another is to have its CPU when its call ends.
    gives_way: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Asleep,
    /// Asleep and queued.
    Delayed,
    Ready,
    Running,
}

impl DeadlineQueue {
    pub(super) fn new(slice_ns: Time, delays: bool) -> DeadlineQueue {
        DeadlineQueue {
            slice_ns: slice_ns as i64,
            delays,
            tasks: BTreeMap::new(),
            queued: BTreeSet::new(),
            queued_ns: 0,
            ready: 0,
            running: BTreeSet::new(),
            mean_ns: 0,
            came: 0,
        }
    }

    /// Nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.ready == 0
    }

    /// The task is awake and waits until it `begins` (`enqueue_entity`). Who has a CPU may have to give way.
    pub(super) fn wakes(&mut self, now: Time, task: TaskId) {
        match self.entity(task).state {
            State::Asleep => self.place(now, task),
            State::Delayed => {
                self.unqueue(task);
                // `requeue_delayed_entity`
                if self.lag(now, task) > 0 {
                    self.entity(task).lag_ns = 0;
                    self.place(now, task);
                }
            }
            State::Ready | State::Running => return,
        }
        self.queue(task, State::Ready);
        let mut running = self.running.iter().copied();
        let gives_way = running.find(|&running| self.is_preempted(now, running, task));
        if let Some(running) = gives_way {
            self.entity(running).gives_way = true;
        }
    }

    /// The task has a CPU.
    pub(super) fn begins(&mut self, now: Time, task: TaskId) {
        self.unqueue(task);
        self.running.insert(task);
        let entity = self.entity(task);
        entity.state = State::Running;
        entity.work = (now, 0);
        entity.gives_way = false;
    }

    /// The task has its CPU for so long from now on.
    pub(super) fn runs_for(&mut self, now: Time, task: TaskId, ns: Time) {
        self.count_work(now, task);
        self.entity(task).work = (now, ns);
    }

    /// Whether the task is to give its CPU to one that waits: its slice is over (`update_deadline`), or one has come that
    /// had had less.
    pub(super) fn is_over(&mut self, now: Time, task: TaskId) -> bool {
        self.count_work(now, task);
        let slice_ns = self.slice_ns;
        let entity = self.entity(task);
        let is_over = entity.had_ns >= entity.deadline_ns;
        if is_over {
            entity.deadline_ns = entity.had_ns + slice_ns;
        }
        std::mem::take(&mut entity.gives_way) || is_over
    }

    /// The task has no CPU any more, and waits for one (`put_prev_entity`).
    pub(super) fn gives_way(&mut self, now: Time, task: TaskId) {
        self.leaves(now, task);
        self.queue(task, State::Ready);
    }

    /// The task has no CPU any more, and sleeps (`dequeue_entity`).
    pub(super) fn sleeps(&mut self, now: Time, task: TaskId) {
        self.leaves(now, task);
        let lag_ns = self.lag(now, task);
        let had_ns = self.had(now, task);
        if self.delays && !self.is_eligible(had_ns, Some(had_ns)) {
            return self.queue(task, State::Delayed);
        }
        let entity = self.entity(task);
        entity.state = State::Asleep;
        entity.lag_ns = lag_ns;
    }

    /// Who is next for a CPU that is free (`pick_next_entity`).
    pub(super) fn pop(&mut self) -> Option<TaskId> {
        while self.ready > 0 || self.running.is_empty() {
            let task = self.first_eligible(None)?;
            if self.entity(task).state == State::Ready {
                return Some(task);
            }
            // It has had no more than the mean: `DELAY_ZERO` leaves it no lag.
            self.unqueue(task);
            let entity = self.entity(task);
            entity.state = State::Asleep;
            entity.lag_ns = 0;
        }
        None
    }

    /// At the mean of the others, but for what it lacked when it went to sleep (`place_entity`, `PLACE_LAG`).
    fn place(&mut self, now: Time, task: TaskId) {
        let mean_ns = self.mean(now, None);
        let others = (self.queued.len() + self.running.len()) as i64;
        let slice_ns = self.slice_ns;
        let entity = self.entity(task);
        entity.had_ns = match others {
            0 => mean_ns,
            // So that it lacks that much beside the mean that it is part of.
            _ => mean_ns - entity.lag_ns * (others + 1) / others,
        };
        entity.deadline_ns = entity.had_ns + slice_ns;
    }

    fn queue(&mut self, task: TaskId, state: State) {
        let place = self.came;
        self.came += 1;
        let entity = self.entity(task);
        entity.place = place;
        entity.state = state;
        let Entity { deadline_ns, had_ns, .. } = *entity;
        self.queued.insert((deadline_ns, place, task));
        self.queued_ns += i128::from(had_ns);
        self.ready += usize::from(state == State::Ready);
    }

    fn unqueue(&mut self, task: TaskId) {
        let entity = *self.entity(task);
        let key = (entity.deadline_ns, entity.place, task);
        assert!(self.queued.remove(&key), "who is taken out was queued");
        self.queued_ns -= i128::from(entity.had_ns);
        self.ready -= usize::from(entity.state == State::Ready);
    }

    fn leaves(&mut self, now: Time, task: TaskId) {
        self.count_work(now, task);
        self.running.remove(&task);
        self.entity(task).work = (now, 0);
    }

    /// Whether the task with a CPU has to give way to that one (`check_preempt_wakeup_fair`): not before its slice is over,
    /// as long as it is eligible (`RUN_TO_PARITY`).
    fn is_preempted(&self, now: Time, running: TaskId, by: TaskId) -> bool {
        let had_ns = self.had(now, running);
        !self.is_eligible(had_ns, Some(had_ns)) && self.first_eligible(Some(had_ns)) == Some(by)
    }

    /// The first by deadline of those that have had no more than the mean of all, and of one that has a CPU (`pick_eevdf`).
    fn first_eligible(&self, running_ns: Option<i64>) -> Option<TaskId> {
        let mut tasks = self.queued.iter().map(|&(.., task)| task);
        tasks.find(|task| self.is_eligible(self.tasks[task].had_ns, running_ns))
    }

    /// Whether that is no more than the mean of those that are queued, and of one that has a CPU (`entity_eligible`).
    fn is_eligible(&self, had_ns: i64, running_ns: Option<i64>) -> bool {
        let count = self.queued.len() + usize::from(running_ns.is_some());
        let sum = self.queued_ns + i128::from(running_ns.unwrap_or(0));
        i128::from(had_ns) * count as i128 <= sum
    }

    /// How much less than the mean the task has had, which is neither queued nor has a CPU (`update_entity_lag`).
    fn lag(&mut self, now: Time, task: TaskId) -> i64 {
        let had_ns = self.had(now, task);
        let limit = TICK_NS.max(2 * self.slice_ns);
        (self.mean(now, Some(had_ns)) - had_ns).clamp(-limit, limit)
    }

    /// Of those that are queued or have a CPU, and of one more (`avg_vruntime`).
    fn mean(&mut self, now: Time, one_more_ns: Option<i64>) -> i64 {
        let running = self.running.iter().map(|&task| self.had(now, task));
        let sum = running.chain(one_more_ns).map(i128::from).sum::<i128>() + self.queued_ns;
        let count = self.queued.len() + self.running.len() + usize::from(one_more_ns.is_some());
        if count > 0 {
            self.mean_ns = sum.div_euclid(count as i128) as i64;
        }
        self.mean_ns
    }

    fn had(&self, now: Time, task: TaskId) -> i64 {
        let entity = &self.tasks[&task];
        entity.had_ns + entity.worked(now)
    }

    /// What it has done since its work began is had (`update_curr`).
    fn count_work(&mut self, now: Time, task: TaskId) {
        let entity = self.entity(task);
        let worked = entity.worked(now);
        entity.had_ns += worked;
        entity.work = (now, entity.work.1 - worked as Time);
    }

    fn entity(&mut self, task: TaskId) -> &mut Entity {
        self.tasks.entry(task).or_default()
    }
}

impl Entity {
    fn worked(&self, now: Time) -> i64 {
        let (since, ns) = self.work;
        now.saturating_sub(since).min(ns) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLICE_NS: Time = 3 * MILLISECOND;

    /// One CPU that does what its queue says.
    struct OneCpu {
        queue: DeadlineQueue,
        now: Time,
        runs: Option<TaskId>,
    }

    impl OneCpu {
        fn new(delays: bool) -> OneCpu {
            OneCpu { queue: DeadlineQueue::new(SLICE_NS, delays), now: 0, runs: None }
        }

        fn wakes(&mut self, task: TaskId) {
            self.queue.wakes(self.now, task);
            if self.runs.is_none() {
                self.next();
            }
        }

        fn next(&mut self) {
            self.runs = self.queue.pop();
            if let Some(task) = self.runs {
                self.queue.begins(self.now, task);
            }
        }

        /// A call of the one that has the CPU: who has had it.
        fn calls(&mut self, ns: Time) -> Option<TaskId> {
            let task = self.runs?;
            self.queue.runs_for(self.now, task, ns);
            self.now += ns;
            if self.queue.is_over(self.now, task) && !self.queue.is_empty() {
                self.queue.gives_way(self.now, task);
                self.next();
            }
            Some(task)
        }

        fn sleeps(&mut self) {
            if let Some(task) = self.runs {
                self.queue.sleeps(self.now, task);
                self.next();
            }
        }
    }

    #[test]
    fn who_wakes_beside_an_equal_waits_until_that_sleeps() {
        let mut cpu = OneCpu::new(true);
        cpu.wakes(1);
        cpu.wakes(2);
        assert_eq!(cpu.calls(5_000), Some(1));
        assert_eq!(cpu.runs, Some(1), "its slice protects it");
        cpu.sleeps();
        assert_eq!(cpu.runs, Some(2));
    }

    #[test]
    fn who_has_had_less_when_it_slept_is_first_the_next_time() {
        let mut cpu = OneCpu::new(true);
        cpu.wakes(1);
        cpu.wakes(2);
        cpu.calls(12_000);
        cpu.sleeps();
        cpu.calls(5_000);
        cpu.sleeps();
        assert_eq!(cpu.runs, None);
        cpu.now += MILLISECOND;
        cpu.wakes(1);
        cpu.wakes(2);
        cpu.calls(5_000);
        assert_eq!(cpu.runs, Some(2), "it takes the CPU after the other's call");
    }

    #[test]
    fn a_slice_ends() {
        let mut cpu = OneCpu::new(true);
        cpu.wakes(1);
        cpu.wakes(2);
        let had: Vec<_> = (0..6).filter_map(|_| cpu.calls(SLICE_NS / 2)).collect();
        assert_eq!(had, [1, 1, 2, 2, 1, 1]);
    }

    #[test]
    fn who_has_had_too_much_stays_until_6_12_forgets_it() {
        let mut cpu = OneCpu::new(true);
        cpu.wakes(1);
        cpu.wakes(2);
        cpu.calls(100_000);
        cpu.sleeps();
        assert_eq!(cpu.queue.tasks[&1].state, State::Delayed);
        cpu.calls(10_000);
        cpu.wakes(1);
        let entity = cpu.queue.tasks[&1];
        assert_eq!((entity.state, entity.had_ns), (State::Ready, 100_000));
        let mut cpu = OneCpu::new(false);
        cpu.wakes(1);
        cpu.wakes(2);
        cpu.calls(100_000);
        cpu.sleeps();
        assert_eq!(cpu.queue.tasks[&1].lag_ns, -50_000);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Wakes(TaskId),
        Calls(Time),
        Sleeps,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..6_u32).prop_map(|task| Step::Wakes(task as TaskId)),
            (1..200_000_u64).prop_map(Step::Calls),
            Just(Step::Sleeps),
        ]
    }

    proptest! {
        /// Nobody is lost or had twice, and a CPU is never idle while a task waits.
        #[test]
        fn all_that_are_awake_are_there_once(
            delays: bool,
            steps in prop::collection::vec(step(), 0..300),
        ) {
            let mut cpu = OneCpu::new(delays);
            let mut awake = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Wakes(task) => {
                        awake.insert(task);
                        cpu.wakes(task);
                    }
                    Step::Calls(ns) => {
                        cpu.calls(ns);
                    }
                    Step::Sleeps => {
                        awake.extend(cpu.runs);
                        if let Some(task) = cpu.runs {
                            awake.remove(&task);
                        }
                        cpu.sleeps();
                    }
                }
                let queue = &cpu.queue;
                prop_assert_eq!(queue.ready + queue.running.len(), awake.len());
                prop_assert!(cpu.runs.is_some() || queue.is_empty());
                let sum: i128 = queue.queued.iter().map(|(.., task)| i128::from(queue.tasks[task].had_ns)).sum();
                prop_assert_eq!(sum, queue.queued_ns);
            }
        }

        /// Who stays awake has the CPU again before the others have had it for two slices and a call each.
        #[test]
        fn nobody_starves(
            delays: bool,
            others in 1..5_u32,
            calls in prop::collection::vec(1..200_000_u64, 2000),
        ) {
            let mut cpu = OneCpu::new(delays);
            (0..=others).for_each(|task| cpu.wakes(task as TaskId));
            let mut waits_ns = 0;
            for (number, ns) in calls.into_iter().enumerate() {
                let had = cpu.calls(ns);
                waits_ns = if had == Some(0) { 0 } else { waits_ns + ns };
                prop_assert!(waits_ns <= u64::from(others) * (2 * SLICE_NS + 200_000), "{}", waits_ns);
                if number % 3 == 0 && cpu.runs != Some(0) {
                    let task = cpu.runs.expect("somebody is awake");
                    cpu.sleeps();
                    cpu.wakes(task);
                }
            }
        }
    }
}
