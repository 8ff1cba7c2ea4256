//! Interrupts of the one CPU's timer, in which requests are completed that a driver has given a timer each (null_blk).
//!
//! Source: `hrtimer_interrupt` and `__hrtimer_run_queues` of kernel/time/hrtimer.c, 6.1. A pass runs the timers that had
//! expired when it began; after the third, what has expired meanwhile waits as long as the interrupt has taken, so that
//! something else can run (`hang_detected`). What each part costs is measured (`TimerInterruptSpec`).

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;

use super::call::CALL_NS_MAX;
use block_layer::TaskId;
use events::time::Time;

/// What one CPU spends on requests that timers complete, and on the thread that runs a hardware queue for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimerInterruptSpec {
    /// The first completion of an interrupt, from when its timer expires.
    #[schemars(range(max = CALL_NS_MAX))]
    pub first_ns: Time,
    /// Each further one.
    #[schemars(range(max = CALL_NS_MAX))]
    pub further_ns: Time,
    /// More for a completion that calls the thread.
    #[schemars(range(max = CALL_NS_MAX))]
    pub calls_thread_ns: Time,
    /// From the end of an interrupt until an idle CPU runs a task.
    #[schemars(range(max = CALL_NS_MAX))]
    pub switch_ns: Time,
    /// From there until the thread has sent its first request.
    #[schemars(range(max = CALL_NS_MAX))]
    pub thread_ns: Time,
    /// From its last request until a task has the CPU.
    #[schemars(range(max = CALL_NS_MAX))]
    pub thread_ends_ns: Time,
    /// A run of the queue takes a request from the scheduler.
    #[schemars(range(max = CALL_NS_MAX))]
    pub dequeue_ns: Time,
    /// It hands one to the driver.
    #[schemars(range(max = CALL_NS_MAX))]
    pub issue_ns: Time,
    /// Of `call_ns`: what a call does after it has submitted.
    #[schemars(range(max = CALL_NS_MAX))]
    pub after_issue_ns: Time,
}

impl TimerInterruptSpec {
    /// Its keys and their values.
    pub(crate) fn values(&self) -> [(&'static str, Time); 9] {
        [
            ("first_ns", self.first_ns),
            ("further_ns", self.further_ns),
            ("calls_thread_ns", self.calls_thread_ns),
            ("switch_ns", self.switch_ns),
            ("thread_ns", self.thread_ns),
            ("thread_ends_ns", self.thread_ends_ns),
            ("dequeue_ns", self.dequeue_ns),
            ("issue_ns", self.issue_ns),
            ("after_issue_ns", self.after_issue_ns),
        ]
    }
}

/// Passes of an interrupt, at most.
const PASSES_MAX: u8 = 3;

/// The requests whose timers have expired, the interrupt that is under way, and what interrupts take.
#[derive(Clone, Debug)]
pub(super) struct TimerInterrupts {
    spec: TimerInterruptSpec,
    /// Drives and tags.
    expired: VecDeque<(usize, u32)>,
    active: Option<Interrupt>,
    /// One is going to begin.
    is_planned: bool,
    /// The last completion takes so long.
    completion_ns: Time,
    /// By task: what interrupts have taken of what its next calls cost.
    paid_ns: BTreeMap<TaskId, Time>,
}

#[derive(Clone, Copy, Debug)]
struct Interrupt {
    entered_at: Time,
    pass: u8,
    /// Timers that this pass still runs.
    left: usize,
    has_completed: bool,
}

/// What an interrupt does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptStep {
    /// It takes the CPU.
    Begins,
    /// It completes the request of that drive and tag.
    Completes { drive: usize, tag: u32 },
    /// It is over, and the next one begins then, if something has expired.
    Ends(Option<Time>),
}

impl TimerInterrupts {
    pub(super) fn new(spec: TimerInterruptSpec) -> TimerInterrupts {
        TimerInterrupts {
            spec,
            expired: VecDeque::new(),
            active: None,
            is_planned: false,
            completion_ns: 0,
            paid_ns: BTreeMap::new(),
        }
    }

    pub(super) fn spec(&self) -> &TimerInterruptSpec {
        &self.spec
    }

    /// The timer of that drive's request expires. True: an interrupt begins now.
    pub(super) fn expires(&mut self, drive: usize, tag: u32) -> bool {
        self.expired.push_back((drive, tag));
        self.active.is_none() && !std::mem::replace(&mut self.is_planned, true)
    }

    /// Whether one has the CPU.
    pub(super) fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// How long the completion that is under way takes.
    pub(super) fn completion_ns(&self) -> Time {
        self.completion_ns
    }

    /// The completion that is under way calls the thread that runs its queue.
    pub(super) fn called_thread(&mut self) {
        if self.is_active() {
            self.completion_ns += self.spec.calls_thread_ns;
        }
    }

