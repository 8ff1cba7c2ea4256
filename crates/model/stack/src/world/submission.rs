//! From tasks into the queues of drives: what a call's plug holds back, and what waits for a request.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::World;
use super::task::{Again, State};
use block_layer::{Bio, Submitted, TaskId, TaskPlug};
use events::time::Time;
use kernels::submission::SyncWrites;

/// Bios that are not in their queue yet, and how a kernel submits.
pub(super) struct Submission {
    /// What the running call submits is held back until its end: kernels from 2.6.39 on.
    pub(super) plug: Option<TaskPlug>,
    /// Bios that found no request, by task.
    waiting: BTreeMap<TaskId, VecDeque<(usize, Bio)>>,
    /// The same that a ring's task has handed to workers, by drive and task: the task itself goes on.
    handed_over: BTreeMap<(usize, TaskId), VecDeque<Bio>>,
    /// Workers that wait for the requests of a ring, at most.
    pub(super) ring_workers: u16,
    pub(super) sync_writes: SyncWrites,
}

/// Workers of a ring for each CPU: for I/O that ends (`io_init_wq_offload`, `io_wq_create` of 5.x).
const WORKERS_PER_CPU: u16 = 4;

impl Submission {
    pub(super) fn new(plug: Option<TaskPlug>, cpus: u16) -> Submission {
        Submission {
            plug,
            waiting: BTreeMap::new(),
            handed_over: BTreeMap::new(),
            ring_workers: WORKERS_PER_CPU * cpus,
            sync_writes: SyncWrites::ALL,
        }
    }

    /// Something of the task's has found no request.
    pub(super) fn waits(&self, task: TaskId) -> bool {
        self.waiting.contains_key(&task)
    }

    /// Bios that have found no request and that no worker waits for.
    pub(super) fn late(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }
}

impl World {
    /// Into the queue, or into the plug of the running call: whoever submits flushes that in the end.
    pub(super) fn submit(&mut self, now: Time, drive: usize, bio: Bio) {
        match &mut self.submission.plug {
            None => self.queue_bio(now, drive, bio),
            Some(plug) => {
                if plug.hold(drive, bio) {
                    self.flush_task_plug(now);
                }
            }
        }
    }

    pub(super) fn flush_task_plug(&mut self, now: Time) {
        let Some(mut plug) = self.submission.plug.take() else {
            return;
        };
        for (drive, bio) in plug.flush() {
            self.queue_bio(now, drive, bio);
        }
        self.submission.plug = Some(plug);
    }

    fn queue_bio(&mut self, now: Time, drive: usize, bio: Bio) {
        if let Some(bio) = self.cpus.enter(now, drive, bio) {
            self.enter(now, drive, bio);
        }
    }

    /// The bio comes into its queue.
    pub(super) fn enter(&mut self, now: Time, drive: usize, bio: Bio) {
        if bio.workers > 0 {
            return self.enter_or_hand_over(now, drive, bio);
        }
        let task = bio.task;
        let is_writeback = bio.writeback;
        if let Some(waiting) = self.submission.waiting.get_mut(&task) {
            waiting.push_back((drive, bio));
        } else if self.drives[drive].submit(now, bio.clone()) == Submitted::MustWait {
            self.submission
                .waiting
                .insert(task, VecDeque::from([(drive, bio)]));
            if let Some(cache) = &mut self.cached.cache
                && is_writeback
            {
                cache.blocked(task);
            }
        }
    }

    /// A bio of a ring: its submission does not wait (`IOCB_NOWAIT`), but a worker does that makes it again (`io_queue_async`).
    fn enter_or_hand_over(&mut self, now: Time, drive: usize, bio: Bio) {
        if self.drives[drive].submit(now, bio.clone()) == Submitted::MustWait {
            let waiting = self
                .submission
                .handed_over
                .entry((drive, bio.task))
                .or_default();
            waiting.push_back(bio);
        }
    }

    /// A worker that waits for the task may have a request now; then it goes on with what no worker has taken up.
    pub(super) fn retry_worker(&mut self, now: Time, drive: usize, task: TaskId) {
        let Some(waiting) = self.submission.handed_over.get_mut(&(drive, task)) else {
            return;
        };
        let mut has_waited = true;
        while let Some(mut bio) = waiting.pop_front() {
            bio.submitted_at = now;
            let queue = &mut self.drives[drive];
            if queue.submit_after(now, bio.clone(), std::mem::take(&mut has_waited))
                == Submitted::MustWait
            {
                waiting.push_front(bio);
                return;
            }
            // The others have a worker each.
            if waiting.len() < usize::from(self.submission.ring_workers) && !waiting.is_empty() {
                return;
            }
        }
        self.submission.handed_over.remove(&(drive, task));
    }

    /// The task is woken because there may be a request for it. One of a load tries again when it has a CPU, and whoever
    /// has one meanwhile may be faster; what others do on CPUs is not told here, so that they try at once.
    pub(super) fn may_have_request(&mut self, now: Time, task: TaskId) {
        let state = self.tasks.get(task).map(|task| task.state);
        let waits = self.submission.waits(task);
        match state.filter(|_| waits) {
            Some(State::Asleep) => {
                self.tasks[task].again = Again::Woken;
                self.wants_cpu(now, task);
            }
            Some(State::Running(_) | State::Ready) => {
                self.tasks[task].again = Again::Woken;
            }
            Some(State::Polling(..) | State::Gone) | None => {
                self.retry(now, task);
            }
        }
    }

    /// The task has had its time on the CPU since it was woken.
    pub(super) fn tries_again(&mut self, now: Time, task: TaskId) {
        for drive in self.retry(now, task) {
            self.drives[drive].unplug(now);
            self.run_drive(now, drive);
        }
    }

    /// Puts what has waited into the queues until there is no request again: into which.
    fn retry(&mut self, now: Time, task: TaskId) -> BTreeSet<usize> {
        let mut entered = BTreeSet::new();
        let Some(mut waiting) = self.submission.waiting.remove(&task) else {
            return entered;
        };
        let mut has_waited = true;
        while let Some((drive, mut bio)) = waiting.pop_front() {
            bio.submitted_at = now;
            let queue = &mut self.drives[drive];
            if queue.submit_after(now, bio.clone(), std::mem::take(&mut has_waited))
                == Submitted::MustWait
            {
                waiting.push_front((drive, bio));
                self.submission.waiting.insert(task, waiting);
                return entered;
            }
            entered.insert(drive);
        }
        if self.cached.cache.is_some() {
            self.with_cache(now, |cache| cache.unblocked(now, task));
        }
        self.wake(now, task);
        self.sorting_granted(now, task);
        entered
    }
}
