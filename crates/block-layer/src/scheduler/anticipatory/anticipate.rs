//! Whether to wait for the target's next request, and when to stop.

use crate::scheduler::anticipatory::io_context::observe;
use crate::scheduler::anticipatory::{Anticipatory, Version};
use crate::{RequestId, Requests, Sector};

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
/// The first version's distance grows no further than this many doublings.
const FIRST_DOUBLINGS_MAX: u64 = 20;

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
        let io_context = self.target.and_then(|task| self.io_contexts.get(task));
        let (unknown, exited) = io_context.map_or((true, true), |io_context| {
            (io_context.think.get().is_none(), io_context.exited)
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
        let io_context = self.io_context_of(target);
        if io_context.queued > 0 {
            return true;
        }
        let (exited, unknown) = (io_context.exited, io_context.think.get().is_none());
        if self.version != Version::Linux2_6_32 && exited {
            return true;
        }
        if let Some(id) = request
            && self.is_awaited(&requests[id])
            && self.is_close(target, requests[id].start)
        {
            if exited {
                if unknown {
                    observe(&mut self.strangers.exit, true);
                }
                observe(&mut self.strangers.no_cooperation, false);
            }
            // Somebody else goes on where the target stopped: they work together, and this counts as the target's.
            self.learn(target, &requests[id]);
            return true;
        }
        if exited {
            if unknown {
                observe(&mut self.strangers.exit, true);
            }
            if self.strangers.no_cooperation > 128 {
                return true;
            }
        }
        if self.version == Version::Draft {
            return false;
        }
        match self.io_context_of(target).think.get() {
            Some(think) => think > self.antic_expire,
            None => {
                self.strangers.think.get() > self.antic_expire
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
        let wait_max = (self.second / 50).min(self.antic_expire);
        let window = match self.version {
            Version::Draft | Version::First => {
                FIRST_CLOSE_SECTORS << delay.min(FIRST_DOUBLINGS_MAX)
            }
            Version::Linux2_6_32 if delay <= wait_max => CLOSE_SECTORS << delay,
            Version::Linux2_6_32 => return true,
        };
        let last = self.of(self.class).last_sector;
        if last <= next + window / 2 && next <= last + window {
            return true;
        }
        let usual = self
            .io_contexts
            .get(target)
            .and_then(|io_context| io_context.seek.get());
        last.abs_diff(next) < usual.unwrap_or(self.strangers.seek.get())
    }
}
