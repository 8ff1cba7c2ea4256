//! Which task has a CPU, and which CPU a task goes to.

use super::cpu::{Level, State};
use super::run_queue::{QueuedTask, TaskNumber};
use super::topology::Distance;
use super::work::Work;
use super::{CpuSet, Processors};

impl<T: Copy> Processors<T> {
    /// A task that slept has work.
    pub(super) fn wake_up(&mut self, number: TaskNumber, by: Option<u16>) {
        let task = &mut self.tasks[number as usize];
        task.asleep = false;
        let object = task.object;
        let cpu = self.place(number);
        if let Some(by) = by {
            let work = Work::of(self.spec.scheduling.wake_cycles)
                .touching(object)
                .touching(self.cpus[usize::from(cpu)].run_queue);
            self.charge(self.now, by, work);
        }
        self.show_woken(by.unwrap_or(cpu), number);
        self.enqueue(number, cpu, by, true);
    }

    /// Something for a task is to be done there: begun, or gone on with.
    pub(super) fn choose_task(&mut self, number: u16) -> bool {
        if let Some(task) = self.cpus[usize::from(number)].task {
            if self.goes_on(number, task) {
                return true;
            }
            self.put_down_task(number);
        }
        loop {
            if !self.online.has(number) {
                return false;
            }
            let Some(next) = self.take_ready(number).or_else(|| self.steal(number)) else {
                return false;
            };
            self.switch_to(number, next);
            if self.cpus[usize::from(number)].active[Level::Task as usize].is_some() || self.goes_on(number, next) {
                return true;
            }
            self.put_down_task(number);
        }
    }

    /// No task has the CPU.
    pub(super) fn put_down_task(&mut self, number: u16) -> Option<TaskNumber> {
        let cpu = &mut self.cpus[usize::from(number)];
        let task = cpu.task.take()?;
        self.tasks[task as usize].used += std::mem::take(&mut cpu.task_used);
        Some(task)
    }

    /// Puts a task in line there, ahead of its rank or behind it, and notifies the CPU if it has to act at once.
    pub(super) fn enqueue(&mut self, number: TaskNumber, to: u16, by: Option<u16>, last: bool) {
        let waiting = self.waiting(number);
        let task = &mut self.tasks[number as usize];
        task.cpu = to;
        let rank = task.rank;
        let cpu = &mut self.cpus[usize::from(to)];
        if last {
            cpu.ready.put(rank, waiting);
        } else {
            cpu.ready.put_first(rank, waiting);
        }
        self.movable.put(to, cpu.ready.has_movable());
        let tell = match cpu.state {
            State::Idle { .. } => self.idle.has(to),
            State::Running(_) => {
                let gives_way = cpu.task.is_some_and(|current| {
                    let current = self.tasks[current as usize].rank;
                    let ran_enough = cpu.ran_ns >= self.spec.scheduling.preempt_after_ns;
                    rank < current || rank == current && (ran_enough || cpu.slice_left == 0)
                });
                let news = gives_way && !cpu.gives_way;
                cpu.gives_way |= gives_way;
                news
            }
            State::Waking | State::Offline => false,
        };
        self.idle.put(to, false);
        match by {
            Some(by) if by != to && tell => self.ipi(self.now, by, to, 0, Work::of(0)),
            // To count down the slice of whom it waits for.
            _ if tell || !matches!(self.cpus[usize::from(to)].state, State::Idle { .. }) => {
                self.mark_undecided(to);
            }
            _ => {}
        }
        self.spread(to);
    }

    /// If tasks wait for one another there and a CPU is idle that one of them may go to, it goes.
    fn spread(&mut self, from: u16) {
        let cpu = &mut self.cpus[usize::from(from)];
        let first = usize::from(cpu.task.is_none());
        if !cpu.ready.has_movable() || cpu.ready.len() <= first || self.idle.is_empty() {
            return;
        }
        let mut ready = std::mem::take(&mut cpu.ready);
        let found = ready.take_movable(|task| self.idle.has(self.place(task)));
        self.movable.put(from, ready.has_movable());
        self.cpus[usize::from(from)].ready = ready;
        if let Some(task) = found {
            self.enqueue(task, self.place(task), None, true);
        }
    }

