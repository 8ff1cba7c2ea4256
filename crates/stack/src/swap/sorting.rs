//! The run: tasks on CPUs, faults, the daemon, the area; one agenda of events.

use std::collections::BTreeMap;

use workload::measure::Usage;
use workload::rng::stream;

use super::area::{Area, Done};
use super::pages::{Memory, PAGE_BYTES, PageNumber, Place};
use super::quicksort::Sort;
use super::reclaim::{Reclaim, ReclaimKind, ReverseMap, Step, VirtualScan};
use super::slots::Slots;
use super::spec::{SortLoad, SwapSpec, Watermarks};
use super::task::{State, Task, Wait};
use crate::agenda::Agenda;
use crate::block::{Direction, Sector, TaskId};
use crate::station::Broken;
use crate::time::{MILLISECOND, SECOND, Time};
use crate::world::{CpuSpec, Drive, Simple};

/// What it runs on.
pub struct Parts {
    pub cpus: CpuSpec,
    pub drive: Drive,
    /// Where the area begins on it.
    pub area_begin: Sector,
    pub reclaim: ReclaimKind,
}

/// What a process came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sorted {
    /// None: it was stopped before.
    pub finished_ns: Option<Time>,
    pub usage: Usage,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Results {
    pub elapsed_ns: Time,
    pub processes: Vec<Sorted>,
    pub swap_in_bytes: u64,
    pub swap_out_bytes: u64,
    /// Of it, after the first process had finished.
    pub swap_out_after_first_bytes: u64,
    pub swap_bytes_max: u64,
    pub memory_bytes_max: u64,
}

pub struct Sorting {
    agenda: Agenda<Event>,
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
            agenda: Agenda::new(),
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
            let Some((now, event)) = self.agenda.take() else {
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
        go_on(self.agenda.now(), self.fraction());
    }

