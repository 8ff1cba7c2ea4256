//! The modelled machine as a whole: tasks on CPUs, files, the page cache, drives; one agenda of events.

mod cpu;
mod drive;
mod files;
mod task;

use std::collections::{BTreeMap, VecDeque};

use workload::job::{Job, Next, Op, OpKind, SpecError};
use workload::rng::stream;
use workload::spec::JobSpec;
use workload::timeline::Interval;

use crate::agenda::Agenda;
use crate::allocator::{Allocator, BLOCK_BYTES};
use crate::block::{Bio, Counts, Direction, Priority, RequestQueue, Submitted, TaskId};
use crate::cache::{Cache, Effects, FileId, Io, Outcome, PAGE_BYTES};
use crate::device::Device;
use crate::slab::Slab;
use crate::station::Broken;
use crate::time::Time;
pub use cpu::CpuSpec;
use cpu::Cpus;
use drive::Drive;
pub use files::{FileSpec, Place};
use files::{Piece, pieces};
pub use task::Path;
use task::{Action, OpId, Operation, RunningJob, State, Task};

/// Jobs that share a thread.
#[derive(Clone, Debug)]
pub struct GroupSpec {
    pub name: String,
    pub path: Path,
    /// The cgroup that it runs in; 0 is the root.
    pub cgroup: u16,
    pub jobs: Vec<JobSpec>,
}

/// A device, its queue, and the filesystem on it where files are `Place::Allocated`.
pub struct DriveParts {
    pub queue: RequestQueue,
    pub device: Box<dyn Device>,
    pub filesystem: Option<Box<dyn Allocator>>,
}

/// The largest bio that direct I/O and the page cache submit.
const BIO_SECTORS_MAX: u32 = 2048;

/// Tasks of the machine itself, such as flushers, have numbers from here on.
pub const KERNEL_TASKS: TaskId = 1 << 30;

pub struct World {
    agenda: Agenda<Event>,
    cpu_spec: CpuSpec,
    cpus: Cpus,
    tasks: Vec<Task>,
    drives: Vec<Drive>,
    files: Vec<FileSpec>,
    allocators: Vec<Option<Box<dyn Allocator>>>,
    cache: Option<Box<dyn Cache>>,
    cache_called_at: Option<Time>,
    effects: Effects,
    operations: Slab<Operation>,
    /// Bios left of what the cache asked for, by its tag.
    cache_io: BTreeMap<u32, u32>,
    /// Bios that found no request, by task.
    waiting_bios: BTreeMap<TaskId, VecDeque<(usize, Bio)>>,
    tasks_left: usize,
    /// Jobs count their time from here.
    phase_start: Time,
    // Kept between events, so that none is allocated for each.
    done: Vec<Bio>,
    may_retry: Vec<TaskId>,
    found: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// What the CPU does has had its time.
    Cpu(u16),
    Drive(u16),
    Wake(TaskId),
    Cache,
}

/// What bios are for: the high bit of their tag says whether of the page cache.
const OF_CACHE: u32 = 1 << 31;

/// What a job did.
#[derive(Clone, Debug)]
pub struct JobResult {
    pub group: usize,
    pub name: String,
    pub finished_ns: Time,
    pub ops: u64,
    pub bytes: u64,
    pub intervals: Vec<Interval>,
}

