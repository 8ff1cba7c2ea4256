//! The modelled machine as a whole: tasks on CPUs, files, the page cache, drives; one agenda of events.

mod bios;
mod cached;
mod cpus;
mod drive;
mod files;
mod interrupts;
mod mounts;
mod operations;
mod task;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use workload::assemble::GroupMeasured;
use workload::job::{Job, SpecError};
use workload::measure::{Sample, Samples, Usage};
use workload::rng::stream;
use workload::spec::JobSpec;

use crate::agenda::Agenda;
use crate::allocator::{Allocator, BLOCK_BYTES, Extent};
use crate::block::{
    Bio, Counts, Priority, QueueEvent, RequestQueue, SECTOR_BYTES, TaskId, TaskPlug,
};
use crate::cache::{Effects, FileId, PageCache};
use crate::completion::Counters;
use crate::device::Device;
use crate::nfs::DirectIo;
use crate::slab::Slab;
use crate::smp::Processors;
use crate::station::Broken;
use crate::time::Time;
pub(crate) use cpus::Simple;
pub use cpus::{
    CallCycles, CpuSpec, Cpus, Detailed, DetailedSpec, DmaSpec, DriveCpus, Interrupts, Tag,
};
pub use drive::Drive;
use files::Piece;
pub use files::{FileSpec, Place};
use mounts::Mounted;
use task::{Operation, RunningJob, State, Task};
pub use task::{Path, Progress};

/// Jobs that share a thread.
#[derive(Clone, Debug)]
pub struct GroupSpec {
    pub path: Path,
    /// The cgroup that it runs in; 0 is the root.
    pub cgroup: u16,
    pub priority: Priority,
    /// Where it may run, on detailed CPUs; None: where the drive of its first file has its applications, or anywhere.
    pub cpus: Option<Vec<u16>>,
    pub jobs: Vec<JobSpec>,
}

/// What starts together.
#[derive(Clone, Debug)]
pub struct PhaseSpec {
    pub groups: Vec<GroupSpec>,
    /// The machine's files that the jobs' numbers mean.
    pub files: Vec<FileId>,
    pub warm_up_ns: Time,
    pub interval_ns: Time,
    /// The first job that is done, or the first cgroup of which all jobs are, ends the measured part of all; what the
    /// others still have to write is written unmeasured.
    pub ends_with_first: bool,
    pub seed: u64,
}

/// A device, its queue, and the filesystem on it where files are `Place::Allocated`.
pub struct DriveParts {
    pub queue: RequestQueue,
    pub device: Box<dyn Device>,
    pub filesystem: Option<Box<dyn Allocator>>,
    /// The largest bio in which its files are written back.
    pub write_bio_sectors_max: u32,
    /// Its driver takes a request from the queue before it knows whether the device has room.
    pub takes_one_ahead: bool,
}

/// Tasks of the machine itself, such as flushers, have numbers from here on.
pub const KERNEL_TASKS: TaskId = 1 << 30;
/// Who syncs, and drops the page cache, between phases.
const HOUSEKEEPER: TaskId = KERNEL_TASKS + 1024;

pub struct World {
    now: Time,
    agenda: Agenda<Event>,
    cpus: Cpus,
    tasks: Vec<Task>,
    drives: Vec<Drive>,
    mounts: Vec<Mounted>,
    files: Vec<FileSpec>,
    allocators: Vec<Option<Box<dyn Allocator>>>,
    cache: Option<PageCache>,
    cache_called_at: Option<Time>,
    effects: Effects,
    operations: Slab<Operation>,
    /// Bios left of what the cache asked for, by its tag.
    cache_io: BTreeMap<u32, u32>,
    /// Bios that found no request, by task.
    waiting_bios: BTreeMap<TaskId, VecDeque<(usize, Bio)>>,
    /// What the running call submits is held back until its end: kernels from 2.6.39 on.
    task_plug: Option<TaskPlug>,
    /// Files of which something could not be written back for want of space: the next sync of each says so.
    full: BTreeSet<FileId>,
    phase: Phase,
    /// By all tasks of all phases.
    used: Usage,
    look_every_ns: Option<Time>,
    look_at: Option<Time>,
    housekeeper_woken: bool,
    // Kept between events, so that none is allocated for each.
    done: Vec<Bio>,
    may_retry: Vec<TaskId>,
    arrived: Vec<u32>,
    found: Vec<Piece>,
}

