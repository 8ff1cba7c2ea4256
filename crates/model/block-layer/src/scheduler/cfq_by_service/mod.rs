//! The second CFQ: the processes that had the least service first, still without slices and idling.
//!
//! Source: `drivers/block/cfq-iosched.c` of 2.6.12, which 2.6.10 and 2.6.11 had too.

mod round;
#[cfg(test)]
mod tests;

use crate::scheduler::Scheduler;
use crate::scheduler::backward_seeks::BackwardSeekRule;
use crate::scheduler::dispatch_list::DispatchList;
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::scheduler::task_map::TaskMap;
use crate::{Bio, RequestId, Requests, Sector, TaskId};
use events::time::{MILLISECOND, SECOND, Tick, Time};

/// What may be set. Times in nanoseconds; they take effect in whole ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfqByServiceTunables {
    /// Requests that a round moves to the driver, at the least.
    pub quantum: u32,
    /// Requests of each direction that every process may have.
    pub queued: u32,
    /// After this time an **async** request is served first, despite its name: the kernel keeps sync requests in the
    /// other of its two lists.
    pub fifo_expire_sync_ns: Time,
    /// After this time a **sync** request is served first.
    pub fifo_expire_async_ns: Time,
    /// So often a queue serves one that has waited too long.
    pub fifo_batch_expire_ns: Time,
    /// How far back is still near, in KiB.
    pub back_seek_max_kib: u64,
    /// How many times as far a step backwards counts.
    pub back_seek_penalty: u64,
    /// Serves the request nearest to the last; otherwise the lowest by sector.
    pub find_best: bool,
}

impl Default for CfqByServiceTunables {
    fn default() -> CfqByServiceTunables {
        CfqByServiceTunables {
            quantum: 4,
            queued: 8,
            fifo_expire_sync_ns: 500 * MILLISECOND,
            fifo_expire_async_ns: 5 * SECOND,
            fifo_batch_expire_ns: 125 * MILLISECOND,
            back_seek_max_kib: 16 * 1024,
            back_seek_penalty: 2,
            find_best: true,
        }
    }
}

/// Requests of each direction that the pool has with this scheduler.
pub const POOL_REQUESTS: u32 = 1024;
/// A process has at most this part of the pool.
const SHARE_MAX: u32 = 16;
/// A device with this many requests at once counts as one that queues commands, permanently: then what counts is
/// requests instead of time.
const DEEP_DEVICE: u32 = 4;

/// The state of one queue's second CFQ.
#[derive(Clone, Debug)]
pub struct CfqByService {
    tunables: CfqByServiceTunables,
    ticks: Ticks,
    tick: Tick,
    backwards: BackwardSeekRule,
    pool_requests: u32,
    queued_max: u32,
    queue_of: TaskMap<QueueId>,
    queues: Vec<Queue>,
    /// By queue, in order of sectors.
    fifos: RequestFifos,
    /// Two for each queue, async and sync, in order of arrival.
    arrivals: RequestFifos,
    /// Queues that have requests, those with the least service first.
    line: Vec<QueueId>,
    dispatch_list: DispatchList,
    /// By request: when the driver took it.
    taken_at: Vec<u64>,
    last_position: Sector,
    in_driver: u32,
    counts_requests: bool,
}

type QueueId = usize;

/// Tunables in ticks.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    /// The deadlines of async and of sync requests.
    expire: [u64; 2],
    batch_expire: u64,
    /// Over this time service is added up.
    service: u64,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    queued: u32,
    /// The requests of each direction that are queued or not completed.
    allocated: [u32; 2],
    in_flight: u32,
    next: Option<RequestId>,
    expired_at: u64,
    /// None: nothing of it was served yet.
    service_start: Option<u64>,
    service: u64,
}

impl CfqByService {
    /// An idle scheduler of a kernel with `hz` ticks per second, in front of a pool of that many requests of each
    /// direction.
    pub fn new(tunables: CfqByServiceTunables, hz: u32, pool_requests: u32) -> CfqByService {
        let ticks = |ns: Time| (ns * u64::from(hz)).div_ceil(1_000_000_000);
        CfqByService {
            ticks: Ticks {
                expire: [ticks(tunables.fifo_expire_sync_ns), ticks(tunables.fifo_expire_async_ns)],
                batch_expire: ticks(tunables.fifo_batch_expire_ns),
                service: u64::from(hz),
            },
            tick: Tick::of_hz(hz),
            backwards: BackwardSeekRule {
                sectors_max: tunables.back_seek_max_kib * 2,
                penalty: tunables.back_seek_penalty,
            },
            tunables,
            pool_requests,
            queued_max: POOL_REQUESTS / SHARE_MAX,
            queue_of: TaskMap::default(),
            queues: Vec::new(),
            fifos: RequestFifos::default(),
            arrivals: RequestFifos::default(),
            line: Vec::new(),
            dispatch_list: DispatchList::default(),
            taken_at: Vec::new(),
            last_position: 0,
            in_driver: 0,
            counts_requests: false,
        }
    }

    /// `__cfq_get_queue`.
    fn queue_for(&mut self, task: TaskId) -> QueueId {
        let queues = &mut self.queues;
        *self.queue_of.get_or_insert_with(task, || {
            queues.push(Queue::default());
            queues.len() - 1
        })
    }

