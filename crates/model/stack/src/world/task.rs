//! Tasks: threads that ask their jobs what next, as the engine's threads do on a real machine.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use base::rng::{Stream, stream};
use base::usage::{Sample, Samples, Usage};
use workload::assemble::GroupMeasured;
use workload::job::{Job, JobStep, Op};
use workload::measure::{JobMeasurement, Measure, Verdict};
use workload::spec::JobSpec;

use super::cpus::{Call, UsageAccounts};
use super::phase_spec::{GroupSpec, Path, PhaseSpec};
use block_layer::{Priority, TaskId};
use events::slab::Id;
use events::time::Time;
use memory::cache::PAGE_BYTES;

/// A phase's tasks.
#[derive(Default)]
pub(super) struct Tasks {
    tasks: Vec<Task>,
    /// By all tasks of all phases.
    used: Usage,
}

/// A thread of a phase. Only its own methods change what it is about; CPUs count what it uses through `Tasks::used`.
pub(super) struct Task {
    path: Path,
    /// The cgroup that is charged; 0 is the root.
    group: u16,
    priority: Priority,
    jobs: Vec<RunningJob>,
    /// It reaps at most so many before it submits.
    batch: usize,
    state: State,
    /// Inside a call that waits: for the device, or for the page cache.
    blocked: bool,
    /// The drive on which it polls for its completions; None: interrupts announce them.
    polls: Option<usize>,
    /// It sleeps before it looks, whatever is done until then.
    naps_until: Option<Time>,
    /// CPU time that it spends before its action.
    works_ns: Option<Time>,
    /// Its action is a call that has waited and continues.
    resumes: bool,
    /// Its call has this many pages to copy before it continues.
    copies: Option<u64>,
    /// Whether it is about to try again to get a request.
    again: RetryState,
    /// What the CPU is doing for it: takes effect when its cost has passed.
    action: Option<Action>,
    /// Operations that have completed and that it has not looked at.
    completed: VecDeque<OpId>,
    /// Operations that its jobs have offered and that it has not submitted, with their jobs.
    offered: VecDeque<(usize, Op)>,
    /// This many of the completed ones it reaps before it submits again.
    to_reap: usize,
    /// It reaps, and has not looked yet what has completed by then.
    begins_reaping: bool,
    /// This many of the offered ones are in the call that submits them.
    to_submit: usize,
    /// It has submitted none of them yet.
    begins_submitting: bool,
    /// Operations that it has not seen complete.
    outstanding: u32,
    jitter: Stream,
    used: Usage,
    samples: Samples,
    notes: Vec<String>,
}

pub(super) struct RunningJob {
    job: Job,
    /// Its end stops the phase's other jobs.
    stops: bool,
    done: bool,
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
enum RetryState {
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
    /// The sync behind a write through the page cache that is to be durable.
    Sync(usize, Op),
    Reap(OpId),
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) task: u32,
    pub(super) job: usize,
    pub(super) op: Op,
    /// A sync has to make it durable.
    pub(super) syncs_after: bool,
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
    /// 0 to 1, the furthest-behind job's; None without a bound.
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

    /// A job of this task is done: whether that ends the measured part. Tasks of a cgroup compete as one.
    pub(super) fn ends_all(&self, number: TaskId) -> bool {
        match self[number].group {
            0 => true,
            group => self.tasks.iter().filter(|task| task.group == group).all(Task::is_done),
        }
    }

    pub(super) fn used_by_all(&self) -> Usage {
        self.used
    }

