//! Tasks on CPUs: each asks its jobs what next, spends the time that a call costs, and sleeps when it has to wait.

use workload::job::Next;

use super::task::{Action, Part, State};
use super::{Event, HOUSEKEEPER, KERNEL_TASKS, Path, World};
use crate::block::TaskId;
use crate::cache::PAGE_BYTES;
use crate::time::Time;

impl World {
    /// The task goes on unless it waits for something else too. A wake-up may be one of an earlier phase.
    pub(super) fn wake(&mut self, now: Time, number: TaskId) {
        let Some(task) = self.tasks.get(number as usize) else {
            return;
        };
        if task.state != State::Asleep || task.blocked || self.waiting_bios.contains_key(&number) {
            return;
        }
        match self.cpus.wants(now, number) {
            Some(cpu) => self.run_task(now, cpu, number),
            None => self.tasks[number as usize].state = State::Ready,
        }
    }

    /// What the task's call waited for has happened.
    pub(super) fn unblock(&mut self, now: Time, number: TaskId) {
        if number == HOUSEKEEPER {
            self.housekeeper_woken = true;
        } else if number < KERNEL_TASKS {
            self.tasks[number as usize].blocked = false;
            self.wake(now, number);
        }
    }

    /// The task has a CPU: what does it do next?
    fn run_task(&mut self, now: Time, cpu: u16, number: TaskId) {
        self.tasks[number as usize].state = State::Running(cpu);
        // A call that had to wait for the cache is made again.
        if self.tasks[number as usize].action.is_none() {
            let action = self.next_action(now - self.phase.start, number);
            self.tasks[number as usize].action = action;
        }
        match self.tasks[number as usize].action {
            Some(action) => {
                let cost = self.mount_cost(number, action);
                let task = &mut self.tasks[number as usize];
                let cost = cost.unwrap_or_else(|| {
                    let cost = cost_of(&self.cpu_spec, task.path, action);
                    task.drawn(cost, self.cpu_spec.jitter)
                });
                task.used.cpu_system_ns += cost;
                self.used.cpu_system_ns += cost;
                self.agenda.put(now + cost, Event::Cpu(cpu));
            }
            None => self.sleep(now, cpu, number),
        }
    }

    fn next_action(&mut self, since_start: Time, number: TaskId) -> Option<Action> {
        let task = &mut self.tasks[number as usize];
        if let Some(id) = task.completed.pop_front() {
            return Some(Action::Reap(id));
        }
        let (mut action, mut one_is_done) = (None, false);
        for (job, running) in task.jobs.iter_mut().enumerate() {
            if running.done {
                continue;
            }
            if self.phase.cut
                && running.part != Part::Rest
                && let Some(sync) = running.next_of_early_end(since_start)
            {
                action = Some(Action::Start(job, sync));
                break;
            }
            match running.next(since_start) {
                Next::Io(op) => {
                    action = Some(Action::Start(job, op));
                    break;
                }
                Next::Done => {
                    running.done = true;
                    one_is_done = true;
                }
                Next::WaitUntil(_) | Next::WaitForCompletion => {}
            }
        }
        if one_is_done && self.phase.ends_with_first {
            self.phase.cut |= self.ends_all(number);
        }
        action
    }

    /// A job of this task is done: whether that ends the measured part. Tasks of a cgroup compete as one.
    fn ends_all(&self, number: TaskId) -> bool {
        match self.tasks[number as usize].group {
            0 => true,
            group => self
                .tasks
                .iter()
                .filter(|task| task.group == group)
                .flat_map(|task| &task.jobs)
                .all(|job| job.done),
        }
    }

    /// Nothing to do: until a completion, a time, or for good.
    fn sleep(&mut self, now: Time, cpu: u16, number: TaskId) {
        let task = &mut self.tasks[number as usize];
        if task.jobs.iter().all(|job| job.done) {
            task.state = State::Gone;
            self.phase.tasks_left -= 1;
            for drive in &mut self.drives {
                drive.exited(now, number);
            }
        } else {
            task.state = State::Asleep;
            task.used.context_switches_voluntary += 1;
            self.used.context_switches_voluntary += 1;
            let next = task.jobs.iter().filter_map(|job| job.next_wakeup()).min();
            if let Some(at) = next {
                let at = self.phase.start.saturating_add(at);
                self.agenda.put(at, Event::Wake(number));
            }
        }
        self.leave_cpu(now, cpu);
    }

    fn leave_cpu(&mut self, now: Time, cpu: u16) {
        if let Some(next) = self.cpus.leaves(now, cpu) {
            self.run_task(now, cpu, next);
        }
    }

    /// The call has had its time on the CPU: now it takes effect.
    pub(super) fn cpu_done(&mut self, now: Time, cpu: u16) {
        let number = self.cpus.on(cpu);
        let task = &mut self.tasks[number as usize];
        match task.action.take().expect("the CPU did something") {
            Action::Reap(id) => {
                let operation = self.operations.take(id);
                task.jobs[operation.job].succeeded(now - self.phase.start, &operation.op);
            }
            Action::Start(job, op) => self.start(now, number, job, op),
        }
        let task = &mut self.tasks[number as usize];
        task.sample(now - self.phase.start, self.used);
        if task.blocked || self.waiting_bios.contains_key(&number) {
            task.state = State::Asleep;
            task.used.context_switches_voluntary += 1;
            self.used.context_switches_voluntary += 1;
            self.leave_cpu(now, cpu);
            return;
        }
        let next = self.cpus.goes_on(now, cpu);
        if next != number {
            let task = &mut self.tasks[number as usize];
            task.state = State::Ready;
            task.used.context_switches_involuntary += 1;
            self.used.context_switches_involuntary += 1;
        }
        self.run_task(now, cpu, next);
    }
}

fn cost_of(spec: &super::CpuSpec, path: Path, action: Action) -> Time {
    match action {
        Action::Reap(_) => spec.completion_ns,
        Action::Start(_, op) if path == Path::Buffered => {
            spec.call_ns + spec.page_copy_ns * u64::from(op.bytes).div_ceil(PAGE_BYTES)
        }
        Action::Start(..) => spec.call_ns,
    }
}
