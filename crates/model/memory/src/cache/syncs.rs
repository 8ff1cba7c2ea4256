//! Who waits for a file to be written.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::FileId;
use block_layer::TaskId;

#[derive(Clone, Debug, Default)]
pub(super) struct Syncs {
    waiting: BTreeMap<TaskId, Sync>,
    done: BTreeSet<TaskId>,
}

#[derive(Clone, Debug)]
struct Sync {
    file: FileId,
    /// Pages had been dirtied while they were written: after that they are written again.
    again: bool,
    /// The journal commits as well.
    commit: bool,
    /// Writes of the file that it waits for, the next one last, and the page from which on it then looks for more.
    writes: Vec<u64>,
    behind: Option<u64>,
    /// A write that it has waited for is over.
    is_woken: bool,
}

impl Syncs {
    /// False: the task waits already, and was called before its time.
    pub(super) fn begin(&mut self, task: TaskId, file: FileId, again: bool, commit: bool) -> bool {
        let sync = Sync { file, again, commit, writes: Vec::new(), behind: Some(0), is_woken: false };
        let is_new = !self.waiting.contains_key(&task);
        if is_new {
            self.waiting.insert(task, sync);
        }
        is_new
    }

    /// Whether what the task waited for is done; it is forgotten.
    pub(super) fn take_done(&mut self, task: TaskId) -> bool {
        self.done.remove(&task)
    }

    /// The file that the task waits for.
    pub(super) fn file_of(&self, task: TaskId) -> Option<FileId> {
        Some(self.waiting.get(&task)?.file)
    }

    /// Whether the task's file is to be committed now that its data is in flight.
    pub(super) fn take_commit(&mut self, task: TaskId) -> bool {
        let sync = self.waiting.get_mut(&task);
        sync.is_some_and(|sync| std::mem::take(&mut sync.commit))
    }

    /// The next write that the task waits for.
    pub(super) fn pop_write(&mut self, task: TaskId) -> Option<u64> {
        self.waiting.get_mut(&task)?.writes.pop()
    }

    /// From which page on the task looks for more; None: no more.
    pub(super) fn behind(&self, task: TaskId) -> Option<u64> {
        self.waiting.get(&task)?.behind
    }

    /// The task waits for those, in that order, and then looks for more.
    pub(super) fn found(&mut self, task: TaskId, mut writes: Vec<u64>, behind: Option<u64>) {
        if let Some(sync) = self.waiting.get_mut(&task) {
            writes.reverse();
            (sync.writes, sync.behind) = (writes, behind);
        }
    }

    /// The task sleeps.
    pub(super) fn sleeps(&mut self, task: TaskId) {
        if let Some(sync) = self.waiting.get_mut(&task) {
            sync.is_woken = false;
        }
    }

    /// The write is over. False: the task is gone.
    pub(super) fn wake(&mut self, task: TaskId) -> bool {
        let sync = self.waiting.get_mut(&task);
        sync.is_some_and(|sync| !std::mem::replace(&mut sync.is_woken, true))
    }

    /// Whether a write that the task has waited for is over, and it has not looked for the next yet.
    pub(super) fn is_woken(&self, task: TaskId) -> bool {
        self.waiting.get(&task).is_some_and(|sync| sync.is_woken)
    }

    /// What was in flight of the task's file is written: whether it is to be written once more. If not, the task is
    /// done.
    pub(super) fn is_written(&mut self, task: TaskId) -> bool {
        let sync = self.waiting.get_mut(&task);
        let again = sync.is_some_and(|sync| {
            (sync.behind, sync.is_woken) = (Some(0), false);
            std::mem::take(&mut sync.again)
        });
        if !again {
            self.waiting.remove(&task);
            self.done.insert(task);
        }
        again
    }
}
