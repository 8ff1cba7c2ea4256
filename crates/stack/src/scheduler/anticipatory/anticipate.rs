//! Whether to wait for the target's next request, and when to stop.

use crate::block::{RequestId, Requests, Sector};
use crate::scheduler::anticipatory::habits::observe;
use crate::scheduler::anticipatory::{Anticipatory, Version};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Off,
    /// The target's requests are still at the device.
    ForCompletion,
    /// They have completed: its next one is due within `antic_expire`.
    ForRequest,
    /// It was waited for long enough, or need not be.
    Finished,
}

/// A distance within which a request is as good as the target's, by how long it has been waited already.
const CLOSE_SECTORS: u64 = 8192;
const FIRST_CLOSE_SECTORS: u64 = 64;
/// Beyond this many ticks of waiting everything is close.
const CLOSE_TICKS: u64 = 20;

impl Anticipatory {
    /// Whether to hold back what is best now (`candidate`) for what the target may send next.
    pub(super) fn can_anticipate(
        &mut self,
        requests: &Requests,
        candidate: Option<RequestId>,
    ) -> bool {
        self.target.is_some()
            && self.waiting != Waiting::Finished
            && !self.can_break(requests, candidate)
    }

    pub(super) fn wait(&mut self) {
        if self.target_finished {
            self.waiting = Waiting::ForRequest;
            self.timer = Some(self.waiting_since + self.antic_expire);
        } else {
            self.waiting = Waiting::ForCompletion;
        }
    }

    pub(super) fn stop_waiting(&mut self) {
        self.waiting = Waiting::Finished;
        self.timer = None;
        self.kick();
    }

    /// The timer has run out: the target is slower than was thought, or gone.
    pub(super) fn waited_in_vain(&mut self) {
        let habits = self.target.and_then(|task| self.habits.get(&task));
        let (unknown, exited) = habits.map_or((true, true), |habits| {
            (habits.think.get().is_none(), habits.exited)
        });
        if unknown {
            observe(&mut self.strangers.exit, true);
        }
        if exited {
            observe(&mut self.strangers.no_cooperation, true);
        }
        self.stop_waiting();
    }

    /// Whether there is no reason, or no more, to wait: because of `request`, or of what is known of the target.
    pub(super) fn can_break(&mut self, requests: &Requests, request: Option<RequestId>) -> bool {
        let Some(target) = self.target else {
            return true;
        };
        if request.is_some_and(|id| requests[id].task == target) {
            return true;
        }
        let waited = self.jiffies().saturating_sub(self.waiting_since);
        if self.target_finished && waited >= self.antic_expire {
            return true;
        }
        let habits = self.habits.entry(target).or_default();
        if habits.queued > 0 || (self.target_finished && habits.dispatched > 0) {
            return true;
        }
        let exited = habits.exited;
        if self.version == Version::First && exited {
            return true;
        }
        if let Some(id) = request
            && requests[id].sync
            && self.is_close(target, requests[id].start)
        {
            let start = requests[id].start;
            let version = self.version;
            let habits = self.habits.entry(target).or_default();
            // Somebody else goes on where the target stopped: they work together.
            habits.note_seek(version, start);
            if exited {
                observe(&mut self.strangers.no_cooperation, false);
            }
            return true;
        }
        if exited && self.strangers.no_cooperation > 128 {
            return true;
        }
        match self.habits[&target].think.get() {
            Some(think) => think > self.antic_expire,
            None => {
                self.strangers
                    .think
                    .get()
                    .is_some_and(|think| think > self.antic_expire)
                    || self.strangers.exit * self.strangers.no_cooperation > 128 * 256
            }
        }
    }

    fn is_close(&self, target: u32, next: Sector) -> bool {
        let delay = if self.waiting == Waiting::Off || !self.target_finished {
            0
        } else {
            self.jiffies().saturating_sub(self.waiting_since)
        };
        let window = match self.version {
            Version::First => FIRST_CLOSE_SECTORS << delay.min(CLOSE_TICKS),
            Version::Linux2_6_32 if delay <= 1 => CLOSE_SECTORS,
            Version::Linux2_6_32 if delay <= CLOSE_TICKS && delay <= self.antic_expire => {
                CLOSE_SECTORS << delay
            }
            Version::Linux2_6_32 => return true,
        };
        let last = self.last_sector;
        if last.saturating_sub(window / 2) <= next && next <= last + window {
            return true;
        }
        let usual = self.habits[&target]
            .seek
            .get()
            .or(self.strangers.seek.get());
        usual.is_some_and(|usual| last.abs_diff(next) < usual)
    }
}
