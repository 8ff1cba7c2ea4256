//! Processors, simply: tasks that want one wait in line, and keep it until they sleep or their time slice is over.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;

use super::call::{CALL_NS_MAX, Call, CallContext, UsageAccounts};
use super::outcome::{Continuation, Reminder, TimedReminder, Turn};
use super::run_queue::RunQueue;
use super::runner::{Cost, LockNumber, Origin, RUNNERS, RunnerNumber, WorkItem, runner_of};
use super::time_queue::StartSpec;
use super::timer_interrupts::{InterruptStep, TimerInterruptSpec, TimerInterrupts};
use base::usage::Usage;
use block_layer::TaskId;
use block_layer::scheduler::hooks::{HookLock, Hooks};
use events::smp::{Context, Rank, TaskUsage};
use events::time::Time;
use kernels::scheduling::TaskOrder;
use memory::cache::FileId;

/// CPUs as a number, and what calls cost on them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuSpec {
    /// Tasks that run at once.
    #[schemars(range(min = 1, max = 1024))]
    pub count: u16,
    /// A task that has had its CPU for this long gives it to one that waits.
    #[schemars(range(min = 1, max = CALL_NS_MAX))]
    pub time_slice_ns: Time,
    /// Of a system call that submits I/O, or finds that there is nothing to do.
    #[schemars(range(max = CALL_NS_MAX))]
    pub call_ns: Time,
    /// Of a system call that copies pages of the page cache, without what it copies. Left out: `call_ns`.
    #[schemars(range(max = CALL_NS_MAX))]
    pub copy_call_ns: Option<Time>,
    /// Of one that writes to the page cache, without what it copies. Left out: `copy_call_ns`.
    #[schemars(range(max = CALL_NS_MAX))]
    pub write_call_ns: Option<Time>,
    /// Of one that syncs what the page cache has of a file, with all that it sends to the drive. Left out: `copy_call_ns`.
    #[schemars(range(max = CALL_NS_MAX))]
    pub sync_call_ns: Option<Time>,
    /// Of what a completed I/O costs its task.
    #[schemars(range(max = CALL_NS_MAX))]
    pub completion_ns: Time,
    /// Of a system call that only returns what has completed (io_getevents), beside `completion_ns`. Left out: none.
    #[schemars(range(max = CALL_NS_MAX))]
    pub reap_call_ns: Option<Time>,
    /// Of each further operation of a call that submits several, until it has completed. Left out: as much as the first.
    #[schemars(range(max = CALL_NS_MAX))]
    pub further_op_ns: Option<Time>,
    /// Of each page after the first of an operation past the page cache: pinned, put into a bio and released. Left out: none.
    #[schemars(range(max = CALL_NS_MAX))]
    pub further_page_ns: Option<Time>,
    /// How far behind a load's tasks begin, on one CPU from 2.6.23 to 6.5.
    pub start: Option<StartSpec>,
    /// Of `completion_ns`: interrupt, wake-up and switch, which a task that polls for its completions does without. Left out: none.
    #[schemars(range(max = CALL_NS_MAX))]
    pub interrupt_ns: Option<Time>,
    /// What timers' interrupts take of one CPU, as before null_blk. Left out: nothing that is not a task's.
    pub timer_interrupts: Option<TimerInterruptSpec>,
    /// Of copying a page between a task and the page cache, and looking it up.
    #[schemars(range(max = CALL_NS_MAX))]
    pub page_copy_ns: Time,
    /// Of writing to a page of the page cache: finding, copying and marking it. Left out: `page_copy_ns`.
    #[schemars(range(max = CALL_NS_MAX))]
    pub page_write_ns: Option<Time>,
    /// Each cost is drawn evenly from this share below to this share above it: 0.1 is 10 %.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
    /// For those who turn times into cycles.
    #[schemars(range(min = 1_000_000, max = 100_000_000_000_u64))]
    pub clock_hz: Option<u64>,
}

/// The CPU that timers interrupt.
const ONE: u16 = 0;