    /// The completion that is under way is of the task: what it takes is part of what the task's calls cost.
    pub(super) fn completed_for(&mut self, task: TaskId) {
        if self.is_active() {
            *self.paid_ns.entry(task).or_default() += self.completion_ns;
        }
    }

    /// What is left of the cost of the task's call.
    pub(super) fn unpaid_ns(&mut self, task: TaskId, takes_ns: Time) -> Time {
        let Some(paid_ns) = self.paid_ns.get_mut(&task) else {
            return takes_ns;
        };
        let of_this_ns = takes_ns.min(*paid_ns);
        *paid_ns -= of_this_ns;
        takes_ns - of_this_ns
    }

    /// It is time for the next step.
    pub(super) fn step(&mut self, now: Time) -> InterruptStep {
        let Some(interrupt) = &mut self.active else {
            self.is_planned = false;
            self.active = Some(Interrupt { entered_at: now, pass: 1, left: self.expired.len(), has_completed: false });
            return InterruptStep::Begins;
        };
        if interrupt.left == 0 {
            let is_over = self.expired.is_empty() || interrupt.pass == PASSES_MAX;
            if is_over {
                let took_ns = now - interrupt.entered_at;
                self.active = None;
                self.is_planned = !self.expired.is_empty();
                return InterruptStep::Ends(self.is_planned.then_some(now + took_ns));
            }
            interrupt.pass += 1;
            interrupt.left = self.expired.len();
        }
        let (drive, tag) = self.expired.pop_front().expect("a pass runs what has expired");
        interrupt.left -= 1;
        let is_first = !std::mem::replace(&mut interrupt.has_completed, true);
        self.completion_ns = if is_first { self.spec.first_ns } else { self.spec.further_ns };
        InterruptStep::Completes { drive, tag }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of a completion that calls the thread, and of further ones, in a guest that records both timers' events.
    const FIRST_NS: Time = 7_900;
    const FURTHER_NS: Time = 2_900;

    /// When each of these timers is completed, and when each interrupt begins.
    fn run(expiries: &[Time]) -> (Vec<(u32, Time)>, Vec<Time>) {
        let spec = TimerInterruptSpec { first_ns: FIRST_NS, further_ns: FURTHER_NS, ..Default::default() };
        let mut interrupts = TimerInterrupts::new(spec);
        let (mut done, mut begun) = (Vec::new(), Vec::new());
        let mut left: VecDeque<(u32, Time)> = (0..).zip(expiries.iter().copied()).collect();
        let mut next: Option<Time> = None;
        loop {
            match (left.front().copied(), next) {
                (Some((tag, at)), step) if step.is_none_or(|step| at <= step) => {
                    left.pop_front();
                    if interrupts.expires(0, tag) {
                        next = Some(at);
                    }
                }
                (_, Some(now)) => {
                    next = match interrupts.step(now) {
                        InterruptStep::Begins => {
                            begun.push(now);
                            Some(now)
                        }
                        InterruptStep::Completes { tag, .. } => {
                            done.push((tag, now));
                            Some(now + interrupts.completion_ns())
                        }
                        InterruptStep::Ends(again) => again,
                    };
                }
                (_, None) => return (done, begun),
            }
        }
    }

    /// As a guest of 6.12.117 does it: four completions in three passes, and four 33 us after the first.
    #[test]
    fn what_expires_in_the_third_pass_waits_as_long_as_the_interrupt_has_taken() {
        let expiries = [0, 2_180, 8_950, 10_230, 11_530, 12_850, 14_150, 15_460];
        let (done, begun) = run(&expiries);
        assert_eq!(begun, [0, 33_200]);
        let before = done.iter().filter(|one| one.1 < 33_200);
        assert!(before.map(|one| one.0).eq(0..4));
    }

    #[test]
    fn timers_that_expire_while_the_first_is_run_are_completed_in_the_same_interrupt() {
        let expiries: Vec<Time> = (0..8).map(|number| 1_300 * number).collect();
        let (done, begun) = run(&expiries);
        assert_eq!(begun, [0]);
        assert_eq!(done.last(), Some(&(7, FIRST_NS + 6 * FURTHER_NS)));
    }

    proptest! {
        #[test]
        fn each_timer_is_run_once_in_order_and_not_before_it_expires(gaps in prop::collection::vec(0..9_000u64, 1..60)) {
            let expiries: Vec<Time> = gaps
                .iter()
                .scan(0, |at, gap| {
                    *at += gap;
                    Some(*at)
                })
                .collect();
            let (done, _) = run(&expiries);
            prop_assert!(done.iter().map(|one| one.0).eq(0..expiries.len() as u32));
            prop_assert!(done.iter().all(|&(tag, at)| at >= expiries[tag as usize]));
        }
    }
}
