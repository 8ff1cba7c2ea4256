//! The run: tasks that sort, faults, the daemon. A component of the machine: it is informed of what has happened
//! (`worked`, `moved`, `granted`) and hands over what is to be done as `Effect`s, in their order.

mod faults;
mod free_pages;
mod waits;

use std::collections::BTreeMap;

use base::rng::stream;
use base::usage::Usage;

use crate::swap::PageNumber;
use crate::swap::effect::Effect;
use crate::swap::pages::{Memory, PAGE_BYTES, PageState};
use crate::swap::quicksort::Sort;
use crate::swap::reclaim::{Reclaim, ReclaimKind, ReverseMap, VirtualScan};
use crate::swap::slots::Slots;
use crate::swap::spec::{SortLoad, SwapSpec, Watermarks};
use crate::swap::task::{State, Task, Wait};
use block_layer::TaskId;
use events::Component;
use events::event_queue::EventQueue;
use events::smp::TaskUsage;
use events::station::Violation;
use events::time::{MILLISECOND, SECOND, Time};

/// What a process came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortResult {
    /// None: it was stopped before.
    pub finished_ns: Option<Time>,
    /// CPU time and page faults of the process.
    pub usage: Usage,
}

/// What a load of sorting processes yielded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Results {
    /// Simulated time from the start to the end of the last process.
    pub elapsed_ns: Time,
    /// The processes, in the order of their numbers.
    pub processes: Vec<SortResult>,
    /// Bytes read from the area.
    pub swap_in_bytes: u64,
    /// Bytes written to the area.
    pub swap_out_bytes: u64,
    /// The part of it after the first process had finished.
    pub swap_out_after_first_bytes: u64,
    /// The most of the area that was in use at once.
    pub swap_bytes_max: u64,
    /// The most memory that was in use at once.
    pub memory_bytes_max: u64,
}

/// Processes that sort, with the memory that they share. Tasks are numbered by process; the daemon is the last.
pub struct SortProcesses {
    now: Time,
    began: Time,
    effects: Vec<Effect>,
    /// Who sleeps until then.
    alarms: EventQueue<TaskId>,
    swap: SwapSpec,
    load: SortLoad,
    watermarks: Watermarks,
    /// With fewer there would be no place for some page.
    frames_needed: u64,
    memory: Memory,
    reclaim: Box<dyn Reclaim>,
    /// By process, and the daemon last.
    tasks: Vec<Task>,
    /// By page that is on its way: who waits for it.
    waiting: BTreeMap<PageNumber, Vec<TaskId>>,
    /// Pages written when the first process had finished.
    written_by_first: Option<u64>,
    /// Processes that are not done.
    active: u32,
    ended: Time,
}

/// The longest that a task computes before its CPU looks up: pages count as touched at its beginning.
const BURST_NS: Time = MILLISECOND;
/// `blk_congestion_wait` of `try_to_free_pages`: HZ / 4.
const NAP_NS: Time = SECOND / 4;
/// How long the daemon rests when it could free nothing: HZ.
const REST_NS: Time = SECOND;

impl Component for SortProcesses {
    type Effect = Effect;

    fn next_event(&self) -> Option<Time> {
        self.alarms.next_at()
    }

    /// Who has slept long enough continues.
    fn advance(&mut self, now: Time) {
        while self.alarms.next_at().is_some_and(|at| at <= now) {
            let (at, task) = self.alarms.take().expect("one is due");
            self.alarm(at, task);
        }
        self.now = now;
    }

    fn take_effects(&mut self, into: &mut Vec<Effect>) {
        into.append(&mut self.effects);
    }

    /// Pages, frames and slots are conserved.
    fn check(&self, _now: Time) -> Result<(), Violation> {
        self.memory.check()
    }
}

impl SortProcesses {
    /// `load` and `swap` have been checked. All begin to sort now.
    pub fn new(now: Time, swap: &SwapSpec, load: &SortLoad, reclaim: ReclaimKind) -> SortProcesses {
        let pages_of_one = load.pages_of_one() as PageNumber;
        let watermarks = Watermarks::of(load.frames());
        let mut tasks: Vec<Task> = (0..load.processes)
            .map(|process| {
                let stream = stream(load.seed, u64::from(process) + 1);
                let sort = Sort::new(load.numbers_of_one(), load.passes, swap.number_ns, stream);
                Task::new(Some(sort), process * pages_of_one)
            })
            .collect();
        tasks.push(Task::new(None, 0));
        let reclaim: Box<dyn Reclaim> = match reclaim {
            ReclaimKind::ReverseMap => Box::new(ReverseMap::new(watermarks.high)),
            ReclaimKind::VirtualScan => {
                let tables = (0..load.processes).map(|process| process * pages_of_one..(process + 1) * pages_of_one);
                Box::new(VirtualScan::new(tables.collect(), swap.walk_pages))
            }
        };
        let pages = load.processes * pages_of_one;
        let mut sorting = SortProcesses {
            now,
            began: now,
            effects: Vec::new(),
            alarms: EventQueue::new(),
            swap: *swap,
            load: *load,
            watermarks,
            frames_needed: load.frames_needed(swap),
            memory: Memory::new(load.frames(), pages, Slots::new(load.slots(swap))),
            reclaim,
            active: load.processes,
            tasks,
            waiting: BTreeMap::new(),
            written_by_first: None,
            ended: now,
        };
        (0..load.processes).for_each(|process| sorting.wants_cpu(process));
        sorting
    }

