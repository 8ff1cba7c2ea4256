//! The first CFQ with time slices: queues in lists by priority level, whose levels have their turns in growing sweeps.
//!
//! Source: `block/cfq-iosched.c` of 2.6.15 and of 2.6.18, and `elv_dispatch_sort` of `block/elevator.c`. The kernels from 2.6.13
//! to 2.6.21 had it with small differences, which are left out.

mod queue;
mod service;
#[cfg(test)]
mod tests;

use crate::scheduler::Scheduler;
use crate::scheduler::backward_seeks::BackwardSeekRule;
use crate::scheduler::cfq;
use crate::scheduler::dispatch_list::DispatchList;
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::scheduler::task_queues::{QueueId, TaskQueues};
use crate::{Bio, Priority, RequestId, Requests, Sector, TaskId};
use events::time::{MILLISECOND, Tick, Time};
use queue::{List, Lists, Queue};

/// What may be set: of CFQ's common tunables those of 2.6.15, and one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfqListsTunables {
    /// Those that later versions have too.
    pub common: cfq::CfqTunables,
    /// Requests at the device with which a queue that nobody idles on has to wait.
    pub max_depth: u32,
}

/// Which kernels' form it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The scheduler of 2.6.13 to 2.6.17.
    Linux2_6_15,
    /// The scheduler of 2.6.18 to 2.6.21: waits for seeking tasks only a little, and for none on a device that queues
    /// commands.
    Linux2_6_18,
}

impl CfqListsTunables {
    /// The defaults.
    pub fn of(version: Version) -> CfqListsTunables {
        let (slice_idle_ms, max_depth) = match version {
            Version::Linux2_6_15 => (10, 2),
            Version::Linux2_6_18 => (14, u32::MAX),
        };
        CfqListsTunables {
            common: cfq::CfqTunables {
                quantum: 4,
                slice_idle_ns: slice_idle_ms * MILLISECOND,
                ..cfq::CfqTunables::default()
            },
            max_depth,
        }
    }
}

/// The state of one queue's CFQ.
#[derive(Clone, Debug)]
pub struct CfqLists {
    version: Version,
    tunables: CfqListsTunables,
    ticks: Ticks,
    tick: Tick,
    backwards: BackwardSeekRule,
    queues: TaskQueues<Queue>,
    fifos: RequestFifos,
    lists: Lists,
    /// Queues that have requests.
    busy: u32,
    active: Option<QueueId>,
    /// Whose request was the first of this slice: the task that is waited for.
    active_task: Option<TaskId>,
    dispatched_in_slice: u32,
    idle_timer: Option<u64>,
    /// When the idle class may have its turn.
    idle_class_timer: Option<u64>,
    /// When the last request of the other classes completed.
    last_end: u64,
    kicked: Option<Time>,
    dispatch_list: DispatchList,
    /// Where the last request that the driver took ends.
    last_position: Sector,
    in_driver: u32,
    /// It has had more than a few requests at once: it queues commands (`hw_tag`).
    device_is_deep: bool,
    now: Time,
    jiffies: u64,
}

/// A device that has more requests at once queues commands.
const SHALLOW_DEVICE: u32 = 4;

/// Tunables in ticks.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    /// The deadlines of async and sync queues, in this order as slices are.
    fifo_expire: [u64; 2],
    slice: [u64; 2],
    slice_idle: u64,
    /// How long the idle class waits (`CFQ_IDLE_GRACE`).
    idle_grace: u64,
}

