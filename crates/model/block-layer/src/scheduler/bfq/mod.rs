//! BFQ: a queue for each task, each served for a budget of sectors, shared by weight with B-WF2Q+, idling where the
//! shares or the throughput need it.
//!
//! Source: `block/bfq-iosched.c` and `block/bfq-wf2q.c` of 5.10 (docs/model/sources/bfq.md#budgets-and-idling). Left out:
//! merging queues by where their requests are. In order: requests come in (`enqueue`), a queue is chosen and goes again
//! (`select`), requests go out and come back (`service`).

mod enqueue;
mod hierarchy;
mod inject;
mod merge;
mod queue;
mod rate;
mod select;
mod service;
mod soft_real_time;
mod tree;
mod tunables;
mod wakers;
mod weight_raising;

use std::collections::BTreeMap;

use crate::scheduler::Scheduler;
use crate::scheduler::backward_seeks::BackwardSeekRule;
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::scheduler::task_map::TaskMap;
use crate::{Bio, Direction, IoClass, RequestId, Requests, Sector, TagCounts, TaskId};
use events::time::{SECOND, Time};
use hierarchy::{GroupId, Hierarchy};
use inject::InjectionMeasurement;
use kernels::hardware_queue::TagLimit;
use queue::Queue;
use rate::PeakRate;
pub use tunables::BfqTunables;
use weight_raising::Burst;

type QueueId = FifoId;

/// The state of one queue's BFQ.
#[derive(Clone, Debug)]
pub struct Bfq {
    tunables: BfqTunables,
    tick_ns: Time,
    /// `timeout_sync` in whole ticks.
    timeout_ns: Time,
    rotational: bool,
    backwards: BackwardSeekRule,
    queues: Vec<Queue>,
    /// A FIFO for each queue; which a request is in is known until it completes.
    fifos: RequestFifos,
    /// By entity; groups have none.
    queue_of_entity: Vec<Option<QueueId>>,
    hierarchy: Hierarchy,
    sync_queues: TaskMap<QueueId>,
    async_queues: BTreeMap<(GroupId, IoClass, u8), QueueId>,

    active: Option<QueueId>,
    active_since: Time,
    times_out_at: Time,
    idling_since: Time,
    idle_timer: Option<Time>,
    /// Asks to be dispatched from although nothing has completed.
    kicked: Option<Time>,

    queued: u32,
    in_driver: u32,
    /// The queue whose request completed last, if that is of one task, and when.
    last_completed: (Option<QueueId>, Time),
    last_position: Sector,
    /// Busy queues by class.
    busy: [u32; 3],
    /// Those that wait for their turn or have it, the one that came last at the end.
    busy_queues: Vec<QueueId>,
    /// Busy queues whose weight is raised.
    raised_busy: u32,
    /// Counted queues by weight, and by group.
    weights: BTreeMap<u64, u32>,
    counted_in_groups: BTreeMap<GroupId, u32>,
    /// The root's group is one of those that may differ: from 6.2 on.
    counts_root: bool,
    depth: DeviceDepth,
    measuring: InjectionMeasurement,
    /// Queues that come soon after one another become one: from 5.13 on.
    merges_queues: bool,
    /// A queue or group that has its share of the requests gets one of each word of tags, or of all (`TagLimit`): from 5.17
    /// on.
    limits_queues: bool,
    /// By group: the queue with which those that come soon are merged.
    last_made: BTreeMap<GroupId, QueueId>,
    /// Waiting or at the device.
    requests_of_task: TaskMap<u32>,
    /// Nears 256 as budgets are given.
    budgets_given: u64,
    burst: Burst,
    peak_rate: PeakRate,
    now: Time,
}

/// Whether the device takes several requests at once; unknown counts as yes.
#[derive(Clone, Copy, Debug, Default)]
struct DeviceDepth {
    known: Option<bool>,
    samples: u32,
    peak: u32,
}

const DEPTH_SAMPLES: u32 = 32;
const DEEP_DEVICE: u32 = 3;

const DEFAULT_MAX_BUDGET: u64 = 16 * 1024;
/// `budgets_given` from which the peak rate is believed: the eleventh budget.
const BUDGETS_ENOUGH: u64 = 194;
/// The part of the tags, in sixteenths, that async I/O may have while a weight is raised.
const FEWEST_SIXTEENTHS: u32 = 3;
const DEFAULT_GROUP_WEIGHT: u64 = 100;

