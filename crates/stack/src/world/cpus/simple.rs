//! Processors, simply: tasks that want one wait in line, and keep it until they sleep or their time slice is over.

use std::collections::VecDeque;

use serde::Deserialize;

use super::Call;
use crate::block::TaskId;
use crate::time::Time;

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
    pub(in crate::world) fn cost_ns(&self, call: Call) -> Time {
        match call {
            Call::Reap => self.spec.completion_ns,
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
}
