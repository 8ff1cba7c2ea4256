//! The log: what is committed and not on the drive yet, who writes it there, and who waits for that.

mod checkpoint;
mod items;
mod pusher;
mod space;
mod waits;

use super::spec::XfsSpec;
use checkpoint::CheckpointWork;
pub use checkpoint::Checkpoints;
use events::smp::TaskNumber;
use pusher::Pusher;
use space::LogSpace;
pub(super) use waits::Waiter;
use waits::Waits;

/// The owner of the log and its checkpoints.
///
/// Only the files of this folder see what it holds; they also say, in `impl Xfs`, what a step of it means for threads, the
/// volume and I/O. The rest of the filesystem reserves room and commits (`reserve_log`, `commit_to_log`,
/// `end_transaction`), forces what is committed (`force`), has checkpoints written, and reports what the drive has
/// done (`buffer_is_on_drive`, `is_in_place`).
pub(super) struct Log {
    space: LogSpace,
    /// Who waits for what of it.
    waits: Waits,
    pusher: Pusher,
    work: CheckpointWork,
}

impl Log {
    /// `pusher`: the task that writes in place.
    pub(super) fn new(spec: &XfsSpec, pusher: TaskNumber) -> Log {
        Log {
            space: LogSpace::new(spec.log_blocks, spec.log_buffers, spec.log_buffer_bytes),
            waits: Waits::default(),
            pusher: Pusher::new(pusher),
            work: CheckpointWork::default(),
        }
    }

    /// The task that writes in place.
    pub(super) fn pusher_task(&self) -> TaskNumber {
        self.pusher.task
    }

    /// Whether changes of the block are not on the drive yet.
    pub(super) fn pins(&self, block: u64) -> bool {
        self.space.pins(block)
    }

    /// The number of the checkpoint that has what is committed now.
    pub(super) fn next_checkpoint(&self) -> u64 {
        self.space.next_checkpoint()
    }

    /// The block has been written in place.
    pub(super) fn is_in_place(&mut self, block: u64) {
        self.space.is_in_place(block);
    }

    pub(super) fn has_waiting_for_room(&self) -> bool {
        self.waits.has_waiting_for_room()
    }
}
