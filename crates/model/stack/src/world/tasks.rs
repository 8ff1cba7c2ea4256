//! Tasks on CPUs: each asks its jobs what next, spends the time that a call costs, and sleeps when it has to wait.

use workload::job::{Next, OpKind};

use super::clock::Event;
use super::cpus::{Call, Calling, Later, RunnerNumber, Switch, Turn, WorkItem};
use super::task::{Action, Again, RunningJob, State, Task, drawn};
use super::{HOUSEKEEPER, Path, World};
use crate::key_reader::KeyReader;
use block_layer::{KERNEL_TASKS, TaskId};
use events::time::Time;
use memory::cache::PAGE_BYTES;

impl World {
    /// The task goes on unless it waits for something else too. A wake-up may be one of an earlier phase.
    pub(super) fn wake(&mut self, now: Time, number: TaskId) {
        let Some(task) = self.tasks.get(number) else {
            return;
        };
        let waits = self.submission.waits(number);
        if let State::Polling(cpu, since) = task.state {
            if !task.blocked && !waits {
                self.end_polling(now, cpu, since, number);
                self.run_task(now, cpu, number);
            }
            return;
        }
        if task.naps_until.is_some_and(|until| now < until) {
            return;
        }
        // Who polls looks for what its call waits for as soon as that is in the queue.
        let blocked = task.blocked && !task.looks_for_completions();
        if task.state != State::Asleep || blocked || waits {
            return;
        }
        self.wants_cpu(now, number);
    }

    /// The task does not sleep any more.
    pub(super) fn wants_cpu(&mut self, now: Time, number: TaskId) {
        match self.cpus.wants(now, number) {
            Some(cpu) => self.run_task(now, cpu, number),
            None => self.tasks[number].state = State::Ready,
        }
    }

    /// What the task's call waited for has happened.
    pub(super) fn unblock(&mut self, now: Time, number: TaskId) {
        if number == HOUSEKEEPER {
            self.syncs.wake_housekeeper();
        } else if number < KERNEL_TASKS {
            self.tasks[number].blocked = false;
            self.wake(now, number);
        }
    }

    /// The task has a CPU: what does it do next?
    pub(super) fn run_task(&mut self, now: Time, cpu: u16, number: TaskId) {
        let task = &mut self.tasks[number];
        task.state = State::Running(cpu);
        if task.again == Again::Woken {
            task.again = Again::Tries;
            return self.spend(now, cpu, number, Call::Resume, None);
        }
        if task.blocked && task.looks_for_completions() {
            return self.poll(now, cpu, number);
        }
        // A call that had to wait for the cache is made again.
        if self.tasks[number].action.is_none() {
            let action = self.next_action(self.phase.since(now), number);
            self.tasks[number].action = action;
        }
        let task = &self.tasks[number];
        match task.action {
            Some(action) => self.call(now, cpu, number, action),
            None if task.looks_for_completions() => self.poll(now, cpu, number),
            None => self.sleep(now, cpu, number),
        }
    }

    /// The CPU works for the task until the action takes effect.
    fn call(&mut self, now: Time, cpu: u16, number: TaskId, action: Action) {
        let of_mount_ns = self.mount_cost(number, action);
        let drive = self.submits_to(number, action);
        self.touched.insert(KeyReader::Cpus);
        if of_mount_ns.is_none() {
            self.touched.insert(KeyReader::Calls);
        }
        let pages = self.copied_before(action);
        let task = &mut self.tasks[number];
        let call = match (of_mount_ns, std::mem::take(&mut task.resumes)) {
            (Some(ns), _) => Call::OfMount { ns },
            (None, true) => Call::Resume,
            (None, false) => match task.copies.take() {
                Some(pages) => Call::CopyOn { pages },
                None => call_of(task, action, pages),
            },
        };
        task.naps_until = None;
        self.spend(now, cpu, number, call, drive);
    }