    /// How many tasks there are, the daemon among them.
    pub fn tasks(&self) -> u32 {
        self.load.processes + 1
    }

    /// Some task has not ended.
    pub fn is_active(&self) -> bool {
        self.active > 0
    }

    /// Nobody begins anything any more.
    pub fn stop(&mut self) {
        self.active = 0;
    }

    /// Pages of processes that are in memory.
    pub fn resident_pages(&self) -> u64 {
        self.memory.resident()
    }

    /// Files leave them this many pages of memory: what they have beyond is taken from them as they or the daemon come
    /// to it. They never get fewer than it takes to have each page in memory or in a slot.
    pub fn give_pages(&mut self, now: Time, pages: u64) {
        let frames = pages.clamp(self.frames_needed, self.load.frames().max(self.frames_needed));
        let fewer = frames < self.memory.set_frames(frames);
        if fewer && self.memory.free() < self.watermarks.low {
            self.now = now;
            self.wake_daemon();
        }
    }

    /// Something is to be done.
    pub fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// The task has a CPU, or its CPU has done what it was given: then it gets in line again, unless it waits.
    pub fn worked(&mut self, now: Time, task: TaskId) {
        if self.active == 0 {
            return;
        }
        self.now = now;
        let running = self.task(task);
        if std::mem::take(&mut running.asks) {
            let ns = match task == self.daemon() {
                true => self.balance(now),
                false => self.sort_on(now, task),
            };
            self.effects.push(Effect::Work { task, ns });
        } else if running.state != State::Finished {
            match running.wait {
                Wait::Nothing => self.wants_cpu(task),
                _ => running.state = State::Asleep,
            }
        }
    }

    /// Its results until now. `used`: what each process has had of CPUs.
    pub fn results(&self, used: impl Fn(TaskId) -> TaskUsage) -> Results {
        let processes = self.tasks.iter().filter(|task| task.sort.is_some());
        Results {
            elapsed_ns: self.ended.max(self.now) - self.began,
            processes: (0..)
                .zip(processes)
                .map(|(number, task)| {
                    let used = used(number);
                    SortResult {
                        finished_ns: task.finished_at.map(|at| at - self.began),
                        usage: Usage {
                            context_switches_voluntary: used.slept,
                            context_switches_involuntary: used.gave_way,
                            ..task.usage
                        },
                    }
                })
                .collect(),
            swap_in_bytes: self.memory.traffic.read * PAGE_BYTES,
            swap_out_bytes: self.memory.traffic.written * PAGE_BYTES,
            swap_out_after_first_bytes: self.written_after_first() * PAGE_BYTES,
            swap_bytes_max: u64::from(self.memory.slots.used_max()) * PAGE_BYTES,
            memory_bytes_max: self.memory.resident_max() * PAGE_BYTES,
        }
    }

    fn written_after_first(&self) -> u64 {
        self.written_by_first.map_or(0, |before| self.memory.traffic.written - before)
    }

    /// Share of the load that is done, 0 to 1.
    pub fn fraction(&self) -> f64 {
        let placed: u64 = self.tasks.iter().filter_map(|task| task.sort.as_ref()).map(Sort::placed).sum();
        let all = self.load.numbers_of_one() * u64::from(self.load.processes) * u64::from(self.load.passes);
        placed as f64 / all as f64
    }

    fn daemon(&self) -> TaskId {
        self.load.processes
    }

    fn task(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task as usize]
    }

    /// In line for a CPU; what it does is decided when it has one.
    fn wants_cpu(&mut self, task: TaskId) {
        let running = self.task(task);
        (running.state, running.asks) = (State::Runnable, true);
        self.effects.push(Effect::Work { task, ns: 0 });
    }

    fn sort_on(&mut self, now: Time, task: TaskId) -> Time {
        let mut computed_ns = 0;
        while computed_ns < BURST_NS {
            let running = &mut self.tasks[task as usize];
            let Some(touch) = running.next_touch() else {
                running.usage.cpu_user_ns += computed_ns;
                if computed_ns == 0 {
                    self.finish(now, task);
                }
                return computed_ns;
            };
            let number = running.first_page + touch.page;
            let page = self.memory.page_mut(number);
            if page.place != PageState::Mapped {
                if computed_ns > 0 {
                    break;
                }
                return self.fault(now, task, number);
            }
            page.young = true;
            page.dirty |= touch.write;
            running.touched();
            computed_ns += touch.cost_ns;
        }
        self.task(task).usage.cpu_user_ns += computed_ns;
        computed_ns
    }

    fn finish(&mut self, now: Time, task: TaskId) {
        let pages = self.load.pages_of_one() as PageNumber;
        let running = self.task(task);
        running.state = State::Finished;
        running.finished_at = Some(now);
        let first = running.first_page;
        for number in first..first + pages {
            self.memory.abandon(number);
        }
        self.reclaim.exited(task as usize);
        self.effects.push(Effect::Exit(task));
        self.active = self.active.saturating_sub(1);
        self.ended = now;
        self.written_by_first.get_or_insert(self.memory.traffic.written);
    }
}