/// The phase under way.
#[derive(Debug, Default)]
struct Phase {
    /// Jobs count their time from here.
    start: Time,
    tasks_left: usize,
    files: Vec<FileId>,
    ends_with_first: bool,
    /// The first job is done, and that ends the measured part.
    cut: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// What one of the simple CPUs does has had its time.
    Cpu(u16),
    /// The detailed CPUs have something to do.
    Cpus,
    /// The drive's adapter has moved a request's data.
    Moved(u16),
    /// A CPU goes offline, or comes back.
    Online(u16, bool),
    Drive(u16),
    Mount(u16),
    Wake(TaskId),
    Cache,
    /// Who runs the world wants to look at it.
    Look,
}

/// What a phase came to.
#[derive(Debug)]
pub struct Results {
    /// By task, in the order of the phase's groups.
    pub groups: Vec<GroupMeasured>,
    /// By drive, of all phases so far.
    pub requests: Vec<Counts>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Impossible {
    #[error("job {name}: {error}")]
    Job { name: String, error: String },
    #[error(
        "buffered I/O, and the machine has no memory for a page cache; give it [memory], or say direct = true"
    )]
    NoCache,
}

/// Events between two looks at whether to go on.
const EVENTS_BETWEEN_QUESTIONS: u64 = 1 << 16;

impl World {
    /// `task_plug`: kernels from 2.6.39 on have one.
    pub fn new(
        cpus: impl Into<Cpus>,
        drives: Vec<DriveParts>,
        cache: Option<PageCache>,
        task_plug: Option<TaskPlug>,
    ) -> World {
        let (mut with_queue, mut allocators) = (Vec::new(), Vec::new());
        for parts in drives {
            let (drive, filesystem) = Drive::new(parts);
            with_queue.push(drive);
            allocators.push(filesystem);
        }
        World {
            now: 0,
            agenda: Agenda::new(),
            cpus: cpus.into(),
            tasks: Vec::new(),
            drives: with_queue,
            mounts: Vec::new(),
            files: Vec::new(),
            allocators,
            cache,
            cache_called_at: None,
            effects: Effects::default(),
            operations: Slab::new(),
            cache_io: BTreeMap::new(),
            waiting_bios: BTreeMap::new(),
            task_plug,
            full: BTreeSet::new(),
            phase: Phase::default(),
            used: Usage::default(),
            look_every_ns: None,
            look_at: None,
            housekeeper_woken: false,
            done: Vec::new(),
            may_retry: Vec::new(),
            arrived: Vec::new(),
            found: Vec::new(),
        }
    }

    /// The same with mounts.
    pub fn with_mounts(mut self, mounts: Vec<DirectIo>) -> World {
        self.mounts = mounts.into_iter().map(Mounted::new).collect();
        self
    }

    /// One more file, empty where the drive's filesystem allocates; its number. Read-ahead ends with its size.
    pub fn add_file(&mut self, file: FileSpec) -> FileId {
        let number = self.files.len() as FileId;
        if let Place::Allocated { directory } = file.place
            && let Some(allocator) = &mut self.allocators[file.drive]
        {
            allocator.create(number, directory);
        }
        if let Some(cache) = &mut self.cache {
            cache.set_size(number, file.size_bytes);
        }
        self.files.push(file);
        number
    }

    /// The file is to be at least so long.
    pub fn grow_file(&mut self, file: FileId, size_bytes: u64) {
        let spec = &mut self.files[file as usize];
        spec.size_bytes = spec.size_bytes.max(size_bytes);
        if let Some(cache) = &mut self.cache {
            cache.set_size(file, spec.size_bytes);
        }
    }

    pub fn file(&self, file: FileId) -> &FileSpec {
        &self.files[file as usize]
    }

    /// Where the file lies, in blocks of 4 KiB, as FIEMAP and bmap tell it.
    pub fn extents(&self, file: FileId) -> Vec<Extent> {
        let spec = &self.files[file as usize];
        match spec.place {
            Place::Allocated { .. } => match &self.allocators[spec.drive] {
                Some(allocator) => allocator.extents(file),
                None => Vec::new(),
            },
            Place::Contiguous(start) => vec![Extent {
                logical: 0,
                physical: start * SECTOR_BYTES / BLOCK_BYTES,
                blocks: spec.size_bytes.div_ceil(BLOCK_BYTES),
            }],
            Place::Mounted => Vec::new(),
        }
    }

