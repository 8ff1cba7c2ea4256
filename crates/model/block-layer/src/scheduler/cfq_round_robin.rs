//! The first CFQ: a queue for each process, one request of each in turn, no time and no idling.
//!
//! Source: `drivers/block/cfq-iosched.c` of 2.6.9. It was in the -mm kernels from 2.5.61 on, and in 2.6.6 to 2.6.9.

use crate::scheduler::Scheduler;
use crate::scheduler::dispatch_list::DispatchList;
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::scheduler::task_map::TaskMap;
use crate::{Bio, RequestId, Requests, Sector, TaskId};
use events::time::Time;

/// What may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfqRoundRobinTunables {
    /// Requests that a round moves to the driver, at the least.
    pub quantum: u32,
    /// Requests of the pool that are not shared out among processes.
    pub queued: u32,
}

impl Default for CfqRoundRobinTunables {
    fn default() -> CfqRoundRobinTunables {
        CfqRoundRobinTunables { quantum: 4, queued: 8 }
    }
}

/// Requests of each direction that the pool has with this scheduler, which shares them out itself.
pub const POOL_REQUESTS: u32 = 8192;
/// What a process may have queued of a direction: within these limits, its share of the pool. The upper one is the pool's
/// size without this scheduler.
const QUEUED_MIN: u32 = 3;
const QUEUED_MAX: u32 = 128;

/// The state of one queue's first CFQ.
#[derive(Clone, Debug)]
pub struct CfqRoundRobin {
    tunables: CfqRoundRobinTunables,
    pool_requests: u32,
    queue_of: TaskMap<QueueId>,
    /// By queue: what it has queued of each direction.
    queued: Vec<[u32; 2]>,
    fifos: RequestFifos,
    /// Queues that have requests; one that gets its first comes to the front.
    busy: Vec<QueueId>,
    dispatch_list: DispatchList,
}

type QueueId = usize;

impl CfqRoundRobin {
    /// An idle scheduler in front of a pool of that many requests of each direction.
    pub fn new(tunables: CfqRoundRobinTunables, pool_requests: u32) -> CfqRoundRobin {
        CfqRoundRobin {
            tunables,
            pool_requests,
            queue_of: TaskMap::default(),
            queued: Vec::new(),
            fifos: RequestFifos::default(),
            busy: Vec::new(),
            dispatch_list: DispatchList::default(),
        }
    }

    /// `cfq_get_queue`.
    fn queue_for(&mut self, task: TaskId) -> QueueId {
        let queued = &mut self.queued;
        *self.queue_of.get_or_insert_with(task, || {
            queued.push([0; 2]);
            queued.len() - 1
        })
    }

    /// One request of each busy queue, the lowest by sector, until the round has as many as it may
    /// (`cfq_dispatch_requests`).
    fn round(&mut self, requests: &Requests) {
        let mut count = 0;
        while count < self.tunables.quantum && !self.busy.is_empty() {
            let mut at = 0;
            while let Some(&queue) = self.busy.get(at) {
                let id = self.fifos.lowest(queue).expect("a busy queue has requests");
                self.leave(requests, id, queue);
                count += 1;
                match self.fifos.is_empty(queue) {
                    true => drop(self.busy.remove(at)),
                    false => at += 1,
                }
            }
        }
    }

    fn leave(&mut self, requests: &Requests, id: RequestId, queue: QueueId) {
        self.fifos.remove(requests, id);
        self.queued[queue][requests[id].direction as usize] -= 1;
        let place = self.place(requests, requests[id].start);
        self.dispatch_list.insert(place, id);
    }

    /// As the kernel looks for it (`cfq_dispatch_sort`): what is below the first comes before the last, and the rest before
    /// the last that is not below it. That is in order only while requests come in ascending order.
    fn place(&self, requests: &Requests, start: Sector) -> usize {
        let len = self.dispatch_list.len();
        let first = self.dispatch_list.iter().next();
        if first.is_some_and(|first| start < requests[first].start) {
            return len - 1;
        }
        let not_below = |other: RequestId| start <= requests[other].start;
        self.dispatch_list.iter().rposition(not_below).unwrap_or(len)
    }
}

impl Scheduler for CfqRoundRobin {
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

    /// `cfq_merged_requests`.
    fn merged_requests(&mut self, _: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        let queue = self.fifos.fifo_of(merged);
        self.queued[queue][requests[merged].direction as usize] -= 1;
        self.fifos.merged_requests(requests, survivor, merged);
    }

