//! CPUs in detail: calls of tasks are work for simulated processors, and drives interrupt them.

use super::call::{Call, CallContext};
use super::dma::Dma;
use super::outcome::{Continuation, Reminder, TimedReminder, Turn};
use super::runner::{LockNumber, Origin, RunnerNumber, WorkItem};
use super::spec::{CYCLES_MAX, CallCycles, DetailedSpec, DriveCpus};
use block_layer::completion::{CompletionStep, Completions, Counters, Outcome, RequestId};
use block_layer::scheduler::hooks::{HookLock, Hooks};
use block_layer::{Bio, QueueMap, Request, TaskId};
use events::SpecError;
use events::slab::Slab;
use events::smp::{
    Context, CpuSet, Distance, Done, Kind, ObjectId, Processors, Rank, SchedulerEvent, TaskNumber, TaskSpec, TaskUsage,
    Work,
};
use events::station::Violation;
use events::time::{SECOND, Time};

/// Processors with contexts, interrupts and messages, and the completions of the drives on them.
#[derive(Debug)]
pub(super) struct DetailedCpus {
    smp: Processors<Tag>,
    completions: Completions,
    calls: CallCycles,
    drives: Vec<DriveState>,
    /// By the phase's tasks.
    tasks: Vec<TaskNumber>,
    /// By their own numbers, ascending.
    runners: Vec<TaskNumber>,
    locks: Vec<ObjectId>,
    /// Whose work is what happens now.
    here: Option<u16>,
    /// What of the scheduler's cost was in the call that takes effect now.
    paid: PaidWork,
    /// Bios that another CPU puts into their queue: drive and bio.
    entering: Slab<(usize, Bio)>,
    /// Polled requests that the devices are done with, and whose tasks have not seen that yet.
    unseen: Vec<(TaskId, RequestId)>,
    /// What is done now, and how much of it has been followed.
    done: Vec<Done<Tag>>,
    followed: usize,
}

#[derive(Debug)]
struct DriveState {
    cpus: DriveCpus,
    /// Of the requests at the device, by their tags.
    sent: Vec<SentRequest>,
    dma: Option<Dma>,
    scheduler: HookCosts,
}

#[derive(Clone, Copy, Debug)]
struct SentRequest {
    request: RequestId,
    submitted_on: u16,
    sectors: u32,
    /// Who looks for its completion.
    polled_by: Option<TaskId>,
}

/// What a work item was.
#[derive(Clone, Copy, Debug)]
pub enum Tag {
    /// The task has a CPU.
    Runs(TaskId),
    /// Its call has had its time.
    Called(TaskId),
    /// It has looked for completions.
    Looked(TaskId),
    /// The same of a call that submits to a drive, whose scheduler has had its time too.
    Submits(TaskId),
    /// A runner's work item is done.
    WorkItem(Origin),
    /// A step on the way from an interrupt to a completed request is done.
    Completion(CompletionStep),
}

impl DetailedCpus {
    pub(super) fn new(spec: &DetailedSpec) -> Result<DetailedCpus, SpecError> {
        let mut smp = Processors::new(&spec.smp)?;
        let mut completions = Completions::new(spec.completion, &mut smp);
        for drive in &spec.drives {
            completions.add_queue(drive.affinity, drive.queue_map.clone())?;
        }
        let drives = spec.drives.iter().map(|cpus| DriveState {
            cpus: cpus.clone(),
            sent: Vec::new(),
            dma: cpus.dma.map(Dma::new),
            scheduler: HookCosts::new(&mut smp, cpus),
        });
        let drives = drives.collect();
        Ok(DetailedCpus {
            drives,
            smp,
            completions,
            calls: spec.calls,
            tasks: Vec::new(),
            runners: Vec::new(),
            locks: Vec::new(),
            here: None,
            paid: PaidWork::default(),
            entering: Slab::new(),
            unseen: Vec::new(),
            done: Vec::new(),
            followed: 0,
        })
    }

    pub(super) fn processors(&self) -> &Processors<Tag> {
        &self.smp
    }

    pub(super) fn counters(&self) -> Vec<Counters> {
        let drives = 0..self.drives.len() as u32;
        drives.map(|drive| self.completions.counters(drive)).collect()
    }

    pub(super) fn jitter(&self) -> f64 {
        self.calls.jitter
    }

    pub(super) fn next_event(&mut self) -> Option<Time> {
        self.smp.next_event()
    }

    pub(super) fn here(&self) -> Option<u16> {
        self.here
    }

    pub(super) fn application(&self, drive: usize) -> Option<u16> {
        self.drives[drive].cpus.application
    }