    /// A phase: a task for each group, all of which start together when the world runs. What phases before it left in
    /// the cache, on the drives and in the queues is still there.
    pub fn begin_phase(&mut self, spec: &PhaseSpec) -> Result<(), Impossible> {
        let sizes: Vec<u64> = spec
            .files
            .iter()
            .map(|&file| self.files[file as usize].size_bytes)
            .collect();
        let tasks: Result<Vec<Task>, Impossible> = (0..)
            .zip(&spec.groups)
            .map(|(number, group)| self.task_of(number, group, spec, &sizes))
            .collect();
        self.tasks = tasks?;
        self.place_tasks(spec);
        for mount in &mut self.mounts {
            mount.reseed(spec.seed);
        }
        self.phase = Phase {
            start: self.now,
            tasks_left: self.tasks.len(),
            files: spec.files.clone(),
            ends_with_first: spec.ends_with_first,
            cut: false,
        };
        for number in 0..self.tasks.len() {
            self.agenda
                .put(self.phase.start, Event::Wake(number as TaskId));
        }
        Ok(())
    }

    fn task_of(
        &self,
        number: u64,
        group: &GroupSpec,
        phase: &PhaseSpec,
        sizes: &[u64],
    ) -> Result<Task, Impossible> {
        if group.path == Path::Buffered && self.cache.is_none() {
            return Err(Impossible::NoCache);
        }
        let jobs: Result<Vec<RunningJob>, Impossible> = group
            .jobs
            .iter()
            .map(|spec| {
                let job = Job::new(spec, sizes).map_err(|error: SpecError| Impossible::Job {
                    name: spec.name.clone(),
                    error: error.to_string(),
                })?;
                let writes = spec.read_share < 1.0;
                Ok(RunningJob::new(
                    job,
                    writes,
                    phase.warm_up_ns,
                    phase.interval_ns,
                ))
            })
            .collect();
        Ok(Task {
            path: group.path,
            group: group.cgroup,
            priority: group.priority,
            jobs: jobs?,
            state: State::Asleep,
            blocked: false,
            action: None,
            completed: VecDeque::new(),
            outstanding: 0,
            jitter: stream(phase.seed, number),
            used: Usage::default(),
            samples: Samples::new(phase.warm_up_ns, phase.interval_ns),
            notes: Vec::new(),
        })
    }

    /// From now on `run` asks that often, to the nanosecond, whether to go on, beside its own now and then. None: only then.
    pub fn look_every(&mut self, interval_ns: Option<Time>) {
        self.look_every_ns = interval_ns;
        self.look_at = None;
        self.look_again();
    }

    /// Runs until every task is done. `go_on` is asked now and then; false stops the jobs.
    pub fn run(&mut self, mut go_on: impl FnMut(&mut World) -> bool) {
        let mut stopped = false;
        for count in 0u64.. {
            if self.phase.tasks_left == 0 {
                return;
            }
            let Some((now, event)) = self.next_event() else {
                unreachable!("{} tasks wait for nothing", self.phase.tasks_left);
            };
            let looks = matches!(event, Event::Look) && self.look_at == Some(now);
            self.handle(now, event);
            let asks = looks || count % EVENTS_BETWEEN_QUESTIONS == 0;
            if asks && !stopped && !go_on(self) {
                stopped = true;
                for job in self.tasks.iter_mut().flat_map(|task| &mut task.jobs) {
                    job.stop();
                }
            }
        }
    }

    /// From here on the drives' queues tell their events.
    pub fn tap(&mut self) {
        for (number, drive) in (0..).zip(&mut self.drives) {
            drive.queue_mut().tap(number);
        }
    }

    pub fn untap(&mut self) {
        for drive in &mut self.drives {
            drive.queue_mut().untap();
        }
    }

