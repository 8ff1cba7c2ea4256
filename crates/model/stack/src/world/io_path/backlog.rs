//! Bios that have found no request.

use std::collections::{BTreeMap, VecDeque};

use block_layer::{Bio, TaskId};

/// Bios that have found no request, in the order in which they continue.
#[derive(Default)]
pub(super) struct Backlog {
    /// By task, with the drives.
    waiting: BTreeMap<TaskId, VecDeque<(usize, Bio)>>,
    /// Those that a ring's task has handed to workers, by drive and task: the task itself continues.
    handed_over: BTreeMap<(usize, TaskId), VecDeque<Bio>>,
}

impl Backlog {
    /// The task waits for a request.
    pub(super) fn has(&self, task: TaskId) -> bool {
        self.waiting.contains_key(&task)
    }

    /// With what the task goes on first.
    pub(super) fn first(&self, task: TaskId) -> Option<&(usize, Bio)> {
        self.waiting.get(&task)?.front()
    }

    /// Bios that no worker waits for.
    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    pub(super) fn push(&mut self, drive: usize, bio: Bio) {
        let waiting = self.waiting.entry(bio.task).or_default();
        waiting.push_back((drive, bio));
    }

    /// All of the task's; `put_back` what finds no request again, behind what waits by then.
    pub(super) fn take(&mut self, task: TaskId) -> Option<VecDeque<(usize, Bio)>> {
        self.waiting.remove(&task)
    }

    pub(super) fn put_back(&mut self, task: TaskId, waiting: VecDeque<(usize, Bio)>) {
        self.waiting.entry(task).or_default().extend(waiting);
    }

    pub(super) fn hand_over(&mut self, drive: usize, bio: Bio) {
        let waiting = self.handed_over.entry((drive, bio.task)).or_default();
        waiting.push_back(bio);
    }

    pub(super) fn take_handed_over(&mut self, drive: usize, task: TaskId) -> Option<VecDeque<Bio>> {
        self.handed_over.remove(&(drive, task))
    }

    pub(super) fn put_back_handed_over(&mut self, drive: usize, task: TaskId, waiting: VecDeque<Bio>) {
        self.handed_over.insert((drive, task), waiting);
    }
}
