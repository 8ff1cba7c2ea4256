//! The lock of an inode (`i_sem`, later `i_mutex`): while an fsync holds it, nobody writes to the file.
//!
//! Only writers wait here. Kernels have a second fsync of the file wait as well, which then has little to do.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::page_cache::PageCache;
use crate::cache::{Effect, FileId};
use block_layer::TaskId;
use events::time::Time;
pub use kernels::cache::FsyncHolds;

#[derive(Clone, Debug, Default)]
pub(super) struct InodeLocks {
    /// Whose fsync holds the lock of which file.
    held: BTreeSet<(FileId, TaskId)>,
    /// Who would write to it.
    wanted: BTreeMap<FileId, BTreeSet<TaskId>>,
}

impl PageCache {
    /// What an fsync of files on the drive holds.
    pub fn set_fsync_holds(&mut self, drive: usize, holds: FsyncHolds) {
        let device = self.counted(drive);
        self.devices[device].fsync_holds = holds;
    }

    /// The filesystem begins to commit what the task's fsync is for.
    pub fn fsync_commits(&mut self, task: TaskId, file: FileId) {
        if self.devices[self.device_of(file)].fsync_holds != FsyncHolds::Nothing {
            self.inode_locks.held.insert((file, task));
        }
    }

    /// The task's fsync returns.
    pub fn fsync_is_over(&mut self, now: Time, task: TaskId, file: FileId) {
        self.now = now;
        let locks = &mut self.inode_locks;
        if !locks.held.remove(&(file, task)) || locks.is_held(file) {
            return;
        }
        let writers = locks.wanted.remove(&file).unwrap_or_default();
        self.effects.extend(writers.into_iter().map(Effect::Wake));
    }

    /// The task's fsync begins.
    pub(super) fn fsync_begins(&mut self, task: TaskId, file: FileId) {
        if self.devices[self.device_of(file)].fsync_holds == FsyncHolds::All {
            self.inode_locks.held.insert((file, task));
        }
    }

    /// Whether the task has to wait until it may write to the file.
    #[inline]
    pub(super) fn waits_for_inode(&mut self, task: TaskId, file: FileId) -> bool {
        let locks = &mut self.inode_locks;
        let waits = !locks.held.is_empty() && locks.is_held(file);
        if waits {
            locks.wanted.entry(file).or_default().insert(task);
        }
        waits
    }
}

impl InodeLocks {
    fn is_held(&self, file: FileId) -> bool {
        let of_file = (file, TaskId::MIN)..=(file, TaskId::MAX);
        self.held.range(of_file).next().is_some()
    }
}
