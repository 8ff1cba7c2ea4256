//! The machine as a filesystem sees it: its tasks, their work, I/O and times to be called at, and how much of that is still
//! to come.

use super::site::Site;
use super::switches::{Comm, Scheduling};
use crate::actor::{Actor, Caller};
use crate::effect::{BlockIo, Effect, FlushNumber};
use events::event_queue::EventQueue;
use events::smp::{Context, Rank, TaskNumber, TaskSpec};
use events::time::{SECOND, Time};

pub(super) struct Machine {
    now: Time,
    cpus: u16,
    clock_hz: u64,
    scheduling: Scheduling,
    effects: Vec<Effect>,
    timers: EventQueue<Timer>,
    /// Those that are in the queue of the kinds that are so once at most.
    armed: Vec<Timer>,
    /// Pieces of work, I/O and answers that are still to come, of all but daemons. 0: a thread that is not done waits
    /// for ever.
    in_flight: u64,
}

/// What happens at a time by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// A daemon wakes up.
    Daemon,
    /// Flushers look for pages that have expired.
    WriteBack,
    /// The allocator's answer reaches its caller late.
    Answered(Caller),
    /// The log is written, whatever room it has.
    Sync,
    /// The pusher looks again.
    Push,
}

impl Timer {
    /// A task waits for it.
    fn is_awaited(self) -> bool {
        matches!(self, Timer::Answered(_) | Timer::Push)
    }
}

impl Machine {
    pub(super) fn new(cpus: u16, clock_hz: u64) -> Machine {
        Machine {
            now: 0,
            cpus,
            clock_hz,
            scheduling: Scheduling::default(),
            effects: Vec::new(),
            timers: EventQueue::new(),
            armed: Vec::new(),
            in_flight: 0,
        }
    }

    // Time.

    pub(super) fn now(&self) -> Time {
        self.now
    }

    pub(super) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    pub(super) fn time_of(&self, cycles: u32) -> Time {
        u64::from(cycles) * SECOND / self.clock_hz
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        self.timers.next_at()
    }

    /// It is its time.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Timer> {
        self.timers.next_at().filter(|&at| at <= now)?;
        let (at, timer) = self.timers.take()?;
        self.now = at;
        self.in_flight -= u64::from(timer.is_awaited());
        self.armed.retain(|armed| *armed != timer);
        Some(timer)
    }

    pub(super) fn call_back(&mut self, after_ns: Time, timer: Timer) {
        self.in_flight += u64::from(timer.is_awaited());
        self.timers.put(self.now + after_ns, timer);
    }

    /// Unless it is to come already.
    pub(super) fn arm(&mut self, after_ns: Time, timer: Timer) {
        if !self.armed.contains(&timer) {
            self.armed.push(timer);
            self.call_back(after_ns, timer);
        }
    }

    // Tasks.

    pub(super) fn cpus(&self) -> u16 {
        self.cpus
    }

    /// Of the name, asleep there.
    pub(super) fn add_task(&mut self, spec: TaskSpec, comm: Comm, site: Site) -> TaskNumber {
        self.effects.push(Effect::Task(spec));
        self.scheduling.add(comm, site)
    }

    /// A kernel thread; `cpu`: the one that it is bound to, else it runs wherever there is room.
    pub(super) fn add_kernel_thread(&mut self, cpu: Option<u16>, comm: Comm, site: Site) -> TaskNumber {
        let spec =
            cpu.map_or_else(unbound, |cpu| TaskSpec { sleeps_for_io: false, ..TaskSpec::pinned(self.cpus, cpu) });
        self.add_task(spec, comm, site)
    }

    /// One that goes before others.
    pub(super) fn add_urgent_thread(&mut self, comm: Comm, site: Site) -> TaskNumber {
        self.add_task(TaskSpec { rank: Rank::RealTime, ..unbound() }, comm, site)
    }

    pub(super) fn exits(&mut self, task: TaskNumber) {
        self.effects.push(Effect::Exit(task));
    }

    /// If it sleeps from now on, it does so there.
    pub(super) fn sleeps_in(&mut self, task: TaskNumber, site: Site) {
        self.scheduling.sleeps_in(task, site);
    }

    pub(super) fn unblock(&mut self, task: block_layer::TaskId, flushed: bool) {
        self.effects.push(Effect::Unblock { task, flushed });
    }

    /// Who leaves a CPU, where, and for how long.
    pub(super) fn scheduling(&mut self) -> &mut Scheduling {
        &mut self.scheduling
    }

    // Work and I/O.

    /// `by`: the CPU that wakes the task. The second number of cycles is with the checkpoint's list locked. `of`: the
    /// task that continues then; None: no task waits for it.
    pub(super) fn give(
        &mut self,
        task: TaskNumber,
        by: Option<u16>,
        (cycles, locked_cycles): (u32, u32),
        context: Context,
        of: Option<Actor>,
    ) {
        self.in_flight += u64::from(of.is_some_and(is_awaited));
        self.effects.push(Effect::Work { task, by, cycles, locked_cycles, context, of });
    }

    pub(super) fn worked(&mut self, actor: Actor) {
        self.in_flight -= u64::from(is_awaited(actor));
    }

    pub(super) fn submit(&mut self, io: BlockIo) {
        self.in_flight += 1;
        self.effects.push(Effect::Io(io));
    }

    pub(super) fn flush(&mut self, number: FlushNumber) {
        self.in_flight += 1;
        self.effects.push(Effect::Flush(number));
    }

    /// The drive has answered.
    pub(super) fn drive_is_done(&mut self) {
        self.in_flight -= 1;
    }

    /// Something is still to come.
    pub(super) fn is_busy(&self) -> bool {
        self.in_flight > 0
    }

    pub(super) fn take_effects(&mut self, into: &mut Vec<Effect>) {
        into.append(&mut self.effects);
    }
}

/// Daemons work on and on.
fn is_awaited(actor: Actor) -> bool {
    !matches!(actor, Actor::Daemon(_))
}

/// A task that runs wherever there is room.
pub(super) fn unbound() -> TaskSpec {
    TaskSpec { rank: Rank::Normal, last_cpu: 0, allowed: None, sleeps_for_io: false }
}
