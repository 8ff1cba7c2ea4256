//! The run: tasks on CPUs, faults, the daemon, the area; one event queue.

mod faults;
mod freeing;
mod waiting;

use std::collections::BTreeMap;

use workload::measure::Usage;
use workload::rng::stream;

use crate::block::{Sector, TaskId};
use crate::event_queue::EventQueue;
use crate::station::Violation;
use crate::swap::area::{Area, Done};
use crate::swap::pages::{Memory, PAGE_BYTES, PageNumber, PageState};
use crate::swap::quicksort::Sort;
use crate::swap::reclaim::{Reclaim, ReclaimKind, ReverseMap, VirtualScan};
use crate::swap::slots::Slots;
use crate::swap::spec::{SortLoad, SwapSpec, Watermarks};
use crate::swap::task::{State, Task, Wait};
use crate::time::{MILLISECOND, SECOND, Time};
use crate::world::{CpuSpec, Drive, Simple};

/// What it runs on.
pub struct Parts {
    /// CPUs that all processes share.
    pub cpus: CpuSpec,
    /// The drive with the swap area.
    pub drive: Drive,
    /// Where the area begins on it.
    pub area_begin: Sector,
    /// How pages are found that can go.
    pub reclaim: ReclaimKind,
}

/// What a process came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sorted {
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
    pub processes: Vec<Sorted>,
    /// Bytes read from the area.
    pub swap_in_bytes: u64,
    /// Bytes written to the area.
    pub swap_out_bytes: u64,
    /// Of it, after the first process had finished.
    pub swap_out_after_first_bytes: u64,
    /// The most of the area that was in use at once.
    pub swap_bytes_max: u64,
    /// The most memory that was in use at once.
    pub memory_bytes_max: u64,
}

/// Processes that sort, with the memory and the swap area that they share.
pub struct Sorting {
    events: EventQueue<Event>,
    swap: SwapSpec,
    load: SortLoad,
    watermarks: Watermarks,
    memory: Memory,
    reclaim: Box<dyn Reclaim>,
    area: Area,
    area_called_at: Option<Time>,
    cpus: Simple,
    /// By process, and the daemon last.
    tasks: Vec<Task>,
    /// By page that is on its way: who waits for it.
    waiting: BTreeMap<PageNumber, Vec<TaskId>>,
    /// Pages written when the first process had finished.
    written_by_first: Option<u64>,
    done: Vec<Done>,
    granted: Vec<TaskId>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// What the CPU does has had its time.
    Cpu(u16),
    Area,
    Alarm(TaskId),
}

/// The longest that a task computes before its CPU looks up: pages count as touched at its beginning.
const BURST_NS: Time = MILLISECOND;
/// `blk_congestion_wait` of `try_to_free_pages`: HZ / 4.
const NAP_NS: Time = SECOND / 4;
/// How long the daemon rests when it could free nothing: HZ.
const REST_NS: Time = SECOND;
/// Events between two looks at whether to go on.
const EVENTS_BETWEEN_QUESTIONS: u64 = 1 << 14;

impl Sorting {
    /// What `load` and `swap` say has been checked.
    pub fn new(swap: &SwapSpec, load: &SortLoad, parts: Parts) -> Sorting {
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
        let reclaim: Box<dyn Reclaim> = match parts.reclaim {
            ReclaimKind::ReverseMap => Box::new(ReverseMap::new(watermarks.high)),
            ReclaimKind::VirtualScan => {
                let tables = (0..load.processes)
                    .map(|process| process * pages_of_one..(process + 1) * pages_of_one);
                Box::new(VirtualScan::new(tables.collect(), swap.walk_pages))
            }
        };
        let pages = load.processes * pages_of_one;
        Sorting {
            events: EventQueue::new(),
            swap: *swap,
            load: *load,
            watermarks,
            memory: Memory::new(load.frames(), pages, Slots::new(load.slots(swap))),
            reclaim,
            area: Area::new(parts.drive, parts.area_begin),
            area_called_at: None,
            cpus: Simple::new(parts.cpus),
            tasks,
            waiting: BTreeMap::new(),
            written_by_first: None,
            done: Vec::new(),
            granted: Vec::new(),
        }
    }