    /// Where a task goes that has something to do: its last CPU if that is idle, the nearest idle one, or its last.
    pub(super) fn place(&self, number: TaskNumber) -> u16 {
        let task = &self.tasks[number as usize];
        let allowed = self.allowed(number);
        if self.idle.has(task.cpu) && allowed.has(task.cpu) {
            return task.cpu;
        }
        for distance in self.distances() {
            let near = self.spec.topology.around(task.cpu, distance);
            if let Some(cpu) = self.idle.first_common(allowed, near) {
                return cpu;
            }
        }
        if allowed.has(task.cpu) && self.online.has(task.cpu) {
            return task.cpu;
        }
        self.nearest(task.cpu, allowed).expect("some allowed CPU is online")
    }

    /// The nearest online CPU of a set.
    pub(super) fn nearest(&self, to: u16, set: &CpuSet) -> Option<u16> {
        Distance::ALL.into_iter().find_map(|distance| {
            let near = self.spec.topology.around(to, distance);
            self.online.first_common(set, near)
        })
    }

    /// Where a task may run: anywhere, if none of its CPUs is online.
    fn allowed(&self, number: TaskNumber) -> &CpuSet {
        let allowed = &self.tasks[number as usize].allowed;
        if allowed.meets(&self.online) { allowed } else { &self.online }
    }

    /// The current task gets its next piece of work done, unless it gives way or has none.
    fn goes_on(&mut self, number: u16, task: TaskNumber) -> bool {
        let cpu = &mut self.cpus[usize::from(number)];
        let active = cpu.active[Level::Task as usize];
        let state = &mut self.tasks[task as usize];
        let has_work = active.is_some() || state.suspended.is_some() || !state.work.is_empty();
        let used_up = cpu.slice_left == 0;
        let has_to = std::mem::take(&mut cpu.gives_way) || used_up;
        let gives_way = has_to && cpu.ready.competes_with(state.rank);
        if !has_work {
            state.asleep = true;
            state.used.slept += 1;
            state.slice_left = cpu.slice_left;
            if state.sleeps_for_io {
                state.waits_for_io_on = Some(number);
                self.count_io_sleeper(number, true);
            }
            return false;
        }
        if gives_way {
            state.suspend(cpu.active[Level::Task as usize].take());
            state.slice_left = cpu.slice_left;
            state.used.gave_way += 1;
            self.give_up(number, task, used_up);
            return false;
        }
        if used_up {
            cpu.slice_left = self.spec.scheduling.time_slice_ns;
        }
        if active.is_none() {
            let next = match state.suspended.take() {
                Some(suspended) => suspended,
                None => {
                    let work = state.work.pop_front().expect("it has work");
                    self.started(number, work)
                }
            };
            self.cpus[usize::from(number)].active[Level::Task as usize] = Some(next);
        }
        true
    }

    /// The task waits in line again: behind the others if it has used up its slice, and elsewhere if a CPU is idle.
    fn give_up(&mut self, number: u16, task: TaskNumber, used_up: bool) {
        let elsewhere = self.place(task);
        if elsewhere != number {
            self.enqueue(task, elsewhere, Some(number), true);
            return;
        }
        let waiting = self.waiting(task);
        let rank = self.tasks[task as usize].rank;
        let ready = &mut self.cpus[usize::from(number)].ready;
        if used_up {
            ready.put(rank, waiting);
        } else {
            // Behind the one that it gives way to.
            let first = ready.take().expect("it gives way to somebody");
            ready.put_first(rank, waiting);
            let first_waiting = self.waiting(first);
            let first_rank = self.tasks[first as usize].rank;
            let ready = &mut self.cpus[usize::from(number)].ready;
            ready.put_first(first_rank, first_waiting);
        }
        let has_movable = self.cpus[usize::from(number)].ready.has_movable();
        self.movable.put(number, has_movable);
    }