    fn spend(&mut self, now: Time, cpu: u16, number: TaskId, call: Call, drive: Option<usize>) {
        let calling = Calling {
            task: number,
            cpu,
            call,
            drive,
        };
        let (used, draws) = self.tasks.used(number);
        let drawn = |cost, jitter| drawn(draws, cost, jitter);
        let later = self.cpus.call(now, calling, used, drawn);
        self.plan_reminder(later);
    }

    /// Pages that a call through the page cache copies before it takes effect.
    fn copied_before(&self, action: Action) -> u64 {
        let Action::Start(_, op) = action else {
            return 0;
        };
        let (offset, bytes) = (op.offset, u64::from(op.bytes));
        let cache = self.cached.cache.as_ref();
        let in_turn = op.kind == OpKind::Read
            && cache.is_some_and(|cache| cache.copies_in_turn(offset, bytes));
        match in_turn {
            true => 0,
            false => bytes.div_ceil(PAGE_BYTES),
        }
    }

    /// The drive whose queue the action goes to at once, past the page cache.
    fn submits_to(&self, number: TaskId, action: Action) -> Option<usize> {
        let Action::Start(_, op) = action else {
            return None;
        };
        let past_cache = self.tasks[number].path != Path::Buffered && !op.kind.is_sync();
        let file = self.phase.file(op.file);
        (past_cache && self.mount_of(file).is_none()).then(|| self.files[file as usize].drive)
    }

    fn next_action(&mut self, since_start: Time, number: TaskId) -> Option<Action> {
        if let Some(action) = self.tasks[number].take_action() {
            return Some(action);
        }
        self.offers(since_start, number);
        self.tasks[number].take_action()
    }

    /// Asks the task's jobs for operations: for all that they offer now, or for one where each is waited for.
    fn offers(&mut self, since_start: Time, number: TaskId) {
        let task = &mut self.tasks[number];
        let (mut one_is_done, mut stoppers_done) = (false, 0);
        let mut jobs = task.jobs.iter_mut().enumerate();
        while let Some((job, running)) = jobs.next()
            && task.offered.is_empty() | task.path.is_async()
        {
            if running.done {
                continue;
            }
            if self.phase.is_cut() {
                running.end_early(since_start);
            }
            loop {
                match running.next(since_start) {
                    Next::Io(op) => {
                        task.offered.push_back((job, op));
                        if !task.path.is_async() {
                            break;
                        }
                    }
                    Next::Done => {
                        running.done = true;
                        one_is_done = true;
                        stoppers_done += usize::from(running.stops);
                        break;
                    }
                    Next::WaitUntil(_) | Next::WaitForCompletion => break,
                }
            }
        }
        if one_is_done && self.ends_all(number) {
            self.phase.first_is_done();
        }
        if self.phase.stoppers_are_done(stoppers_done) {
            self.stop_jobs();
        }
    }

    /// No job offers anything any more; those that wait for a time come at once.
    pub(super) fn stop_jobs(&mut self) {
        for (number, task) in (0..).zip(self.tasks.iter_mut()) {
            task.jobs.iter_mut().for_each(RunningJob::stop);
            self.clock.put(self.clock.now(), Event::Wake(number));
        }
    }

