//! Tasks that wait for a CPU, best rank first, and within a rank in line.

use std::collections::VecDeque;

use serde::Deserialize;

/// Names a task of the processors.
pub type TaskNumber = u32;

/// A task of a better rank takes the CPU from one of a worse rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// SCHED_FIFO and SCHED_RR.
    RealTime,
    /// SCHED_OTHER.
    Normal,
    /// SCHED_BATCH.
    Batch,
}

#[derive(Clone, Debug, Default)]
pub(super) struct RunQueue {
    waiting: [VecDeque<QueuedTask>; RANKS],
    movable: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedTask {
    pub(super) task: TaskNumber,
    /// May run on more than one CPU.
    pub(super) movable: bool,
}

const RANKS: usize = 3;

impl RunQueue {
    pub(super) fn put(&mut self, rank: Rank, waiting: QueuedTask) {
        self.movable += u32::from(waiting.movable);
        self.waiting[rank as usize].push_back(waiting);
    }

    /// Ahead of the others of its rank.
    pub(super) fn put_first(&mut self, rank: Rank, waiting: QueuedTask) {
        self.movable += u32::from(waiting.movable);
        self.waiting[rank as usize].push_front(waiting);
    }

    pub(super) fn take(&mut self) -> Option<TaskNumber> {
        let waiting = self.waiting.iter_mut().find_map(VecDeque::pop_front)?;
        self.movable -= u32::from(waiting.movable);
        Some(waiting.task)
    }

    /// The first that may move and passes.
    pub(super) fn take_movable(&mut self, passes: impl Fn(TaskNumber) -> bool) -> Option<TaskNumber> {
        for queue in &mut self.waiting {
            let found = queue.iter().position(|waiting| waiting.movable && passes(waiting.task));
            if let Some(at) = found {
                self.movable -= 1;
                return queue.remove(at).map(|waiting| waiting.task);
            }
        }
        None
    }

    pub(super) fn has_movable(&self) -> bool {
        self.movable > 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    /// A task waits that does not rank worse.
    pub(super) fn competes_with(&self, rank: Rank) -> bool {
        self.waiting[..=rank as usize].iter().any(|queue| !queue.is_empty())
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = TaskNumber> {
        self.waiting.iter().flatten().map(|waiting| waiting.task)
    }
}