#[derive(Clone, Debug)]
pub struct Results {
    pub elapsed_ns: Time,
    pub jobs: Vec<JobResult>,
    /// Of all phases so far.
    pub cpu_busy_ns: u64,
    /// By drive, of all phases so far.
    pub requests: Vec<Counts>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Impossible {
    #[error("job {name}: {error}")]
    Job { name: String, error: String },
    #[error("group {name}: buffered I/O, and the machine has no page cache")]
    NoCache { name: String },
}

impl World {
    pub fn new(
        cpu_spec: CpuSpec,
        drives: Vec<DriveParts>,
        files: Vec<FileSpec>,
        cache: Option<Box<dyn Cache>>,
    ) -> World {
        let (mut with_queue, mut allocators) = (Vec::new(), Vec::new());
        for parts in drives {
            with_queue.push(Drive::new(parts.queue, parts.device));
            allocators.push(parts.filesystem);
        }
        World {
            agenda: Agenda::new(),
            cpus: Cpus::new(&cpu_spec),
            cpu_spec,
            tasks: Vec::new(),
            drives: with_queue,
            files,
            allocators,
            cache,
            cache_called_at: None,
            effects: Effects::default(),
            operations: Slab::new(),
            cache_io: BTreeMap::new(),
            waiting_bios: BTreeMap::new(),
            tasks_left: 0,
            phase_start: 0,
            done: Vec::new(),
            may_retry: Vec::new(),
            found: Vec::new(),
        }
    }

    /// One more file; its number.
    pub fn add_file(&mut self, file: FileSpec) -> FileId {
        self.files.push(file);
        (self.files.len() - 1) as FileId
    }

    /// A phase: a task for each group, all of which start together when the world runs. What phases before it left in
    /// the cache, on the drives and in the queues is still there.
    pub fn begin_phase(
        &mut self,
        groups: &[GroupSpec],
        warm_up_ns: Time,
        interval_ns: Time,
        seed: u64,
    ) -> Result<(), Impossible> {
        self.phase_start = self.agenda.now();
        if let Some(cache) = &mut self.cache {
            for (file, spec) in (0..).zip(&self.files) {
                cache.set_size(file, spec.size_bytes);
            }
        }
        let sizes: Vec<u64> = self.files.iter().map(|file| file.size_bytes).collect();
        for group in groups {
            if group.path == Path::Buffered && self.cache.is_none() {
                let name = group.name.clone();
                return Err(Impossible::NoCache { name });
            }
            let jobs: Result<Vec<RunningJob>, Impossible> = group
                .jobs
                .iter()
                .map(|spec| {
                    let job =
                        Job::new(spec, &sizes).map_err(|error: SpecError| Impossible::Job {
                            name: spec.name.clone(),
                            error: error.to_string(),
                        })?;
                    Ok(RunningJob::new(job, warm_up_ns, interval_ns))
                })
                .collect();
            let number = self.tasks.len() as TaskId;
            self.tasks.push(Task {
                name: group.name.clone(),
                path: group.path,
                group: group.cgroup,
                jobs: jobs?,
                state: State::Asleep,
                action: None,
                completed: VecDeque::new(),
                jitter: stream(seed, u64::from(number)),
                cpu_ns: 0,
                sleeps: 0,
            });
            self.tasks_left += 1;
            self.agenda.put(self.phase_start, Event::Wake(number));
        }
        Ok(())
    }

    /// Runs until every task is done. `go_on` is asked now and then, with the simulated time; false stops the jobs.
    pub fn run(&mut self, mut go_on: impl FnMut(&World) -> bool) {
        let mut stopped = false;
        for count in 0u64.. {
            if self.tasks_left == 0 {
                return;
            }
            let Some((now, event)) = self.agenda.take() else {
                unreachable!("{} tasks wait for nothing", self.tasks_left);
            };
            self.handle(now, event);
            if count % EVENTS_BETWEEN_QUESTIONS == 0 && !stopped && !go_on(self) {
                stopped = true;
                for job in self.tasks.iter_mut().flat_map(|task| &mut task.jobs) {
                    job.job.stop();
                }
            }
        }
    }

    pub fn now(&self) -> Time {
        self.agenda.now()
    }

    /// Operations and bytes that have completed, for showing progress.
    pub fn completed(&self) -> (u64, u64) {
        let jobs = || self.tasks.iter().flat_map(|task| &task.jobs);
        (
            jobs().map(|job| job.ops).sum(),
            jobs().map(|job| job.bytes).sum(),
        )
    }

    /// Conservation and Little's law at every station.
    pub fn check(&self) -> Result<(), Broken> {
        for (number, drive) in self.drives.iter().enumerate() {
            drive.check(&format!("drive {number}"), self.now())?;
        }
        Ok(())
    }

