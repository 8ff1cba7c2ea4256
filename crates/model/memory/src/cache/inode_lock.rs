//! The lock of an inode (`i_sem`, later `i_mutex`): while an fsync holds it, no task writes to the file.
//!
//! Only writers wait here. Kernels have a second fsync of the file wait as well, which then has little to do.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::FileId;
use crate::cache::device::DeviceId;
use block_layer::TaskId;
use events::station::Violation;
pub use kernels::cache::FsyncHolds;

#[derive(Clone, Debug, Default)]
pub(super) struct InodeLocks {
    /// By drive: what an fsync of its files holds.
    holds: BTreeMap<DeviceId, FsyncHolds>,
    /// Whose fsync holds the lock of which file.
    held: BTreeSet<(FileId, TaskId)>,
    /// Who would write to it.
    wanted: BTreeMap<FileId, BTreeSet<TaskId>>,
}

impl InodeLocks {
    pub(super) fn set_holds(&mut self, device: DeviceId, holds: FsyncHolds) {
        self.holds.insert(device, holds);
    }

    /// The task's fsync of a file on the drive begins.
    pub(super) fn fsync_begins(&mut self, device: DeviceId, task: TaskId, file: FileId) {
        if self.holds_of(device) == FsyncHolds::All {
            self.held.insert((file, task));
        }
    }

    /// The filesystem begins to commit what the task's fsync is for.
    pub(super) fn fsync_commits(&mut self, device: DeviceId, task: TaskId, file: FileId) {
        if self.holds_of(device) != FsyncHolds::Nothing {
            self.held.insert((file, task));
        }
    }

    /// The task's fsync returns: who may write to the file now.
    pub(super) fn fsync_ends(&mut self, task: TaskId, file: FileId) -> BTreeSet<TaskId> {
        match self.held.remove(&(file, task)) && !self.is_held(file) {
            true => self.wanted.remove(&file).unwrap_or_default(),
            false => BTreeSet::new(),
        }
    }

    /// Whether the task has to wait until it may write to the file.
    #[inline]
    pub(super) fn keeps(&mut self, task: TaskId, file: FileId) -> bool {
        let waits = !self.held.is_empty() && self.is_held(file);
        if waits {
            self.wanted.entry(file).or_default().insert(task);
        }
        waits
    }

    fn holds_of(&self, device: DeviceId) -> FsyncHolds {
        self.holds.get(&device).copied().unwrap_or_default()
    }

    fn is_held(&self, file: FileId) -> bool {
        let of_file = (file, TaskId::MIN)..=(file, TaskId::MAX);
        self.held.range(of_file).next().is_some()
    }

    /// Whom writers wait for is there.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let free = self.wanted.keys().find(|&&file| !self.is_held(file));
        Violation::unless(free.is_none(), "inode locks", || {
            format!("writers wait for file {free:?}, which no fsync holds")
        })
    }
}