    /// Until all is sorted. `go_on` is asked now and then with the time and the part that is sorted; false stops all.
    pub fn run(&mut self, mut go_on: impl FnMut(Time, f64) -> bool) {
        for process in 0..self.daemon() {
            self.wants_cpu(0, process);
        }
        let mut events = 0;
        while self
            .tasks
            .iter()
            .any(|task| task.state != State::Finished && task.sort.is_some())
        {
            let Some((now, event)) = self.events.take() else {
                unreachable!("somebody sorts, or waits for the device or the clock")
            };
            match event {
                Event::Cpu(cpu) => self.next_burst(now, cpu),
                Event::Area => {
                    if self.area_called_at == Some(now) {
                        self.area_called_at = None;
                    }
                    self.run_area(now);
                }
                Event::Alarm(task) => self.alarm(now, task),
            }
            events += 1;
            if events % EVENTS_BETWEEN_QUESTIONS == 0 && !go_on(now, self.fraction()) {
                return;
            }
        }
        go_on(self.events.now(), self.fraction());
    }

    /// What it yielded so far.
    pub fn results(&self) -> Results {
        let processes = self.tasks.iter().filter(|task| task.sort.is_some());
        Results {
            elapsed_ns: self.events.now(),
            processes: processes
                .map(|task| Sorted {
                    finished_ns: task.finished_at,
                    usage: task.usage,
                })
                .collect(),
            swap_in_bytes: self.memory.traffic.read * PAGE_BYTES,
            swap_out_bytes: self.memory.traffic.written * PAGE_BYTES,
            swap_out_after_first_bytes: self.written_after_first() * PAGE_BYTES,
            swap_bytes_max: u64::from(self.memory.slots.used_max()) * PAGE_BYTES,
            memory_bytes_max: self.memory.used_max() * PAGE_BYTES,
        }
    }

    /// Pages, frames and slots are conserved, and so is what the drive does.
    pub fn check(&self) -> Result<(), Violation> {
        self.memory.check()?;
        self.area.drive().check("swap", self.events.now())
    }

    fn written_after_first(&self) -> u64 {
        self.written_by_first
            .map_or(0, |before| self.memory.traffic.written - before)
    }

    fn fraction(&self) -> f64 {
        let placed: u64 = self
            .tasks
            .iter()
            .filter_map(|task| task.sort.as_ref())
            .map(Sort::placed)
            .sum();
        let all = self.load.numbers_of_one()
            * u64::from(self.load.processes)
            * u64::from(self.load.passes);
        placed as f64 / all as f64
    }

    fn daemon(&self) -> TaskId {
        self.load.processes
    }

    fn task(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task as usize]
    }

    fn wants_cpu(&mut self, now: Time, task: TaskId) {
        self.task(task).state = State::Runnable;
        if let Some(cpu) = self.cpus.wants(now, task) {
            self.burst(now, cpu, task);
        }
    }

    /// The CPU has done what it was given.
    fn next_burst(&mut self, now: Time, cpu: u16) {
        let task = self.cpus.on(cpu);
        let next = match self.task(task) {
            running if running.state == State::Finished => self.cpus.leaves(now, cpu),
            running if running.wait != Wait::Nothing => {
                running.state = State::Asleep;
                running.usage.context_switches_voluntary += 1;
                self.cpus.leaves(now, cpu)
            }
            _ => {
                let next = self.cpus.goes_on(now, cpu);
                if next != task {
                    self.task(task).usage.context_switches_involuntary += 1;
                }
                Some(next)
            }
        };
        if let Some(next) = next {
            self.burst(now, cpu, next);
        }
    }

    /// What the task does until it waits or has computed for a while.
    fn burst(&mut self, now: Time, cpu: u16, task: TaskId) {
        let took_ns = if task == self.daemon() {
            self.balance(now)
        } else {
            self.sort_on(now, task)
        };
        self.events.put(now + took_ns, Event::Cpu(cpu));
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
        self.written_by_first
            .get_or_insert(self.memory.traffic.written);
    }
}
