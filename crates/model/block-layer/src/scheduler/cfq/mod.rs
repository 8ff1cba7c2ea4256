//! CFQ: a queue for each task, queues in groups, one served at a time for a slice, idling in hope of its next request.
//!
//! Source: `block/cfq-iosched.c` of 2.6.35.3, the base of the V2 patches, and of 2.6.37
//! (docs/model/sources/cfq.md#2635-and-group_idle). In order: requests come in (`enqueue`), a queue is chosen (`select`),
//! requests go out and come back (`service`).

mod enqueue;
mod group;
pub mod message;
mod queue;
mod select;
mod service;
mod tunables;

use std::collections::BTreeMap;

use crate::scheduler::Scheduler;
use crate::scheduler::backward_seeks::BackwardSeekRule;
use crate::scheduler::cfq::message::{Event, QueueName, SchedulerMessage};
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::scheduler::sorted_set::SortedSet;
use crate::scheduler::task_map::TaskMap;
use crate::{Bio, IoClass, RequestId, Requests, Sector, TaskId};
use events::time::{Tick, Time};
use group::Groups;
pub use queue::Workload;
use queue::{GroupId, IoContext, Queue, QueueId};
use tunables::TunableTicks;
pub use tunables::{CfqTunables, Surroundings, Version};

/// The state of one queue's CFQ.
#[derive(Clone, Debug)]
pub struct Cfq {
    version: Version,
    tunables: CfqTunables,
    ticks: TunableTicks,
    tick: Tick,
    rotational: bool,
    backwards: BackwardSeekRule,

    queues: Vec<Queue>,
    /// A FIFO for each queue; which a request is in is known until it completes.
    fifos: RequestFifos,
    groups: Groups,
    /// What is known of each task.
    io_contexts: TaskMap<IoContext>,
    /// Queues shared by all tasks for requests that no task waits for, by priority.
    async_queues: BTreeMap<(IoClass, u8), QueueId>,
    /// The places of queues that have ended, to be used again.
    free_queues: Vec<QueueId>,
    /// By level: queues of any group and class but idle, by where their next requests start.
    places: [SortedSet<(Sector, QueueId)>; 8],
    next_sequence: u64,

    active: Option<QueueId>,
    /// The task whose request was dispatched first in this slice: the one that is waited for.
    active_task: Option<TaskId>,
    serving_group: Option<GroupId>,
    serving_class: IoClass,
    serving_workload: Workload,
    workload_ends: i64,
    /// On the tree without idling, somebody has done I/O that more may follow.
    no_idle_tree_requires_idle: bool,
    idle_timer: Option<u64>,
    /// Asks to be dispatched from although nothing has completed.
    kicked: Option<Time>,

    busy_queues: u32,
    queued: u32,
    in_driver: u32,
    /// At the device, async and sync.
    in_flight: [u32; 2],
    last_position: Sector,
    last_delayed_sync: u64,
    /// By request: the group that its dispatching counts for, its queue's when it came.
    group_of: Vec<GroupId>,
    depth: DeviceDepth,
    /// None: nobody asked for them.
    messages: Option<Vec<SchedulerMessage>>,
    now: Time,
    /// The same in ticks.
    jiffies: u64,
}

/// Whether the device takes several requests at once, as far as is known (`hw_tag`).
#[derive(Clone, Copy, Debug, Default)]
struct DeviceDepth {
    known: Option<bool>,
    samples: u32,
    peak: u32,
}

const DEEP_DEVICE: u32 = 5;
const DEPTH_SAMPLES: u32 = 50;

/// Queues whose next requests lie this near are close.
const CLOSE_SECTORS: u64 = 8 * 1024;

impl Cfq {
    /// `group_weights`: by group, the root first; 1000 is the root's own.
    pub fn new(version: Version, tunables: CfqTunables, surroundings: Surroundings, group_weights: &[u32]) -> Cfq {
        Cfq {
            version,
            ticks: TunableTicks::of(&tunables, version, surroundings.hz),
            tunables,
            tick: Tick::of_hz(surroundings.hz),
            rotational: surroundings.rotational,
            backwards: BackwardSeekRule {
                sectors_max: tunables.back_seek_max_kib * 2,
                penalty: tunables.back_seek_penalty,
            },
            queues: Vec::new(),
            fifos: RequestFifos::default(),
            groups: Groups::new(group_weights),
            io_contexts: TaskMap::default(),
            async_queues: BTreeMap::new(),
            free_queues: Vec::new(),
            places: Default::default(),
            next_sequence: 0,
            active: None,
            active_task: None,
            serving_group: None,
            serving_class: IoClass::BestEffort,
            serving_workload: Workload::SyncNoIdle,
            workload_ends: 0,
            no_idle_tree_requires_idle: false,
            idle_timer: None,
            kicked: None,
            busy_queues: 0,
            queued: 0,
            in_driver: 0,
            in_flight: [0; 2],
            last_position: 0,
            last_delayed_sync: 0,
            group_of: Vec::new(),
            depth: DeviceDepth::default(),
            messages: None,
            now: 0,
            jiffies: 0,
        }
    }

