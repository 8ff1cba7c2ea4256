//! Tasks on CPUs: each asks its jobs what next, spends the time that a call costs, and sleeps when it has to wait.

use workload::job::OpKind;

use super::clock::Event;
use super::cpus::{Call, CallContext, RunnerNumber, Switch, TimedReminder, Turn, WorkItem};
use super::task::{Action, DoneJobs, State, drawn};
use super::{FileLayout, HOUSEKEEPER, Path, World};
use crate::key_reader::KeyReader;
use block_layer::{KERNEL_TASKS, TaskId};
use events::time::Time;
use memory::cache::{FileId, PAGE_BYTES};

impl World {
    /// The task continues unless it waits for something else too. A wake-up may be one of an earlier phase.
    pub(super) fn wake(&mut self, now: Time, number: TaskId) {
        let Some(task) = self.tasks.get(number) else {
            return;
        };
        let waits = self.io.waits(number);
        if let State::Polling(cpu, since) = task.state() {
            if !task.is_blocked() && !waits {
                self.end_polling(now, cpu, since, number);
                self.run_task(now, cpu, number);
            }
            return;
        }
        if task.naps_at(now) {
            return;
        }
        // Who polls looks for what its call waits for as soon as that is in the queue.
        let blocked = task.is_blocked() && !task.looks_for_completions();
        if task.state() != State::Asleep || blocked || waits {
            return;
        }
        self.wants_cpu(now, number);
    }

    /// The task does not sleep any more.
    pub(super) fn wants_cpu(&mut self, now: Time, number: TaskId) {
        let later = self.cpus.wants(now, number);
        self.tasks[number].waits_for_cpu();
        self.plan_reminder(later);
    }

    /// What the task's call waited for has happened.
    pub(super) fn unblock(&mut self, now: Time, number: TaskId) {
        if number == HOUSEKEEPER {
            self.vfs.syncs_mut().wake_housekeeper();
        } else if number < KERNEL_TASKS {
            self.tasks[number].unblock();
            self.wake(now, number);
        }
    }