impl CfqLists {
    /// An idle scheduler of a kernel with `hz` ticks per second.
    pub fn new(version: Version, tunables: CfqListsTunables, hz: u32) -> CfqLists {
        let common = tunables.common;
        let ticks = |ns: Time| (ns * u64::from(hz)).div_ceil(1_000_000_000);
        CfqLists {
            version,
            ticks: Ticks {
                fifo_expire: [ticks(common.fifo_expire_async_ns), ticks(common.fifo_expire_sync_ns)],
                slice: [ticks(common.slice_async_ns), ticks(common.slice_sync_ns)],
                slice_idle: ticks(common.slice_idle_ns),
                idle_grace: u64::from(hz) / 10,
            },
            tick: Tick::of_hz(hz),
            backwards: BackwardSeekRule {
                sectors_max: common.back_seek_max_kib * 2,
                penalty: common.back_seek_penalty,
            },
            tunables,
            queues: TaskQueues::default(),
            fifos: RequestFifos::default(),
            lists: Lists::default(),
            busy: 0,
            active: None,
            active_task: None,
            dispatched_in_slice: 0,
            idle_timer: None,
            idle_class_timer: None,
            last_end: 0,
            kicked: None,
            dispatch_list: DispatchList::default(),
            last_position: 0,
            in_driver: 0,
            device_is_deep: false,
            now: 0,
            jiffies: 0,
        }
    }

    fn at(&mut self, now: Time) {
        self.now = now;
        self.jiffies = self.tick.count(now);
    }

    /// Asks for `dispatch`, if there is anything for it.
    fn kick(&mut self) {
        if self.busy > 0 {
            self.kicked = Some(self.now);
        }
    }

    /// The better of two of a queue, sync ones first. The kernel of these versions never notes where the device is, so that
    /// the lowest sector is the nearest.
    fn better(&self, requests: &Requests, one: Option<RequestId>, other: Option<RequestId>) -> Option<RequestId> {
        self.backwards.better(requests, 0, one, other)
    }

    /// `cfq_insert_request`.
    fn enqueue(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let queue_id = self.queue_for(request.task, request.sync, request.priority);
        let class = usize::from(self.queues[queue_id].is_tasks);
        let deadline = self.jiffies + self.ticks.fifo_expire[class];
        self.fifos.add(requests, id, queue_id, deadline);
        self.dispatch_list.came(id);
        let next = self.queues[queue_id].next;
        self.queues[queue_id].next = self.better(requests, next, Some(id));
        self.queues[queue_id].queued += 1;
        if self.queues[queue_id].list.is_none() {
            self.busy += 1;
            self.stand(queue_id, false);
        }
        if request.sync {
            self.learn(requests, id, queue_id);
            self.notice(queue_id);
        } else if self.version == Version::Linux2_6_18
            && self.active_task == Some(request.task)
            && self.idle_timer.take().is_some()
            && let Some(active) = self.active
        {
            // The task that is waited for does something else.
            self.expire(active, false);
            self.kick();
        }
    }

    /// Which of a task's queues such requests go to; before 2.6.18 all go to its first.
    fn slot(&self, sync: bool) -> usize {
        match self.version {
            Version::Linux2_6_15 => 0,
            Version::Linux2_6_18 => usize::from(sync),
        }
    }

    /// `cfq_get_queue`.
    fn queue_for(&mut self, task: TaskId, sync: bool, priority: Priority) -> QueueId {
        self.queues.forget_if_exited(task, self.jiffies);
        let shared_by = (!sync).then_some(priority);
        let new = || Queue::new(sync, priority);
        let slot = self.slot(sync);
        self.queues.of_task(task, slot, shared_by, self.jiffies, new)
    }

    fn learn(&mut self, requests: &Requests, id: RequestId, queue_id: QueueId) {
        let slice_idle = self.ticks.slice_idle;
        let request = &requests[id];
        let io_context = self.queues.io_context_mut(request.task).expect("it has a queue");
        io_context.learn(request, self.jiffies, slice_idle);
        let (exited, think) = (io_context.exited, io_context.usual_think());
        let queue = &mut self.queues[queue_id];
        let never_idles = self.version == Version::Linux2_6_18 && self.device_is_deep;
        if exited || slice_idle == 0 || never_idles {
            queue.idle_window = false;
        } else if let Some(think) = think {
            queue.idle_window = think <= slice_idle;
        }
    }

