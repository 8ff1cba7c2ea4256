//! Tasks: threads that ask their jobs what next, as the engine's threads do on a real machine.

use std::collections::VecDeque;

use workload::job::{Job, Op, OpKind};
use workload::rng::Stream;
use workload::timeline::{Interval, Timeline};

use crate::slab::Id;
use crate::time::Time;

/// How a task's jobs do their I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Any number outstanding, past the page cache (io_uring, libaio, O_DIRECT).
    DirectAsync,
    /// One at a time, past the page cache.
    Direct,
    /// One at a time, through the page cache.
    Buffered,
}

pub(super) struct Task {
    pub(super) name: String,
    pub(super) path: Path,
    /// The cgroup that is charged; 0 is the root.
    pub(super) group: u16,
    pub(super) jobs: Vec<RunningJob>,
    pub(super) state: State,
    /// What the CPU is doing for it: takes effect when its cost has passed.
    pub(super) action: Option<Action>,
    /// Operations that have completed and that it has not looked at.
    pub(super) completed: VecDeque<OpId>,
    pub(super) jitter: Stream,
    pub(super) cpu_ns: u64,
    pub(super) sleeps: u64,
}

pub(super) struct RunningJob {
    pub(super) job: Job,
    pub(super) done: bool,
    timeline: Timeline,
    pub(super) finished: Time,
    pub(super) ops: u64,
    pub(super) bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Has a CPU.
    Running(u16),
    /// Waits for one.
    Ready,
    /// Until something it waits for happens.
    Asleep,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    Start(usize, Op),
    Reap(OpId),
}

/// An operation under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) task: u32,
    pub(super) job: usize,
    pub(super) op: Op,
    pub(super) bios_left: u32,
}

pub(super) type OpId = Id<Operation>;

impl RunningJob {
    pub(super) fn new(job: Job, warm_up_ns: Time, interval_ns: Time) -> RunningJob {
        RunningJob {
            job,
            done: false,
            timeline: Timeline::new(warm_up_ns, interval_ns),
            finished: 0,
            ops: 0,
            bytes: 0,
        }
    }

    pub(super) fn succeeded(&mut self, now: Time, op: &Op) {
        self.job.completed(now, op, Ok(op.bytes));
        self.finished = now;
        self.ops += 1;
        self.bytes += u64::from(op.bytes);
        self.timeline.record(now, op.kind, op.bytes, now - op.due);
    }

    pub(super) fn into_intervals(self) -> (Time, Vec<Interval>) {
        (self.finished, self.timeline.finish(self.finished))
    }
}

impl Task {
    /// A cost as it turns out this time.
    pub(super) fn drawn(&mut self, cost_ns: Time, jitter: f64) -> Time {
        if jitter == 0.0 {
            return cost_ns;
        }
        let factor = 1.0 + jitter * (2.0 * self.jitter.unit() - 1.0);
        (cost_ns as f64 * factor) as Time
    }

    /// Direct I/O that has to be waited for one at a time, and everything through the cache, blocks its task.
    pub(super) fn blocks(&self, kind: OpKind) -> bool {
        self.path != Path::DirectAsync || kind.is_sync()
    }
}