    pub(super) fn begin_phase(&mut self, tasks: impl Iterator<Item = (Option<CpuSet>, u16)>) {
        let smp = &mut self.smp;
        let added = tasks.map(|(allowed, last_cpu)| {
            smp.add_task(TaskSpec { rank: Rank::Normal, allowed, last_cpu, sleeps_for_io: false })
        });
        self.tasks = added.collect();
    }

    pub(super) fn advance(&mut self, now: Time) {
        self.smp.advance(now, &mut self.done);
    }

    pub(super) fn remind(&mut self, now: Time, reminder: Reminder) {
        match reminder {
            Reminder::Moved(drive) => self.moved(now, usize::from(drive)),
            Reminder::Worked(_) | Reminder::Chooses(_) | Reminder::Interrupt => {
                unreachable!("they know by themselves")
            }
        }
    }

    pub(super) fn follow(&mut self) -> Option<Continuation> {
        while let Some(&done) = self.done.get(self.followed) {
            self.followed += 1;
            let finished = self.follow_one(done);
            if finished.is_some() {
                return finished;
            }
        }
        self.here = None;
        self.done.clear();
        self.followed = 0;
        None
    }

    /// What follows happens on the CPU that is done with something.
    fn follow_one(&mut self, done: Done<Tag>) -> Option<Continuation> {
        let Done { at, cpu, tag } = done;
        self.here = Some(cpu);
        self.paid = PaidWork::default();
        match tag {
            Tag::Runs(task) => Some(Continuation::Next { cpu, turn: Turn::Task(task) }),
            Tag::Called(task) => Some(Continuation::Called { task, cpu }),
            Tag::Looked(task) => Some(Continuation::Looked { task }),
            Tag::WorkItem(origin) => Some(Continuation::WorkItem { origin, cpu }),
            Tag::Submits(task) => {
                self.paid = PaidWork { insertion: true, dispatch: true };
                Some(Continuation::Called { task, cpu })
            }
            Tag::Completion(tag) => {
                let step = Done { at, cpu, tag };
                self.completions.handle(&mut self.smp, step).map(|outcome| self.finished(at, outcome))
            }
        }
    }

    fn finished(&mut self, now: Time, outcome: Outcome) -> Continuation {
        match outcome {
            Outcome::Entered { token, .. } => {
                let id = self.entering.id(token);
                let (drive, bio) = self.entering.take(id);
                Continuation::Entered { drive, bio }
            }
            Outcome::Completed { queue, token, cpu } => {
                let drive = queue as usize;
                let scheduler = &self.drives[drive].scheduler;
                if let Some(work) = scheduler.work(cpu, scheduler.hooks.complete_cycles) {
                    self.smp.charge(now, cpu, work);
                }
                Continuation::Completed { drive, tag: token, cpu }
            }
        }
    }

    pub(super) fn wakes(&mut self, now: Time, task: TaskId) {
        let work = Work::of(0).tagged(Tag::Runs(task));
        let number = self.tasks[task as usize];
        self.smp.wake(now, number, self.here, work);
    }

    pub(super) fn sleeps_for_io(&mut self, task: TaskId, is: bool) {
        self.smp.sleeps_for_io(self.tasks[task as usize], is);
    }

    /// `drawn` determines this time's costs.
    pub(super) fn call(&mut self, now: Time, calling: CallContext, mut drawn: impl FnMut(u64) -> u64) {
        let CallContext { task, cpu, call, drive, .. } = calling;
        if let Call::Work { ns } = call {
            return self.spend(now, task, ns);
        }
        let number = self.tasks[task as usize];
        let is_within_call = matches!(call, Call::Reap { .. } | Call::Resume | Call::Retry { .. });
        if !is_within_call && self.calls.user_cycles > 0 {
            let cycles = drawn(u64::from(self.calls.user_cycles));
            let work = Work::of(cycles as u32).in_user_mode();
            self.smp.wake(now, number, None, work);
        }
        let cycles = drawn(self.calls.of(call));
        let scheduler = drive.map(|drive| &self.drives[drive].scheduler);
        let hooks = scheduler.and_then(|scheduler| scheduler.work(cpu, scheduler.hooks.submit_cycles()));
        match hooks {
            None => self.work(now, task, cycles),
            Some(hooks) => {
                self.smp.wake(now, number, None, Work::of(cycles as u32));
                self.smp.wake(now, number, None, hooks.tagged(Tag::Submits(task)));
            }
        }
    }

    pub(super) fn look(&mut self, now: Time, task: TaskId, until: Time) {
        let ns = u128::from(until.saturating_sub(now));
        let cycles = ns * u128::from(self.smp.spec().clock_hz) / u128::from(SECOND);
        let round = u128::from(self.calls.poll_cycles);
        let cycles = ((cycles / round + 1) * round).min(u128::from(CYCLES_MAX));
        let work = Work::of(cycles as u32).tagged(Tag::Looked(task));
        self.smp.wake(now, self.tasks[task as usize], None, work);
    }

