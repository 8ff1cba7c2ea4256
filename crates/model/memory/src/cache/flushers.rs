//! What flushers, throttled writers, syncs and commits are doing: the state that writeback goes through.

use std::collections::{BTreeSet, VecDeque};

use crate::cache::FileId;
use crate::cache::device::DeviceId;
use crate::cache::pdflush::{Pdflush, Walk};
use block_layer::KERNEL_TASKS;
use block_layer::TaskId;
use events::time::Time;

/// The task on whose account background writeback is: bdflush, pdflush or the device's flusher.
pub const FLUSHER: TaskId = KERNEL_TASKS;
/// The task that writes back what has been dirty for too long: kupdate.
pub const OLD_DATA_FLUSHER: TaskId = KERNEL_TASKS + 1;
/// The task that commits the journal: kjournald.
pub const JOURNAL: TaskId = KERNEL_TASKS + 2;

#[derive(Clone, Debug, Default)]
pub(super) struct Flushers {
    pub(super) running: VecDeque<Flusher>,
    /// Those that found nothing to write, until then or until the queue's congestion ends.
    pub(super) paused: Vec<(Time, Flusher)>,
    pub(super) waits: Vec<Wait>,
    pub(super) throttled: BTreeSet<TaskId>,
    pub(super) released: BTreeSet<TaskId>,
    /// When kupdate looks for old data; None while nothing is dirty.
    pub(super) look_at: Option<Time>,
    /// Whose last I/O has found no request: each sleeps by itself.
    pub(super) blocked: BTreeSet<TaskId>,
    pub(super) pdflush: Pdflush,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Flusher {
    pub(super) purpose: Purpose,
    pub(super) task: TaskId,
    /// What it writes back is there.
    pub(super) of: DeviceId,
    /// Pages that it still has to write.
    pub(super) left: u64,
    /// Of them in this turn: then another inode's comes, and background writeback looks at the threshold.
    pub(super) turn: u64,
    pub(super) inode: Option<FileId>,
    /// It has waited for a queue, and looks first whether it still has to write back.
    pub(super) has_waited: bool,
    /// Of pdflush: which drives it still looks at.
    pub(super) walk: Option<Walk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Background,
    /// What has been dirty since before.
    OldData(Time),
    Throttled,
    /// A file, from the first page to before the second: what is dirtied behind its end meanwhile does not keep it.
    Sync(FileId, u64, u64),
    Commit,
}

/// Until no write with this number or a lower one is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) until: u64,
    pub(super) of: Whose,
    pub(super) then: Then,
}

/// Writes that are waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    File(FileId),
    Device(DeviceId),
    All,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    Release(TaskId),
    Synced(TaskId),
    Committed(DeviceId),
}

impl Flushers {
    pub(super) fn start(
        &mut self,
        purpose: Purpose,
        task: TaskId,
        of: DeviceId,
        left: u64,
        turn: u64,
    ) -> &mut Flusher {
        if purpose == Purpose::Throttled {
            self.throttled.insert(task);
        }
        self.running.push_back(Flusher {
            purpose,
            task,
            of,
            left,
            turn,
            inode: None,
            has_waited: false,
            walk: None,
        });
        self.running.back_mut().expect("just put there")
    }

    /// None: the task is not kept. Else whether it may go now.
    #[inline]
    pub(super) fn was_throttled(&mut self, task: TaskId) -> Option<bool> {
        if !self.released.is_empty() && self.released.remove(&task) {
            return Some(true);
        }
        (!self.throttled.is_empty() && self.throttled.contains(&task)).then_some(false)
    }

    pub(super) fn something_is_dirty(&mut self, now: Time, interval: Time) {
        if self.look_at.is_none() {
            self.look_at = Some((now / interval + 1) * interval);
        }
    }

    /// Until then, or until some queue has room.
    pub(super) fn pause(&mut self, until: Time, flusher: Flusher) {
        let flusher = Flusher {
            has_waited: true,
            ..flusher
        };
        self.paused.push((until, flusher));
    }

    /// Some queue has room: who waits for that need not wait longer.
    pub(super) fn go_on(&mut self) {
        self.running
            .extend(self.paused.drain(..).map(|(_, flusher)| flusher));
    }

    pub(super) fn release(&mut self, task: TaskId) {
        self.throttled.remove(&task);
        self.released.insert(task);
    }
}