    /// The request has left its queue.
    fn count_out(&mut self, queue_id: QueueId) {
        let queue = &mut self.queues[queue_id];
        queue.queued -= 1;
        if queue.queued == 0
            && let Some(list) = queue.list.take()
        {
            self.lists.remove(list, queue_id);
            self.busy -= 1;
        }
    }

    /// A queue whose task is gone and that has nothing left; async queues stay.
    fn release_if_over(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        if queue.is_over() && self.active != Some(id) {
            queue.is_free = true;
            self.queues.free(id);
        }
    }
}

impl Scheduler for CfqLists {
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        Some(&mut self.fifos)
    }

    /// A task's own requests only; at the back, anybody's.
    fn fifo_before(&self, bio: &Bio) -> Option<FifoId> {
        let queue = self.queues.io_context(bio.task)?.queues[self.slot(bio.sync)]?;
        let may_search = self.queues[queue].is_tasks || self.version == Version::Linux2_6_18;
        may_search.then_some(queue)
    }

    fn may_merge(&self, _: &Requests, request: RequestId, _: &Bio) -> bool {
        !self.dispatch_list.has(request)
    }

    fn front_merged(&mut self, _: Time, requests: &Requests, id: RequestId, was: Sector) {
        self.fifos.front_merged(requests, id, was);
        let queue = self.fifos.fifo_of(id);
        self.queues[queue].next = self.better(requests, self.queues[queue].next, Some(id));
    }

    fn merged_requests(&mut self, now: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        self.at(now);
        let queue = self.fifos.fifo_of(merged);
        if self.queues[queue].next == Some(merged) {
            self.queues[queue].next = Some(survivor);
        }
        self.fifos.merged_requests(requests, survivor, merged);
        self.count_out(queue);
    }

    fn add(&mut self, now: Time, requests: &Requests, request: RequestId) {
        self.at(now);
        self.enqueue(requests, request);
    }

    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        self.at(now);
        if self.dispatch_list.is_empty() && self.busy > 0 {
            self.dispatch_round(requests);
        }
        // Nothing is left to try before something else happens.
        self.kicked = None;
        let id = self.dispatch_list.pop_front()?;
        self.in_driver += 1;
        self.device_is_deep |= self.in_driver > SHALLOW_DEVICE;
        self.last_position = requests[id].end();
        Some(id)
    }

    fn completed(&mut self, now: Time, requests: &Requests, request: RequestId) {
        self.at(now);
        self.complete(requests, request);
    }

    fn next_wakeup(&self) -> Option<Time> {
        let timers = [self.idle_timer, self.idle_class_timer];
        let timers = timers.into_iter().flatten().map(|tick| self.tick.at(tick));
        timers.chain(self.kicked).min()
    }

    fn wake(&mut self, now: Time, _: &Requests) {
        self.at(now);
        self.kicked = None;
        let is_over = |timer: Option<u64>| timer.is_some_and(|tick| tick <= self.jiffies);
        let (idled, idle_class) = (is_over(self.idle_timer), is_over(self.idle_class_timer));
        if idled {
            self.idle_timer = None;
            self.idled_long_enough();
        }
        if idle_class {
            self.idle_class_timer = None;
            self.kick();
        }
    }

    fn exited(&mut self, now: Time, task: TaskId) {
        self.at(now);
        for id in self.queues.exited(task).into_iter().flatten() {
            if self.active == Some(id) {
                self.expire(id, false);
            }
            if self.queues[id].is_tasks {
                self.queues[id].has_task = false;
                self.release_if_over(id);
            }
        }
    }

    /// The task that is idled for, once a slice (`cfq_may_queue`).
    fn may_exceed_pool(&mut self, bio: &Bio) -> bool {
        let known = self.queues.io_context(bio.task);
        let Some(id) = known.and_then(|known| known.queues[self.slot(bio.sync)]) else {
            return false;
        };
        let queue = &mut self.queues[id];
        queue.waits_for_request && !std::mem::replace(&mut queue.has_exceeded_pool, true)
    }

    fn queued(&self) -> usize {
        self.fifos.len() + self.dispatch_list.len()
    }
}