    /// No more than a process's share of the pool (`cfq_may_queue`).
    fn lets_queue(&self, bio: &Bio) -> bool {
        let Some(&queue) = self.queue_of.get(bio.task) else {
            return true;
        };
        if self.busy.is_empty() {
            return true;
        }
        let to_share = self.pool_requests.saturating_sub(self.tunables.queued);
        let share = (to_share / self.busy.len() as u32).clamp(QUEUED_MIN, QUEUED_MAX);
        self.queued[queue][bio.direction as usize] <= share
    }

    /// `cfq_enqueue`.
    fn add(&mut self, _: Time, requests: &Requests, id: RequestId) {
        let queue = self.queue_for(requests[id].task);
        if self.fifos.is_empty(queue) {
            self.busy.insert(0, queue);
        }
        self.fifos.add(requests, id, queue, 0);
        self.queued[queue][requests[id].direction as usize] += 1;
        self.dispatch_list.came(id);
    }

    /// `cfq_next_request`.
    fn dispatch(&mut self, _: Time, requests: &Requests) -> Option<RequestId> {
        if self.dispatch_list.is_empty() {
            self.round(requests);
        }
        self.dispatch_list.pop_front()
    }

    fn queued(&self) -> usize {
        self.fifos.len() + self.dispatch_list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction::{Read, Write};
    use crate::invariants::{self, bench::Bench, bench::bio};
    use proptest::prelude::*;

    fn bench() -> Bench<CfqRoundRobin> {
        Bench::new(CfqRoundRobin::new(CfqRoundRobinTunables::default(), POOL_REQUESTS))
    }

    fn add(bench: &mut Bench<CfqRoundRobin>, task: TaskId, starts: &[Sector]) {
        for &start in starts {
            let bio = Bio { task, ..bio(0, Read, start) };
            bench.add_bio(0, &bio);
        }
    }

    #[test]
    fn each_process_has_one_request_in_turn_however_many_it_has() {
        let mut bench = bench();
        add(&mut bench, 1, &[100, 200, 300, 400, 500, 600, 700, 800, 900]);
        add(&mut bench, 2, &[90_000_000, 90_001_000]);
        let round = bench.dispatched(0, 4);
        assert_eq!(round.iter().filter(|&&start| start < 1000).count(), 2);
        assert_eq!(bench.dispatched(0, 3), [300, 400, 500], "2 has nothing left");
    }

    #[test]
    fn nobody_is_waited_for_and_nothing_expires() {
        let mut bench = bench();
        add(&mut bench, 1, &[100]);
        add(&mut bench, 2, &[90_000_000]);
        assert_eq!(bench.dispatched(0, 2).len(), 2);
        assert_eq!(bench.scheduler.next_wakeup(), None);
    }

    #[test]
    fn a_round_is_sorted_only_as_far_as_the_kernels_walk_sorts_it() {
        let mut bench = bench();
        for (task, start) in [(4, 15), (3, 30), (2, 20), (1, 10)] {
            add(&mut bench, task, &[start * 100]);
        }
        // They come as 10, 20, 30 and 15: the last ends before 30, although 20 is above it.
        assert_eq!(bench.dispatched(0, 4), [1000, 2000, 1500, 3000]);
    }

    #[test]
    fn a_process_has_its_share_of_the_pool_in_each_direction() {
        let mut bench = Bench::new(CfqRoundRobin::new(CfqRoundRobinTunables::default(), 48));
        let of = |task| Bio { task, ..bio(0, Read, 0) };
        add(&mut bench, 1, &[100, 200, 300]);
        add(&mut bench, 2, &[10_000]);
        let lets = |bench: &Bench<CfqRoundRobin>, bio: &Bio| bench.scheduler.lets_queue(bio);
        let more: Vec<Sector> = (4..=20).map(|n| n * 100).collect();
        add(&mut bench, 1, &more);
        assert!(lets(&bench, &of(1)), "(48 - 8) / 2, and one more");
        add(&mut bench, 1, &[2100]);
        assert!(!lets(&bench, &of(1)));
        assert!(lets(&bench, &of(2)));
        let write = Bio { direction: Write, ..of(1) };
        assert!(lets(&bench, &write));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..16) {
            let scheduler = Box::new(CfqRoundRobin::new(CfqRoundRobinTunables::default(), POOL_REQUESTS));
            invariants::completes_each_once(&invariants::serve(scheduler, &load, depth, 1_000_000));
        }
    }
}
