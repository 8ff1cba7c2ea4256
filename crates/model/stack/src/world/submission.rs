//! From tasks into the queues of drives, and what becomes of tasks that wait for a request.

use std::collections::BTreeSet;

use super::World;
use super::cpus::{Cost, Origin, WorkItem};
use super::io_path::{PlugOutcome, RetryOutcome};
use super::task::State;
use block_layer::{Bio, KERNEL_TASKS, TaskId};
use events::smp::Context;
use events::time::Time;

/// Whose bios those are that have waited for a limit: a worker's (`blk_throtl_dispatch_work_fn`).
const THROTTLED: TaskId = KERNEL_TASKS + (1 << 26);

impl World {
    /// Into the queue, or into the plug of the running call: the submitter flushes the plug in the end.
    pub(super) fn submit(&mut self, now: Time, drive: usize, bio: Bio) {
        if let Some(bio) = self.admit(now, drive, bio) {
            self.hold(now, drive, bio);
        }
    }

    /// The same into the plug of a call that submits several operations; without such a plug into that of this operation.
    pub(super) fn submit_operation(&mut self, now: Time, drive: usize, bio: Bio) {
        if let Some(bio) = self.admit(now, drive, bio) {
            self.hold_for_operation(now, drive, bio);
        }
    }

    /// The bio, unless it waits for its group's limit (`submit_bio_noacct` calls `blk_throtl_bio` first).
    fn admit(&mut self, now: Time, drive: usize, bio: Bio) -> Option<Bio> {
        let bio = self.io.admit(now, drive, bio);
        if bio.is_none() {
            self.call_drive(now, drive);
        }
        bio
    }

    /// The worker that issues what has waited for a limit puts these into the queue.
    pub(super) fn issue_released(&mut self, now: Time, drive: usize, released: Vec<Bio>) {
        for mut bio in released {
            (bio.task, bio.workers, bio.submitted_at) = (THROTTLED, 0, now);
            self.queue_bio(now, drive, bio);
        }
        self.io[drive].unplug(now);
        self.run_drive(now, drive);
    }

    fn hold(&mut self, now: Time, drive: usize, bio: Bio) {
        match self.io.hold(drive, bio) {
            PlugOutcome::No(bio) => self.queue_bio(now, drive, bio),
            PlugOutcome::Full(bio) => {
                self.flush_task_plug(now);
                self.hold(now, drive, bio);
            }
            PlugOutcome::MustWait(bio) => self.io.wait(drive, bio),
            PlugOutcome::Yes => {}
        }
    }

    fn hold_for_operation(&mut self, now: Time, drive: usize, bio: Bio) {
        let task = bio.task;
        match self.io.hold_for_submission(now, drive, bio, false) {
            PlugOutcome::No(bio) => self.hold(now, drive, bio),
            PlugOutcome::Full(bio) => {
                self.flush_submission(now, task);
                self.hold_for_operation(now, drive, bio);
            }
            // Who is about to sleep flushes its plug and tries again (`blk_mq_get_tag`); a ring's task goes on.
            PlugOutcome::MustWait(bio) if bio.workers == 0 && self.io.holds_for_submission(task) => {
                self.flush_submission(now, task);
                self.hold_for_operation(now, drive, bio);
            }
            PlugOutcome::MustWait(bio) => self.io.wait(drive, bio),
            PlugOutcome::Yes => {}
        }
    }

    /// What the task's call holds back goes to the drives. The call goes on.
    fn flush_submission(&mut self, now: Time, task: TaskId) {
        if let Some(mut plug) = self.io.end_submission(task) {
            self.flush_plug(now, plug.flush());
            self.io.continue_submission(task, plug);
        }
    }

    /// The same at the call's end, or when it sleeps.
    pub(super) fn look_at_submission(&mut self, now: Time, task: TaskId, has_ended: bool) {
        if has_ended && let Some(mut plug) = self.io.end_submission(task) {
            match plug.only_queue().filter(|&drive| !self.io[drive].queue().has_scheduler()) {
                Some(_) => self.flush_plug(now, plug.flush_directly()),
                None => self.flush_plug(now, plug.flush()),
            }
        } else if self.tasks[task].is_blocked() || self.io.waits(task) {
            self.flush_submission(now, task);
        }
    }

