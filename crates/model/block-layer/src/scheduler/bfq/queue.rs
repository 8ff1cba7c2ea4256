//! A queue: the requests of one task, or those of a group that no task waits for.

use crate::scheduler::bfq::QueueId;
use crate::scheduler::bfq::hierarchy::GroupId;
use crate::scheduler::bfq::inject::Injection;
use crate::scheduler::bfq::soft_real_time::Pace;
use crate::scheduler::bfq::tree::EntityId;
use crate::scheduler::bfq::wakers::Waker;
use crate::scheduler::bfq::weight_raising::WeightRaise;
use crate::scheduler::mean::Mean;
use crate::{IoClass, Priority, Request, RequestId, Sector};
use events::time::{MILLISECOND, Time};

#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) entity: EntityId,
    pub(super) sync: bool,
    pub(super) priority: Priority,
    pub(super) group: GroupId,
    pub(super) weight: u64,
    pub(super) queued: u32,
    pub(super) next: Option<RequestId>,
    /// At the device.
    pub(super) dispatched: u32,
    /// Has something to do, or is in service.
    pub(super) busy: bool,
    /// The weight under which it is among those by which it is judged whether all are alike; None: it is not.
    pub(super) counted: Option<u64>,
    /// It is among those of its group that count.
    pub(super) counted_in_group: bool,
    pub(super) raised: Option<WeightRaise>,
    /// Sectors that it has been served since its weight was raised.
    pub(super) raised_service: u64,
    pub(super) pace: Pace,
    pub(super) in_large_burst: bool,
    /// When its turn is over, or since when it has had nothing to do and nothing at the device; None: it has had no turn.
    pub(super) budget_timeout: Option<Time>,
    /// Its last request, or end of a turn, under its own weight.
    pub(super) last_unraised: Time,

    /// The budget that it deserves by how it used the last ones, in sectors.
    pub(super) max_budget: u64,
    pub(super) fifo_looked_at: bool,
    pub(super) waits_for_request: bool,
    /// It went because it had nothing to do, not because it had had enough.
    pub(super) went_to_wait: bool,

    /// It spends at least four fifths of its time on I/O.
    pub(super) io_bound: bool,
    /// Since when that is judged, and how long it has had nothing to do in that time.
    judged_since: Time,
    idle_ns: Time,
    /// It has never been busy.
    pub(super) is_new: bool,
    pub(super) injection: Injection,
    pub(super) waker: Waker,
    pub(super) made_at: Time,
    /// Its task continues with that queue when this one has reached a certain age.
    pub(super) merges_into: Option<QueueId>,
    /// Tasks whose requests go to it.
    pub(super) tasks: u32,
    pub(super) short_think: bool,
    pub(super) exited: bool,
    pub(super) last_end: Time,
    think: Mean,
    /// A bit for each of the last 32 requests: it was far from the one before.
    seeks: u32,
    last_position: Sector,
}

const SEEK_SECTORS: u64 = 8 * 100;
/// If seeking is free, only smaller requests count as seeks.
const SMALL_SECTORS: u32 = 2 * 32;
/// The seeks among the last 32 requests.
const SEEKS_MAX: u32 = 19;
/// How long it is looked back to see whether a queue is bound by I/O.
const JUDGED_NS: Time = 200 * MILLISECOND;

