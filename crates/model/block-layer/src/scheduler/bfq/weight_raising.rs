//! Raised weights (`low_latency`): a task that comes, or comes back after a while, may belong to a user who waits in
//! front of a screen, and gets thirty times its weight for some seconds, unless many come at once.
//!
//! Source: `bfq_init_queue`, `bfq_wr_duration`, `bfq_bfqq_handle_idle_busy_switch`, `bfq_update_bfqq_wr_on_rq_arrival`,
//! `bfq_handle_burst`, `bfq_set_budget_timeout`, `bfq_add_request` and `bfq_update_wr_data` in `block/bfq-iosched.c` of
//! 6.1.192. Left out: groups of bursts. A queue whose priority is not the default is not raised (`entity.new_weight == 40`).

use crate::scheduler::bfq::soft_real_time::LASTS_NS;
use crate::scheduler::bfq::{Bfq, QueueId};
use events::time::{MILLISECOND, SECOND, Time};

/// What a raised weight is multiplied by (`bfq_wr_coeff`).
const COEFFICIENT: u64 = 30;
/// The same of a soft real-time task (`BFQ_SOFTRT_WEIGHT_FACTOR`).
const SOFT_COEFFICIENT: u64 = 100 * COEFFICIENT;
/// A task that was away for longer may be interactive (`bfq_wr_min_idle_time`).
const AWAY_NS: Time = 2 * SECOND;
/// Queues that come within this time of one another are a burst (`bfq_burst_interval`).
const BURST_NS: Time = 180 * MILLISECOND;
/// A raised weight ends after this many sectors (`max_service_from_wr`).
const SERVICE_MAX: u64 = 120_000;
/// Who was away for longer is in no large burst any more.
const LONG_AWAY_NS: Time = 10 * SECOND;
/// An async queue that has waited for this long is raised (`bfq_wr_min_inter_arr_async`).
const STARVED_NS: Time = 500 * MILLISECOND;
/// The weight of queues of the default priority.
const DEFAULT_WEIGHT: u64 = 40;
/// A burst of this many queues is large, and raises no weight (`bfq_large_burst_thresh`).
const LARGE_BURST: usize = 8;

/// Since when a queue's weight is raised, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightRaise {
    since: Time,
    lasts_ns: Time,
    kind: Kind,
}

/// What a queue's task is taken for.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Its user waits in front of a screen.
    Interactive,
    /// It plays or records. It may have been taken for interactive before, since that time, and is so again afterwards.
    SoftRealTime { interactive_since: Option<Time> },
}

/// Queues that were made one soon after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    last: Option<Time>,
    size: usize,
    /// Those of a burst that is not large.
    queues: Vec<QueueId>,
    is_large: bool,
}

impl WeightRaise {
    /// How far.
    pub(super) fn coefficient(&self) -> u64 {
        match self.kind {
            Kind::Interactive => COEFFICIENT,
            Kind::SoftRealTime { .. } => SOFT_COEFFICIENT,
        }
    }

    pub(super) fn is_interactive(&self) -> bool {
        matches!(self.kind, Kind::Interactive)
    }
}

impl Bfq {
    /// A queue has been made that is not merged into another one (`bfq_handle_burst`, `bfq_add_to_burst`).
    pub(super) fn note_burst(&mut self, id: QueueId) {
        let nobody_busy = self.busy_queues.is_empty();
        let (now, burst) = (self.now, &mut self.burst);
        if burst.size == 0 && !nobody_busy {
            return;
        }
        if burst.last.is_none_or(|last| now > last + BURST_NS) {
            let queues = if nobody_busy { vec![id] } else { Vec::new() };
            *burst = Burst { last: Some(now), size: queues.len(), queues, is_large: false };
            return;
        }
        burst.last = Some(now);
        if !burst.is_large {
            burst.size += 1;
            burst.queues.push(id);
            burst.is_large = burst.size >= LARGE_BURST;
        }
        if burst.is_large {
            self.queues[id].in_large_burst = true;
            for id in burst.queues.drain(..) {
                self.queues[id].in_large_burst = true;
            }
        }
    }

    /// The queue has something to do again (`bfq_update_bfqq_wr_on_rq_arrival`): whether its weight is raised now and was not
    /// before.
    pub(super) fn raise_if_interactive(&mut self, id: QueueId) -> bool {
        if !self.tunables.low_latency {
            return false;
        }
        let now = self.now;
        let queue = &self.queues[id];
        let in_burst = queue.in_large_burst;
        let away_for = |time_ns| queue.dispatched == 0 && queue.budget_timeout.is_none_or(|at| now > at + time_ns);
        let is_common = queue.weight == DEFAULT_WEIGHT && !in_burst;
        let interactive = is_common && away_for(AWAY_NS);
        let soft = is_common && queue.is_soft_real_time(now);
        let leaves_burst = !queue.is_new && away_for(LONG_AWAY_NS);
        let (sync, before) = (queue.sync, queue.raised);
        match before {
            None if sync && interactive => {
                self.queues[id].raised_service = 0;
                self.raise_as_interactive(id);
            }
            None if sync && soft => self.raise_as_soft(id, None),
            None => {}
            Some(_) if interactive => self.raise_as_interactive(id),
            Some(_) if in_burst => self.lower(id),
            Some(raised) if soft => {
                let interactive_since = match raised.kind {
                    Kind::Interactive => Some(raised.since),
                    Kind::SoftRealTime { interactive_since } => interactive_since,
                };
                self.raise_as_soft(id, interactive_since);
            }
            Some(_) => {}
        }
        if leaves_burst {
            self.queues[id].in_large_burst = false;
            self.burst.queues.retain(|&queue| queue != id);
        }
        self.settle_weight(id);
        before.is_none() && self.queues[id].raised.is_some()
    }