impl Bfq {
    /// `group_weights`: by group; the first, the root's, has no meaning here. Groups beyond have 100.
    pub fn new(tunables: BfqTunables, rotational: bool, group_weights: &[u32]) -> Bfq {
        Bfq {
            backwards: BackwardSeekRule {
                sectors_max: tunables.back_seek_max_kib * 2,
                penalty: tunables.back_seek_penalty,
            },
            timeout_ns: tunables.timeout_ns,
            tunables,
            tick_ns: 1,
            rotational,
            queues: Vec::new(),
            fifos: RequestFifos::default(),
            queue_of_entity: Vec::new(),
            hierarchy: Hierarchy::new(group_weights),
            sync_queues: TaskMap::default(),
            async_queues: BTreeMap::new(),
            active: None,
            active_since: 0,
            times_out_at: 0,
            idling_since: 0,
            idle_timer: None,
            kicked: None,
            queued: 0,
            in_driver: 0,
            last_completed: (None, 0),
            last_position: 0,
            busy: [0; 3],
            busy_queues: Vec::new(),
            raised_busy: 0,
            weights: BTreeMap::new(),
            counted_in_groups: BTreeMap::new(),
            counts_root: true,
            depth: DeviceDepth::default(),
            measuring: InjectionMeasurement::default(),
            merges_queues: false,
            limits_queues: false,
            last_made: BTreeMap::new(),
            requests_of_task: TaskMap::default(),
            budgets_given: 0,
            burst: Burst::default(),
            peak_rate: PeakRate::new(rotational),
            now: 0,
        }
    }

    /// By the clock of a kernel with so many ticks a second. The default of `timeout_sync` is `HZ / 8`; one that is set is
    /// rounded up (`msecs_to_jiffies`).
    pub fn with_hz(mut self, hz: u32) -> Bfq {
        self.tick_ns = SECOND / u64::from(hz);
        let timeout_ns = self.tunables.timeout_ns;
        let ticks = match timeout_ns == BfqTunables::default().timeout_ns {
            true => timeout_ns / self.tick_ns,
            false => timeout_ns.div_ceil(self.tick_ns),
        };
        self.timeout_ns = ticks * self.tick_ns;
        self
    }

    /// Whether queues that come soon after one another become one: those of kernels from 5.13 on do.
    pub fn with_queue_merging(mut self, merges: bool) -> Bfq {
        self.merges_queues = merges;
        self
    }

    /// Whether no queue or group gets more than its share of the requests: from 5.17 on.
    pub fn with_limited_queues(mut self, limits: bool) -> Bfq {
        self.limits_queues = limits;
        self
    }

    /// All but sync reads leave tags to these, the more while a weight is raised (`bfq_update_depths`).
    fn tags_of_kind(&self, bio: &Bio, tags: TagCounts) -> u32 {
        let sixteenths = match (bio.sync, self.raised_busy > 0) {
            (true, _) if bio.direction == Direction::Read => return tags.most(),
            (true, false) => 12,
            (true, true) => 6,
            (false, false) => 8,
            (false, true) => FEWEST_SIXTEENTHS,
        };
        (tags.shared() * sixteenths / 16).max(1)
    }

    /// Whether the root's group counts as one of several groups: it does from 6.2 on. Until then any other counts as a
    /// second one.
    pub fn with_root_counted(mut self, counts: bool) -> Bfq {
        self.counts_root = counts;
        self
    }

    /// The queue has something to do from now on, or nothing.
    fn set_busy(&mut self, id: QueueId, is: bool) {
        let queue = &mut self.queues[id];
        if queue.busy == is {
            return;
        }
        queue.busy = is;
        let (class, raised) = (queue.priority.class as usize, u32::from(queue.raised.is_some()));
        if is {
            self.busy[class] += 1;
            self.raised_busy += raised;
            self.busy_queues.push(id);
        } else {
            self.busy[class] -= 1;
            self.raised_busy -= raised;
            self.busy_queues.retain(|&busy| busy != id);
        }
    }

    /// The largest budget of all (`bfq_max_budget`): that of the device is not believed before enough were given.
    fn max_budget(&self) -> u64 {
        if self.tunables.max_budget == 0 && self.budgets_given < BUDGETS_ENOUGH {
            DEFAULT_MAX_BUDGET
        } else {
            self.device_budget()
        }
    }

    /// What the device is taken to do in `timeout_sync`: a guess until its rate has been measured (`bfq_calc_max_budget`).
    fn device_budget(&self) -> u64 {
        if self.tunables.max_budget > 0 {
            self.tunables.max_budget
        } else if self.peak_rate.is_measured() {
            self.peak_rate.sectors_in(self.timeout_ns).max(1)
        } else {
            DEFAULT_MAX_BUDGET
        }
    }

