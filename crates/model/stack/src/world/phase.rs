//! Phases: groups of jobs become tasks, run together, and are measured.

use base::usage::{Sample, Usage};
use workload::assemble::GroupMeasured;
use workload::job::{Job, JobError};
use workload::phase::StopCondition;

use super::clock::Event;
use super::phase_spec::{GroupSpec, Path, PhaseSpec};
use super::task::{RunningJob, Task};
use super::{Progress, World};
use block_layer::Counts;
use devices::flash::{FlashSpace, ProgrammedUnits};
use events::time::Time;
use memory::cache::FileId;

/// What runs on a machine at once, beside the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Jobs that read and write.
    Load,
    /// Threads that make files.
    Metadata,
    /// Processes that sort.
    Sort,
}

impl Part {
    /// For errors.
    pub fn in_words(self) -> &'static str {
        match self {
            Part::Load => "reads and writes",
            Part::Metadata => "threads that make files",
            Part::Sort => "processes that sort",
        }
    }
}

/// The current phase.
#[derive(Debug, Default)]
pub(super) struct Phase {
    /// Jobs count their time from here.
    start: Time,
    tasks_left: usize,
    files: Vec<FileId>,
    ends_with_first: bool,
    /// Jobs whose end stops the others and that are not done yet.
    to_stop: usize,
    /// The part whose end stops the others.
    stopper: Option<Part>,
    /// The first job is done, and that ends the measured part.
    cut: bool,
}

impl Phase {
    pub(super) fn since(&self, now: Time) -> Time {
        now - self.start
    }

    /// On the machine's clock, of one on the jobs'.
    pub(super) fn time_of(&self, since_start: Time) -> Time {
        self.start.saturating_add(since_start)
    }

    /// The machine's file that the jobs' number means.
    pub(super) fn file(&self, number: u32) -> FileId {
        self.files[number as usize]
    }

    pub(super) fn tasks_left(&self) -> usize {
        self.tasks_left
    }

    /// All tasks are done.
    pub(super) fn is_over(&self) -> bool {
        self.tasks_left == 0
    }

    pub(super) fn task_is_done(&mut self) {
        self.tasks_left -= 1;
    }

    /// The first job is done, or all of the first cgroup.
    pub(super) fn first_is_done(&mut self) {
        self.cut |= self.ends_with_first;
    }

    /// The measured part has ended before the others are done.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// This many more jobs whose end stops the others are done: whether these are as many as it takes.
    pub(super) fn stoppers_are_done(&mut self, count: usize) -> bool {
        let waited = self.to_stop > 0 && count > 0;
        self.to_stop = self.to_stop.saturating_sub(count);
        waited && self.to_stop == 0
    }

    /// The end of that part stops the others; None: no part's does.
    pub(super) fn stop_with(&mut self, part: Option<Part>) {
        self.stopper = part;
    }

    pub(super) fn stopper(&self) -> Option<Part> {
        self.stopper
    }
}

/// What a phase came to.
#[derive(Debug)]
pub struct Results {
    /// By task, in the order of the phase's groups.
    pub groups: Vec<GroupMeasured>,
    /// By drive, of all phases until now.
    pub requests: Vec<Counts>,
}

/// Why a phase can't run on this machine.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PhaseError {
    /// A job's specification is wrong.
    #[error("job {name}: {error}")]
    Job {
        /// The job's name.
        name: String,
        /// Which key, and why.
        error: String,
    },
    #[error("buffered I/O, and the machine has no memory for a page cache; give it [memory], or say direct = true")]
    /// Buffered I/O on a machine without a page cache.
    NoCache,
}