    // The line.

    /// Puts the queue into the line, or to its new place there if its neighbours had more or less service
    /// (`cfq_sort_rr_list`).
    fn stand(&mut self, id: QueueId) {
        let key = |id: QueueId| (self.queues[id].service, self.queues[id].in_flight);
        if let Some(place) = self.line.iter().position(|&other| other == id) {
            let service = |place: usize| self.line.get(place).map(|&id| self.queues[id].service);
            let mine = self.queues[id].service;
            let before = place.checked_sub(1).and_then(service);
            let is_in_order =
                before.is_none_or(|before| before <= mine) && service(place + 1).is_none_or(|after| mine <= after);
            if is_in_order {
                return;
            }
            self.line.remove(place);
        }
        let less = self.line.iter().rposition(|&other| key(other) < key(id));
        self.line.insert(less.map_or(0, |less| less + 1), id);
    }

    fn is_new_second(&self, id: QueueId, now: u64) -> bool {
        let start = self.queues[id].service_start;
        start.is_none_or(|start| now > start + self.ticks.service)
    }
}

impl Scheduler for CfqByService {
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        Some(&mut self.fifos)
    }

    /// A process's own requests only (`cfq_find_rq_rb`); at the back, anybody's.
    fn fifo_before(&self, bio: &Bio) -> Option<FifoId> {
        self.queue_of.get(bio.task).copied()
    }

    fn may_merge(&self, _: &Requests, request: RequestId, _: &Bio) -> bool {
        !self.dispatch_list.has(request)
    }

    fn front_merged(&mut self, _: Time, requests: &Requests, id: RequestId, was: Sector) {
        self.fifos.front_merged(requests, id, was);
        self.arrivals.front_merged(requests, id, was);
        let next = &mut self.queues[self.fifos.fifo_of(id)].next;
        *next = self.backwards.nearer(requests, self.last_position, *next, Some(id));
    }

    /// `cfq_merged_requests`.
    fn merged_requests(&mut self, _: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        let queue = self.fifos.fifo_of(merged);
        if self.queues[queue].next == Some(merged) {
            self.queues[queue].next = Some(survivor);
        }
        self.fifos.merged_requests(requests, survivor, merged);
        self.arrivals.merged_requests(requests, survivor, merged);
        self.queues[queue].allocated[requests[merged].direction as usize] -= 1;
        self.count_out(queue);
    }

    /// A process has its share of the pool (`cfq_may_queue`).
    fn lets_queue(&self, bio: &Bio) -> bool {
        let Some(&queue) = self.queue_of.get(bio.task) else {
            return true;
        };
        let share = match self.line.len() as u32 {
            0 => self.queued_max,
            busy => self.pool_requests / busy,
        };
        let limit = share.min(self.queued_max).max(self.tunables.queued);
        self.queues[queue].allocated[bio.direction as usize] < limit
    }

    /// Every process gets a few (`ELV_MQUEUE_MUST` of `cfq_may_queue`).
    fn may_exceed_pool(&mut self, bio: &Bio) -> bool {
        self.queue_of
            .get(bio.task)
            .is_some_and(|&queue| self.queues[queue].allocated[bio.direction as usize] < self.tunables.queued)
    }

    /// `cfq_enqueue`.
    fn add(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let now = self.tick.count(now);
        let request = &requests[id];
        let queue_id = self.queue_for(request.task);
        let class = usize::from(request.sync);
        self.fifos.add(requests, id, queue_id, 0);
        let deadline = now + self.ticks.expire[class];
        self.arrivals.add(requests, id, 2 * queue_id + class, deadline);
        self.dispatch_list.came(id);
        let number = id.number() as usize;
        if self.taken_at.len() <= number {
            self.taken_at.resize(number + 1, 0);
        }
        let was_idle = self.queues[queue_id].queued == 0;
        if was_idle && self.is_new_second(queue_id, now) {
            self.queues[queue_id].service >>= 3;
        }
        let queue = &mut self.queues[queue_id];
        queue.queued += 1;
        queue.allocated[request.direction as usize] += 1;
        queue.next = self.backwards.nearer(requests, self.last_position, queue.next, Some(id));
        if was_idle {
            self.stand(queue_id);
        }
    }

    /// `cfq_next_request`.
    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        let now = self.tick.count(now);
        if self.dispatch_list.is_empty() && !self.line.is_empty() {
            self.round(requests, now);
        }
        let id = self.dispatch_list.pop_front()?;
        self.took(id, now);
        Some(id)
    }

    /// `cfq_account_completion`.
    fn completed(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let now = self.tick.count(now);
        let queue_id = self.fifos.fifo_of(id);
        let is_new_second = self.is_new_second(queue_id, now);
        self.in_driver -= 1;
        let queue = &mut self.queues[queue_id];
        queue.in_flight -= 1;
        queue.allocated[requests[id].direction as usize] -= 1;
        if !self.counts_requests {
            if is_new_second {
                queue.service_start = Some(now);
                queue.service >>= 3;
            }
            queue.service += now - self.taken_at[id.number() as usize];
            self.stand_if_busy(queue_id);
        }
    }

    fn queued(&self) -> usize {
        self.fifos.len() + self.dispatch_list.len()
    }
}