    fn at(&mut self, now: Time) {
        self.now = now;
        self.hierarchy.at(now);
    }

    /// Whether so much time has passed, in ticks (`time_is_before_eq_jiffies`).
    fn has_passed(&self, time_ns: Time, since: Time) -> bool {
        self.now / self.tick_ns >= since / self.tick_ns + time_ns.div_ceil(self.tick_ns)
    }

    /// `bfq_schedule_dispatch`.
    fn kick(&mut self) {
        self.kicked = Some(self.now);
    }
}

impl Scheduler for Bfq {
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        Some(&mut self.fifos)
    }

    /// `bfq_find_rq_fmerge`.
    fn fifo_before(&self, bio: &Bio) -> Option<FifoId> {
        self.known_queue(bio.task, bio.group, bio.sync, bio.priority)
    }

    /// Only in the queue to which the bio would go (`bfq_allow_bio_merge`).
    fn may_merge(&self, requests: &Requests, request: RequestId, bio: &Bio) -> bool {
        let queue = self.known_queue(bio.task, bio.group, bio.sync, bio.priority);
        bio.sync == requests[request].sync && queue == Some(self.fifos.fifo_of(request))
    }

    /// `bfq_request_merged`.
    fn front_merged(&mut self, _: Time, requests: &Requests, id: RequestId, was: Sector) {
        self.fifos.front_merged(requests, id, was);
        let queue = self.fifos.fifo_of(id);
        let before = self.queues[queue].next;
        let next = self.backwards.better(requests, self.last_position, before, Some(id));
        self.queues[queue].next = next;
        if next != before {
            self.next_changed(requests, queue);
        }
    }

    fn merged_requests(&mut self, now: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        self.at(now);
        self.merge_requests(requests, survivor, merged);
    }

    /// `bfq_limit_depth`.
    fn tags_allowed(&self, bio: &Bio, tags: TagCounts) -> u32 {
        let limit = self.tags_of_kind(bio, tags);
        let known = self.known_queue(bio.task, bio.group, bio.sync, bio.priority);
        let Some(queue) = known.filter(|_| self.limits_queues) else {
            return limit;
        };
        let requests = u64::from(tags.all) * u64::from(limit) / u64::from(tags.most());
        let allocated = |entity: usize| {
            let queue = self.queue_of_entity.get(entity).copied().flatten();
            queue.map_or(0, |id| u64::from(self.queues[id].queued + self.queues[id].dispatched))
        };
        let entity = self.queues[queue].entity;
        match self.hierarchy.has_its_share(entity, requests, allocated) {
            true => 1,
            false => limit,
        }
    }

    fn limits_vary(&self) -> bool {
        true
    }

    fn fewest_tags(&self, tags: TagCounts) -> u32 {
        match tags.limit {
            TagLimit::OfWord => (tags.word * FEWEST_SIXTEENTHS / 16).max(1),
            TagLimit::OfAll => 1,
        }
    }

    fn add(&mut self, now: Time, requests: &Requests, request: RequestId) {
        self.at(now);
        self.enqueue(requests, request);
    }

    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        self.at(now);
        self.kicked = None;
        if self.tunables.strict_guarantees && self.in_driver > 0 {
            return None;
        }
        let queue = self.select(requests)?;
        Some(self.serve(requests, queue))
    }

    fn completed(&mut self, now: Time, requests: &Requests, request: RequestId) {
        self.at(now);
        self.complete(requests, request);
    }

    fn next_wakeup(&self) -> Option<Time> {
        [self.kicked, self.idle_timer].into_iter().flatten().min()
    }

    fn wake(&mut self, now: Time, requests: &Requests) {
        self.at(now);
        self.kicked = None;
        if self.idle_timer.is_some_and(|at| at <= now) {
            self.idle_timer = None;
            self.idled_long_enough(requests);
        }
    }

    /// `bfq_schedule_dispatch`: once the device is idle.
    fn runs_queue(&self) -> bool {
        true
    }

    /// `bfq_exit_bfqq`.
    fn exited(&mut self, _: Time, task: TaskId) {
        let Some(id) = self.sync_queues.remove(task) else {
            return;
        };
        let queue = &mut self.queues[id];
        queue.tasks -= 1;
        let is_last = queue.tasks == 0;
        if is_last {
            self.forget_waker(id);
        }
        let queue = &mut self.queues[id];
        if is_last {
            queue.exited = true;
            queue.judge_think(self.tunables.slice_idle_ns);
            self.leave_line(id);
        }
    }

    fn queued(&self) -> usize {
        self.queued as usize
    }
}

#[cfg(test)]
mod raised_tests;
#[cfg(test)]
mod tests;
