//! Tasks: threads that ask their jobs what next, as the engine's threads do on a real machine.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use base::rng::Stream;
use base::usage::{Sample, Samples, Usage};
use workload::assemble::GroupMeasured;
use workload::job::{Job, Next, Op};
use workload::measure::{Measure, Measured, Verdict};

use super::cpus::Used;
use block_layer::{Priority, TaskId};
use events::slab::Id;
use events::time::Time;

/// How a task's jobs do their I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Any number outstanding, past the page cache (io_uring, libaio, O_DIRECT).
    DirectAsync,
    /// The same by a ring of io_uring: what finds no request is handed to its workers.
    DirectRing,
    /// One at a time, past the page cache.
    Direct,
    /// One at a time, through the page cache.
    Buffered,
}

impl Path {
    /// Any number of operations can be under way.
    pub(crate) fn is_async(self) -> bool {
        matches!(self, Path::DirectAsync | Path::DirectRing)
    }
}

/// A phase's tasks.
#[derive(Default)]
pub(super) struct Tasks {
    tasks: Vec<Task>,
    /// By all tasks of all phases.
    used: Usage,
}

pub(super) struct Task {
    pub(super) path: Path,
    /// The cgroup that is charged; 0 is the root.
    pub(super) group: u16,
    pub(super) priority: Priority,
    pub(super) jobs: Vec<RunningJob>,
    pub(super) state: State,
    /// Inside a call that waits: for the device, or for the page cache.
    pub(super) blocked: bool,
    /// The drive on which it looks for its completions by itself; None: interrupts tell it.
    pub(super) polls: Option<usize>,
    /// It sleeps before it looks, whatever is done until then.
    pub(super) naps_until: Option<Time>,
    /// Its action is a call that has waited and goes on.
    pub(super) resumes: bool,
    /// Its call has so many pages to copy before it goes on.
    pub(super) copies: Option<u64>,
    /// Whether it is about to try again to get a request.
    pub(super) again: Again,
    /// What the CPU is doing for it: takes effect when its cost has passed.
    pub(super) action: Option<Action>,
    /// Operations that have completed and that it has not looked at.
    pub(super) completed: VecDeque<OpId>,
    /// Operations that its jobs have offered and that it has not submitted, with their jobs.
    pub(super) offered: VecDeque<(usize, Op)>,
    /// So many of the completed ones it reaps before it submits again.
    pub(super) to_reap: usize,
    /// Operations that it has not seen complete.
    pub(super) outstanding: u32,
    pub(super) jitter: Stream,
    pub(super) used: Usage,
    pub(super) samples: Samples,
    pub(super) notes: Vec<String>,
}

pub(super) struct RunningJob {
    job: Job,
    /// Its end stops the phase's other jobs.
    pub(super) stops: bool,
    pub(super) done: bool,
    measure: Measure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Has a CPU.
    Running(u16),
    /// Has one, and has looked there since then for what it waits for.
    Polling(u16, Time),
    /// Waits for one.
    Ready,
    /// Until something it waits for happens.
    Asleep,
    Gone,
}

/// What becomes of a task that found no request: it is woken, has a CPU in its turn, and tries again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Again {
    #[default]
    No,
    /// There may be a request; it has not had a CPU since.
    Woken,
    /// It has one, and is about to try.
    Tries,
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

/// How far jobs have come, for showing it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Operations that succeeded, warm-up included.
    pub ops: u64,
    /// Bytes that they transferred.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// 0 to 1, the furthest-behind job's; None when no bound tells.
    pub fraction: Option<f64>,
}

pub(super) type OpId = Id<Operation>;

impl Tasks {
    pub(super) fn begin(&mut self, tasks: Vec<Task>) {
        self.tasks = tasks;
    }