#[derive(Clone, Debug)]
pub(super) struct SimpleCpus {
    spec: CpuSpec,
    /// By CPU: whose it is, and until when.
    running: Vec<Option<RunningTask>>,
    /// By CPU: it was idle, and takes the first in line when all that happens now has happened.
    chooses: Vec<bool>,
    /// What goes before all tasks has the one CPU until then.
    occupied_until: Time,
    interrupts: Option<TimerInterrupts>,
    /// A CPU that is to choose waits for the interrupt's end.
    chooses_after: bool,
    ready: RunQueue,
    runners: Vec<Runner>,
    /// When each lock is free.
    locks: Vec<Time>,
    /// When each file that is written to through the page cache can be written to by another task.
    inodes: BTreeMap<FileId, Time>,
    /// By drive.
    schedulers: Vec<Scheduler>,
    done: FollowUp,
}

/// What follows from the time that a CPU has worked.
#[derive(Clone, Copy, Debug, Default)]
enum FollowUp {
    #[default]
    Nothing,
    /// What the CPU did has had its time.
    Worked(u16),
    /// It takes the first in line.
    Chooses(u16),
    /// All that follows from the runner's item has happened.
    WorkItem(u16, RunnerNumber),
    /// The interrupt goes on.
    Interrupt,
    /// All that follows from a completion has happened.
    Completed,
    /// All that follows from the interrupt's end has happened; the next interrupt begins then.
    Resumed(Option<Time>),
}

/// What a drive's scheduler does for a request, all under its lock.
#[derive(Clone, Copy, Debug)]
struct Scheduler {
    hooks: Hooks,
    lock_free_at: Time,
}

#[derive(Clone, Debug, Default)]
struct Runner {
    /// The current item, which may still wait for a CPU, and those that follow.
    items: VecDeque<WorkItem>,
    /// Has a CPU or waits for one.
    is_awake: bool,
    /// It goes before others: what it has of the CPU does not count.
    is_urgent: bool,
    /// The time of the current item, with its wait for a lock.
    takes_ns: Time,
    used: TaskUsage,
}

#[derive(Clone, Copy, Debug)]
struct RunningTask {
    task: TaskId,
    slice_ends_at: Time,
    /// Of what its first call costs, so much has passed while the CPU was idle.
    waited_ns: Time,
    /// What goes before all tasks has had the CPU so long since its call began.
    stolen_ns: Time,
    /// Its call goes on so long after it has submitted.
    tail_ns: Time,
}

impl SimpleCpus {
    pub(super) fn new(spec: CpuSpec, order: TaskOrder) -> SimpleCpus {
        SimpleCpus {
            spec,
            running: vec![None; usize::from(spec.count)],
            chooses: vec![false; usize::from(spec.count)],
            occupied_until: 0,
            interrupts: spec.timer_interrupts.map(TimerInterrupts::new),
            chooses_after: false,
            ready: RunQueue::new(order, spec.time_slice_ns),
            runners: Vec::new(),
            locks: Vec::new(),
            inodes: BTreeMap::new(),
            schedulers: Vec::new(),
            done: FollowUp::Nothing,
        }
    }

    pub(super) fn serve(&mut self, schedulers: impl Iterator<Item = Hooks>) {
        let free = |hooks| Scheduler { hooks, lock_free_at: 0 };
        self.schedulers = schedulers.map(free).collect();
    }

    pub(super) fn count(&self) -> u16 {
        self.spec.count
    }

    /// `depths`: of each task, operations that it may have in flight.
    pub(super) fn begin_phase(&mut self, depths: &[u32]) {
        if self.spec.count == 1 {
            self.ready.fork(depths, &self.spec.start.unwrap_or_default());
        }
    }

