//! The machine's CPUs in one of two forms: simply as many as tasks can run at once, or in detail, as processors with
//! contexts, interrupts and messages. Their users do not see which.

mod call;
mod deadline_queue;
mod detailed_cpus;
mod dma;
mod outcome;
mod run_queue;
mod runner;
mod simple_cpus;
mod spec;
mod time_queue;
mod timer_interrupts;

use base::usage::Usage;
use block_layer::completion::Counters;
use block_layer::scheduler::hooks::Hooks;
use block_layer::{Bio, Request, TaskId};
pub(crate) use call::CALL_NS_MAX;
pub(super) use call::{Call, CallContext, Switch, UsageAccounts};
use detailed_cpus::DetailedCpus;
pub use detailed_cpus::Tag;
pub use dma::DmaSpec;
use events::SpecError;
use events::smp::{CpuSet, Processors, Rank, SchedulerEvent, TaskSpec, TaskUsage};
use events::station::Violation;
use events::time::Time;
use kernels::scheduling::TaskOrder;
pub(super) use outcome::{Continuation, Reminder, TimedReminder, Turn};
pub(crate) use runner::{Cost, LockNumber, RUNNERS, WorkItem};
pub use runner::{Origin, RunnerNumber};
pub use simple_cpus::CpuSpec;
use simple_cpus::SimpleCpus;
pub use spec::{CallCycles, DetailedSpec, DriveCpus, Interrupts};
pub use timer_interrupts::TimerInterruptSpec;
use timer_interrupts::TimerInterrupts;

/// The CPUs of a machine.
#[derive(Debug)]
pub struct Cpus(Form);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a machine has one, and simple CPUs are asked at every call")]
enum Form {
    /// A number of CPUs that tasks take turns on.
    Simple(SimpleCpus),
    /// Processors with contexts, interrupts and messages.
    Detailed(Box<DetailedCpus>),
}

/// As of a kernel of today.
#[cfg(test)]
impl From<CpuSpec> for Cpus {
    fn from(spec: CpuSpec) -> Cpus {
        Cpus::simple(spec, TaskOrder::ByTimeHad)
    }
}

/// What they are.
impl Cpus {
    /// A number of CPUs, and how tasks share them.
    pub fn simple(spec: CpuSpec, order: TaskOrder) -> Cpus {
        Cpus(Form::Simple(SimpleCpus::new(spec, order)))
    }

    /// Processors with contexts, interrupts and messages. The error names a key of `smp`, or of the drive's completions.
    pub fn detailed(spec: &DetailedSpec) -> Result<Cpus, SpecError> {
        let detailed = DetailedCpus::new(spec)?;
        Ok(Cpus(Form::Detailed(Box::new(detailed))))
    }

    /// What the schedulers of the drives cost the submitting task, in the order of the drives. Detailed CPUs have them
    /// already.
    pub(super) fn serve(&mut self, schedulers: impl Iterator<Item = Hooks>) {
        if let Form::Simple(cpus) = &mut self.0 {
            cpus.serve(schedulers);
        }
    }

    /// Timer's interrupts, whose time counts, complete requests; None: nothing of the kind.
    pub(super) fn timer_interrupts(&self) -> Option<&TimerInterruptSpec> {
        match &self.0 {
            Form::Simple(cpus) => cpus.timer_interrupts(),
            Form::Detailed(_) => None,
        }
    }

    /// What goes before all tasks has the one CPU until then.
    pub(super) fn occupy(&mut self, now: Time, until: Time) {
        if let Form::Simple(cpus) = &mut self.0 {
            cpus.occupy(now, until);
        }
    }

    /// A completion of a timer's interrupt has called the thread that runs its queue.
    pub(super) fn called_thread(&mut self) {
        if let Some(interrupts) = self.interrupts_mut() {
            interrupts.called_thread();
        }
    }

    /// A timer's interrupt has completed something of the task's.
    pub(super) fn completed_for(&mut self, task: TaskId) {
        if let Some(interrupts) = self.interrupts_mut() {
            interrupts.completed_for(task);
        }
    }

