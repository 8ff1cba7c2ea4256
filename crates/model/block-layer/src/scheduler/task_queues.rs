//! Queues found by task, as the forms of CFQ without groups have them: of its own for what the task waits for, and shared by
//! all tasks of a priority for the rest. And what is known of each task's I/O.
//!
//! Source: `cfq_get_queue`, `cfq_update_io_thinktime` and `cfq_update_io_seektime` of `block/cfq-iosched.c`, 2.6.13 to 2.6.29.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use crate::scheduler::mean::Mean;
use crate::scheduler::task_map::TaskMap;
use crate::{IoClass, Priority, Request, Sector, TaskId};

pub(super) type QueueId = usize;

/// Means of this many samples are valid (`sample_valid`).
const SAMPLES_MIN: u64 = 80;

/// All queues of a scheduler, by number, and all tasks that it has met.
#[derive(Clone, Debug)]
pub(super) struct TaskQueues<Q> {
    queues: Vec<Q>,
    /// The places of queues whose tasks have ended, to be used again.
    free: Vec<QueueId>,
    /// For requests that no task waits for, by priority.
    shared: BTreeMap<(IoClass, u8), QueueId>,
    io_contexts: TaskMap<IoContext>,
}

impl<Q> TaskQueues<Q> {
    /// None: the task has done no I/O.
    pub(super) fn io_context(&self, task: TaskId) -> Option<&IoContext> {
        self.io_contexts.get(task)
    }

    pub(super) fn io_context_mut(&mut self, task: TaskId) -> Option<&mut IoContext> {
        self.io_contexts.get_mut(task)
    }

    /// The task is gone: another one may get its number. Forgets its queues, which it returns.
    pub(super) fn exited(&mut self, task: TaskId) -> [Option<QueueId>; 2] {
        self.io_contexts.get_mut(task).map_or([None; 2], |io_context| {
            io_context.exited = true;
            std::mem::take(&mut io_context.queues)
        })
    }

    /// Another task has the number of one that is gone.
    pub(super) fn forget_if_exited(&mut self, task: TaskId, jiffies: u64) {
        if let Some(io_context) = self.io_contexts.get_mut(task)
            && io_context.exited
        {
            *io_context = IoContext::new(jiffies);
        }
    }

    /// The queue in that slot of the task's (`cfq_get_queue`). If it has none, the queue of its priority if that is
    /// shared, else a new one.
    pub(super) fn of_task(
        &mut self,
        task: TaskId,
        slot: usize,
        shared_by: Option<Priority>,
        jiffies: u64,
        new: impl FnOnce() -> Q,
    ) -> QueueId {
        let io_context = self.io_contexts.get_or_insert_with(task, || IoContext::new(jiffies));
        if let Some(known) = io_context.queues[slot] {
            return known;
        }
        let key = shared_by.map(|priority| (priority.class, priority.level));
        let known = key.and_then(|key| self.shared.get(&key).copied());
        let id = known.unwrap_or_else(|| self.put(new()));
        if let Some(key) = key {
            self.shared.insert(key, id);
        }
        let io_context = self.io_contexts.get_mut(task).expect("the task is known");
        io_context.queues[slot] = Some(id);
        id
    }

    fn put(&mut self, queue: Q) -> QueueId {
        match self.free.pop() {
            Some(id) => {
                self.queues[id] = queue;
                id
            }
            None => {
                self.queues.push(queue);
                self.queues.len() - 1
            }
        }
    }

    /// The next new queue may take this one's place.
    pub(super) fn free(&mut self, id: QueueId) {
        self.free.push(id);
    }
}

impl<Q> Default for TaskQueues<Q> {
    fn default() -> Self {
        TaskQueues { queues: Vec::new(), free: Vec::new(), shared: BTreeMap::new(), io_contexts: TaskMap::default() }
    }
}

impl<Q> Index<QueueId> for TaskQueues<Q> {
    type Output = Q;

    #[inline]
    fn index(&self, id: QueueId) -> &Q {
        &self.queues[id]
    }
}

impl<Q> IndexMut<QueueId> for TaskQueues<Q> {
    #[inline]
    fn index_mut(&mut self, id: QueueId) -> &mut Q {
        &mut self.queues[id]
    }
}

/// What is known of a task's I/O.
#[derive(Clone, Debug)]
pub(super) struct IoContext {
    /// Where its requests go.
    pub(super) queues: [Option<QueueId>; 2],
    pub(super) last_end: u64,
    pub(super) exited: bool,
    think: Mean,
    seek: Mean,
    last_position: Sector,
}

impl IoContext {
    fn new(jiffies: u64) -> IoContext {
        IoContext {
            queues: [None; 2],
            last_end: jiffies,
            exited: false,
            think: Mean::default(),
            seek: Mean::default(),
            last_position: 0,
        }
    }

    /// How long the task thought before this request, at most twice as long as anybody idles, and how far it went, of which
    /// long steps count as shorter ones so that one does not hide many (`cfq_update_io_thinktime`,
    /// `cfq_update_io_seektime`).
    pub(super) fn learn(&mut self, request: &Request, jiffies: u64, slice_idle: u64) {
        let think = jiffies.saturating_sub(self.last_end).min(2 * slice_idle);
        self.think.add(7, think);
        let beyond = match self.seek.samples() <= 60 {
            true => 2 * 1024 * 1024,
            false => 2 * 1024 * 64,
        };
        let most = self.seek.get().unwrap_or(0) * 4 + beyond;
        let distance = self.last_position.abs_diff(request.start);
        self.seek.add(7, distance.min(most));
        self.last_position = request.end();
    }

    /// Its mean step in sectors, however little has been seen.
    pub(super) fn mean_seek(&self) -> Option<u64> {
        self.seek.get()
    }

    /// Its mean step in sectors; None: too little has been seen.
    pub(super) fn usual_seek(&self) -> Option<u64> {
        self.mean_seek().filter(|_| self.seek.samples() > SAMPLES_MIN)
    }

    /// Its mean time before a request, in ticks; None: too little has been seen.
    pub(super) fn usual_think(&self) -> Option<u64> {
        self.think.get().filter(|_| self.think.samples() > SAMPLES_MIN)
    }
}