    /// A later time, if something else has had the CPU, or has it.
    pub(super) fn remind(&mut self, now: Time, reminder: Reminder) -> TimedReminder {
        match reminder {
            Reminder::Worked(cpu) => {
                let running = self.running[usize::from(cpu)].as_mut();
                let stolen_ns = running.map_or(0, |running| std::mem::take(&mut running.stolen_ns));
                if stolen_ns > 0 {
                    return Some((now + stolen_ns, reminder));
                }
                self.done = FollowUp::Worked(cpu);
            }
            Reminder::Chooses(_) if self.is_interrupted() => self.chooses_after = true,
            Reminder::Chooses(_) if now < self.occupied_until => {
                return Some((self.occupied_until, reminder));
            }
            Reminder::Chooses(cpu) => self.done = FollowUp::Chooses(cpu),
            Reminder::Interrupt => self.done = FollowUp::Interrupt,
            Reminder::Moved(_) => unreachable!("their drives have no adapters"),
        }
        None
    }

    pub(super) fn follow(&mut self, now: Time) -> Option<Continuation> {
        match std::mem::take(&mut self.done) {
            FollowUp::Nothing => None,
            FollowUp::Worked(cpu) => {
                let task = self.on(cpu);
                let Some(runner) = runner_of(task) else {
                    return Some(Continuation::Called { task, cpu });
                };
                self.done = FollowUp::WorkItem(cpu, runner);
                match self.end_item(runner) {
                    Some(origin) => Some(Continuation::WorkItem { origin, cpu }),
                    None => self.follow(now),
                }
            }
            FollowUp::Chooses(cpu) => {
                self.chooses[usize::from(cpu)] = false;
                let turn = self.next_turn(now, cpu)?;
                if let Some(running) = &mut self.running[usize::from(cpu)] {
                    running.waited_ns = self.spec.timer_interrupts.map_or(0, |spec| spec.switch_ns);
                }
                Some(Continuation::Next { cpu, turn })
            }
            FollowUp::WorkItem(cpu, runner) => {
                self.after_item(now, cpu, runner).map(|turn| Continuation::Next { cpu, turn })
            }
            FollowUp::Interrupt => Some(self.interrupt(now)),
            FollowUp::Completed => {
                let until = now + self.interrupts.as_ref().map_or(0, TimerInterrupts::completion_ns);
                self.occupy(now, until);
                Some(Continuation::Later(until, Reminder::Interrupt))
            }
            FollowUp::Resumed(Some(at)) => {
                self.done = FollowUp::Resumed(None);
                Some(Continuation::Later(at, Reminder::Interrupt))
            }
            FollowUp::Resumed(None) => {
                let at = self.occupied_until.max(now);
                let chooses = std::mem::take(&mut self.chooses_after);
                chooses.then_some(Continuation::Later(at, Reminder::Chooses(ONE)))
            }
        }
    }

    pub(super) fn timer_interrupts(&self) -> Option<&TimerInterruptSpec> {
        self.interrupts.as_ref().map(TimerInterrupts::spec)
    }

    pub(super) fn interrupts_mut(&mut self) -> Option<&mut TimerInterrupts> {
        self.interrupts.as_mut()
    }

    fn is_interrupted(&self) -> bool {
        self.interrupts.as_ref().is_some_and(TimerInterrupts::is_active)
    }

    /// The timer of that drive's request expires.
    pub(super) fn arrived(&mut self, now: Time, drive: usize, tag: u32) -> TimedReminder {
        let begins = self.interrupts.as_mut()?.expires(drive, tag);
        begins.then_some((now, Reminder::Interrupt))
    }

    fn interrupt(&mut self, now: Time) -> Continuation {
        let interrupts = self.interrupts.as_mut().expect("it has interrupts");
        let switch_ns = interrupts.spec().switch_ns;
        match interrupts.step(now) {
            InterruptStep::Begins => {
                self.done = FollowUp::Interrupt;
                Continuation::Interrupted
            }
            InterruptStep::Completes { drive, tag } => {
                self.done = FollowUp::Completed;
                Continuation::Completed { drive, tag, cpu: ONE }
            }
            InterruptStep::Ends(again) => {
                self.done = FollowUp::Resumed(again);
                if self.running[usize::from(ONE)].is_none() {
                    self.occupy(now, now + switch_ns);
                }
                Continuation::Resumed
            }
        }
    }

