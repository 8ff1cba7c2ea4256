//! Tasks that ask for little at a time, wait for all of it and think: players and recorders. Each of their requests raises the
//! weight of their queue for 0.3 s, far above any other.
//!
//! Source: `bfq_bfqq_softrt_next_start`, `bfq_bfqq_handle_idle_busy_switch`, `bfq_update_bfqq_wr_on_rq_arrival` and
//! `bfq_update_wr_data` in `block/bfq-iosched.c` of 6.x.

use crate::scheduler::bfq::{Bfq, QueueId};
use events::time::{MILLISECOND, SECOND, Time};

/// Sectors a second that such a task reads at most (`bfq_wr_max_softrt_rate`).
const RATE_MAX: u64 = 7_000;
/// How long its weight is raised (`bfq_wr_rt_max_time`).
pub(super) const LASTS_NS: Time = 300 * MILLISECOND;
/// Who comes back earlier than this after `slice_idle` may only be slow: four ticks of 250 a second.
const SLOW_NS: Time = 16 * MILLISECOND;

/// What is known of how much a queue asks for at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Since when it has had something to do, and what it has been served since.
    busy_since: Time,
    pub(super) service: u64,
    /// A request that comes later is one of a soft real-time task.
    next_start: Time,
    /// Its turn ended with requests at the device: it is judged when they are done.
    is_open: bool,
}

impl Pace {
    pub(super) fn new(now: Time) -> Pace {
        Pace { busy_since: now, service: 0, next_start: now, is_open: false }
    }

    /// The queue has something to do again.
    pub(super) fn begin(&mut self, now: Time) {
        self.busy_since = now;
        self.service = 0;
        self.is_open = false;
    }

    /// Whether a request that comes now comes late enough.
    pub(super) fn is_slow_enough(&self, now: Time) -> bool {
        now > self.next_start
    }

    /// Its weight was raised for another reason until now.
    pub(super) fn restart(&mut self, now: Time) {
        self.next_start = now;
    }

    fn end(&mut self, now: Time, slice_idle_ns: Time) {
        let at_rate = self.busy_since + self.service * SECOND / RATE_MAX;
        let not_slow = now + slice_idle_ns + SLOW_NS;
        self.next_start = self.next_start.max(at_rate).max(not_slow);
    }
}

impl Bfq {
    /// A turn has ended: with nothing left, the queue waits for all that it has asked for, as such tasks do.
    pub(super) fn judge_pace(&mut self, id: QueueId) {
        let slice_idle_ns = self.tunables.slice_idle_ns;
        let now = self.now;
        let queue = &mut self.queues[id];
        if !queue.is_empty() {
            return;
        }
        match queue.dispatched {
            0 => queue.pace.end(now, slice_idle_ns),
            _ => queue.pace.is_open = true,
        }
    }

    /// A request of the queue has completed.
    pub(super) fn judge_pace_late(&mut self, id: QueueId) {
        let slice_idle_ns = self.tunables.slice_idle_ns;
        let now = self.now;
        let queue = &mut self.queues[id];
        let has_ended = queue.pace.is_open && queue.dispatched == 0 && queue.is_empty();
        if has_ended && !queue.is_taken_for_interactive() {
            queue.pace.end(now, slice_idle_ns);
        }
    }
}