    fn flush_plug(&mut self, now: Time, held: impl Iterator<Item = (usize, Bio)>) {
        let mut drives = BTreeSet::new();
        for (drive, mut bio) in held {
            drives.insert(drive);
            bio.submitted_at = now;
            self.queue_bio(now, drive, bio);
        }
        for drive in drives {
            self.io[drive].unplug(now);
            self.run_drive(now, drive);
        }
    }

    pub(super) fn flush_task_plug(&mut self, now: Time) {
        let Some(mut plug) = self.io.take_plug() else {
            return;
        };
        for (drive, bio) in plug.flush() {
            self.queue_bio(now, drive, bio);
        }
        self.io.give_back_plug(plug);
    }

    fn queue_bio(&mut self, now: Time, drive: usize, bio: Bio) {
        if let Some(bio) = self.cpus.enter(now, drive, bio) {
            self.enter(now, drive, bio);
        }
    }

    /// The bio comes into its queue.
    pub(super) fn enter(&mut self, now: Time, drive: usize, bio: Bio) {
        let (task, is_writeback) = (bio.task, bio.writeback);
        if self.io.enter(now, drive, bio)
            && is_writeback
            && let Some(cache) = self.vfs.cache_mut()
        {
            cache.blocked(task);
        }
    }

    /// The task is woken because there may be a request for it. One of a load tries again when it has a CPU, and a task
    /// that has one meanwhile may be faster; so does a kernel thread that waits for a tag. The CPU time of others is not
    /// simulated here, so that they try at once.
    pub(super) fn may_have_request(&mut self, now: Time, task: TaskId) {
        let state = self.tasks.get(task).map(|task| task.state());
        let waits = self.io.waits(task);
        match state.filter(|_| waits) {
            Some(State::Asleep) => {
                self.tasks[task].is_to_retry();
                self.wants_cpu(now, task);
            }
            Some(State::Running(_) | State::Ready) => {
                self.tasks[task].is_to_retry();
            }
            Some(State::Polling(..) | State::Gone) | None => {
                if !waits || !self.retries_on_a_cpu(now, task) {
                    self.retry(now, task);
                    self.flush_submission(now, task);
                }
            }
        }
    }

    /// Whether the task is a kernel thread, which tries again when it has had a CPU.
    fn retries_on_a_cpu(&mut self, now: Time, task: TaskId) -> bool {
        task >= KERNEL_TASKS && self.works_as_kernel_thread(now, task, Origin::Retry(task))
    }

    /// Whether a kernel thread does it when it has had a CPU: on simple CPUs, before a drive with tags, of which it gets none
    /// if another is faster.
    pub(super) fn works_as_kernel_thread(&mut self, now: Time, task: TaskId, of: Origin) -> bool {
        self.io.has_tags() && self.cpus.resume_ns().is_some_and(|ns| self.works_for(now, task, of, Cost::Ns(ns)))
    }

    /// The kernel thread has a simple CPU for so long before it does it. False: the CPUs are detailed.
    pub(super) fn works_for(&mut self, now: Time, task: TaskId, of: Origin, cost: Cost) -> bool {
        if self.cpus.resume_ns().is_none() {
            return false;
        }
        let add = || self.cpus.add_simple_runner();
        let runner = *self.threads.entry(task).or_insert_with(add);
        let item = WorkItem { cost, context: Context::KernelThread, lock: None, of: Some(of) };
        self.give(now, runner, None, item);
        true
    }

    /// The task has had its time on the CPU since it was woken.
    pub(super) fn tries_again(&mut self, now: Time, task: TaskId) {
        for drive in self.retry(now, task) {
            self.io[drive].unplug(now);
            self.run_drive(now, drive);
        }
    }

    /// Puts what has waited into the queues until there is no request again: into which.
    fn retry(&mut self, now: Time, task: TaskId) -> BTreeSet<usize> {
        let Some(RetryOutcome { mut entered, late }) = self.io.retry(now, task) else {
            return BTreeSet::new();
        };
        if !late.is_empty() {
            let holds = self.io.holds_for_submission(task);
            self.flush_submission(now, task);
            self.io.wait_again(task, late);
            if holds {
                entered.extend(self.retry(now, task));
            }
        } else {
            if self.vfs.has_cache() {
                self.with_cache(now, |cache| cache.unblocked(now, task));
            }
            self.wake(now, task);
            self.sorting_granted(now, task);
        }
        entered
    }
}