impl Queue {
    pub(super) fn new(
        entity: EntityId,
        sync: bool,
        priority: Priority,
        group: GroupId,
        max_budget: u64,
        now: Time,
    ) -> Queue {
        Queue {
            entity,
            sync,
            priority,
            group,
            weight: weight_of(priority),
            queued: 0,
            next: None,
            dispatched: 0,
            busy: false,
            counted: None,
            counted_in_group: false,
            raised: None,
            raised_service: 0,
            pace: Pace::new(now),
            in_large_burst: false,
            budget_timeout: None,
            last_unraised: now,
            max_budget,
            fifo_looked_at: false,
            waits_for_request: false,
            went_to_wait: false,
            io_bound: true,
            judged_since: now,
            idle_ns: 0,
            is_new: true,
            injection: Injection::unknown(now, sync && priority.class != IoClass::Idle),
            waker: Waker::default(),
            made_at: now,
            merges_into: None,
            tasks: 1,
            short_think: sync && priority.class != IoClass::Idle,
            exited: false,
            last_end: now,
            think: Mean::default(),
            // As `bfq_init_bfqq` has it.
            seeks: 1,
            last_position: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// Its own, raised or not.
    pub(super) fn weight_in_use(&self) -> u64 {
        self.weight * self.coefficient()
    }

    /// How far its weight is raised.
    pub(super) fn coefficient(&self) -> u64 {
        self.raised.map_or(1, |raised| raised.coefficient())
    }

    pub(super) fn is_taken_for_interactive(&self) -> bool {
        self.raised.is_some_and(|raised| raised.is_interactive())
    }

    /// Its first request after a pause looks like one of a soft real-time task.
    pub(super) fn is_soft_real_time(&self, now: Time) -> bool {
        !self.is_totally_seeky() && self.pace.is_slow_enough(now) && self.dispatched == 0
    }

    pub(super) fn is_idle_class(&self) -> bool {
        self.priority.class == IoClass::Idle
    }

    /// `BFQQ_SEEKY`.
    pub(super) fn is_seeky(&self) -> bool {
        self.seeks.count_ones() > SEEKS_MAX
    }

    /// Each of the last 32 requests was far from the one before (`BFQQ_TOTALLY_SEEKY`).
    pub(super) fn is_totally_seeky(&self) -> bool {
        self.seeks == u32::MAX
    }

    /// `bfq_update_io_seektime`.
    pub(super) fn note_seek(&mut self, request: &Request, rotational: bool) {
        let seek = is_seek(self.last_position, request.start, request.sectors, rotational);
        self.seeks = self.seeks << 1 | u32::from(seek);
        self.last_position = request.end();
    }

    /// From its last completion to a request that finds it with nothing to do (`bfq_update_io_thinktime`): at most
    /// twice as long as anybody would idle for it.
    pub(super) fn note_think(&mut self, now: Time, slice_idle: Time) {
        let think = (now - self.last_end).min(2 * slice_idle);
        self.think.add(7, think);
    }

    /// `bfq_update_has_short_ttime`.
    pub(super) fn judge_think(&mut self, slice_idle: Time) {
        if self.sync && !self.is_idle_class() && slice_idle > 0 {
            let usual = self.think.get().filter(|_| self.think.samples() > 80);
            let long = usual.is_some_and(|think| think > slice_idle / 2);
            self.short_think = !(self.exited || long);
        }
    }

    /// A request comes: the share of its time that the queue has spent on I/O until now (`bfq_update_io_intensity` of
    /// 5.12).
    pub(super) fn judge_intensity(&mut self, now: Time) {
        let total = now - self.judged_since;
        if self.queued == 0 && self.dispatched == 0 {
            self.idle_ns += now - self.last_end;
        }
        if self.is_new {
            return;
        }
        self.io_bound = 5 * self.idle_ns <= total;
        if total > JUDGED_NS {
            self.judged_since = now - total / 2;
            self.idle_ns /= 2;
        }
    }
}

/// Whether a request is far from where the last one ended (`BFQ_RQ_SEEKY`); nothing is far from sector 0, where everything
/// begins.
pub(super) fn is_seek(last_end: Sector, start: Sector, sectors: u32, rotational: bool) -> bool {
    let far = last_end != 0 && last_end.abs_diff(start) > SEEK_SECTORS;
    far && (rotational || sectors < SMALL_SECTORS)
}

/// 40 at the default level (`bfq_ioprio_to_weight`).
pub(super) fn weight_of(priority: Priority) -> u64 {
    (8 - u64::from(priority.level.min(7))) * 10
}
