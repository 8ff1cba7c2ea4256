//! Processors: hard interrupts, softirqs and tasks share each CPU; lines of memory and messages go between them.
//!
//! Its owner posts work, asks `next_event`, calls `advance` then, and gets the tags of what is done. Until it asks again,
//! what it starts from a CPU that has just finished something (`charge`, `wake`, `ipi`) is charged to that CPU, in the
//! context of what was finished.

mod cpu;
mod cpu_set;
mod execute;
mod hotplug;
mod lines;
mod run_queue;
mod schedule;
mod spec;
mod tap;
mod task;
#[cfg(test)]
mod tests;
mod topology;
mod usage;
mod work;

use std::collections::VecDeque;

use crate::SpecError;
use crate::event_queue::EventQueue;
use crate::slab::{Id, Slab};
use crate::time::Time;
use cpu::Cpu;
pub use cpu_set::CpuSet;
use lines::Lines;
pub use lines::{KINDS, Kind, Object, ObjectId, SharingCounts};
pub use run_queue::{Rank, TaskNumber};
pub use spec::{IdleState, InterruptSpec, SchedulingSpec, SmpSpec};
use tap::Tap;
pub use tap::{SchedulerEvent, SchedulerEventKind};
use task::Task;
pub use task::TaskSpec;
pub use topology::{DISTANCES, Distance, Topology};
pub use usage::{Events, Stalls, TaskUsage, Usage};
pub use work::{Context, Done, Work};

/// `T`: what comes back when a piece of work is done.
#[derive(Clone, Debug)]
pub struct Processors<T> {
    spec: SmpSpec,
    now: Time,
    events: EventQueue<Event<T>>,
    cpus: Vec<Cpu<T>>,
    tasks: Vec<Task<T>>,
    lines: Lines,
    online: CpuSet,
    /// Nothing to do, and nothing on its way.
    idle: CpuSet,
    /// Waiting tasks there could run elsewhere.
    movable: CpuSet,
    /// Interrupts on their way.
    sent: Slab<SentWork<T>>,
    undecided: Vec<u16>,
    tap: Tap,
}

#[derive(Debug)]
enum Event<T> {
    /// The CPU has something to decide, unless its turn is over.
    Cpu(u16, u32),
    Arrives(Id<SentWork<T>>),
}

#[derive(Clone, Copy, Debug)]
struct SentWork<T> {
    to: u16,
    work: Work<T>,
}

impl<T: Copy> Processors<T> {
    /// Idle processors, all online; an error names the key of the specification that is wrong.
    pub fn new(spec: &SmpSpec) -> Result<Processors<T>, SpecError> {
        spec.check()?;
        let count = spec.topology.cpus() as u16;
        let mut lines = Lines::new(spec.topology, spec.transfer_cycles);
        let cpus = (0..count).map(|_| Cpu::new(lines.add(Kind::RunQueue, spec.scheduling.run_queue_lines))).collect();
        Ok(Processors {
            spec: spec.clone(),
            now: 0,
            events: EventQueue::new(),
            cpus,
            tasks: Vec::new(),
            lines,
            online: CpuSet::all(count),
            idle: CpuSet::all(count),
            movable: CpuSet::none(count),
            sent: Slab::new(),
            undecided: Vec::new(),
            tap: Tap::default(),
        })
    }

    /// A device interrupts a CPU; if that is offline, the nearest that is not.
    pub fn interrupt(&mut self, now: Time, cpu: u16, work: Work<T>) {
        self.reach(now);
        let cpu = self.or_nearest_online(cpu);
        let context = Context::HardInterrupt;
        let state = &mut self.cpus[usize::from(cpu)];
        state.events.interrupts += 1;
        state.hard.push_back(Work { context, ..work });
        self.mark_undecided(cpu);
    }

    /// Raises a softirq there, which runs when no interrupt does.
    pub fn softirq(&mut self, now: Time, cpu: u16, work: Work<T>) {
        self.reach(now);
        let cpu = self.or_nearest_online(cpu);
        let context = Context::SoftInterrupt;
        self.cpus[usize::from(cpu)].soft.push_back(Work { context, ..work });
        self.mark_undecided(cpu);
    }

    /// One CPU interrupts another, `handling_ns` later than the machine's latency has it.
    pub fn ipi(&mut self, now: Time, from: u16, to: u16, handling_ns: Time, work: Work<T>) {
        let interrupts = self.spec.interrupts;
        self.charge(now, from, Work::of(interrupts.send_cycles));
        let distance = self.spec.topology.distance(from, to);
        let at = now + self.charged_ns(from) + interrupts.latency(distance) + handling_ns;
        let cycles = work.cycles + interrupts.receive_cycles;
        let sent = self.sent.put(SentWork { to, work: Work { cycles, ..work } });
        self.events.put(at, Event::Arrives(sent));
    }