    /// Appends what the drives' queues have told since the last time.
    pub fn take_events(&mut self, into: &mut Vec<QueueEvent>) {
        for drive in &mut self.drives {
            drive.queue_mut().take_events(into);
        }
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// Takes one of the detailed CPUs offline at that time, or brings it back. The last one stays online.
    pub fn plan_online(&mut self, at: Time, cpu: u16, is: bool) {
        self.agenda.put(at, Event::Online(cpu, is));
    }

    /// The detailed CPUs, with their times up to now; None: the machine has simple ones.
    pub fn processors(&mut self) -> Option<&Processors<Tag>> {
        match &mut self.cpus {
            Cpus::Simple(_) => None,
            Cpus::Detailed(cpus) => {
                cpus.reach(self.now);
                Some(cpus.processors())
            }
        }
    }

    /// By drive: bios and requests by where they were worked on; none if the CPUs are simple.
    pub fn completion_counters(&self) -> Vec<Counters> {
        match &self.cpus {
            Cpus::Simple(_) => Vec::new(),
            Cpus::Detailed(cpus) => (0..self.drives.len())
                .map(|drive| cpus.counters(drive))
                .collect(),
        }
    }

    /// Since the phase's start.
    pub fn elapsed_ns(&self) -> Time {
        self.now - self.phase.start
    }

    /// How far the phase's jobs have come together.
    pub fn progress(&self) -> Progress {
        let elapsed_ns = self.elapsed_ns();
        let jobs = self.tasks.iter().flat_map(|task| &task.jobs);
        jobs.map(|job| job.done_so_far(elapsed_ns))
            .reduce(|a, b| Progress {
                ops: a.ops + b.ops,
                bytes: a.bytes + b.bytes,
                errors: a.errors + b.errors,
                fraction: a.fraction.zip(b.fraction).map(|(a, b)| a.min(b)),
            })
            .unwrap_or_default()
    }

    /// Conservation and Little's law at every station.
    pub fn check(&self) -> Result<(), Broken> {
        for (number, drive) in self.drives.iter().enumerate() {
            drive.check(&format!("drive {number}"), self.now())?;
        }
        for mount in &self.mounts {
            mount.check(self.now())?;
        }
        match &self.cpus {
            Cpus::Simple(_) => Ok(()),
            Cpus::Detailed(cpus) => cpus.check(self.now()),
        }
    }

    /// What the phase came to; its tasks are gone and have closed their files.
    pub fn end_phase(&mut self) -> Results {
        for task in 0..self.tasks.len() {
            self.count_use(task as TaskId);
        }
        for &file in &self.phase.files {
            let spec = &self.files[file as usize];
            if let Place::Allocated { .. } = spec.place
                && let Some(allocator) = &mut self.allocators[spec.drive]
            {
                allocator.close(file);
            }
        }
        let last = Sample {
            at: self.elapsed_ns(),
            thread: Usage::default(),
            process: self.used,
        };
        Results {
            groups: std::mem::take(&mut self.tasks)
                .into_iter()
                .map(|task| task.into_measured(last))
                .collect(),
            requests: self
                .drives
                .iter()
                .map(|drive| drive.queue().counts())
                .collect(),
        }
    }

    /// What happens next; it is that time from here on.
    fn next_event(&mut self) -> Option<(Time, Event)> {
        let of_cpus = self.cpus.next_event();
        let (at, event) = match (of_cpus, self.agenda.next_at()) {
            (Some(at), other) if other.is_none_or(|other| at <= other) => (at, Event::Cpus),
            _ => self.agenda.take()?,
        };
        self.now = at;
        Some((at, event))
    }

    /// Anything is to come.
    fn has_events(&mut self) -> bool {
        !self.agenda.is_empty() || self.cpus.next_event().is_some()
    }

    fn look_again(&mut self) {
        let Some(interval_ns) = self.look_every_ns else {
            return;
        };
        let at = self.now + interval_ns;
        self.look_at = Some(at);
        self.agenda.put(at, Event::Look);
    }

    fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Look => {
                if self.look_at == Some(now) && self.has_events() {
                    self.look_again();
                }
            }
            Event::Cpu(cpu) => self.simple_cpu_done(now, cpu),
            Event::Cpus => self.run_cpus(now),
            Event::Moved(drive) => self.moved(now, usize::from(drive)),
            Event::Online(cpu, is) => self.set_online(now, cpu, is),
            Event::Drive(drive) => {
                if self.drives[usize::from(drive)].called_at == Some(now) {
                    self.drives[usize::from(drive)].called_at = None;
                }
                self.run_drive(now, usize::from(drive));
            }
            Event::Mount(mount) => self.run_mount(now, usize::from(mount)),
            Event::Wake(task) => self.wake(now, task),
            Event::Cache => {
                if self.cache_called_at == Some(now) {
                    self.cache_called_at = None;
                }
                self.with_cache(now, |cache, effects| cache.wake(now, effects));
            }
        }
    }
}
