//! Processors, simply: tasks that want one wait in line, and keep it until they sleep or their time slice is over.

use std::collections::VecDeque;

use serde::Deserialize;

use super::runner::{LockNumber, Origin, Piece, RUNNERS, RunnerNumber};
use super::{Call, Cost};
use block_layer::TaskId;
use events::smp::{Context, TaskUsage};
use events::time::Time;

/// CPUs as a number, and what calls cost on them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuSpec {
    /// Tasks that run at once.
    #[schemars(range(min = 1, max = 1024))]
    pub count: u16,
    /// A task that has had its CPU for so long gives it to one that waits.
    #[schemars(range(min = 1, max = CALL_NS_MAX))]
    pub time_slice_ns: Time,
    /// Of a system call that submits I/O, or finds that there is nothing to do.
    #[schemars(range(max = CALL_NS_MAX))]
    pub call_ns: Time,
    /// Of what a completed I/O costs its task.
    #[schemars(range(max = CALL_NS_MAX))]
    pub completion_ns: Time,
    /// Of that: interrupt, wake-up and switch, which a task that polls for its completions does without. Left out: none.
    #[schemars(range(max = CALL_NS_MAX))]
    pub interrupt_ns: Option<Time>,
    /// Of copying a page between a task and the page cache, and looking it up.
    #[schemars(range(max = CALL_NS_MAX))]
    pub page_copy_ns: Time,
    /// Each cost is drawn evenly between so much less and so much more than it: 0.1 is 10 %.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
    /// For those who turn times into cycles.
    #[schemars(range(min = 1_000_000, max = 100_000_000_000_u64))]
    pub clock_hz: Option<u64>,
}

/// An hour: no call takes longer, so that sums of times do not overflow.
pub(crate) const CALL_NS_MAX: Time = 3_600_000_000_000;

#[derive(Clone, Debug)]
pub struct Simple {
    spec: CpuSpec,
    /// By CPU: whose it is, and until when.
    running: Vec<Option<Running>>,
    ready: VecDeque<TaskId>,
    runners: Vec<Runner>,
    /// When each lock is free.
    locks: Vec<Time>,
}

#[derive(Clone, Debug, Default)]
struct Runner {
    /// The one under way, or that it has no CPU for yet, and those that follow.
    pieces: VecDeque<Piece>,
    /// Has a CPU or waits for one.
    is_awake: bool,
    /// Of the piece under way, with its wait for a lock.
    takes_ns: Time,
    used: TaskUsage,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    task: TaskId,
    slice_ends_at: Time,
}

impl Simple {
    /// How many there are.
    pub(super) fn count(&self) -> u16 {
        self.spec.count
    }

    pub(crate) fn new(spec: CpuSpec) -> Simple {
        Simple {
            spec,
            running: vec![None; usize::from(spec.count)],
            ready: VecDeque::new(),
            runners: Vec::new(),
            locks: Vec::new(),
        }
    }

    /// The task wants a CPU: which one it gets at once, if any is free.
    pub(crate) fn wants(&mut self, now: Time, task: TaskId) -> Option<u16> {
        let Some(cpu) = self.running.iter().position(Option::is_none) else {
            self.ready.push_back(task);
            return None;
        };
        self.give(now, cpu as u16, task);
        Some(cpu as u16)
    }

    /// The task goes to sleep or is done: who has its CPU next.
    pub(crate) fn leaves(&mut self, now: Time, cpu: u16) -> Option<TaskId> {
        self.running[usize::from(cpu)] = None;
        let next = self.ready.pop_front()?;
        self.give(now, cpu, next);
        Some(next)
    }

    /// The task could go on: who has the CPU, itself or, when its slice is over, the next in line.
    pub(crate) fn goes_on(&mut self, now: Time, cpu: u16) -> TaskId {
        let running = self.running[usize::from(cpu)].expect("somebody runs there");
        if now < running.slice_ends_at || self.ready.is_empty() {
            return running.task;
        }
        self.ready.push_back(running.task);
        let next = self.ready.pop_front().expect("it was not empty");
        self.give(now, cpu, next);
        next
    }