    /// A task that sleeps until it gets work; tasks are never removed.
    pub fn add_task(&mut self, spec: TaskSpec) -> TaskNumber {
        let allowed = spec.allowed.unwrap_or_else(|| CpuSet::all(self.cpus.len() as u16));
        let object = self.lines.add(Kind::Task, self.spec.scheduling.task_lines);
        if spec.sleeps_for_io {
            self.count_io_sleeper(spec.last_cpu, true);
        }
        self.tasks.push(Task {
            rank: spec.rank,
            movable: allowed.len() > 1,
            allowed,
            sleeps_for_io: spec.sleeps_for_io,
            waits_for_io_on: spec.sleeps_for_io.then_some(spec.last_cpu),
            cpu: spec.last_cpu,
            asleep: true,
            work: VecDeque::new(),
            suspended: None,
            slice_left: 0,
            object,
            used: TaskUsage::default(),
        });
        self.tasks.len() as TaskNumber - 1
    }

    /// Gives a task something to do; if it sleeps, that wakes it. `by`: the CPU that does so, and whom it costs something;
    /// None: nobody, at no cost.
    pub fn wake(&mut self, now: Time, task: TaskNumber, by: Option<u16>, work: Work<T>) {
        self.reach(now);
        let state = &mut self.tasks[task as usize];
        state.work.push_back(work);
        if state.asleep {
            self.wake_up(task, by);
        }
    }

    /// Whether it is for an I/O that the task sleeps when it does so next.
    pub fn sleeps_for_io(&mut self, task: TaskNumber, is: bool) {
        self.tasks[task as usize].sleeps_for_io = is;
    }

    /// More work for a CPU that has just finished some, before it continues; for any other CPU it is an interrupt. The
    /// work's tag does not come back.
    pub fn charge(&mut self, now: Time, cpu: u16, work: Work<T>) {
        self.reach(now);
        let work = Work { tag: None, ..work };
        if self.cpus[usize::from(cpu)].deciding {
            self.extend(cpu, work);
        } else {
            self.interrupt(now, cpu, work);
        }
    }

    /// A new object that CPUs share; nobody has it in its cache yet.
    pub fn add_object(&mut self, kind: Kind, lines: u16) -> ObjectId {
        self.lines.add(kind, lines)
    }

    /// When `advance` has something to do.
    pub fn next_event(&mut self) -> Option<Time> {
        self.decide_all();
        self.events.next_at()
    }

    /// Lets time pass, to the next event at most; what is done is appended.
    pub fn advance(&mut self, now: Time, done: &mut Vec<Done<T>>) {
        self.decide_all();
        while let Some(at) = self.events.next_at().filter(|&at| at <= now) {
            self.reach(at);
            match self.events.take() {
                Some((_, Event::Cpu(cpu, turn))) if self.cpus[usize::from(cpu)].turn == turn => {
                    self.review(cpu, done);
                }
                Some((_, Event::Arrives(sent))) => {
                    let SentWork { to, work } = self.sent.take(sent);
                    self.interrupt(at, to, work);
                }
                _ => {}
            }
        }
        self.reach(now);
    }

    /// The usage of the CPU up to the latest time that the processors were given.
    pub fn usage(&self, cpu: u16) -> Usage {
        self.cpus[usize::from(cpu)].usage(self.now)
    }

    /// Likewise.
    pub fn task_usage(&self, task: TaskNumber) -> TaskUsage {
        let state = &self.tasks[task as usize];
        let cpu = &self.cpus[usize::from(state.cpu)];
        let mut used = state.used;
        if cpu.task == Some(task) {
            used += cpu.task_used(self.now);
        }
        used
    }

    /// The cycles in which the CPU waited.
    pub fn stalls(&self, cpu: u16) -> Stalls {
        self.cpus[usize::from(cpu)].stalls
    }

    /// What the CPU has counted: interrupts, messages, switches.
    pub fn events(&self, cpu: u16) -> Events {
        self.cpus[usize::from(cpu)].events
    }

    /// What has happened to the objects of one kind.
    pub fn sharing(&self, kind: Kind) -> SharingCounts {
        self.lines.sharing(kind)
    }

    /// What they were built from.
    pub fn spec(&self) -> &SmpSpec {
        &self.spec
    }

    /// The number of CPUs, those offline included.
    pub fn cpus(&self) -> u16 {
        self.cpus.len() as u16
    }

    /// The CPU has decided what to do until now, if time advances.
    #[inline]
    pub fn reach(&mut self, now: Time) {
        if now > self.now {
            self.decide_all();
            self.now = now;
        }
    }

    /// What the CPU does has to be decided again.
    #[inline]
    fn mark_undecided(&mut self, cpu: u16) {
        let state = &mut self.cpus[usize::from(cpu)];
        if !state.undecided {
            state.undecided = true;
            self.undecided.push(cpu);
        }
    }

    #[inline]
    fn decide_all(&mut self) {
        let mut next = 0;
        while let Some(&cpu) = self.undecided.get(next) {
            next += 1;
            self.decide(cpu);
            self.show_current(cpu);
        }
        self.undecided.clear();
    }

    fn count_io_sleeper(&mut self, cpu: u16, falls_asleep: bool) {
        let cpu = &mut self.cpus[usize::from(cpu)];
        cpu.account(self.now);
        if falls_asleep {
            cpu.io_sleepers += 1;
        } else {
            cpu.io_sleepers -= 1;
        }
    }
}

impl<T> Clone for Event<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Event<T> {}
