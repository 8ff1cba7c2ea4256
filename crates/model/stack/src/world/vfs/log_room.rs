//! Who waits for room in the log of a load's journal with `data=journal`, and how far the checkpoint is that makes it
//! (checkpoints.rs).

use block_layer::TaskId;

use super::journaled_data::{JournaledData, Page};

/// Who waits for room in the log, and what makes it.
#[derive(Clone, Debug, Default)]
pub(super) struct LogRoom {
    /// The running transaction is to commit, though no sync waits for it.
    pub(super) is_commit_wanted: bool,
    pub(super) waiting: Vec<TaskId>,
    /// Who waits is to look again.
    pub(super) is_changed: bool,
    /// What the superblock gets to know at the end of the commit under way, in blocks.
    pub(super) frees: u32,
    pub(super) checkpoint: Option<CheckpointStep>,
    /// Pages and bios of its current step.
    pub(super) pages: Vec<Page>,
    pub(super) left: u32,
    /// What the superblock gets to know at its end, in blocks.
    pub(super) checkpoint_frees: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointStep {
    InPlace,
    Flush,
    Superblock,
    FlushSuperblock,
}

impl LogRoom {
    /// Who waits is to look again.
    pub(super) fn may_be_there(&mut self) {
        self.is_commit_wanted = false;
        self.is_changed = true;
    }

    pub(super) fn take_let_in(&mut self) -> Vec<TaskId> {
        match std::mem::take(&mut self.is_changed) {
            true => std::mem::take(&mut self.waiting),
            false => Vec::new(),
        }
    }

    /// A commit is about to empty the drive's cache: what is in place by then may be free after it.
    pub(super) fn look_at_tail(&mut self, data: &mut JournaledData) {
        self.frees = data.take_much_freed();
    }

    /// The superblock is to be written after the record.
    pub(super) fn frees(&self) -> bool {
        self.frees > 0
    }
}