    pub(super) fn complete_polled(&mut self, now: Time, task: TaskId) -> bool {
        let number = self.tasks[task as usize];
        let mut found = false;
        let mut at = 0;
        while let Some(&(by, request)) = self.unseen.get(at) {
            if by != task {
                at += 1;
                continue;
            }
            self.unseen.remove(at);
            let work = self.completions.polled(request);
            self.smp.wake(now, number, None, work);
            found = true;
        }
        if found {
            let again = Work::of(0).tagged(Tag::Looked(task));
            self.smp.wake(now, number, None, again);
        }
        found
    }

    fn spend(&mut self, now: Time, task: TaskId, ns: Time) {
        let clock_hz = u128::from(self.smp.spec().clock_hz);
        let cycles = u128::from(ns) * clock_hz / u128::from(SECOND);
        self.work(now, task, cycles as u64);
    }

    fn work(&mut self, now: Time, task: TaskId, mut cycles: u64) {
        let number = self.tasks[task as usize];
        while cycles > CYCLES_MAX {
            self.smp.wake(now, number, None, Work::of(CYCLES_MAX as u32));
            cycles -= CYCLES_MAX;
        }
        let work = Work::of(cycles as u32).tagged(Tag::Called(task));
        self.smp.wake(now, number, None, work);
    }

    pub(super) fn used(&self, task: TaskId) -> TaskUsage {
        self.smp.task_usage(self.tasks[task as usize])
    }

    pub(super) fn add_runner(&mut self, spec: TaskSpec) -> RunnerNumber {
        self.runners.push(self.smp.add_task(spec));
        self.runners.len() as RunnerNumber - 1
    }

    pub(super) fn add_lock(&mut self) -> LockNumber {
        self.locks.push(self.smp.add_object(Kind::Log, 1));
        self.locks.len() as LockNumber - 1
    }

    pub(super) fn give_runner(&mut self, now: Time, runner: RunnerNumber, by: Option<u16>, item: WorkItem) {
        let mut work = Work::of(item.cost.cycles(self.smp.spec().clock_hz));
        work = match item.context {
            Context::User => work.in_user_mode(),
            Context::KernelThread => work.of_kernel_thread(),
            _ => work,
        };
        if let Some((lock, cycles)) = item.lock {
            work = work.holding(self.locks[lock as usize], cycles);
        }
        if let Some(origin) = item.of {
            work = work.tagged(Tag::WorkItem(origin));
        }
        self.smp.wake(now, self.runners[runner as usize], by, work);
    }

    pub(super) fn runner_usage(&self, runner: RunnerNumber) -> TaskUsage {
        self.smp.task_usage(self.runners[runner as usize])
    }

    pub(super) fn used_by_all(&self) -> (Time, Time) {
        let of = |context| (0..self.smp.cpus()).map(|cpu| self.smp.usage(cpu).ns(context)).sum();
        (of(Context::User), of(Context::System))
    }

    pub(super) fn runner_of_task(&self, task: TaskNumber) -> Option<RunnerNumber> {
        let found = self.runners.binary_search(&task).ok()?;
        Some(found as RunnerNumber)
    }

    pub(super) fn tap(&mut self, is: bool) {
        match is {
            true => self.smp.tap(),
            false => self.smp.untap(),
        }
    }

    pub(super) fn take_scheduled(&mut self, into: &mut Vec<SchedulerEvent>) {
        self.smp.take_scheduled(into);
    }

    pub(super) fn enter(&mut self, now: Time, drive: usize, bio: Bio) -> Option<Bio> {
        // What no CPU submits, such as a flusher's, has no other CPU to be sent to.
        let Some(here) = self.here else {
            return Some(bio);
        };
        if !std::mem::take(&mut self.paid.insertion) {
            let scheduler = &self.drives[drive].scheduler;
            let cycles = scheduler.hooks.merge_cycles + scheduler.hooks.insert_cycles;
            if let Some(work) = scheduler.work(here, cycles) {
                self.smp.charge(now, here, work);
            }
        }
        let token = self.entering.put((drive, bio));
        let queue = drive as u32;
        let enters = self.completions.enter(&mut self.smp, now, queue, here, token.number());
        enters.then(|| self.entering.take(token).1)
    }