    /// An async queue waits, and its last request and turn were long ago (`bfq_add_request`).
    pub(super) fn raise_if_starved(&mut self, id: QueueId) {
        let queue = &self.queues[id];
        let starved = self.now > queue.last_unraised + STARVED_NS;
        if self.tunables.low_latency && queue.raised.is_none() && starved {
            self.raise_as_interactive(id);
        }
    }

    fn raise_as_interactive(&mut self, id: QueueId) {
        let raised = WeightRaise {
            since: self.now,
            lasts_ns: self.peak_rate.raise_ns(self.rotational),
            kind: Kind::Interactive,
        };
        self.raise(id, raised);
    }

    fn raise_as_soft(&mut self, id: QueueId, interactive_since: Option<Time>) {
        let raised =
            WeightRaise { since: self.now, lasts_ns: LASTS_NS, kind: Kind::SoftRealTime { interactive_since } };
        self.raise(id, raised);
    }

    pub(super) fn raise(&mut self, id: QueueId, raised: WeightRaise) {
        let queue = &mut self.queues[id];
        let was_raised = queue.raised.replace(raised).is_some();
        self.raised_busy += u32::from(queue.busy && !was_raised);
    }

    pub(super) fn lower(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        let was_raised = queue.raised.take().is_some();
        self.raised_busy -= u32::from(queue.busy && was_raised);
    }

    /// The time of a raised weight is over: one that was taken for interactive may count as a soft real-time task from now on
    /// (`bfq_bfqq_end_wr`).
    fn end(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        if queue.is_taken_for_interactive() {
            queue.pace.restart(self.now);
        }
        queue.last_unraised = self.now;
        self.lower(id);
    }

    /// How many times as long as others a queue may take for its budget (`bfq_set_budget_timeout`).
    pub(super) fn timeout_factor(&self, id: QueueId) -> u64 {
        let queue = &self.queues[id];
        match queue.raised {
            Some(raised) if !raised.is_interactive() => 1,
            _ => self.hierarchy.entity(queue.entity).weight / queue.weight,
        }
    }

    /// A soft real-time task begins a turn: the time for which it waited does not count (`__bfq_set_in_service_queue`).
    pub(super) fn prolong_soft_raise(&mut self, id: QueueId) {
        let now = self.now;
        let queue = &mut self.queues[id];
        let waits_since = queue.budget_timeout.unwrap_or(0);
        let Some(raised) = queue.raised.as_mut() else {
            return;
        };
        if raised.is_interactive() || raised.since >= now || waits_since >= now {
            return;
        }
        raised.since = match waits_since > raised.since {
            true => raised.since + (now - waits_since),
            false => now,
        };
    }

    /// The queue is served (`bfq_update_wr_data`): its time as a raised one may be over.
    pub(super) fn lower_if_due(&mut self, id: QueueId) {
        let now = self.now;
        let queue = &self.queues[id];
        let Some(raised) = queue.raised else {
            return;
        };
        if queue.in_large_burst {
            self.end(id);
        } else if now > raised.since + raised.lasts_ns {
            self.end_raise(id, raised);
        }
        let queue = &self.queues[id];
        if queue.is_taken_for_interactive() && queue.raised_service > SERVICE_MAX {
            self.end(id);
        }
        self.settle_weight(id);
    }

    /// Whoever was taken for interactive before is so again, for the rest of that time (`switch_back_to_interactive_wr`).
    pub(super) fn end_raise(&mut self, id: QueueId, raised: WeightRaise) {
        let lasts_ns = self.peak_rate.raise_ns(self.rotational);
        let before = match raised.kind {
            Kind::SoftRealTime { interactive_since } => interactive_since,
            Kind::Interactive => None,
        };
        match before.filter(|since| self.now <= since + lasts_ns) {
            None => self.end(id),
            Some(since) => {
                self.queues[id].raised = Some(WeightRaise { since, lasts_ns, kind: Kind::Interactive });
            }
        }
    }

    /// Its share is by the weight that it has now (`__bfq_entity_update_weight_prio`).
    pub(super) fn settle_weight(&mut self, id: QueueId) {
        let queue = &self.queues[id];
        let (entity, weight) = (queue.entity, queue.weight_in_use());
        if self.hierarchy.entity(entity).weight != weight {
            self.hierarchy.set_weight(entity, weight);
        }
        self.count(id);
    }

    /// A raised queue among others keeps its share only if it is waited for.
    pub(super) fn raised_needs_idling(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let busy = self.busy_queues.len() as u32;
        queue.raised.is_some() && (self.raised_busy < busy || self.in_driver >= queue.dispatched + 4)
    }
}