    /// What the task uses counts for it and for all. And how its costs turn out.
    pub(super) fn used(&mut self, number: TaskId) -> (UsageAccounts<'_>, &mut Stream) {
        let task = &mut self.tasks[number as usize];
        let used = UsageAccounts { task: &mut task.used, all: &mut self.used };
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
    pub(super) fn new(job: Job, spec: &JobSpec, phase: &PhaseSpec) -> RunningJob {
        let stops = phase.stops_with.as_ref();
        RunningJob {
            job,
            stops: stops.is_some_and(|stops| stops.jobs.contains(&spec.name)),
            done: false,
            measure: Measure::new(phase.warm_up_ns, phase.interval_ns, errno_name).of_log(spec.commits),
        }
    }

    /// Its end stops the phase's other jobs.
    pub(super) fn stops(&self) -> bool {
        self.stops
    }

    fn next_wakeup(&self) -> Option<Time> {
        (!self.done).then(|| self.job.next_wakeup()).flatten()
    }

    /// True: what was measured before is forgotten.
    fn succeeded(&mut self, now: Time, op: &Op) -> bool {
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

    /// True: the job gives up.
    fn failed(&mut self, now: Time, op: &Op, errno: i32, path: &str) -> bool {
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
        Progress { ops: self.measure.ops, bytes: self.measure.bytes, errors: self.measure.errors(), fraction: None }
    }

    fn into_measured(self) -> JobMeasurement {
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
const ENOSPC: i32 = 28;

const POLLING_REFUSED: &str = "polled completion refused: the drive has no polled queue; waiting for interrupts";

/// What came of asking a task's jobs.
pub(super) struct DoneJobs {
    /// A job is done that was not.
    pub(super) one_is_done: bool,
    /// This many of them are done whose end stops the others.
    pub(super) stoppers_done: usize,
}

impl Task {
    /// Of a group of the phase. `polls`: the drive on which it looks for its completions by itself.
    pub(super) fn new(
        phase: &PhaseSpec,
        number: u64,
        group: &GroupSpec,
        jobs: Vec<RunningJob>,
        polls: Option<usize>,
    ) -> Task {
        Task {
            path: group.path,
            group: group.cgroup,
            priority: group.priority,
            jobs,
            batch: group.batch.map_or(usize::MAX, |most| most.max(1) as usize),
            state: State::Asleep,
            blocked: false,
            polls,
            naps_until: None,
            works_ns: None,
            resumes: false,
            copies: None,
            again: RetryState::No,
            action: None,
            completed: VecDeque::new(),
            offered: VecDeque::new(),
            to_reap: 0,
            begins_reaping: false,
            to_submit: 0,
            begins_submitting: false,
            outstanding: 0,
            jitter: stream(phase.seed, number),
            used: Usage::default(),
            samples: Samples::new(phase.warm_up_ns, phase.interval_ns),
            notes: match polls {
                None if group.polls => vec![POLLING_REFUSED.to_owned()],
                _ => Vec::new(),
            },
        }
    }

    #[inline]
    pub(super) fn path(&self) -> Path {
        self.path
    }

    pub(super) fn group(&self) -> u16 {
        self.group
    }

    pub(super) fn priority(&self) -> Priority {
        self.priority
    }

    pub(super) fn jobs(&self) -> &[RunningJob] {
        &self.jobs
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// It has that CPU.
    #[inline]
    pub(super) fn runs_on(&mut self, cpu: u16) {
        self.state = State::Running(cpu);
    }

    pub(super) fn waits_for_cpu(&mut self) {
        self.state = State::Ready;
    }

    pub(super) fn falls_asleep(&mut self) {
        self.state = State::Asleep;
    }

    /// It looks for its completions, on that CPU from then on.
    pub(super) fn polls_on(&mut self, cpu: u16, since: Time) {
        self.state = State::Polling(cpu, since);
    }

    pub(super) fn is_gone(&mut self) {
        self.state = State::Gone;
    }

    /// Its call waits: for the device, or for the page cache.
    #[inline]
    pub(super) fn block(&mut self) {
        self.blocked = true;
    }

    /// What its call waits for has happened, or it waits for nothing.
    #[inline]
    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// The drive on which it looks for its completions by itself; None: interrupts report them.
    pub(super) fn polled_drive(&self) -> Option<usize> {
        self.polls
    }

    /// It sleeps until then before it looks, whatever is done meanwhile.
    pub(super) fn nap_until(&mut self, at: Time) {
        self.naps_until = Some(at);
        self.falls_asleep();
    }

    #[inline]
    pub(super) fn naps_at(&self, now: Time) -> bool {
        self.naps_until.is_some_and(|until| now < until)
    }

    /// Whether it has slept before it looks; it has looked then.
    pub(super) fn take_nap(&mut self) -> bool {
        self.naps_until.take().is_some()
    }

    /// There may be a request for it: it is to try again when it has a CPU. If it is about to try, that will do.
    pub(super) fn is_to_retry(&mut self) {
        if self.again == RetryState::No {
            self.again = RetryState::Woken;
        }
    }

    #[inline]
    pub(super) fn retries(&self) -> bool {
        self.again != RetryState::No
    }

    /// Whether it is to try again now that it has a CPU; then it is about to.
    #[inline]
    pub(super) fn begins_retry(&mut self) -> bool {
        let is = self.again == RetryState::Woken;
        if is {
            self.again = RetryState::Tries;
        }
        is
    }

    /// Whether it was about to try again; then it does.
    #[inline]
    pub(super) fn ends_retry(&mut self) -> bool {
        let is = self.again == RetryState::Tries;
        if is {
            self.again = RetryState::No;
        }
        is
    }

    /// What a CPU is to do for it next.
    pub(super) fn does(&mut self, action: Action) {
        self.action = Some(action);
    }

    /// It waits, and makes the call again when it is woken.
    pub(super) fn resumes_with(&mut self, action: Action) {
        self.action = Some(action);
        self.resumes = true;
    }

    /// This many pages are to be copied before its call continues.
    pub(super) fn copies_on(&mut self, action: Action, pages: u64) {
        self.action = Some(action);
        self.copies = Some(pages);
    }

    /// It spends CPU time before it does that.
    pub(super) fn works_before(&mut self, action: Action, ns: Time) {
        self.action = Some(action);
        self.works_ns = Some(ns);
    }

    /// None: it has to ask its jobs.
    #[inline]
    pub(super) fn action(&self) -> Option<Action> {
        self.action
    }

    /// What a CPU has done for it.
    #[inline]
    pub(super) fn take_effect(&mut self) -> Action {
        self.action.take().expect("the CPU did something")
    }

    /// The call that the action is now; past the page cache or through it, with this many pages. It no longer naps.
    pub(super) fn call(&mut self, action: Action, pages: u64, of_mount_ns: Option<Time>) -> Call {
        self.naps_until = None;
        let resumes = std::mem::take(&mut self.resumes);
        match (of_mount_ns.or(self.works_ns.take()), resumes) {
            (Some(ns), _) => return Call::Work { ns },
            (None, true) => return Call::Resume,
            (None, false) => {}
        }
        match (self.copies.take(), action) {
            (Some(pages), _) => Call::CopyOn { pages },
            (None, Action::Reap(_)) => Call::Reap {
                polled: self.polls.is_some(),
                further: !self.begins_reaping,
                by_call: self.path == Path::DirectAsync,
            },
            (None, Action::Start(_, op)) if self.path != Path::Buffered => Call::Submit {
                further: !std::mem::take(&mut self.begins_submitting),
                pages: match op.kind.clears() {
                    true => 0,
                    false => u64::from(op.bytes).div_ceil(PAGE_BYTES),
                },
            },
            (None, Action::Start(_, op)) if op.kind.is_write() => {
                Call::Write { pages, syncs: op.kind.is_durable_write() }
            }
            (None, Action::Start(_, op)) if op.kind.is_sync() => Call::Sync,
            (None, Action::Start(..) | Action::Sync(..)) => Call::Copy { pages },
        }
    }

    /// An operation of it is in flight.
    pub(super) fn submitted(&mut self) {
        self.outstanding += 1;
    }

    pub(super) fn completed(&mut self, id: OpId) {
        self.completed.push_back(id);
    }

    /// It has looked at one that has completed. A call returns all that completed until its return: an interrupt ends all
    /// bios of a request before the task that it wakes runs.
    pub(super) fn reaped(&mut self) {
        self.outstanding -= 1;
        if std::mem::take(&mut self.begins_reaping) {
            self.to_reap = self.completed.len().min(self.batch - 1);
        }
    }

    /// Operations that it has not seen complete.
    #[inline]
    pub(super) fn has_outstanding(&self) -> bool {
        self.outstanding > 0
    }

    /// All its jobs are.
    pub(super) fn is_done(&self) -> bool {
        self.jobs.iter().all(|job| job.done)
    }

    /// When one of its jobs wants to be asked again, in the phase's time.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.jobs.iter().filter_map(RunningJob::next_wakeup).min()
    }

    /// Its jobs offer nothing any more.
    pub(super) fn stop(&mut self) {
        for running in &mut self.jobs {
            running.job.stop();
        }
    }

    /// Asks its jobs for operations: for all that they offer now, or for one if each is waited for. `is_cut`: they are
    /// to end early.
    pub(super) fn ask_jobs(&mut self, since_start: Time, is_cut: bool) -> DoneJobs {
        let (mut one_is_done, mut stoppers_done) = (false, 0);
        let mut jobs = self.jobs.iter_mut().enumerate();
        while let Some((job, running)) = jobs.next()
            && self.offered.is_empty() | self.path.is_async()
        {
            if running.done {
                continue;
            }
            if is_cut {
                running.job.end_early(since_start);
            }
            loop {
                match running.job.next(since_start) {
                    JobStep::Io(op) => {
                        self.offered.push_back((job, op));
                        if !self.path.is_async() {
                            break;
                        }
                    }
                    JobStep::Done => {
                        running.done = true;
                        one_is_done = true;
                        stoppers_done += usize::from(running.stops);
                        break;
                    }
                    JobStep::WaitUntil(_) | JobStep::WaitForCompletion => break,
                }
            }
        }
        DoneJobs { one_is_done, stoppers_done }
    }

    pub(super) fn succeeded(&mut self, job: usize, since_start: Time, op: &Op) {
        if self.jobs[job].succeeded(since_start, op) {
            self.samples.want(since_start);
        }
    }

    /// The filesystem has no room for what it wrote to the file of that name.
    pub(super) fn found_full(&mut self, job: usize, since_start: Time, op: &Op, name: &str) {
        if self.jobs[job].failed(since_start, op, ENOSPC, name) {
            let what = "the filesystem is full, so a job ended early";
            self.notes.push(format!("{name}: {what}"));
        }
    }

    /// Nothing that the drive does.
    pub(super) fn refused(&mut self, job: usize, since_start: Time, op: &Op) {
        self.jobs[job].job.refused(since_start, op);
    }

    /// What it does next, in rounds as the engine's threads: it reaps what has completed by then, whose jobs offer anew, and
    /// submits what was offered. None: nothing is left of either.
    pub(super) fn take_action(&mut self) -> Option<Action> {
        if self.to_reap == 0
            && let Some((job, op)) = self.offered.pop_front()
        {
            self.to_submit = self.to_submit.saturating_sub(1);
            return Some(Action::Start(job, op));
        }
        if self.to_reap == 0 {
            self.to_reap = self.completed.len().min(self.batch);
            self.begins_reaping = self.to_reap > 0;
        }
        self.to_reap = self.to_reap.saturating_sub(1);
        self.completed.pop_front().map(Action::Reap)
    }

    /// Whether it has anything to reap or to submit.
    pub(super) fn has_actions(&self) -> bool {
        !self.offered.is_empty() || !self.completed.is_empty()
    }

    /// With how many operations it begins a call that submits all that its jobs have offered; None: it begins none.
    pub(super) fn begins_submission(&mut self) -> Option<usize> {
        if self.to_submit > 0 || self.to_reap > 0 || self.offered.is_empty() {
            return None;
        }
        self.to_submit = self.offered.len();
        self.begins_submitting = true;
        self.path.is_async().then_some(self.to_submit)
    }

    /// No call that submits operations is under way.
    pub(super) fn has_submitted(&self) -> bool {
        self.to_submit == 0
    }

    /// It polls, and something of it is in flight.
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
            self.samples.add(Sample { at: since_start, thread: self.used, process: all });
        }
    }

    /// `last`: what all tasks have used until the phase's end.
    pub(super) fn into_measured(self, last: Sample) -> GroupMeasured {
        GroupMeasured {
            jobs: self.jobs.into_iter().map(RunningJob::into_measured).collect(),
            notes: self.notes,
            samples: self.samples,
            last_sample: Sample { thread: self.used, ..last },
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
