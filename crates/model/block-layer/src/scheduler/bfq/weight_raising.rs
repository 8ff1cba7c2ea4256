//! Raised weights (`low_latency`): a task that comes, or comes back after a while, may belong to a user who waits in
//! front of a screen, and gets thirty times its weight for some seconds, unless many come at once.
//!
//! Source: `block/bfq-iosched.c` of 5.x: constants of `bfq_init_queue`, `bfq_wr_duration`. The rules of
//! `bfq_bfqq_handle_idle_busy_switch`, `bfq_handle_burst` and `bfq_update_wr_data` are as generally known, not compared line
//! by line, and so are the reference durations. Left out: async queues, groups of bursts. A queue whose priority is not the default is not raised (`entity.new_weight == 40`).

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
    last: Time,
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
    /// A queue has been made (`bfq_handle_burst`, `bfq_add_to_burst`).
    pub(super) fn note_burst(&mut self, id: QueueId) {
        if !self.tunables.low_latency || self.orders_by_itself() {
            return;
        }
        let (now, burst) = (self.now, &mut self.burst);
        if burst.queues.is_empty() || now > burst.last + BURST_NS {
            *burst = Burst::default();
        }
        burst.last = now;
        burst.queues.push(id);
        burst.is_large |= burst.queues.len() >= LARGE_BURST;
        if burst.is_large {
            for id in burst.queues.drain(..) {
                self.queues[id].in_large_burst = true;
            }
            // Goes on for those that come next.
            burst.queues.push(id);
        }
    }

    /// The queue has something to do again (`bfq_update_bfqq_wr_on_rq_arrival`).
    pub(super) fn raise_if_interactive(&mut self, id: QueueId) {
        let lasts_ns = self.peak_rate.raise_ns(self.rotational);
        let now = self.now;
        let queue = &self.queues[id];
        let was_away = queue.went_idle_at.is_none_or(|since| now > since + AWAY_NS);
        let is_common = queue.weight == DEFAULT_WEIGHT && queue.dispatched == 0;
        if !self.tunables.low_latency || !queue.sync || queue.in_large_burst {
            self.lower(id);
        } else if was_away && is_common {
            let raised = WeightRaise {
                since: now,
                lasts_ns,
                kind: Kind::Interactive,
            };
            self.raise(id, raised);
        } else if is_common && queue.is_soft_real_time(now) {
            let interactive_since = match queue.raised.map(|raised| (raised.kind, raised.since)) {
                Some((Kind::Interactive, since)) => Some(since),
                Some((Kind::SoftRealTime { interactive_since }, _)) => interactive_since,
                None => None,
            };
            let raised = WeightRaise {
                since: now,
                lasts_ns: LASTS_NS,
                kind: Kind::SoftRealTime { interactive_since },
            };
            self.raise(id, raised);
        }
        self.settle_weight(id);
    }

    pub(super) fn raise(&mut self, id: QueueId, raised: WeightRaise) {
        let queue = &mut self.queues[id];
        let was_raised = queue.raised.replace(raised).is_some();
        queue.raised_service = 0;
        self.raised_busy += u32::from(queue.busy && !was_raised);
    }

    /// `bfq_bfqq_end_wr`.
    pub(super) fn lower(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        let was_raised = queue.raised.take().is_some();
        self.raised_busy -= u32::from(queue.busy && was_raised);
    }

    /// The queue is served (`bfq_update_wr_data`): its time as a raised one may be over. That counts from its next turn on.
    pub(super) fn lower_if_due(&mut self, id: QueueId) {
        let now = self.now;
        let queue = &self.queues[id];
        let Some(raised) = queue.raised else {
            return;
        };
        if queue.in_large_burst {
            self.lower(id);
        } else if now > raised.since + raised.lasts_ns {
            self.end_raise(id, raised);
        } else if queue.is_taken_for_interactive() && queue.raised_service > SERVICE_MAX {
            self.lower(id);
        }
    }

    /// Whoever was taken for interactive before is so again, for the rest of that time (`switch_back_to_interactive_wr`).
    pub(super) fn end_raise(&mut self, id: QueueId, raised: WeightRaise) {
        let lasts_ns = self.peak_rate.raise_ns(self.rotational);
        let before = match raised.kind {
            Kind::SoftRealTime { interactive_since } => interactive_since,
            Kind::Interactive => None,
        };
        match before.filter(|since| self.now <= since + lasts_ns) {
            None => self.lower(id),
            Some(since) => {
                self.queues[id].raised = Some(WeightRaise {
                    since,
                    lasts_ns,
                    kind: Kind::Interactive,
                });
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
        self.recount(id);
    }

    /// A raised queue among others keeps its share only if it is waited for.
    pub(super) fn raised_needs_idling(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let busy = self.busy_queues.len() as u32;
        queue.raised.is_some()
            && (self.raised_busy < busy || self.in_driver >= queue.dispatched + 4)
    }
}
