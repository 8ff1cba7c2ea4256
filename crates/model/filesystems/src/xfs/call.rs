//! System calls that threads make, from the program's own work to what they measure of each.

use workload::metadata::Call;

use super::site::Site;
use super::step::StageOutcome;
use super::thread::Stage;
use super::{BLOCK_BYTES, Xfs};

impl Xfs {
    pub(super) fn program(&mut self, number: u32, cpu: Option<u16>) -> StageOutcome {
        let (began, now) = (self.threads.began(), self.machine.now());
        let cycles = self.volume.spec().cycles;
        let sync_cycles = self.volume.spec().writeback.cycles.write;
        let thread = &mut self.threads[number];
        let call = thread.next_call(began, now);
        thread.calls_at(now);
        match call {
            Call::Done => {
                thread.stage = Stage::Finished;
                StageOutcome::Finish
            }
            Call::Close => StageOutcome::Work(Stage::Over, cycles.close),
            Call::Create(_) => {
                let begins = now + self.machine.time_of(cycles.application);
                self.threads[number].calls_at(begins);
                self.give_in_user_mode(number, cpu, cycles.application);
                StageOutcome::Work(Stage::Begun, cycles.begin)
            }
            Call::MakeDirectory { .. } | Call::Unlink(_) => StageOutcome::Work(Stage::Begun, cycles.begin),
            Call::Write { bytes } => self.writes(number, bytes),
            Call::Fsync => StageOutcome::Work(Stage::Syncs, sync_cycles),
            Call::SystemSync => StageOutcome::Work(Stage::SyncsAll, sync_cycles),
            Call::FsyncAgain(place) => {
                self.threads[number].opens_again(place.file);
                StageOutcome::Work(Stage::Syncs, cycles.begin + sync_cycles + cycles.close)
            }
        }
    }

    pub(super) fn over(&mut self, number: u32) -> StageOutcome {
        let now = self.machine.now();
        let thread = &mut self.threads[number];
        if std::mem::take(&mut thread.transaction.fails) {
            thread.found_full();
        } else {
            thread.succeeded(now);
        }
        StageOutcome::Stage(Stage::Program)
    }

    /// Into the page cache, with blocks reserved that the flusher finds places for later (delayed allocation).
    fn writes(&mut self, number: u32, bytes: u32) -> StageOutcome {
        let cycles = self.volume.spec().writeback.cycles;
        let inode = self.threads[number].open_inode();
        let blocks = u64::from(self.files.added_blocks(inode, bytes));
        if !self.volume.has_room(blocks + self.reserved_blocks()) {
            self.threads[number].transaction.fails = true;
            return StageOutcome::Work(Stage::Over, cycles.write);
        }
        self.files.write(inode, bytes, self.machine.now());
        StageOutcome::Work(Stage::Written, cycles.of_write(bytes.div_ceil(BLOCK_BYTES)))
    }

    pub(super) fn written(&mut self, number: u32, cpu: Option<u16>) -> StageOutcome {
        if self.files.is_over(u64::from(self.volume.spec().writeback.background_blocks)) {
            self.wake_flushers(cpu);
        }
        if self.holds_writers() {
            self.files.wait_for_fewer(number);
            return StageOutcome::Sleep(Stage::Over, Site::Throttled);
        }
        StageOutcome::Stage(Stage::Over)
    }
}
