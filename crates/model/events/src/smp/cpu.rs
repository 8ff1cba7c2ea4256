//! One CPU: what it does, what it interrupted for that, and what waits.

use std::collections::VecDeque;

use super::lines::ObjectId;
use super::run_queue::{RunQueue, TaskNumber};
use super::usage::{Events, Stalls, TaskUsage, Usage};
use super::work::{Context, Work};
use crate::time::{SECOND, Time};

/// Each interrupts those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Hard,
    Soft,
    Task,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle {
        since: Time,
    },
    /// On its way out of an idle state.
    Waking,
    /// Without anything active there: between two pieces of work, at one moment.
    Running(Level),
    Offline,
}

/// Work begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active<T> {
    pub(super) left_ns: Time,
    pub(super) context: Context,
    pub(super) tag: Option<T>,
    /// Interrupts are off until then.
    pub(super) masked_until: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Cpu<T> {
    pub(super) state: State,
    pub(super) active: [Option<Active<T>>; 3],
    pub(super) hard: VecDeque<Work<T>>,
    pub(super) soft: VecDeque<Work<T>>,
    pub(super) ready: RunQueue,
    pub(super) task: Option<TaskNumber>,
    /// Whose state is in the registers.
    pub(super) last_task: Option<TaskNumber>,
    /// The current task has to give way at the next occasion.
    pub(super) gives_way: bool,
    pub(super) slice_left: Time,
    pub(super) ran_ns: Time,
    pub(super) io_sleepers: u32,
    /// A piece of work is done, and what it leads to may still be charged to it.
    pub(super) deciding: bool,
    pub(super) last_context: Context,
    /// What its task has had since it got the CPU.
    pub(super) task_used: TaskUsage,
    pub(super) undecided: bool,
    /// Events of earlier turns mean nothing any more.
    pub(super) turn: u32,
    pub(super) run_queue: ObjectId,
    pub(super) stalls: Stalls,
    pub(super) events: Events,
    accounted_at: Time,
    usage: Usage,
    /// Cycles x 10^9 that have not yet made a nanosecond.
    carry: u64,
}

impl<T: Copy> Cpu<T> {
    pub(super) fn new(run_queue: ObjectId) -> Cpu<T> {
        Cpu {
            state: State::Idle { since: 0 },
            active: [None; 3],
            hard: VecDeque::new(),
            soft: VecDeque::new(),
            ready: RunQueue::default(),
            task: None,
            last_task: None,
            gives_way: false,
            slice_left: 0,
            ran_ns: 0,
            io_sleepers: 0,
            deciding: false,
            last_context: Context::System,
            task_used: TaskUsage::default(),
            undecided: false,
            turn: 0,
            run_queue,
            stalls: Stalls::default(),
            events: Events::default(),
            accounted_at: 0,
            usage: Usage::default(),
            carry: 0,
        }
    }

    /// The time of these cycles; fractions of a nanosecond are kept for the next.
    #[inline]
    pub(super) fn time_of(&mut self, cycles: u64, clock_hz: u64) -> Time {
        let all = cycles * SECOND + self.carry;
        self.carry = all % clock_hz;
        all / clock_hz
    }

    /// Interrupts have to wait until then.
    pub(super) fn masked_until(&self) -> Option<Time> {
        match self.state {
            State::Running(level) => self.active[level as usize].map(|active| active.masked_until),
            _ => None,
        }
    }

    /// What the time since the last account went to is written down.
    #[inline]
    pub(super) fn account(&mut self, now: Time) {
        let elapsed = now - self.accounted_at;
        if elapsed == 0 {
            return;
        }
        let (context, under) = (self.context(), self.context_under());
        self.accounted_at = now;
        self.usage.add(context, under, elapsed);
        if let State::Running(level) = self.state {
            let active = self.active[level as usize].as_mut().expect("time passes with work only");
            active.left_ns -= elapsed;
            if level == Level::Task {
                self.slice_left = self.slice_left.saturating_sub(elapsed);
                self.ran_ns += elapsed;
                self.task_used.add_ns(context, elapsed);
            }
        }
    }

    /// What its task has had since it got the CPU.
    pub(super) fn task_used(&self, now: Time) -> TaskUsage {
        let mut used = self.task_used;
        if self.state == State::Running(Level::Task) {
            used.add_ns(self.context(), now - self.accounted_at);
        }
        used
    }

    pub(super) fn usage(&self, now: Time) -> Usage {
        let mut usage = self.usage;
        let elapsed = now - self.accounted_at;
        usage.add(self.context(), self.context_under(), elapsed);
        usage
    }

    fn context(&self) -> Context {
        match self.state {
            State::Running(level) => match self.active[level as usize] {
                Some(active) => active.context,
                None => self.last_context,
            },
            State::Offline => Context::Offline,
            State::Idle { .. } | State::Waking => self.idle_context(),
        }
    }

    /// What is interrupted.
    fn context_under(&self) -> Context {
        self.active[Level::Soft as usize..].iter().flatten().next().map_or(self.idle_context(), |active| active.context)
    }

    fn idle_context(&self) -> Context {
        if self.io_sleepers > 0 { Context::IoWait } else { Context::Idle }
    }
}