    /// What a call costs, of which each turns out a little different.
    pub(in crate::world) fn cost_ns(&self, call: Call, polled: bool) -> Time {
        match call {
            Call::Reap if polled => {
                let interrupt_ns = self.spec.interrupt_ns.unwrap_or(0);
                self.spec.completion_ns - interrupt_ns
            }
            Call::Reap | Call::Resume => self.spec.completion_ns,
            Call::Submit => self.spec.call_ns,
            Call::Copy { pages } => self.spec.call_ns + self.spec.page_copy_ns * pages,
        }
    }

    pub(in crate::world) fn clock_hz(&self) -> Option<u64> {
        self.spec.clock_hz
    }

    pub(in crate::world) fn jitter(&self) -> f64 {
        self.spec.jitter
    }

    /// Whose CPU it is.
    pub(crate) fn on(&self, cpu: u16) -> TaskId {
        self.running[usize::from(cpu)]
            .expect("somebody runs there")
            .task
    }

    fn give(&mut self, now: Time, cpu: u16, task: TaskId) {
        self.running[usize::from(cpu)] = Some(Running {
            task,
            slice_ends_at: now + self.spec.time_slice_ns,
        });
    }

    pub(super) fn add_runner(&mut self) -> RunnerNumber {
        self.runners.push(Runner::default());
        self.runners.len() as RunnerNumber - 1
    }

    pub(super) fn add_lock(&mut self) -> LockNumber {
        self.locks.push(0);
        self.locks.len() as LockNumber - 1
    }

    pub(super) fn give_runner(
        &mut self,
        now: Time,
        runner: RunnerNumber,
        piece: Piece,
    ) -> Option<(u16, Time)> {
        let state = &mut self.runners[runner as usize];
        state.pieces.push_back(piece);
        if std::mem::replace(&mut state.is_awake, true) {
            return None;
        }
        let cpu = self.wants(now, RUNNERS + runner)?;
        Some((cpu, self.begin_piece(now, runner)))
    }

    pub(super) fn begin_piece(&mut self, now: Time, runner: RunnerNumber) -> Time {
        let clock_hz = self.spec.clock_hz;
        let piece = *self.piece(runner);
        let mut takes_ns = piece.cost.ns(clock_hz);
        if let Some((lock, held_cycles)) = piece.lock {
            let free_at = &mut self.locks[lock as usize];
            let begins = now.max(*free_at);
            *free_at = begins + Cost::Cycles(held_cycles).ns(clock_hz);
            takes_ns += begins - now;
        }
        self.runners[runner as usize].takes_ns = takes_ns;
        now + takes_ns
    }

    pub(super) fn end_piece(&mut self, runner: RunnerNumber) -> Option<Origin> {
        let state = &mut self.runners[runner as usize];
        let piece = state.pieces.pop_front().expect("a piece was under way");
        match piece.context {
            Context::User => state.used.user_ns += state.takes_ns,
            _ => state.used.system_ns += state.takes_ns,
        }
        piece.of
    }

    pub(super) fn after_piece(
        &mut self,
        now: Time,
        cpu: u16,
        runner: RunnerNumber,
    ) -> Option<TaskId> {
        let state = &mut self.runners[runner as usize];
        if state.pieces.is_empty() {
            state.is_awake = false;
            state.used.slept += 1;
            return self.leaves(now, cpu);
        }
        let next = self.goes_on(now, cpu);
        if next != RUNNERS + runner {
            self.runners[runner as usize].used.gave_way += 1;
        }
        Some(next)
    }

    pub(in crate::world) fn runner_usage(&self, runner: RunnerNumber) -> TaskUsage {
        self.runners[runner as usize].used
    }

    fn piece(&self, runner: RunnerNumber) -> &Piece {
        let pieces = &self.runners[runner as usize].pieces;
        pieces.front().expect("it has something to do")
    }
}