    /// What goes before all tasks has the one CPU until then; who runs there continues later.
    pub(super) fn occupy(&mut self, now: Time, until: Time) {
        let from = now.max(self.occupied_until);
        if until <= from {
            return;
        }
        if let Some(running) = &mut self.running[usize::from(ONE)] {
            running.stolen_ns += until - from;
            let task = running.task;
            self.ready.is_interrupted_for(task, until - from);
        }
        self.occupied_until = until;
    }

    /// The call of the task there has submitted all that it submits; the next begins when it has ended.
    pub(super) fn has_submitted(&mut self, now: Time, cpu: u16) {
        if let Some(running) = &mut self.running[usize::from(cpu)] {
            let tail_ns = std::mem::take(&mut running.tail_ns);
            if tail_ns > 0 {
                self.occupied_until = now.max(self.occupied_until) + tail_ns;
            }
        }
    }

    /// The task waits for a CPU. An idle one takes nobody before an interrupt has woken all that it wakes.
    pub(super) fn wants(&mut self, now: Time, task: TaskId) -> TimedReminder {
        self.ready.wakes(now, task);
        let is_idle = |&cpu: &usize| self.running[cpu].is_none() && !self.chooses[cpu];
        let cpu = (0..self.running.len()).find(is_idle)?;
        self.chooses[cpu] = true;
        let at = now.max(self.occupied_until);
        Some((at, Reminder::Chooses(cpu as u16)))
    }

    /// Whoever has it goes to sleep or is done.
    pub(super) fn leaves(&mut self, now: Time, cpu: u16) -> Option<Turn> {
        if let Some(running) = self.running[usize::from(cpu)].take() {
            self.ready.sleeps(now, running.task);
        }
        self.next_turn(now, cpu)
    }

    /// The first in line has the CPU.
    fn next_turn(&mut self, now: Time, cpu: u16) -> Option<Turn> {
        let next = self.ready.pop()?;
        self.give(now, cpu, next);
        Some(self.turn_of(now, cpu, next))
    }

    /// The task on the CPU could continue; the turn goes to it or, when its slice is over or another preempts it, to the
    /// next in line.
    pub(super) fn goes_on(&mut self, now: Time, cpu: u16) -> Turn {
        let running = self.running[usize::from(cpu)].expect("somebody runs there");
        let is_over = self.ready.is_over(now, running.task, running.slice_ends_at);
        if !is_over || self.ready.is_empty() {
            return self.turn_of(now, cpu, running.task);
        }
        self.ready.gives_way(now, running.task);
        self.next_turn(now, cpu).expect("it was not empty")
    }

    /// Who has been given the CPU begins.
    fn turn_of(&mut self, now: Time, cpu: u16, task: TaskId) -> Turn {
        match runner_of(task) {
            None => Turn::Task(task),
            Some(runner) => Turn::Runner(self.begin_item(now, runner), Reminder::Worked(cpu)),
        }
    }

    pub(super) fn call(
        &mut self,
        now: Time,
        calling: CallContext,
        used: UsageAccounts<'_>,
        mut drawn: impl FnMut(u64, f64) -> u64,
    ) -> (Time, Reminder) {
        let mut takes_ns = match calling.call {
            Call::Work { ns } => ns,
            call => drawn(self.cost_ns(call), self.spec.jitter),
        };
        if let Some(file) = calling.writes.filter(|_| self.spec.count > 1) {
            takes_ns += self.waits_for_inode(now, file, takes_ns);
        }
        if let Some(drive) = calling.drive {
            takes_ns += self.schedulers[drive].takes_ns(now + takes_ns, self.spec.clock_hz);
        }
        used.system(takes_ns);
        if let Some(running) = &mut self.running[usize::from(calling.cpu)] {
            let waited_ns = std::mem::take(&mut running.waited_ns);
            if matches!(calling.call, Call::Reap { .. } | Call::Resume | Call::Retry { .. }) {
                takes_ns = takes_ns.saturating_sub(waited_ns);
            }
        }
        if let Some(interrupts) = &mut self.interrupts {
            takes_ns = interrupts.unpaid_ns(calling.task, takes_ns);
        }
        self.ready.runs_for(now, calling.task, takes_ns);
        let begins = now.max(self.occupied_until);
        let after_ns = self.spec.timer_interrupts.map_or(0, |spec| spec.after_issue_ns);
        let tail_ns = match calling.call {
            Call::Submit { further: false, .. } => after_ns.min(takes_ns),
            _ => 0,
        };
        if let Some(running) = &mut self.running[usize::from(calling.cpu)] {
            running.stolen_ns = 0;
            running.tail_ns += match calling.call {
                Call::Retry { finds: true } => after_ns,
                _ => tail_ns,
            };
        }
        (begins + takes_ns - tail_ns, Reminder::Worked(calling.cpu))
    }