    /// A job of this task is done: whether that ends the measured part. Tasks of a cgroup compete as one.
    fn ends_all(&self, number: TaskId) -> bool {
        match self.tasks[number].group {
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
        let task = &mut self.tasks[number];
        if task.jobs.iter().all(|job| job.done) {
            task.state = State::Gone;
            self.phase.task_is_done();
            for drive in 0..self.drives.len() {
                self.drives[drive].exited(now, number);
                self.call_drive(now, drive);
            }
        } else {
            task.state = State::Asleep;
            self.plan_wakeup(number);
            self.count_switch(number, Switch::Voluntary);
        }
        let for_io = self.tasks[number].outstanding > 0;
        self.leave_cpu(now, cpu, number, for_io);
    }

    /// When one of its jobs wants to be asked again.
    pub(super) fn plan_wakeup(&mut self, number: TaskId) {
        let jobs = &self.tasks[number].jobs;
        if let Some(at) = jobs.iter().filter_map(|job| job.next_wakeup()).min() {
            let at = self.phase.time_of(at);
            self.clock.put(at, Event::Wake(number));
        }
    }

    pub(super) fn leave_cpu(&mut self, now: Time, cpu: u16, number: TaskId, for_io: bool) {
        if let Some(next) = self.cpus.leaves(now, cpu, number, for_io) {
            self.has_cpu(now, cpu, next);
        }
    }

    /// Somebody has been given the CPU.
    pub(super) fn has_cpu(&mut self, now: Time, cpu: u16, turn: Turn) {
        match turn {
            Turn::Task(number) => self.run_task(now, cpu, number),
            Turn::Runner(until, reminder) => self.plan_reminder(Some((until, reminder))),
        }
    }

    /// More for a runner to do; see `Cpus::give`.
    pub(super) fn give(
        &mut self,
        now: Time,
        runner: RunnerNumber,
        by: Option<u16>,
        item: WorkItem,
    ) {
        let later = self.cpus.give(now, runner, by, item);
        self.plan_reminder(later);
    }

    pub(super) fn plan_reminder(&mut self, later: Later) {
        if let Some((at, reminder)) = later {
            self.clock.put(at, Event::Reminder(reminder));
        }
    }

    /// The call has had its time on the CPU: now it takes effect.
    pub(super) fn call_done(&mut self, now: Time, cpu: u16, number: TaskId) {
        let task = &mut self.tasks[number];
        // The scheduler may have moved it since the call began.
        task.state = State::Running(cpu);
        if task.again == Again::Tries {
            task.again = Again::No;
            self.tries_again(now, number);
        } else {
            self.take_effect(now, number);
        }
        self.count_use(number);
        let used_by_all = self.tasks.used_by_all();
        let task = &mut self.tasks[number];
        task.sample(self.phase.since(now), used_by_all);
        let waits = self.submission.waits(number);
        if task.blocked && !waits && task.looks_for_completions() {
            return self.poll(now, cpu, number);
        }
        // Woken before it was asleep, it does not go to sleep.
        if (task.blocked || waits) && task.again == Again::No {
            task.state = State::Asleep;
            self.count_switch(number, Switch::Voluntary);
            self.leave_cpu(now, cpu, number, true);
            return;
        }
        let turn = self.cpus.goes_on(now, cpu, number);
        if turn != Turn::Task(number) {
            self.tasks[number].state = State::Ready;
            self.count_switch(number, Switch::Involuntary);
        }
        self.has_cpu(now, cpu, turn);
    }

    fn take_effect(&mut self, now: Time, number: TaskId) {
        let task = &mut self.tasks[number];
        match task.action.take().expect("the CPU did something") {
            Action::Reap(id) => {
                let operation = self.operations.take(id);
                task.outstanding -= 1;
                self.reaped(now, number, operation.job, operation.op);
                if self.tasks[number].path.is_async() {
                    self.offers(self.phase.since(now), number);
                }
            }
            Action::Start(job, op) => self.start(now, number, job, op),
        }
    }

    pub(super) fn count_switch(&mut self, number: TaskId, switch: Switch) {
        let (used, _) = self.tasks.used(number);
        self.cpus.switched(switch, used);
    }

    /// Brings up to now what the task has used.
    pub(super) fn count_use(&mut self, number: TaskId) {
        let (used, _) = self.tasks.used(number);
        self.cpus.count_use(number, used);
    }
}

fn call_of(task: &Task, action: Action, pages: u64) -> Call {
    match action {
        Action::Reap(_) => Call::Reap {
            polled: task.polls.is_some(),
        },
        Action::Start(..) if task.path == Path::Buffered => Call::Copy { pages },
        Action::Start(..) => Call::Submit,
    }
}
