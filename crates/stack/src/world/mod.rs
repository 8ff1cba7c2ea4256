//! The simulated machine as a whole: tasks on CPUs, files, the page cache, drives; one event queue.

mod bios;
mod cached;
mod cpus;
mod drive;
mod files;
mod interrupts;
mod mounts;
mod on_drive;
mod operations;
mod phase;
mod polling;
mod standstill;
mod swapping;
mod task;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use workload::usage::Usage;

use crate::component::Component;
use block_layer::completion::Counters;
use block_layer::{Bio, KERNEL_TASKS, QueueEvent, RequestQueue, TaskId, TaskPlug};
pub use cached::FileReads;
pub(crate) use cpus::CALL_NS_MAX;
pub use cpus::{
    CallCycles, CpuSpec, Cpus, Detailed, DetailedSpec, DmaSpec, DriveCpus, Interrupts, Origin, Tag,
};
use devices::Device;
pub use drive::Drive;
use events::event_queue::EventQueue;
use events::slab::Slab;
use events::smp::{Processors, SchedulerEvent};
use events::station::Violation;
use events::time::Time;
use files::Piece;
pub use files::{FileLayout, FileSpec};
use filesystems::actor::Timer;
use filesystems::allocator::Allocator;
use memory::cache::{Effects, FileId, PageCache};
use mounts::Mounted;
use nfs::DirectIo;
use on_drive::OnDrive;
use phase::Phase;
pub use phase::{GroupSpec, Part, PhaseError, PhaseSpec, Results};
pub use polling::{PollDelay, PollRules};
pub use swapping::SwapArea;
use swapping::Swapping;
use task::{Operation, Task};
pub use task::{Path, Progress};

/// A device, its queue, and the filesystem on it where files are `FileLayout::Allocated`.
pub struct DriveParts {
    /// The request queue with its scheduler.
    pub queue: RequestQueue,
    /// What serves the queue's requests.
    pub device: Box<dyn Device>,
    /// Where files go; None: the drive has no filesystem.
    pub filesystem: Option<Box<dyn Allocator>>,
    /// The largest bio in which its files are written back.
    pub write_bio_sectors_max: u32,
    /// Its driver takes a request from the queue before it knows whether the device has room.
    pub peek: bool,
    /// Whether tasks can poll for its completions, and how; None: it always interrupts.
    pub polling: Option<PollRules>,
}

/// Who syncs, and drops the page cache, between phases.
const HOUSEKEEPER: TaskId = KERNEL_TASKS + 1024;

/// The machine with everything on it.
pub struct World {
    now: Time,
    events: EventQueue<Event>,
    cpus: Cpus,
    tasks: Vec<Task>,
    drives: Vec<Drive>,
    mounts: Vec<Mounted>,
    files: Vec<FileSpec>,
    allocators: Vec<Option<Box<dyn Allocator>>>,
    /// By drive.
    filesystems: BTreeMap<usize, OnDrive>,
    /// Processes that sort, of the last phase that had some.
    swapping: Option<Swapping>,
    cache: Option<PageCache>,
    cache_called_at: Option<Time>,
    effects: Effects,
    operations: Slab<Operation>,
    /// Bios left of what the cache asked for, by its tag.
    cache_io: BTreeMap<u32, u32>,
    /// Bios that found no request, by task.
    waiting_bios: BTreeMap<TaskId, VecDeque<(usize, Bio)>>,
    /// The same that a ring's task has handed to workers, by drive and task: the task itself goes on.
    handed_over: BTreeMap<(usize, TaskId), VecDeque<Bio>>,
    /// Workers that wait for the requests of a ring, at most.
    ring_workers: u16,
    /// What the running call submits is held back until its end: kernels from 2.6.39 on.
    task_plug: Option<TaskPlug>,
    direct_writes_are_sync: bool,
    file_reads: FileReads,
    /// fsync asks whether the drive's cache forgets.
    looks_at_caches: bool,
    /// Tasks whose fsync has only to return: the drive's cache is on the medium.
    flushed: BTreeSet<TaskId>,
    /// Files of which something could not be written back for want of space: the next sync of each says so.
    full: BTreeSet<FileId>,
    phase: Phase,
    /// The parts that have been used since the machine was made.
    touched: BTreeSet<Component>,
    /// By all tasks of all phases.
    used: Usage,
    look_every_ns: Option<Time>,
    look_at: Option<Time>,
    housekeeper_woken: bool,
    /// When some I/O last ended.
    progressed_at: Time,
    // Kept between events, so that none is allocated for each.
    done: Vec<Bio>,
    may_retry: Vec<TaskId>,
    arrived: Vec<u32>,
    found: Vec<Piece>,
    scheduled: Vec<SchedulerEvent>,
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
    /// What the filesystem of the drive has asked to be told then.
    Filesystem(u16, Timer),
    /// For a task that sorts, in the phase of that number.
    Alarm(u16, TaskId),
    Wake(TaskId),
    Cache,
    /// Who runs the world wants to look at it.
    Look,
}