    /// The task in line. If its only CPU is offline, it may go anywhere, and back once that CPU is online.
    fn waiting(&self, task: TaskNumber) -> QueuedTask {
        let state = &self.tasks[task as usize];
        QueuedTask { task, movable: state.movable || !state.allowed.meets(&self.online) }
    }

    fn take_ready(&mut self, number: u16) -> Option<TaskNumber> {
        let cpu = &mut self.cpus[usize::from(number)];
        let task = cpu.ready.take();
        self.movable.put(number, cpu.ready.has_movable());
        task
    }

    /// A task that waits elsewhere and may run here; the nearest.
    pub(super) fn steal(&mut self, number: u16) -> Option<TaskNumber> {
        if self.movable.is_empty() {
            return None;
        }
        for distance in self.distances() {
            let near = self.spec.topology.around(number, distance);
            let mut from = near.start;
            while let Some(victim) = self.movable.first_common(&self.online, from..near.end) {
                // The first in line of a CPU that no task has is not left waiting: it is on its way there.
                let state = &mut self.cpus[usize::from(victim)];
                if state.ready.len() <= usize::from(state.task.is_none()) {
                    from = victim + 1;
                    continue;
                }
                let mut ready = std::mem::take(&mut state.ready);
                let found = ready.take_movable(|task| self.allowed(task).has(number));
                self.movable.put(victim, ready.has_movable());
                self.cpus[usize::from(victim)].ready = ready;
                if found.is_some() {
                    return found;
                }
                from = victim + 1;
            }
        }
        None
    }

    /// The CPU is the task's from now on; if it was another's, that costs something.
    fn switch_to(&mut self, number: u16, task: TaskNumber) {
        let scheduling = self.spec.scheduling;
        let state = &mut self.tasks[task as usize];
        state.cpu = number;
        if state.slice_left == 0 {
            state.slice_left = scheduling.time_slice_ns;
        }
        let (slice_left, object) = (state.slice_left, state.object);
        let waited_on = state.waits_for_io_on.take();
        let context = state.work.front().map(|work| work.context);
        let cpu = &mut self.cpus[usize::from(number)];
        let cycles = match cpu.last_task.replace(task) {
            Some(last) if last == task => 0,
            _ => {
                cpu.events.switches += 1;
                scheduling.switch_cycles
            }
        };
        cpu.task = Some(task);
        cpu.gives_way = false;
        cpu.slice_left = slice_left;
        cpu.ran_ns = 0;
        let mut work = Work::of(cycles).touching(cpu.run_queue).touching(object);
        if context == Some(super::Context::KernelThread) {
            work = work.of_kernel_thread();
        }
        if let Some(cpu) = waited_on {
            self.count_io_sleeper(cpu, false);
        }
        let mut active = self.started(number, work);
        let state = &mut self.tasks[task as usize];
        let first = match state.work.front() {
            Some(next) if state.suspended.is_none() && next.context == active.context => state.work.pop_front(),
            _ => None,
        };
        if let Some(first) = first {
            let (cost_ns, masked_until) = self.begin(number, &first, self.now + active.left_ns);
            active.left_ns += cost_ns;
            active.masked_until = masked_until;
            active.tag = first.tag;
        } else if active.left_ns == 0 {
            return;
        }
        self.cpus[usize::from(number)].active[Level::Task as usize] = Some(active);
    }

    fn distances(&self) -> impl Iterator<Item = Distance> + use<T> {
        let furthest = self.spec.scheduling.migrates_within;
        Distance::ALL.into_iter().filter(move |&distance| distance <= furthest)
    }
}
