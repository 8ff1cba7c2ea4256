//! The worker that makes written blocks a file's, at work.

use super::World;
use super::cpus::{Cost, Origin};
use block_layer::{KERNEL_TASKS, TaskId};
use events::time::Time;
use memory::cache::FileId;

/// The worker of file 0; those of other files follow.
const WORKERS: TaskId = KERNEL_TASKS + (1 << 25);

impl World {
    /// Whether the page cache's I/O of that tag, which is over, ends when its blocks have become the file's.
    pub(super) fn is_converted(&mut self, now: Time, tag: u32) -> bool {
        let Some((file, wakes)) = self.vfs.conversions_mut().ended(tag) else {
            return false;
        };
        if wakes {
            self.convert(now, file);
        }
        true
    }

    /// The lock that the worker has waited for is free.
    pub(super) fn worker_is_woken(&mut self, now: Time, file: FileId) {
        let cost = self.conversion_cost(file);
        self.worker_works(now, file, cost);
    }

    /// The worker has had its time on the CPU.
    pub(super) fn conversion_goes_on(&mut self, now: Time, file: FileId) {
        if self.vfs.inode_locks_mut().keeps_worker_out(file) {
            return;
        }
        self.got_blocks(now, file);
        self.unlock_inode(now, file);
        for tag in self.vfs.conversions_mut().take_run(file) {
            self.ends_cache_io(now, tag);
        }
        self.convert(now, file);
    }

    /// The worker begins with its next run, if there is one.
    fn convert(&mut self, now: Time, file: FileId) {
        if self.vfs.conversions_mut().has_run(file) {
            let cost = self.conversion_cost(file);
            self.worker_works(now, file, cost);
        }
    }

    /// None: it takes no time.
    fn conversion_cost(&self, file: FileId) -> Option<Cost> {
        let drive = self.vfs.file(file).drive;
        let on = self.vfs.has_filesystem(drive).then(|| self.vfs.filesystem(drive))?;
        let cycles = on.as_xfs()?.conversion_cycles();
        (cycles > 0).then(|| on.cost(cycles))
    }

    /// The worker has the CPU for so long, and goes on.
    fn worker_works(&mut self, now: Time, file: FileId, cost: Option<Cost>) {
        let worker = WORKERS + file as TaskId;
        if !cost.is_some_and(|cost| self.works_for(now, worker, Origin::Conversion(file), cost)) {
            self.conversion_goes_on(now, file);
        }
    }
}