    fn interrupts_mut(&mut self) -> Option<&mut TimerInterrupts> {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.interrupts_mut(),
            Form::Detailed(_) => None,
        }
    }

    /// The call that the task on that CPU is in has submitted all that it submits.
    pub(super) fn has_submitted(&mut self, now: Time, cpu: u16) {
        if let Form::Simple(cpus) = &mut self.0 {
            cpus.has_submitted(now, cpu);
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u16 {
        match &self.0 {
            Form::Simple(cpus) => cpus.count(),
            Form::Detailed(cpus) => cpus.processors().cpus(),
        }
    }

    /// Where the drive's tasks run that have no place of their own; None: anywhere.
    pub(super) fn application(&self, drive: usize) -> Option<u16> {
        match &self.0 {
            Form::Simple(_) => None,
            Form::Detailed(cpus) => cpus.application(drive),
        }
    }

    /// Times, counters and topology, up to now; None: simple CPUs keep none.
    pub(super) fn processors(&mut self, now: Time) -> Option<&Processors<Tag>> {
        match &mut self.0 {
            Form::Simple(_) => None,
            Form::Detailed(cpus) => {
                cpus.reach(now);
                Some(cpus.processors())
            }
        }
    }

    /// Takes a CPU offline, or brings it back. Simple ones are only counted: all stay.
    pub(super) fn set_online(&mut self, now: Time, cpu: u16, is: bool) {
        if let Form::Detailed(cpus) = &mut self.0 {
            cpus.set_online(now, cpu, is);
        }
    }

    pub(super) fn check(&self, now: Time) -> Result<(), Violation> {
        match &self.0 {
            Form::Simple(_) => Ok(()),
            Form::Detailed(cpus) => cpus.check(now),
        }
    }
}

/// What they do by and by.
impl Cpus {
    /// When they have something to do by themselves.
    pub(super) fn next_event(&mut self) -> Option<Time> {
        match &mut self.0 {
            Form::Simple(_) => None,
            Form::Detailed(cpus) => cpus.next_event(),
        }
    }

    /// It is the time of their next event: what that comes to is to be followed.
    pub(super) fn advance(&mut self, now: Time) {
        match &mut self.0 {
            Form::Simple(_) => unreachable!("they do nothing by themselves"),
            Form::Detailed(cpus) => cpus.advance(now),
        }
    }

    /// It is the time for which they asked: the result is to be followed, or they ask for a later one.
    pub(super) fn remind(&mut self, now: Time, reminder: Reminder) -> TimedReminder {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.remind(now, reminder),
            Form::Detailed(cpus) => {
                cpus.remind(now, reminder);
                None
            }
        }
    }

    /// The next of what they are done with, until there is none.
    pub(super) fn follow(&mut self, now: Time) -> Option<Continuation> {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.follow(now),
            Form::Detailed(cpus) => cpus.follow(),
        }
    }

    /// On whose work follows what happens now; None: on no CPU's.
    pub(super) fn here(&self) -> Option<u16> {
        match &self.0 {
            Form::Simple(_) => None,
            Form::Detailed(cpus) => cpus.here(),
        }
    }
}

/// Tasks of loads.
impl Cpus {
    /// The tasks of a phase, each with the CPUs that it may use (None: any) and the one where it begins.
    pub(super) fn begin_phase(&mut self, tasks: impl Iterator<Item = (Option<CpuSet>, u16)>, depths: &[u32]) {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.begin_phase(depths),
            Form::Detailed(cpus) => cpus.begin_phase(tasks),
        }
    }

    /// The task wants a CPU.
    pub(super) fn wants(&mut self, now: Time, task: TaskId) -> TimedReminder {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.wants(now, task),
            Form::Detailed(cpus) => {
                cpus.wakes(now, task);
                None
            }
        }
    }

    /// The task, which has a CPU, makes a call; `drawn` determines this time's cost with that jitter.
    pub(super) fn call(
        &mut self,
        now: Time,
        calling: CallContext,
        used: UsageAccounts<'_>,
        mut drawn: impl FnMut(u64, f64) -> u64,
    ) -> TimedReminder {
        match &mut self.0 {
            Form::Simple(cpus) => Some(cpus.call(now, calling, used, drawn)),
            Form::Detailed(cpus) => {
                let jitter = cpus.jitter();
                cpus.call(now, calling, |cost| drawn(cost, jitter));
                None
            }
        }
    }

    /// The task could continue: who does.
    pub(super) fn goes_on(&mut self, now: Time, cpu: u16, task: TaskId) -> Turn {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.goes_on(now, cpu),
            Form::Detailed(_) => Turn::Task(task),
        }
    }

    /// The task goes to sleep or is done: who has its CPU at once.
    pub(super) fn leaves(&mut self, now: Time, cpu: u16, task: TaskId, for_io: bool) -> Option<Turn> {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.leaves(now, cpu),
            Form::Detailed(cpus) => {
                cpus.sleeps_for_io(task, for_io);
                None
            }
        }
    }

    /// The task looks for completions until then: on detailed CPUs again and again, on simple ones a completion ends it.
    pub(super) fn look(&mut self, now: Time, task: TaskId, until: Time) {
        if let Form::Detailed(cpus) = &mut self.0 {
            cpus.look(now, task, until);
        }
    }

    /// The task has looked, and completes what it has found. False: nothing.
    pub(super) fn complete_polled(&mut self, now: Time, task: TaskId) -> bool {
        match &mut self.0 {
            Form::Simple(_) => false,
            Form::Detailed(cpus) => cpus.complete_polled(now, task),
        }
    }

    /// The task is done with looking, for which it has had a CPU for this long. Detailed ones count for themselves.
    pub(super) fn looked_for(&self, ns: Time, used: UsageAccounts<'_>) {
        if let Form::Simple(_) = self.0 {
            used.system(ns);
        }
    }

    /// The task has lost its CPU. Detailed ones count for themselves.
    pub(super) fn switched(&self, switch: Switch, used: UsageAccounts<'_>) {
        if let Form::Simple(_) = self.0 {
            used.switched(switch);
        }
    }

    /// Brings up to now what the task has used; simple CPUs have reported everything.
    pub(super) fn count_use(&self, task: TaskId, used: UsageAccounts<'_>) {
        if let Form::Detailed(cpus) = &self.0 {
            used.reach(cpus.used(task));
        }
    }
}

