//! fsync and sync(2): a file's data are written back by its own thread, then the log is forced up to what changed its inode
//! (`xfs_file_fsync`, `_xfs_log_force_lsn`).

use workload::metadata::Call;

use super::Xfs;
use super::data::SyncClaim;
use super::site::Site;
use super::step::StageOutcome;
use super::thread::Stage;

impl Xfs {
    /// Its data first.
    pub(super) fn syncs(&mut self, number: u32, cpu: Option<u16>) -> StageOutcome {
        let inode = self.threads[number].open_inode();
        match self.files.claim(inode) {
            SyncClaim::Clean => return StageOutcome::Stage(Stage::Forces),
            SyncClaim::Busy => {}
            SyncClaim::Dirty => self.write_back_for(number, inode, cpu),
        }
        self.files.wait(inode, number);
        StageOutcome::Sleep(Stage::Syncs, Site::FileWrites)
    }

    /// Then what of it is in the log's memory only.
    pub(super) fn forces(&mut self, number: u32) -> StageOutcome {
        let thread = &self.threads[number];
        let inode = thread.open_inode();
        let is_pinned = match thread.call {
            Call::SystemSync => true,
            _ => {
                let blocks = self.volume.inode_blocks(inode);
                blocks.into_iter().any(|block| self.log.pins(block))
            }
        };
        match is_pinned.then(|| self.force(number)).flatten() {
            Some(waits) => waits,
            None => StageOutcome::Stage(Stage::Flushes),
        }
    }

    /// Nothing went to the log, whose write would have emptied the drive's cache.
    pub(super) fn flushes(&mut self, number: u32) -> StageOutcome {
        if !self.io.flushes() {
            return StageOutcome::Stage(Stage::Over);
        }
        self.flush_for_thread(number);
        StageOutcome::Sleep(Stage::Over, Site::LogForce)
    }

    /// All files' data, by the flushers.
    pub(super) fn syncs_all(&mut self, number: u32, cpu: Option<u16>) -> StageOutcome {
        if self.files.is_clean() {
            return StageOutcome::Stage(Stage::Forces);
        }
        self.files.all_are_due(self.machine.now());
        self.files.wait_for_all(number);
        self.wake_flushers(cpu);
        StageOutcome::Sleep(Stage::SyncsAll, Site::FileWrites)
    }

    /// Its pages are on the drive; a file that was unlinked meanwhile goes now.
    pub(super) fn file_is_written(&mut self, inode: u64) {
        if let Some(file) = self.files.flushed(inode, self.machine.now()) {
            self.volume.free_file(inode, &file);
        }
        let background = u64::from(self.volume.spec().writeback.background_blocks);
        let few = background + pages_beyond(background) / 2;
        let next = self.files.take_waiting(inode, few);
        self.arm_writeback();
        for thread in next {
            self.go_on(thread, None);
        }
    }

    /// A thread that writes waits while this many pages more than the background's limit are dirty or being written.
    pub(super) fn holds_writers(&self) -> bool {
        let background = u64::from(self.volume.spec().writeback.background_blocks);
        self.files.is_over(background + pages_beyond(background))
    }
}

/// `dirty_ratio` is twice `dirty_background_ratio`; a few pages are never too many.
fn pages_beyond(background: u64) -> u64 {
    background.max(8192)
}