    pub fn results(&self) -> Results {
        let processes = self.tasks.iter().filter(|task| task.sort.is_some());
        Results {
            elapsed_ns: self.agenda.now(),
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
    pub fn check(&self) -> Result<(), Broken> {
        self.memory.check()?;
        self.area.drive().check("swap", self.agenda.now())
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
        self.agenda.put(now + took_ns, Event::Cpu(cpu));
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
            if page.place != Place::Mapped {
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

    /// A touch of a page that is not in the page table. Returns the CPU time; afterwards the page may be touched again, or
    /// the task waits.
    fn fault(&mut self, now: Time, task: TaskId, number: PageNumber) -> Time {
        let page = *self.memory.page(number);
        let mut took_ns = self.swap.fault_ns;
        match page.place {
            Place::Mapped => unreachable!("a page in the page table is no fault"),
            Place::Reading => self.wait_for(task, number),
            Place::Cached if page.writing && self.reclaim.locks_written_pages() => {
                self.area.unplug();
                self.wait_for(task, number);
            }
            Place::Cached => {
                self.memory.map_again(number);
                self.memory.mark_accessed(number);
                self.task(task).usage.faults_minor += 1;
            }
            Place::Nowhere | Place::Swapped => {
                let (scanned_ns, has_frame) = self.make_sure_of_a_frame(now, task);
                took_ns += scanned_ns;
                if !has_frame {
                    took_ns -= self.swap.fault_ns;
                } else if page.place == Place::Nowhere {
                    self.memory.map_new(number);
                    self.reclaim.mapped_first(&mut self.memory, number);
                    self.task(task).usage.faults_minor += 1;
                } else {
                    self.read_around(now, task, number);
                    self.task(task).usage.faults_major += 1;
                }
            }
        }
        self.run_area(now);
        self.task(task).usage.cpu_system_ns += took_ns;
        took_ns
    }

    /// `swapin_readahead`: the page with those whose slots lie around its own, as long as there are frames.
    fn read_around(&mut self, now: Time, task: TaskId, number: PageNumber) {
        let slot = self
            .memory
            .page(number)
            .slot
            .expect("where it was swapped to");
        let around: Vec<u32> = self
            .memory
            .slots
            .around(slot, self.swap.page_cluster)
            .collect();
        self.memory.begin_read(number);
        let mut run: Option<(u32, u32)> = None;
        let mut submitted = true;
        for other in around {
            let owner = self.memory.slots.owner(other).expect("only slots in use");
            let is_wanted = owner == number
                || self.memory.page(owner).place == Place::Swapped
                    && self.memory.free() > self.watermarks.min;
            if !is_wanted {
                continue;
            }
            if owner != number {
                self.memory.begin_read(owner);
            }
            run = match run {
                Some((first, slots)) if first + slots == other => Some((first, slots + 1)),
                Some((first, slots)) => {
                    submitted &= self.area.submit(now, task, Direction::Read, first, slots);
                    Some((other, 1))
                }
                None => Some((other, 1)),
            };
        }
        let (first, slots) = run.expect("its own slot is among them");
        submitted &= self.area.submit(now, task, Direction::Read, first, slots);
        self.area.unplug();
        if submitted {
            self.wait_for(task, number);
        } else {
            self.task(task).wait = Wait::Requests;
        }
    }

    /// Whether there is a frame for the task: it may have to free some itself, and wait. And the CPU time of looking.
    fn make_sure_of_a_frame(&mut self, now: Time, task: TaskId) -> (Time, bool) {
        if self.memory.free() < self.watermarks.low {
            self.wake_daemon(now);
        }
        if self.memory.free() > self.watermarks.min && self.task(task).effort.is_none() {
            return (0, true);
        }
        let (took_ns, freed) = self.free_some(now, task);
        match freed {
            None => (took_ns, false),
            Some(true) => (took_ns, self.memory.free() > 0),
            Some(false) => {
                self.doze(task, Wait::Nap(now + NAP_NS));
                (took_ns, false)
            }
        }
    }

    /// The daemon: frees until enough is free. Returns the CPU time.
    fn balance(&mut self, now: Time) -> Time {
        let daemon = self.daemon();
        if self.memory.free() >= self.watermarks.high && self.task(daemon).effort.is_none() {
            self.area.unplug();
            self.run_area(now);
            self.task(daemon).wait = Wait::Work;
            return 0;
        }
        let (took_ns, freed) = self.free_some(now, daemon);
        if freed == Some(false) {
            self.doze(daemon, Wait::Rest(now + REST_NS));
        }
        self.run_area(now);
        self.task(daemon).usage.cpu_system_ns += took_ns;
        took_ns
    }

    /// Goes on freeing. None: the task has to wait; else whether it was of any use.
    fn free_some(&mut self, now: Time, task: TaskId) -> (Time, Option<bool>) {
        let mut effort = match self.task(task).effort.take() {
            Some(effort) => effort,
            None => self.reclaim.begin(),
        };
        let freed = loop {
            match self.reclaim.step(&mut self.memory, &mut effort) {
                Step::Freed => break Some(true),
                Step::Failed => break Some(false),
                Step::Write(number) => {
                    let slot = self.memory.page(number).slot.expect("a slot to write to");
                    if !self.area.submit(now, task, Direction::Write, slot, 1) {
                        self.task(task).wait = Wait::Requests;
                        break None;
                    }
                }
                Step::Wait(number) => {
                    self.area.unplug();
                    self.wait_for(task, number);
                    break None;
                }
                Step::Nap => {
                    self.area.unplug();
                    self.doze(task, Wait::Nap(now + NAP_NS));
                    break None;
                }
            }
        };
        let took_ns = effort.take_scanned() * self.swap.scan_ns;
        if freed.is_none() {
            self.task(task).effort = Some(effort);
        }
        (took_ns, freed)
    }

    fn wait_for(&mut self, task: TaskId, number: PageNumber) {
        self.task(task).wait = Wait::Page(number);
        self.waiting.entry(number).or_default().push(task);
    }

    fn doze(&mut self, task: TaskId, wait: Wait) {
        if let Wait::Nap(until) | Wait::Rest(until) = wait {
            self.agenda.put(until, Event::Alarm(task));
        }
        self.task(task).wait = wait;
    }

    fn alarm(&mut self, now: Time, task: TaskId) {
        if matches!(self.task(task).wait, Wait::Nap(until) | Wait::Rest(until) if until <= now) {
            self.wake(now, task);
        }
    }

    fn wake_daemon(&mut self, now: Time) {
        let daemon = self.daemon();
        if self.task(daemon).wait == Wait::Work {
            self.wake(now, daemon);
        }
    }

    /// The task needs nothing but a CPU; it may still be on one.
    fn wake(&mut self, now: Time, task: TaskId) {
        self.task(task).wait = Wait::Nothing;
        if self.task(task).state == State::Asleep {
            self.wants_cpu(now, task);
        }
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

    /// Collects what the drive has completed and sends it what may go.
    fn run_area(&mut self, now: Time) {
        let (mut done, mut granted) = (
            std::mem::take(&mut self.done),
            std::mem::take(&mut self.granted),
        );
        self.area.run(now, &mut done, &mut granted);
        if let Some(at) = self.area.next_event()
            && self.area_called_at.is_none_or(|called| at < called)
        {
            let at = at.max(now);
            self.area_called_at = Some(at);
            self.agenda.put(at, Event::Area);
        }
        for moved in done.drain(..) {
            self.moved(now, moved);
        }
        for task in granted.drain(..) {
            self.granted(now, task);
        }
        (self.done, self.granted) = (done, granted);
    }

    fn moved(&mut self, now: Time, moved: Done) {
        for slot in moved.first..moved.first + moved.slots {
            let number = self
                .memory
                .slots
                .owner(slot)
                .expect("a page keeps its slot on its way");
            match moved.direction {
                Direction::Read => {
                    self.memory.end_read(number);
                }
                Direction::Write => {
                    if self.memory.end_write(number) {
                        self.reclaim.written(&mut self.memory, number);
                    }
                }
            }
            for task in self.waiting.remove(&number).unwrap_or_default() {
                self.wake(now, task);
            }
        }
        if moved.direction == Direction::Write {
            for task in 0..self.tasks.len() as TaskId {
                if matches!(self.task(task).wait, Wait::Nap(_)) {
                    self.wake(now, task);
                }
            }
        }
    }

    /// All of the task's requests are on their way: a reader waits for its page, a writer goes on.
    fn granted(&mut self, now: Time, task: TaskId) {
        let running = self.task(task);
        if running.wait != Wait::Requests {
            return;
        }
        let reads = running.effort.is_none();
        let number = running.first_page + running.touch.map_or(0, |touch| touch.page);
        if reads && self.memory.page(number).place == Place::Reading {
            self.area.unplug();
            self.wait_for(task, number);
        } else {
            self.wake(now, task);
        }
    }
}