/// Requests of drives.
impl Cpus {
    /// The bio comes back if it enters its queue here and now; else `Continuation::Entered` brings it.
    pub(super) fn enter(&mut self, now: Time, drive: usize, bio: Bio) -> Option<Bio> {
        match &mut self.0 {
            Form::Simple(_) => Some(bio),
            Form::Detailed(cpus) => cpus.enter(now, drive, bio),
        }
    }

    /// The request goes to the device.
    pub(super) fn sent(&mut self, now: Time, drive: usize, tag: u32, request: &Request) {
        if let Form::Detailed(cpus) = &mut self.0 {
            cpus.sent(now, drive, tag, request);
        }
    }

    /// Whether they have something to do with a request before it is completed.
    pub(super) fn complete_requests(&self) -> bool {
        match &self.0 {
            Form::Simple(cpus) => cpus.timer_interrupts().is_some(),
            Form::Detailed(_) => true,
        }
    }

    /// The device is done with the request of that tag, and `Continuation::Completed` will report that it is completed.
    pub(super) fn arrived(&mut self, now: Time, drive: usize, tag: u32) -> TimedReminder {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.arrived(now, drive, tag),
            Form::Detailed(cpus) => cpus.arrived(now, drive, tag),
        }
    }

    /// By drive: bios and requests by where they were worked on; none if they are not counted.
    pub(super) fn completion_counters(&self) -> Vec<Counters> {
        match &self.0 {
            Form::Simple(_) => Vec::new(),
            Form::Detailed(cpus) => cpus.counters(),
        }
    }
}

/// Runners.
impl Cpus {
    /// A runner that sleeps. Simple CPUs are all alike: it may run on any.
    pub(super) fn add_runner(&mut self, spec: TaskSpec) -> RunnerNumber {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.add_runner(spec.rank),
            Form::Detailed(cpus) => cpus.add_runner(spec),
        }
    }

    /// How long a kernel thread that goes on has a CPU; None: detailed CPUs do not count it.
    pub(super) fn resume_ns(&self) -> Option<Time> {
        match &self.0 {
            Form::Simple(cpus) => Some(cpus.resume_ns()),
            Form::Detailed(_) => None,
        }
    }

    /// The same on simple CPUs.
    pub(super) fn add_simple_runner(&mut self) -> RunnerNumber {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.add_runner(Rank::Normal),
            Form::Detailed(_) => unreachable!("asked of simple CPUs alone"),
        }
    }

    /// A spinning lock for work items.
    pub(super) fn add_lock(&mut self) -> LockNumber {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.add_lock(),
            Form::Detailed(cpus) => cpus.add_lock(),
        }
    }

    /// One more item for the runner, which wakes if it sleeps. `by`: the CPU that does so.
    pub(super) fn give(&mut self, now: Time, runner: RunnerNumber, by: Option<u16>, item: WorkItem) -> TimedReminder {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.give_runner(now, runner, item),
            Form::Detailed(cpus) => {
                cpus.give_runner(now, runner, by, item);
                None
            }
        }
    }

    /// The CPU time of the runner until now.
    pub(super) fn runner_usage(&self, runner: RunnerNumber) -> TaskUsage {
        match &self.0 {
            Form::Simple(cpus) => cpus.runner_usage(runner),
            Form::Detailed(cpus) => cpus.runner_usage(runner),
        }
    }

    /// In user mode and in the kernel, of all CPUs until now; `tasks`: what those of loads have used.
    pub(super) fn used_by_all(&mut self, now: Time, tasks: Usage) -> (Time, Time) {
        match &mut self.0 {
            Form::Simple(cpus) => cpus.used_by_all(tasks),
            Form::Detailed(cpus) => {
                cpus.reach(now);
                cpus.used_by_all()
            }
        }
    }

    /// From now on, or no more, switches are kept for `take_scheduled`.
    pub(super) fn tap(&mut self, is: bool) {
        if let Form::Detailed(cpus) = &mut self.0 {
            cpus.tap(is);
        }
    }

    /// Appends who has left a CPU for whom since the last time.
    pub(super) fn take_scheduled(&mut self, into: &mut Vec<SchedulerEvent>) {
        if let Form::Detailed(cpus) = &mut self.0 {
            cpus.take_scheduled(into);
        }
    }

    /// Which runner a processors' task is; None: a load's.
    pub(super) fn runner_of_task(&self, task: events::smp::TaskNumber) -> Option<RunnerNumber> {
        match &self.0 {
            Form::Simple(_) => None,
            Form::Detailed(cpus) => cpus.runner_of_task(task),
        }
    }

    /// The runner's usage, with its switches, if `take_scheduled` reports none.
    pub(super) fn untold_usage(&self, runner: RunnerNumber) -> Option<TaskUsage> {
        match &self.0 {
            Form::Simple(cpus) => Some(cpus.runner_usage(runner)),
            Form::Detailed(_) => None,
        }
    }
}