    /// They are gone.
    pub(super) fn end(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.tasks)
    }

    pub(super) fn numbers(&self) -> std::ops::Range<TaskId> {
        0..self.tasks.len() as TaskId
    }

    /// None: of no task of the phase.
    pub(super) fn get(&self, number: TaskId) -> Option<&Task> {
        self.tasks.get(number as usize)
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Task> {
        self.tasks.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Task> {
        self.tasks.iter_mut()
    }

    pub(super) fn used_by_all(&self) -> Usage {
        self.used
    }

    /// What the task uses counts for it and for all. And how its costs turn out.
    pub(super) fn used(&mut self, number: TaskId) -> (Used<'_>, &mut Stream) {
        let task = &mut self.tasks[number as usize];
        let used = Used {
            task: &mut task.used,
            all: &mut self.used,
        };
        (used, &mut task.jitter)
    }
}

impl Index<TaskId> for Tasks {
    type Output = Task;

    #[inline]
    fn index(&self, number: TaskId) -> &Task {
        &self.tasks[number as usize]
    }
}

impl IndexMut<TaskId> for Tasks {
    #[inline]
    fn index_mut(&mut self, number: TaskId) -> &mut Task {
        &mut self.tasks[number as usize]
    }
}

impl RunningJob {
    pub(super) fn new(job: Job, stops: bool, warm_up_ns: Time, interval_ns: Time) -> RunningJob {
        RunningJob {
            job,
            stops,
            done: false,
            measure: Measure::new(warm_up_ns, interval_ns, errno_name),
        }
    }

    pub(super) fn next(&mut self, now: Time) -> Next {
        self.job.next(now)
    }

    pub(super) fn end_early(&mut self, now: Time) {
        self.job.end_early(now);
    }

    pub(super) fn next_wakeup(&self) -> Option<Time> {
        (!self.done).then(|| self.job.next_wakeup()).flatten()
    }

    pub(super) fn stop(&mut self) {
        self.job.stop();
    }

    /// True: what was measured before is forgotten.
    pub(super) fn succeeded(&mut self, now: Time, op: &Op) -> bool {
        self.job.completed(now, op, Ok(op.bytes));
        if !self.job.is_measured() {
            return false;
        }
        self.measure.succeeded(now, op);
        let is_new = self.job.measures_anew();
        if is_new {
            self.measure.begin_anew(now);
        }
        is_new
    }

    /// Nothing that the drive does.
    pub(super) fn refused(&mut self, now: Time, op: &Op) {
        self.job.refused(now, op);
    }

    /// True: the job gives up.
    pub(super) fn failed(&mut self, now: Time, op: &Op, errno: i32, path: &str) -> bool {
        self.job.completed(now, op, Err(errno));
        if !self.job.is_measured() {
            self.job.stop();
            return true;
        }
        let verdict = self.measure.failed(now, op, errno, path, op.offset);
        if verdict == Verdict::GiveUp {
            self.job.stop();
        }
        verdict == Verdict::GiveUp
    }

    pub(super) fn progress(&self, now: Time) -> Option<f64> {
        self.job.progress(now)
    }

    pub(super) fn done_so_far(&self) -> Progress {
        Progress {
            ops: self.measure.ops,
            bytes: self.measure.bytes,
            errors: self.measure.errors(),
            fraction: None,
        }
    }

    pub(super) fn into_measured(self) -> Measured {
        self.measure.finish_of(&self.job)
    }
}

fn errno_name(errno: i32) -> String {
    match errno {
        ENOSPC => "ENOSPC".to_owned(),
        other => format!("errno {other}"),
    }
}

/// No space left on device.
pub(super) const ENOSPC: i32 = 28;

impl Task {
    /// It waits, and makes the call again when it is woken.
    pub(super) fn resumes_with(&mut self, action: Action) {
        self.action = Some(action);
        self.resumes = true;
    }

    /// What it does next, in rounds as the engine's threads: it reaps what has completed by then, whose jobs offer anew, and
    /// submits what was offered. None: nothing is left of either.
    pub(super) fn take_action(&mut self) -> Option<Action> {
        if self.to_reap == 0
            && let Some((job, op)) = self.offered.pop_front()
        {
            return Some(Action::Start(job, op));
        }
        if self.to_reap == 0 {
            self.to_reap = self.completed.len();
        }
        self.to_reap = self.to_reap.saturating_sub(1);
        self.completed.pop_front().map(Action::Reap)
    }

    /// It polls, and something of it is under way.
    pub(super) fn looks_for_completions(&self) -> bool {
        self.polls.is_some() && self.outstanding > 0
    }

    /// None of its jobs writes.
    pub(super) fn reads_only(&self) -> bool {
        !self.jobs.iter().any(|running| running.job.writes())
    }

    /// So that what a transient used can be left out afterwards.
    pub(super) fn sample(&mut self, since_start: Time, all: Usage) {
        if since_start >= self.samples.due() {
            self.samples.add(Sample {
                at: since_start,
                thread: self.used,
                process: all,
            });
        }
    }

    /// `last`: what all tasks have used until the phase's end.
    pub(super) fn into_measured(self, last: Sample) -> GroupMeasured {
        GroupMeasured {
            jobs: self
                .jobs
                .into_iter()
                .map(RunningJob::into_measured)
                .collect(),
            notes: self.notes,
            samples: self.samples,
            last_sample: Sample {
                thread: self.used,
                ..last
            },
        }
    }
}

/// A cost as it turns out this time.
pub(super) fn drawn(draws: &mut Stream, cost: u64, jitter: f64) -> u64 {
    if jitter == 0.0 {
        return cost;
    }
    let factor = 1.0 + jitter * (2.0 * draws.unit() - 1.0);
    (cost as f64 * factor) as u64
}
