//! Who waits for a file to be written.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::FileId;
use block_layer::TaskId;

#[derive(Clone, Debug, Default)]
pub(super) struct Syncs {
    waiting: BTreeMap<TaskId, Sync>,
    done: BTreeSet<TaskId>,
}

#[derive(Clone, Copy, Debug)]
struct Sync {
    file: FileId,
    /// Pages had been dirtied while they were written: after that they are written again.
    again: bool,
    /// The journal commits as well.
    commit: bool,
}

impl Syncs {
    /// False: the task waits already, and was called before its time.
    pub(super) fn begin(&mut self, task: TaskId, file: FileId, again: bool, commit: bool) -> bool {
        let sync = Sync {
            file,
            again,
            commit,
        };
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

    /// What was in flight of the task's file is written: whether it is to be written once more. If not, the task is
    /// done.
    pub(super) fn is_written(&mut self, task: TaskId) -> bool {
        let sync = self.waiting.get_mut(&task);
        let again = sync.is_some_and(|sync| std::mem::take(&mut sync.again));
        if !again {
            self.waiting.remove(&task);
            self.done.insert(task);
        }
        again
    }
}