    /// What the phase came to; its tasks are gone.
    pub fn end_phase(&mut self) -> Results {
        Results {
            elapsed_ns: self.agenda.now() - self.phase_start,
            cpu_busy_ns: self.cpus.busy_ns(),
            requests: self
                .drives
                .iter()
                .map(|drive| drive.queue().counts())
                .collect(),
            jobs: std::mem::take(&mut self.tasks)
                .into_iter()
                .enumerate()
                .flat_map(|(group, task)| {
                    let name = task.name;
                    task.jobs.into_iter().map(move |job| {
                        let (ops, bytes) = (job.ops, job.bytes);
                        let (finished_ns, intervals) = job.into_intervals();
                        JobResult {
                            group,
                            name: name.clone(),
                            finished_ns,
                            ops,
                            bytes,
                            intervals,
                        }
                    })
                })
                .collect(),
        }
    }

    fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Cpu(cpu) => self.cpu_done(now, cpu),
            Event::Drive(drive) => {
                if self.drives[usize::from(drive)].called_at == Some(now) {
                    self.drives[usize::from(drive)].called_at = None;
                }
                self.run_drive(now, usize::from(drive));
            }
            Event::Wake(task) => self.wake(now, task),
            Event::Cache => {
                if self.cache_called_at == Some(now) {
                    self.cache_called_at = None;
                }
                self.with_cache(now, |cache, effects| cache.wake(now, effects));
            }
        }
    }

    // Tasks and CPUs.

    fn wake(&mut self, now: Time, number: TaskId) {
        if number >= KERNEL_TASKS || self.tasks[number as usize].state != State::Asleep {
            return;
        }
        match self.cpus.wants(now, number) {
            Some(cpu) => self.run_task(now, cpu, number),
            None => self.tasks[number as usize].state = State::Ready,
        }
    }

    /// The task has a CPU: what does it do next?
    fn run_task(&mut self, now: Time, cpu: u16, number: TaskId) {
        let task = &mut self.tasks[number as usize];
        task.state = State::Running(cpu);
        // An operation that had to wait for the cache is tried again.
        if task.action.is_none() {
            task.action = next_action(now - self.phase_start, task);
        }
        match task.action {
            Some(action) => {
                let cost = cost_of(&self.cpu_spec, task.path, action);
                let cost = task.drawn(cost, self.cpu_spec.jitter);
                task.cpu_ns += cost;
                self.cpus.used(cost);
                self.agenda.put(now + cost, Event::Cpu(cpu));
            }
            None => self.sleep(now, cpu, number),
        }
    }

    /// Nothing to do: until a completion, a time, or for good.
    fn sleep(&mut self, now: Time, cpu: u16, number: TaskId) {
        let task = &mut self.tasks[number as usize];
        if task.jobs.iter().all(|job| job.done) {
            task.state = State::Gone;
            self.tasks_left -= 1;
            for drive in &mut self.drives {
                drive.exited(now, number);
            }
        } else {
            task.state = State::Asleep;
            task.sleeps += 1;
            let at = task
                .jobs
                .iter()
                .filter(|job| !job.done)
                .filter_map(|job| job.job.next_wakeup())
                .min();
            if let Some(at) = at {
                self.agenda.put(self.phase_start + at, Event::Wake(number));
            }
        }
        self.leave_cpu(now, cpu);
    }

    fn leave_cpu(&mut self, now: Time, cpu: u16) {
        if let Some(next) = self.cpus.leaves(now, cpu) {
            self.run_task(now, cpu, next);
        }
    }

    fn cpu_done(&mut self, now: Time, cpu: u16) {
        let number = self.cpus.on(cpu);
        let task = &mut self.tasks[number as usize];
        let action = task.action.take().expect("the CPU did something");
        let asleep = match action {
            Action::Reap(id) => {
                let operation = self.operations.take(id);
                task.jobs[operation.job].succeeded(now - self.phase_start, &operation.op);
                false
            }
            Action::Start(job, op) => self.start(now, number, job, op),
        };
        if asleep || self.waiting_bios.contains_key(&number) {
            let task = &mut self.tasks[number as usize];
            task.state = State::Asleep;
            task.sleeps += 1;
            self.leave_cpu(now, cpu);
            return;
        }
        let next = self.cpus.goes_on(now, cpu);
        if next != number {
            self.tasks[number as usize].state = State::Ready;
        }
        self.run_task(now, cpu, next);
    }

    // Operations.

    /// True: the task sleeps until it is woken.
    fn start(&mut self, now: Time, number: TaskId, job: usize, op: Op) -> bool {
        if self.tasks[number as usize].path == Path::Buffered {
            return self.start_buffered(now, number, job, op);
        }
        if self.cache.is_some()
            && !op.kind.is_sync()
            && self.start_beside_cache(now, number, job, op)
        {
            return true;
        }
        let mut found = std::mem::take(&mut self.found);
        self.pieces_of(op.file, op.offset, u64::from(op.bytes), &mut found);
        let id = self.operations.put(Operation {
            task: number,
            job,
            op,
            bios_left: found.len() as u32,
        });
        let direction = direction_of(op.kind);
        let drive = self.files[op.file as usize].drive;
        for piece in found.drain(..) {
            let bio = self.bio(now, number, direction, true, piece, id.number());
            self.submit(now, drive, bio);
        }
        self.found = found;
        if self.operations[id].bios_left == 0 {
            // A sync past the cache, or a hole: nothing to wait for.
            self.complete_operation(now, id);
        }
        self.run_drive(now, drive);
        self.tasks[number as usize].blocks(op.kind)
            && self.tasks[number as usize].completed.is_empty()
    }

    fn start_buffered(&mut self, now: Time, number: TaskId, job: usize, op: Op) -> bool {
        let (file, offset, bytes) = (op.file, op.offset, u64::from(op.bytes));
        if op.kind == OpKind::Write {
            self.allocate(number, &op);
        }
        let outcome = self.with_cache(now, |cache, effects| match op.kind {
            OpKind::Read => cache.read(now, number, file, offset, bytes, effects),
            OpKind::Write => cache.write(now, number, file, offset, bytes, effects),
            OpKind::Fsync | OpKind::Fdatasync => cache.fsync(now, number, file, effects),
        });
        match outcome {
            Outcome::Done => {
                let since = now - self.phase_start;
                self.tasks[number as usize].jobs[job].succeeded(since, &op);
                false
            }
            Outcome::Wait => {
                let drive = self.files[file as usize].drive;
                self.drives[drive].unplug();
                self.run_drive(now, drive);
                // The same call again, when it is woken.
                self.tasks[number as usize].action = Some(Action::Start(job, op));
                true
            }
        }
    }

    /// What the cache has of the range is on the drive before I/O goes past it. True: the task waits for that.
    fn start_beside_cache(&mut self, now: Time, number: TaskId, job: usize, op: Op) -> bool {
        let (file, offset, bytes) = (op.file, op.offset, u64::from(op.bytes));
        let outcome = self.with_cache(now, |cache, effects| {
            cache.direct(now, number, file, offset, bytes, effects)
        });
        if outcome == Outcome::Wait {
            self.tasks[number as usize].action = Some(Action::Start(job, op));
        }
        outcome == Outcome::Wait
    }

    /// What write(2) gives a place at once.
    fn allocate(&mut self, task: TaskId, op: &Op) {
        let file = &self.files[op.file as usize];
        if let Some(allocator) = &mut self.allocators[file.drive]
            && matches!(file.place, Place::Allocated)
            && allocator.allocates_at_write()
        {
            let first = op.offset / BLOCK_BYTES;
            let end = (op.offset + u64::from(op.bytes)).div_ceil(BLOCK_BYTES);
            // A full filesystem is seen before a run: files are sized to fit.
            let _full = allocator.allocate(task, op.file, first, end - first);
        }
    }

    fn complete_operation(&mut self, now: Time, id: OpId) {
        let number = self.operations[id].task;
        self.tasks[number as usize].completed.push_back(id);
        self.wake(now, number);
    }

    // Drives.

    fn pieces_of(&self, file: u32, offset: u64, bytes: u64, found: &mut Vec<Piece>) {
        let spec = &self.files[file as usize];
        let allocator = self.allocators[spec.drive].as_deref();
        pieces(spec, file, allocator, offset, bytes, BIO_SECTORS_MAX, found);
    }

    fn bio(
        &self,
        now: Time,
        task: TaskId,
        direction: Direction,
        sync: bool,
        piece: Piece,
        tag: u32,
    ) -> Bio {
        let owner = self.tasks.get(task as usize);
        let cpu = match owner.map(|task| task.state) {
            Some(State::Running(cpu)) => cpu,
            _ => 0,
        };
        Bio {
            direction,
            sync,
            metadata: false,
            no_idle: false,
            start: piece.start,
            sectors: piece.sectors,
            segments: piece.sectors.div_ceil((PAGE_BYTES / 512) as u32) as u16,
            task,
            group: owner.map_or(0, |task| task.group),
            priority: Priority::default(),
            cpu,
            submitted_at: now,
            tag,
            next: None,
        }
    }

    fn submit(&mut self, now: Time, drive: usize, bio: Bio) {
        let task = bio.task;
        if let Some(waiting) = self.waiting_bios.get_mut(&task) {
            waiting.push_back((drive, bio));
        } else if self.drives[drive].submit(now, bio.clone()) == Submitted::MustWait {
            self.waiting_bios
                .insert(task, VecDeque::from([(drive, bio)]));
        }
    }

    /// The task may have a request now.
    fn retry(&mut self, now: Time, task: TaskId) {
        let Some(mut waiting) = self.waiting_bios.remove(&task) else {
            return;
        };
        while let Some((drive, mut bio)) = waiting.pop_front() {
            bio.submitted_at = now;
            if self.drives[drive].submit(now, bio.clone()) == Submitted::MustWait {
                waiting.push_front((drive, bio));
                self.waiting_bios.insert(task, waiting);
                return;
            }
        }
        let free_to_go_on = self
            .tasks
            .get(task as usize)
            .is_some_and(|task| task.path == Path::DirectAsync);
        if free_to_go_on {
            self.wake(now, task);
        }
    }

    fn run_drive(&mut self, now: Time, number: usize) {
        let (mut done, mut may_retry) = (
            std::mem::take(&mut self.done),
            std::mem::take(&mut self.may_retry),
        );
        self.drives[number].run(now, &mut done, &mut may_retry);
        let drive = &mut self.drives[number];
        if let Some(at) = drive.next_event()
            && drive.called_at.is_none_or(|called| at < called)
        {
            drive.called_at = Some(at.max(now));
            self.agenda.put(at, Event::Drive(number as u16));
        }
        for bio in done.drain(..) {
            self.bio_done(now, &bio);
        }
        self.tell_congestion(now, number);
        let retried = !may_retry.is_empty();
        for task in may_retry.drain(..) {
            self.retry(now, task);
        }
        self.done = done;
        self.may_retry = may_retry;
        if retried {
            self.run_drive(now, number);
        }
    }

    /// Flushers hold back while a queue is congested.
    fn tell_congestion(&mut self, now: Time, number: usize) {
        if self.cache.is_none() {
            return;
        }
        for direction in [Direction::Read, Direction::Write] {
            if let Some(is) = self.drives[number].turned_congested(direction) {
                self.with_cache(now, |cache, effects| {
                    cache.congested(now, direction, is, effects)
                });
            }
        }
    }

    fn bio_done(&mut self, now: Time, bio: &Bio) {
        if bio.tag & OF_CACHE == 0 {
            let id = self.operations.id(bio.tag);
            let operation = &mut self.operations[id];
            operation.bios_left -= 1;
            if operation.bios_left == 0 {
                self.complete_operation(now, id);
            }
            return;
        }
        let tag = bio.tag & !OF_CACHE;
        let left = self.cache_io.get_mut(&tag).expect("the cache asked for it");
        *left -= 1;
        if *left == 0 {
            self.cache_io.remove(&tag);
            self.with_cache(now, |cache, effects| cache.completed(now, tag, effects));
        }
    }

    // The page cache.

    /// Calls the cache, then does what it asks for.
    fn with_cache<T>(
        &mut self,
        now: Time,
        call: impl FnOnce(&mut dyn Cache, &mut Effects) -> T,
    ) -> T {
        let mut effects = std::mem::take(&mut self.effects);
        let cache = self.cache.as_deref_mut().expect("buffered I/O has a cache");
        let result = call(cache, &mut effects);
        let next = cache.next_wakeup();
        if let Some(at) = next
            && self.cache_called_at.is_none_or(|called| at < called)
        {
            self.cache_called_at = Some(at.max(now));
            self.agenda.put(at, Event::Cache);
        }
        let (mut wanted, woken) = (
            std::mem::take(&mut effects.io),
            std::mem::take(&mut effects.woken),
        );
        self.effects = effects;
        for io in wanted.drain(..) {
            self.start_cache_io(now, &io);
        }
        for task in woken {
            self.wake(now, task);
        }
        result
    }

    fn start_cache_io(&mut self, now: Time, io: &Io) {
        let drive = self.files[io.file as usize].drive;
        if io.direction == Direction::Write
            && let Some(allocator) = &mut self.allocators[drive]
            && !allocator.allocates_at_write()
        {
            let _full = allocator.allocate(io.task, io.file, io.page, u64::from(io.pages));
        }
        let mut found = std::mem::take(&mut self.found);
        let (offset, bytes) = (io.page * PAGE_BYTES, u64::from(io.pages) * PAGE_BYTES);
        self.pieces_of(io.file, offset, bytes, &mut found);
        self.cache_io.insert(io.tag, found.len() as u32);
        for piece in found.drain(..) {
            let bio = self.bio(
                now,
                io.task,
                io.direction,
                io.sync,
                piece,
                io.tag | OF_CACHE,
            );
            self.submit(now, drive, bio);
        }
        self.found = found;
        self.tell_congestion(now, drive);
        self.agenda.put(now, Event::Drive(drive as u16));
        if self.cache_io.get(&io.tag) == Some(&0) {
            self.cache_io.remove(&io.tag);
            self.with_cache(now, |cache, effects| cache.completed(now, io.tag, effects));
        }
    }
}

const EVENTS_BETWEEN_QUESTIONS: u64 = 1 << 16;

fn next_action(now: Time, task: &mut Task) -> Option<Action> {
    if let Some(id) = task.completed.pop_front() {
        return Some(Action::Reap(id));
    }
    for (number, running) in task.jobs.iter_mut().enumerate() {
        if running.done {
            continue;
        }
        match running.job.next(now) {
            Next::Io(op) => return Some(Action::Start(number, op)),
            Next::Done => running.done = true,
            Next::WaitUntil(_) | Next::WaitForCompletion => {}
        }
    }
    None
}

fn cost_of(spec: &CpuSpec, path: Path, action: Action) -> Time {
    match action {
        Action::Reap(_) => spec.completion_ns,
        Action::Start(_, op) if path == Path::Buffered => {
            spec.call_ns + spec.page_copy_ns * u64::from(op.bytes).div_ceil(PAGE_BYTES)
        }
        Action::Start(..) => spec.call_ns,
    }
}

fn direction_of(kind: OpKind) -> Direction {
    match kind {
        OpKind::Write => Direction::Write,
        OpKind::Read | OpKind::Fsync | OpKind::Fdatasync => Direction::Read,
    }
}

#[cfg(test)]
mod tests;