impl World {
    /// A phase: a task for each group, all of which start together when the world runs. What phases before it left in
    /// the cache, on the drives and in the queues is still there.
    pub fn begin_phase(&mut self, spec: &PhaseSpec) -> Result<(), PhaseError> {
        let sizes: Vec<u64> = spec.files.iter().map(|&file| self.vfs.file(file).size_bytes).collect();
        let tasks: Result<Vec<Task>, PhaseError> =
            (0..).zip(&spec.groups).map(|(number, group)| self.task_of(number, group, spec, &sizes)).collect();
        self.tasks.begin(tasks?);
        self.place_tasks(spec);
        self.vfs.reseed_mounts(spec.seed);
        self.phase = Phase {
            start: self.clock.now(),
            tasks_left: self.tasks.numbers().len(),
            files: spec.files.clone(),
            ends_with_first: spec.ends_with_first,
            stopper: None,
            to_stop: spec.stops_with.as_ref().map_or(0, StopCondition::count),
            cut: false,
        };
        self.clock.progressed(self.clock.now());
        for number in self.tasks.numbers() {
            self.clock.put(self.phase.start, Event::Wake(number));
        }
        Ok(())
    }

    fn task_of(&self, number: u64, group: &GroupSpec, phase: &PhaseSpec, sizes: &[u64]) -> Result<Task, PhaseError> {
        if group.path == Path::Buffered && !self.vfs.has_cache() {
            return Err(PhaseError::NoCache);
        }
        let jobs: Result<Vec<RunningJob>, PhaseError> = group
            .jobs
            .iter()
            .map(|spec| {
                let job = Job::new(spec, sizes)
                    .map_err(|error: JobError| PhaseError::Job { name: spec.name.clone(), error: error.to_string() })?;
                Ok(RunningJob::new(job, spec, phase))
            })
            .collect();
        let polls = self.polled_drive(group, phase);
        Ok(Task::new(phase, number, group, jobs?, polls))
    }

    /// What the phase came to; its tasks are gone and have closed their files.
    pub fn end_phase(&mut self) -> Results {
        for task in self.tasks.numbers() {
            self.count_use(task);
        }
        for file in self.phase.files.clone() {
            let spec = self.vfs.file(file);
            if spec.is_allocated() {
                self.with_allocator(spec.drive, |allocator| allocator.close(file));
            }
        }
        let last = Sample { at: self.elapsed_ns(), thread: Usage::default(), process: self.tasks.used_by_all() };
        Results {
            groups: self.tasks.end().into_iter().map(|task| task.into_measured(last)).collect(),
            requests: self.io.drives().map(|drive| drive.queue().counts()).collect(),
        }
    }

    /// By the flash of all drives, since the start.
    pub fn programmed(&mut self) -> ProgrammedUnits {
        let now = self.clock.now();
        let all = self.io.drives_mut().map(|drive| drive.programmed(now));
        all.fold(ProgrammedUnits::default(), |sum, one| sum + one)
    }

    /// Of the flash of all drives, now.
    pub fn flash_space(&mut self) -> FlashSpace {
        let now = self.clock.now();
        let all = self.io.drives_mut().map(|drive| drive.flash_space(now));
        all.fold(FlashSpace::default(), |sum, one| sum + one)
    }

    /// Since the phase's start.
    pub fn elapsed_ns(&self) -> Time {
        self.clock.now() - self.phase.start
    }

    /// How far the phase's jobs have come together.
    pub fn progress(&self) -> Progress {
        let elapsed_ns = self.elapsed_ns();
        let jobs = self.tasks.iter().flat_map(Task::jobs);
        // Who is stopped by others is as far as they are.
        let stops_some = jobs.clone().any(RunningJob::stops);
        jobs.map(|job| Progress {
            fraction: match stops_some && !job.stops() {
                true => Some(1.0),
                false => job.progress(elapsed_ns),
            },
            ..job.done_so_far()
        })
        .reduce(|a, b| Progress {
            ops: a.ops + b.ops,
            bytes: a.bytes + b.bytes,
            errors: a.errors + b.errors,
            fraction: a.fraction.zip(b.fraction).map(|(a, b)| a.min(b)),
        })
        .unwrap_or_default()
    }
}
