//! Whether to wait for the target's next request, and when to stop.

use crate::scheduler::anticipatory::io_context::observe;
use crate::scheduler::anticipatory::{Anticipation, Anticipatory, Version};
use crate::{Request, RequestId, Requests, Sector, TaskId};

/// A distance within which a request is as good as the target's, by how long it has been waited already.
const CLOSE_SECTORS: u64 = 8192;
/// The same until 2.6.14.
const NARROW_CLOSE_SECTORS: u64 = 64;
/// After this time all requests are close.
const CLOSE_MAX_MS: u64 = 20;
/// One half, as a probability.
const HALF: u64 = 128;

impl Anticipatory {
    /// Whether to hold back what is best now (`candidate`) for what the target may send next (`as_can_anticipate`).
    pub(super) fn can_anticipate(&mut self, requests: &Requests, candidate: Option<RequestId>) -> bool {
        self.target.is_some() && self.waiting != Anticipation::Finished && !self.can_break(requests, candidate)
    }

    /// `as_antic_waitreq`, `as_antic_waitnext`.
    pub(super) fn wait(&mut self) {
        if self.target_finished {
            self.waiting = Anticipation::ForRequest;
            self.timer = Some(self.waiting_since + self.antic_expire);
        } else {
            self.waiting = Anticipation::ForCompletion;
        }
    }

    /// `as_antic_stop`.
    pub(super) fn stop_waiting(&mut self) {
        self.waiting = Anticipation::Finished;
        self.timer = None;
        self.kick();
    }

    /// The timer has run out (`as_antic_timeout`): the target is slower than was thought, or gone.
    pub(super) fn waited_in_vain(&mut self) {
        let io_context = self.target.and_then(|task| self.io_contexts.get(task));
        let (unknown, exited) =
            io_context.map_or((true, true), |io_context| (io_context.think.get().is_none(), io_context.exited));
        if unknown {
            observe(&mut self.strangers.exit, true);
        }
        if exited {
            observe(&mut self.strangers.no_cooperation, true);
        }
        self.stop_waiting();
    }

    /// Whether there is no reason, or no more, to wait: because of `request`, or of what is known of the target
    /// (`as_can_break_anticipation`).
    pub(super) fn can_break(&mut self, requests: &Requests, request: Option<RequestId>) -> bool {
        let Some(target) = self.target else {
            return true;
        };
        let request = request.map(|id| &requests[id]);
        if request.is_some_and(|request| request.task == target) || self.antic_expired() {
            return true;
        }
        let has_exited = self.io_context_of(target).exited;
        if has_exited && self.version == Version::Linux2_6_2 {
            self.observe_exit(target);
            return true;
        }
        if self.io_context_of(target).queued > 0 {
            return true;
        }
        if let Some(request) = request
            && self.is_awaited(request)
            && self.is_close(target, request.start)
        {
            self.goes_on_for(target, request);
            return true;
        }
        match self.version {
            Version::Draft => false,
            // It asks whether the target has requests queued once its newest is counted among them, so that no think time is
            // ever learned; and who has none is not waited for.
            Version::First => true,
            Version::Linux2_6_2 => {
                let nearer = request.is_some_and(|request| self.is_usual(target, request.start));
                self.thinks_too_long(target) || nearer
            }
            _ => self.is_gone_for_good(target) || self.thinks_too_long(target),
        }
    }

    /// `as_antic_expired`.
    fn antic_expired(&self) -> bool {
        let waited = self.jiffies().saturating_sub(self.waiting_since);
        self.target_finished && waited >= self.antic_expire
    }

    fn observe_exit(&mut self, target: TaskId) {
        if self.io_context_of(target).think.get().is_none() {
            observe(&mut self.strangers.exit, true);
        }
    }

    /// A request of another task is as good as the target's next: they work together, and from 2.6.15 on it counts as the
    /// target's. Before, the target's think time begins anew with it.
    fn goes_on_for(&mut self, target: TaskId, request: &Request) {
        if !self.version.knows_cooperation() {
            let now = self.jiffies();
            if let Some(last) = &mut self.io_context_of(target).last_end {
                *last = now;
            }
            return;
        }
        if self.io_context_of(target).exited {
            self.observe_exit(target);
            observe(&mut self.strangers.no_cooperation, false);
        }
        self.learn(target, request);
    }

    /// The target has exited, and others rarely continue where such tasks stop.
    fn is_gone_for_good(&mut self, target: TaskId) -> bool {
        if !self.io_context_of(target).exited {
            return false;
        }
        self.observe_exit(target);
        self.strangers.no_cooperation > HALF
    }

    /// By its think time, or if that is not known by that of others and by how many of them exit instead.
    fn thinks_too_long(&mut self, target: TaskId) -> bool {
        if let Some(think) = self.io_context_of(target).think.get() {
            return think > self.antic_expire;
        }
        let strangers = &self.strangers;
        let exits = if self.version.knows_cooperation() {
            strangers.exit * strangers.no_cooperation > HALF * 256
        } else {
            strangers.exit > HALF
        };
        exits || strangers.think.get() > self.antic_expire
    }

    /// Whether a request is as good as the target's (`as_close_req`): within a window that grows while it is waited, and
    /// from 2.6.15 on also if it is no further than the target usually goes.
    fn is_close(&self, target: TaskId, next: Sector) -> bool {
        let Some(window) = self.close_sectors() else {
            return true;
        };
        let last = self.of(self.class).last_sector;
        let is_within = last <= next + window / 2 && next <= last + window;
        is_within || self.version.knows_cooperation() && self.is_usual(target, next)
    }

    /// None: however far.
    fn close_sectors(&self) -> Option<u64> {
        let delay = if self.waiting == Anticipation::Off || !self.target_finished { 0 } else { self.delay() };
        let is_late = delay > self.delay_max().min(self.antic_expire);
        match self.version.knows_cooperation() {
            true if delay == 0 => Some(CLOSE_SECTORS),
            false if delay <= 1 => Some(NARROW_CLOSE_SECTORS),
            _ if is_late => None,
            true => Some(CLOSE_SECTORS << delay),
            false => Some(NARROW_CLOSE_SECTORS << (delay - 1)),
        }
    }

    /// How long it has been waited: in ticks from 2.6.24 on, before in milliseconds, which it compares with ticks.
    fn delay(&self) -> u64 {
        let ticks = self.jiffies().saturating_sub(self.waiting_since);
        match self.version >= Version::Linux2_6_24 {
            true => ticks,
            false => ticks * 1000 / self.second,
        }
    }

    fn delay_max(&self) -> u64 {
        match self.version >= Version::Linux2_6_24 {
            true => CLOSE_MAX_MS * self.second / 1000,
            false => CLOSE_MAX_MS,
        }
    }

    /// Whether the target usually goes further than to there from where the last request ended.
    fn is_usual(&self, target: TaskId, next: Sector) -> bool {
        let usual = self.io_contexts.get(target).and_then(|io_context| io_context.seek.get());
        let distance = self.of(self.class).last_sector.abs_diff(next);
        distance < usual.unwrap_or(self.strangers.seek.get())
    }
}