    /// The request goes to the device; the CPU that sends it touches it.
    pub(super) fn sent(&mut self, now: Time, drive: usize, tag: u32, request: &Request) {
        let submitted_on = request.cpu;
        let id = self.completions.begin(&mut self.smp, drive as u32, submitted_on, tag);
        if let Some(here) = self.here {
            let touching = self.completions.objects(id).into_iter().fold(Work::of(0), Work::touching);
            self.smp.charge(now, here, touching);
            if !std::mem::take(&mut self.paid.dispatch) {
                let scheduler = &self.drives[drive].scheduler;
                if let Some(work) = scheduler.work(here, scheduler.hooks.dispatch_cycles) {
                    self.smp.charge(now, here, work);
                }
            }
        }
        let sent = &mut self.drives[drive].sent;
        let entry = SentRequest {
            request: id,
            submitted_on,
            sectors: request.sectors,
            polled_by: request.polled.then_some(request.task),
        };
        match sent.get_mut(tag as usize) {
            Some(place) => *place = entry,
            None => {
                sent.resize(tag as usize + 1, entry);
            }
        }
    }

    /// Its adapter moves the request's data until the time that is returned; None: the interrupt is there.
    pub(super) fn arrived(&mut self, now: Time, drive: usize, tag: u32) -> TimedReminder {
        let state = &mut self.drives[drive];
        let sent = state.sent[tag as usize];
        let interrupts = state.cpus.interrupts.for_request(sent.submitted_on);
        if let Some(dma) = &mut state.dma {
            let distance = self.smp.spec().topology.distance(interrupts, sent.submitted_on);
            let near = distance != Some(Distance::Machine);
            let moved_at = dma.begin(now, tag, sent.sectors, near);
            return Some((moved_at, Reminder::Moved(drive as u16)));
        }
        self.interrupt(now, drive, tag);
        None
    }

    fn moved(&mut self, now: Time, drive: usize) {
        let dma = self.drives[drive].dma.as_mut().expect("it moves data");
        let tag = dma.end(now);
        self.interrupt(now, drive, tag);
    }

    pub(super) fn set_online(&mut self, now: Time, cpu: u16, is: bool) {
        if is {
            self.smp.bring_online(now, cpu);
        } else {
            self.smp.take_offline(now, cpu);
        }
    }

    /// Their times are up to date then.
    pub(super) fn reach(&mut self, now: Time) {
        self.smp.reach(now);
    }

    pub(super) fn check(&self, now: Time) -> Result<(), Violation> {
        for (number, drive) in self.drives.iter().enumerate() {
            if let Some(dma) = &drive.dma {
                dma.check(&format!("drive {number}'s transfers"), now)?;
            }
        }
        Ok(())
    }

    fn interrupt(&mut self, now: Time, drive: usize, tag: u32) {
        let state = &self.drives[drive];
        let sent = state.sent[tag as usize];
        if let Some(task) = sent.polled_by {
            return self.unseen.push((task, sent.request));
        }
        let cpu = state.cpus.interrupts.for_request(sent.submitted_on);
        self.completions.interrupt(&mut self.smp, now, cpu, sent.request);
    }
}

/// What a scheduler of blk-mq costs, with its locks among the objects that CPUs share.
#[derive(Debug)]
struct HookCosts {
    hooks: Hooks,
    queue_map: QueueMap,
    /// One, or by hardware queue.
    locks: Vec<ObjectId>,
    /// What is shared beside the locks of hardware queues.
    shared: Option<ObjectId>,
}

/// What is done of the scheduler's work.
#[derive(Clone, Copy, Debug, Default)]
struct PaidWork {
    insertion: bool,
    dispatch: bool,
}

impl HookCosts {
    fn new(smp: &mut Processors<Tag>, cpus: &DriveCpus) -> HookCosts {
        let mut locks = Vec::new();
        let mut shared = None;
        match cpus.hooks.lock {
            _ if cpus.hooks == Hooks::NONE => {}
            HookLock::Drive => locks.push(smp.add_object(Kind::Queue, cpus.hooks.lines)),
            HookLock::HardwareQueue => {
                let queues = 0..cpus.queue_map.queues();
                locks.extend(queues.map(|_| smp.add_object(Kind::Queue, 1)));
                shared = Some(smp.add_object(Kind::Queue, cpus.hooks.lines));
            }
        }
        HookCosts { hooks: cpus.hooks, queue_map: cpus.queue_map.clone(), locks, shared }
    }

    /// This many cycles of its hooks on that CPU, under the lock; None: it has nothing to do.
    fn work(&self, cpu: u16, cycles: u32) -> Option<Work<Tag>> {
        let lock = match self.locks.len() {
            0 | 1 => self.locks.first(),
            _ => self.locks.get(self.queue_map.queue_of(cpu)),
        };
        let &lock = lock.filter(|_| cycles > 0)?;
        let work = Work::of(cycles).holding(lock, cycles);
        Some(match self.shared {
            Some(shared) => work.touching(shared),
            None => work,
        })
    }
}

impl From<CompletionStep> for Tag {
    fn from(step: CompletionStep) -> Tag {
        Tag::Completion(step)
    }
}