    /// Ticks since the start.
    fn jiffies(&self) -> u64 {
        self.jiffies
    }

    fn say(&mut self, queue: QueueId, event: Event) {
        if let Some(messages) = &mut self.messages {
            let queue = &self.queues[queue];
            messages.push(SchedulerMessage {
                at: self.now,
                queue: Some(QueueName { task: queue.task, sync: queue.sync, group: queue.group as u16 }),
                event,
            });
        }
    }

    /// Seeking costs nothing and the device, as far as is known, orders by itself: idling is pointless.
    fn is_fast_device(&self) -> bool {
        !self.rotational && self.depth.known != Some(false)
    }

    fn at(&mut self, now: Time) {
        if now != self.now {
            self.now = now;
            self.jiffies = self.tick.count(now);
        }
    }
}

impl Scheduler for Cfq {
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        Some(&mut self.fifos)
    }

    /// `cfq_find_rq_fmerge`.
    fn fifo_before(&self, bio: &Bio) -> Option<FifoId> {
        self.io_contexts.get(bio.task)?.queues[usize::from(bio.sync)]
    }

    /// The request must be in the queue to which the bio would go (`cfq_allow_merge`); sync I/O never waits behind async.
    fn may_merge(&self, requests: &Requests, request: RequestId, bio: &Bio) -> bool {
        if bio.sync && !requests[request].sync {
            return false;
        }
        let Some(io_context) = self.io_contexts.get(bio.task) else {
            return false;
        };
        let queue = io_context.queues[usize::from(bio.sync)];
        queue == Some(self.fifos.fifo_of(request))
    }

    /// `cfq_merged_request`.
    fn front_merged(&mut self, now: Time, requests: &Requests, id: RequestId, was: Sector) {
        self.at(now);
        self.fifos.front_merged(requests, id, was);
        let queue = self.fifos.fifo_of(id);
        let next = &mut self.queues[queue].next;
        *next = self.backwards.better(requests, self.last_position, *next, Some(id));
        self.settle_place(requests, queue);
    }

    fn merged_requests(&mut self, now: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        self.at(now);
        self.merge_requests(requests, survivor, merged);
    }

    fn add(&mut self, now: Time, requests: &Requests, request: RequestId) {
        self.at(now);
        self.enqueue(requests, request);
    }

    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        self.at(now);
        self.kicked = None;
        self.dispatch_one(requests)
    }

    fn completed(&mut self, now: Time, requests: &Requests, request: RequestId) {
        self.at(now);
        self.complete(requests, request);
    }

    fn next_wakeup(&self) -> Option<Time> {
        let timer = self.idle_timer.map(|tick| self.tick.at(tick));
        [self.kicked, timer].into_iter().flatten().min()
    }

    fn wake(&mut self, now: Time, _: &Requests) {
        self.at(now);
        self.kicked = None;
        if self.idle_timer.is_some_and(|tick| self.tick.at(tick) <= now) {
            self.idle_timer = None;
            self.idled_long_enough();
        }
    }

    fn exited(&mut self, now: Time, task: TaskId) {
        self.at(now);
        self.task_exited(task);
    }

    /// The task that is idled for, once a slice (`cfq_may_queue`).
    fn may_exceed_pool(&mut self, bio: &Bio) -> bool {
        let queue = self.io_contexts.get(bio.task);
        let Some(queue) = queue.and_then(|io_context| io_context.queues[usize::from(bio.sync)]) else {
            return false;
        };
        let queue = &mut self.queues[queue];
        queue.waits_for_request && !std::mem::replace(&mut queue.has_exceeded_pool, true)
    }

    fn queued(&self) -> usize {
        self.queued as usize
    }

    fn keep_messages(&mut self, keep: bool) {
        self.messages = keep.then(Vec::new);
    }

    fn take_messages(&mut self, into: &mut Vec<SchedulerMessage>) {
        into.extend(self.messages.iter_mut().flat_map(|kept| kept.drain(..)));
    }
}

#[cfg(test)]
mod rules;
#[cfg(test)]
mod tests;