    /// One task at a time writes to an inode through the page cache (`inode_lock` in `ext4_buffered_write_iter`, 6.1; `i_sem`,
    /// `i_mutex` before): how long another's write keeps this one, which takes so long then. Who waits spins, as for a
    /// semaphore whose holder has a CPU (`rwsem_optimistic_spin` of kernel/locking/rwsem.c, 6.1); that is
    /// inferred for kernels in which it sleeps.
    fn waits_for_inode(&mut self, now: Time, file: FileId, takes_ns: Time) -> Time {
        let free_at = self.inodes.entry(file).or_insert(0);
        let begins = now.max(*free_at);
        *free_at = begins + takes_ns;
        begins - now
    }

    /// Each turns out a little different.
    fn cost_ns(&self, call: Call) -> Time {
        match call {
            Call::Reap { further: true, .. } if self.spec.further_op_ns.is_some() => 0,
            Call::Reap { polled, further, by_call } => {
                let interrupt_ns = self.spec.interrupt_ns.filter(|_| polled);
                let call_ns = self.spec.reap_call_ns.filter(|_| by_call && !further);
                self.spec.completion_ns - interrupt_ns.unwrap_or(0) + call_ns.unwrap_or(0)
            }
            Call::Resume => self.spec.completion_ns,
            Call::Retry { finds } => match self.spec.timer_interrupts {
                None => self.spec.completion_ns,
                Some(spec) if finds => self.spec.call_ns.saturating_sub(spec.after_issue_ns),
                Some(spec) => spec.switch_ns,
            },
            Call::Submit { further, pages } => {
                let issue_ns = self.spec.timer_interrupts.map_or(0, |spec| spec.issue_ns);
                let of_op_ns = self.spec.further_op_ns.filter(|_| further);
                // It is sent when the first is at the device.
                let of_op_ns = of_op_ns.map(|ns| ns.saturating_sub(issue_ns));
                let of_pages_ns = self.spec.further_page_ns.unwrap_or(0) * pages.saturating_sub(1);
                of_op_ns.unwrap_or(self.spec.call_ns) + of_pages_ns
            }
            Call::Copy { pages } => self.copy_call_ns() + self.spec.page_copy_ns * pages,
            Call::Write { pages, syncs } => {
                let call_ns = self.spec.write_call_ns;
                let page_ns = self.spec.page_write_ns.unwrap_or(self.spec.page_copy_ns);
                let sync_ns = self.spec.sync_call_ns.filter(|_| syncs).unwrap_or(0);
                call_ns.unwrap_or_else(|| self.copy_call_ns()) + page_ns * pages + sync_ns
            }
            Call::Sync => self.spec.sync_call_ns.unwrap_or_else(|| self.copy_call_ns()),
            Call::CopyOn { pages } => self.spec.page_copy_ns * pages,
            Call::Work { ns } => ns,
        }
    }

    fn copy_call_ns(&self) -> Time {
        self.spec.copy_call_ns.unwrap_or(self.spec.call_ns)
    }

    fn on(&self, cpu: u16) -> TaskId {
        self.running[usize::from(cpu)].expect("somebody runs there").task
    }