    /// The task has a CPU: what does it do next?
    pub(super) fn run_task(&mut self, now: Time, cpu: u16, number: TaskId) {
        let task = &mut self.tasks[number];
        task.runs_on(cpu);
        if task.begins_retry() {
            let finds = self.io.finds_request(number);
            return self.spend(now, cpu, number, Call::Retry { finds }, None, None);
        }
        if task.is_blocked() && task.looks_for_completions() {
            return self.poll(now, cpu, number);
        }
        // A call that had to wait for the cache is made again.
        if self.tasks[number].action().is_none()
            && let Some(action) = self.next_action(self.phase.since(now), number)
        {
            self.tasks[number].does(action);
        }
        let task = &self.tasks[number];
        match task.action() {
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
        let call = self.tasks[number].call(action, pages, of_mount_ns);
        let writes = match call {
            Call::Write { .. } => self.inode_written(action),
            _ => None,
        };
        self.spend(now, cpu, number, call, drive, writes);
    }

    /// The file of a filesystem that the action writes to.
    fn inode_written(&self, action: Action) -> Option<FileId> {
        let Action::Start(_, op) = action else {
            return None;
        };
        let file = self.phase.file(op.file);
        let is_allocated = matches!(self.vfs.file(file).place, FileLayout::Allocated { .. });
        is_allocated.then_some(file)
    }

    fn spend(&mut self, now: Time, cpu: u16, number: TaskId, call: Call, drive: Option<usize>, writes: Option<FileId>) {
        let calling = CallContext { task: number, cpu, call, drive, writes };
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
        let cache = self.vfs.cache();
        let in_turn = op.kind == OpKind::Read && cache.is_some_and(|cache| cache.copies_in_turn(offset, bytes));
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
        let past_cache = self.tasks[number].path() != Path::Buffered && !op.kind.is_sync();
        let file = self.phase.file(op.file);
        (past_cache && self.vfs.mount_of(file).is_none()).then(|| self.vfs.file(file).drive)
    }

    fn next_action(&mut self, since_start: Time, number: TaskId) -> Option<Action> {
        if !self.tasks[number].has_actions() {
            self.offers(since_start, number);
        }
        if let Some(operations) = self.tasks[number].begins_submission() {
            self.io.begin_submission(number, operations);
        }
        self.tasks[number].take_action()
    }

    /// Asks the task's jobs for operations. The end of one may be that of others.
    fn offers(&mut self, since_start: Time, number: TaskId) {
        let DoneJobs { one_is_done, stoppers_done } = self.tasks[number].ask_jobs(since_start, self.phase.is_cut());
        if one_is_done && self.tasks.ends_all(number) {
            self.phase.first_is_done();
        }
        if self.phase.stoppers_are_done(stoppers_done) {
            self.stop_jobs();
        }
    }

    /// No job offers anything any more; those that wait for a time come at once.
    pub(super) fn stop_jobs(&mut self) {
        for (number, task) in (0..).zip(self.tasks.iter_mut()) {
            task.stop();
            self.clock.put(self.clock.now(), Event::Wake(number));
        }
    }

    /// Nothing to do: until a completion, a time, or for good.
    fn sleep(&mut self, now: Time, cpu: u16, number: TaskId) {
        let task = &mut self.tasks[number];
        if task.is_done() {
            task.is_gone();
            self.phase.task_is_done();
            for drive in self.io.drive_numbers() {
                self.io[drive].exited(now, number);
                self.call_drive(now, drive);
            }
        } else {
            task.falls_asleep();
            self.plan_wakeup(number);
            self.count_switch(number, Switch::Voluntary);
        }
        let for_io = self.tasks[number].has_outstanding();
        self.leave_cpu(now, cpu, number, for_io);
    }

    /// When one of its jobs wants to be asked again.
    pub(super) fn plan_wakeup(&mut self, number: TaskId) {
        if let Some(at) = self.tasks[number].next_wakeup() {
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
    pub(super) fn give(&mut self, now: Time, runner: RunnerNumber, by: Option<u16>, item: WorkItem) {
        let later = self.cpus.give(now, runner, by, item);
        self.plan_reminder(later);
    }

    pub(super) fn plan_reminder(&mut self, later: TimedReminder) {
        if let Some((at, reminder)) = later {
            self.clock.put(at, Event::Reminder(reminder));
        }
    }

    /// The call has had its time on the CPU: now it takes effect.
    pub(super) fn call_done(&mut self, now: Time, cpu: u16, number: TaskId) {
        let task = &mut self.tasks[number];
        // The scheduler may have moved it since the call began.
        task.runs_on(cpu);
        if task.ends_retry() {
            self.tries_again(now, number);
        } else {
            self.take_effect(now, number);
        }
        let has_ended = self.tasks[number].has_submitted();
        self.look_at_submission(now, number, has_ended);
        if has_ended {
            self.cpus.has_submitted(now, cpu);
        }
        self.count_use(number);
        let used_by_all = self.tasks.used_by_all();
        let task = &mut self.tasks[number];
        task.sample(self.phase.since(now), used_by_all);
        let waits = self.io.waits(number);
        if task.is_blocked() && !waits && task.looks_for_completions() {
            return self.poll(now, cpu, number);
        }
        // Woken before it was asleep, it does not go to sleep.
        if (task.is_blocked() || waits) && !task.retries() {
            task.falls_asleep();
            self.count_switch(number, Switch::Voluntary);
            self.leave_cpu(now, cpu, number, true);
            return;
        }
        let turn = self.cpus.goes_on(now, cpu, number);
        if turn != Turn::Task(number) {
            self.tasks[number].waits_for_cpu();
            self.count_switch(number, Switch::Involuntary);
        }
        self.has_cpu(now, cpu, turn);
    }

    fn take_effect(&mut self, now: Time, number: TaskId) {
        let task = &mut self.tasks[number];
        match task.take_effect() {
            Action::Reap(id) => {
                let operation = self.operations.take(id);
                task.reaped();
                self.reaped(now, number, &operation);
                if self.tasks[number].path().is_async() {
                    self.offers(self.phase.since(now), number);
                }
            }
            Action::Start(job, op) => self.start(now, number, job, op),
            Action::Sync(job, op) => self.sync_written(now, number, job, op),
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