/// Workers of a ring for each CPU: for I/O that ends (`io_init_wq_offload`, `io_wq_create` of 5.x).
const WORKERS_PER_CPU: u16 = 4;
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
        let cpus = cpus.into();
        let ring_workers = WORKERS_PER_CPU * cpus.count();
        let (mut with_queue, mut allocators) = (Vec::new(), Vec::new());
        for parts in drives {
            let (drive, filesystem) = Drive::new(parts);
            with_queue.push(drive);
            allocators.push(filesystem);
        }
        World {
            now: 0,
            events: EventQueue::new(),
            cpus,
            tasks: Vec::new(),
            drives: with_queue,
            mounts: Vec::new(),
            files: Vec::new(),
            allocators,
            filesystems: BTreeMap::new(),
            swapping: None,
            cache,
            cache_called_at: None,
            effects: Effects::default(),
            operations: Slab::new(),
            cache_io: BTreeMap::new(),
            waiting_bios: BTreeMap::new(),
            handed_over: BTreeMap::new(),
            ring_workers,
            task_plug,
            direct_writes_are_sync: true,
            file_reads: FileReads::LATEST,
            looks_at_caches: false,
            flushed: BTreeSet::new(),
            full: BTreeSet::new(),
            phase: Phase::default(),
            touched: BTreeSet::new(),
            used: Usage::default(),
            look_every_ns: None,
            look_at: None,
            housekeeper_woken: false,
            progressed_at: 0,
            done: Vec::new(),
            may_retry: Vec::new(),
            arrived: Vec::new(),
            found: Vec::new(),
            scheduled: Vec::new(),
        }
    }

    /// Whether somebody is known to wait for writes past the page cache: kernels from 2.6.11 on.
    pub fn with_direct_writes(mut self, are_sync: bool) -> World {
        self.direct_writes_are_sync = are_sync;
        self
    }

    /// How the page cache's reads become bios, and in what pieces they end.
    pub fn with_file_reads(mut self, file_reads: FileReads) -> World {
        self.file_reads = file_reads;
        self
    }

    /// By drive: whether fsync waits until the device's cache is on the medium.
    pub fn with_flushes(mut self, flushes: impl IntoIterator<Item = bool>) -> World {
        self.looks_at_caches = true;
        for (drive, flushes) in self.drives.iter_mut().zip(flushes) {
            drive.set_flushes(flushes);
        }
        self
    }

    /// The same with mounts.
    pub fn with_mounts(mut self, mounts: Vec<DirectIo>) -> World {
        self.mounts = mounts.into_iter().map(Mounted::new).collect();
        self
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
            if self.phase.tasks_left == 0 && !self.makes_files() && !self.sorts() {
                return;
            }
            let Some((now, event)) = self.next_event() else {
                unreachable!("{} tasks wait for nothing", self.phase.tasks_left);
            };
            let looks = matches!(event, Event::Look) && self.look_at == Some(now);
            self.handle(now, event);
            self.look_at_stopper();
            let asks = looks || count % EVENTS_BETWEEN_QUESTIONS == 0;
            if asks && !stopped && !go_on(self) {
                stopped = true;
                self.stop_all();
            }
        }
    }

    /// The end of that part of what was begun stops the others; None: each goes on to its own end.
    pub fn stop_others_with(&mut self, part: Option<Part>) {
        self.phase.stopper = part;
    }

    #[inline]
    fn look_at_stopper(&mut self) {
        if let Some(part) = self.phase.stopper
            && !self.is_active(part)
        {
            self.phase.stopper = None;
            self.stop_all();
        }
    }

    fn is_active(&self, part: Part) -> bool {
        match part {
            Part::Load => self.phase.tasks_left > 0,
            Part::Metadata => self.makes_files(),
            Part::Sort => self.sorts(),
        }
    }

    /// Nobody begins anything any more.
    fn stop_all(&mut self) {
        self.stop_metadata();
        self.stop_sorting();
        self.stop_jobs();
    }

    /// From here on the drives' queues emit their events.
    pub fn tap(&mut self) {
        for (number, drive) in (0..).zip(&mut self.drives) {
            drive.queue_mut().tap(number);
        }
    }

    /// Stops recording the block events of all drives.
    pub fn untap(&mut self) {
        for drive in &mut self.drives {
            drive.queue_mut().untap();
        }
    }

    /// Appends what the drives' queues have emitted since the last time.
    pub fn take_events(&mut self, into: &mut Vec<QueueEvent>) {
        for drive in &mut self.drives {
            drive.queue_mut().take_events(into);
        }
    }

    /// Simulated time since the machine was made.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Takes one of the detailed CPUs offline at that time, or brings it back. The last one stays online.
    pub fn plan_online(&mut self, at: Time, cpu: u16, is: bool) {
        self.events.put(at, Event::Online(cpu, is));
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

    /// The parts of the machine that phases have used so far: whatever else its file says made no difference.
    pub fn touched(&self) -> &BTreeSet<Component> {
        &self.touched
    }

    /// Conservation and Little's law at every station.
    pub fn check(&self) -> Result<(), Violation> {
        for (number, drive) in self.drives.iter().enumerate() {
            drive.check(&format!("drive {number}"), self.now())?;
        }
        for mount in &self.mounts {
            mount.check(self.now())?;
        }
        for on in self.filesystems.values() {
            on.check()?;
        }
        if let Some(swapping) = &self.swapping {
            swapping.check()?;
        }
        match &self.cpus {
            Cpus::Simple(_) => Ok(()),
            Cpus::Detailed(cpus) => cpus.check(self.now()),
        }
    }

    /// What happens next; it is that time from here on.
    fn next_event(&mut self) -> Option<(Time, Event)> {
        let of_cpus = self.cpus.next_event();
        let (at, event) = match (of_cpus, self.events.next_at()) {
            (Some(at), other) if other.is_none_or(|other| at <= other) => (at, Event::Cpus),
            _ => self.events.take()?,
        };
        self.check_standstill(at);
        self.look_at_switches();
        self.now = at;
        Some((at, event))
    }

    /// Anything is to come.
    fn has_events(&mut self) -> bool {
        !self.events.is_empty() || self.cpus.next_event().is_some()
    }

    fn look_again(&mut self) {
        let Some(interval_ns) = self.look_every_ns else {
            return;
        };
        let at = self.now + interval_ns;
        self.look_at = Some(at);
        self.events.put(at, Event::Look);
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
            Event::Alarm(phase, task) => self.sorting_alarm(now, phase, task),
            Event::Filesystem(drive, timer) => {
                self.ring_filesystem(now, usize::from(drive), timer);
            }
            Event::Wake(task) => {
                self.progressed(now);
                self.wake(now, task);
            }
            Event::Cache => {
                if self.cache_called_at == Some(now) {
                    self.cache_called_at = None;
                }
                self.with_cache(now, |cache, effects| cache.wake(now, effects));
            }
        }
    }
}