    fn give(&mut self, now: Time, cpu: u16, task: TaskId) {
        self.ready.begins(now, task);
        self.running[usize::from(cpu)] = Some(RunningTask {
            task,
            slice_ends_at: now + self.spec.time_slice_ns,
            waited_ns: 0,
            stolen_ns: 0,
            tail_ns: 0,
        });
    }

    pub(super) fn add_runner(&mut self, rank: Rank) -> RunnerNumber {
        self.runners.push(Runner { is_urgent: rank == Rank::RealTime, ..Runner::default() });
        self.runners.len() as RunnerNumber - 1
    }

    pub(super) fn resume_ns(&self) -> Time {
        self.cost_ns(Call::Resume)
    }

    pub(super) fn add_lock(&mut self) -> LockNumber {
        self.locks.push(0);
        self.locks.len() as LockNumber - 1
    }

    pub(super) fn give_runner(&mut self, now: Time, runner: RunnerNumber, item: WorkItem) -> TimedReminder {
        let state = &mut self.runners[runner as usize];
        state.items.push_back(item);
        if std::mem::replace(&mut state.is_awake, true) {
            return None;
        }
        self.wants(now, RUNNERS + runner)
    }

    fn begin_item(&mut self, now: Time, runner: RunnerNumber) -> Time {
        let clock_hz = self.spec.clock_hz;
        let item = *self.item(runner);
        let mut takes_ns = item.cost.ns(clock_hz);
        if let Some((lock, held_cycles)) = item.lock {
            let free_at = &mut self.locks[lock as usize];
            let begins = now.max(*free_at);
            *free_at = begins + Cost::Cycles(held_cycles).ns(clock_hz);
            takes_ns += begins - now;
        }
        let state = &mut self.runners[runner as usize];
        state.takes_ns = takes_ns;
        if !state.is_urgent {
            self.ready.runs_for(now, RUNNERS + runner, takes_ns);
        }
        now.max(self.occupied_until) + takes_ns
    }

    fn end_item(&mut self, runner: RunnerNumber) -> Option<Origin> {
        let state = &mut self.runners[runner as usize];
        let item = state.items.pop_front().expect("an item was under way");
        match item.context {
            Context::User => state.used.user_ns += state.takes_ns,
            _ => state.used.system_ns += state.takes_ns,
        }
        item.of
    }

    fn after_item(&mut self, now: Time, cpu: u16, runner: RunnerNumber) -> Option<Turn> {
        let state = &mut self.runners[runner as usize];
        if state.items.is_empty() {
            state.is_awake = false;
            state.used.slept += 1;
            return self.leaves(now, cpu);
        }
        let turn = self.goes_on(now, cpu);
        if self.on(cpu) != RUNNERS + runner {
            self.runners[runner as usize].used.gave_way += 1;
        }
        Some(turn)
    }

    pub(super) fn used_by_all(&self, tasks: Usage) -> (Time, Time) {
        let used = (tasks.cpu_user_ns, tasks.cpu_system_ns);
        self.runners
            .iter()
            .fold(used, |(user, system), runner| (user + runner.used.user_ns, system + runner.used.system_ns))
    }

    pub(super) fn runner_usage(&self, runner: RunnerNumber) -> TaskUsage {
        self.runners[runner as usize].used
    }

    fn item(&self, runner: RunnerNumber) -> &WorkItem {
        let items = &self.runners[runner as usize].items;
        items.front().expect("it has something to do")
    }
}

impl Scheduler {
    /// For a request that is submitted then: those who come meanwhile wait. Kyber's CPUs do not wait for one another.
    fn takes_ns(&mut self, now: Time, clock_hz: Option<u64>) -> Time {
        let takes_ns = self.hooks.request_ns(clock_hz);
        if self.hooks.lock == HookLock::HardwareQueue {
            return takes_ns;
        }
        self.lock_free_at = self.lock_free_at.max(now) + takes_ns;
        self.lock_free_at - now
    }
}
