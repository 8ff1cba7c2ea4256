//! The deadline scheduler of 2.5.39 to 2.5.57: batches by cost, writes without a deadline, no memory of where it was.
//!
//! Source: `drivers/block/deadline-iosched.c` of 2.5.51 to 2.5.57 (docs/model/sources/deadline.md#variant-a).

use std::collections::VecDeque;

use serde::Deserialize;

use crate::scheduler::Scheduler;
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::{Bio, Direction, RequestId, Requests, Sector};
use events::time::{MILLISECOND, Time};

/// The numbers that its rules go by; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeadlineATunables {
    /// A read that has waited this long begins the next batch.
    #[serde(rename = "read_expire")]
    pub read_expire_ns: Time,
    /// What a batch may cost.
    pub fifo_batch: u32,
    /// The cost of a request that does not follow the one before it; one that does costs 1 for each 256 sectors begun.
    pub seek_cost: u32,
    /// Batches of reads that writes let pass.
    pub writes_starved: u32,
}

impl Default for DeadlineATunables {
    fn default() -> DeadlineATunables {
        DeadlineATunables { read_expire_ns: 500 * MILLISECOND, fifo_batch: 16, seek_cost: 16, writes_starved: 2 }
    }
}

/// The state of one queue's deadline scheduler.
#[derive(Clone, Debug)]
pub struct DeadlineA {
    tunables: DeadlineATunables,
    /// A FIFO for each direction.
    fifos: RequestFifos,
    /// The current batch; nothing is merged into it any more.
    dispatching: VecDeque<RequestId>,
    last_sector: Sector,
    starved: u32,
}

impl DeadlineA {
    /// An empty scheduler.
    pub fn new(tunables: DeadlineATunables) -> DeadlineA {
        DeadlineA { tunables, fifos: RequestFifos::default(), dispatching: VecDeque::new(), last_sector: 0, starved: 0 }
    }

    /// Where the next batch begins (`deadline_next_request`).
    fn choose(&mut self, now: Time) -> Option<RequestId> {
        let lowest_write = self.fifos.lowest(Direction::Write as usize);
        let reads = Direction::Read as usize;
        if self.fifos.is_empty(reads) {
            self.starved = 0;
            return lowest_write;
        }
        if lowest_write.is_some() {
            let starved = self.starved;
            self.starved += 1;
            if starved >= self.tunables.writes_starved {
                self.starved = 0;
                return lowest_write;
            }
        }
        self.fifos.overdue(reads, now).or_else(|| self.fifos.lowest(reads))
    }

    /// Moves a batch from there on, in sector order (`deadline_move_requests`).
    fn begin_batch(&mut self, requests: &Requests, first: RequestId) {
        let mut budget = i64::from(self.tunables.fifo_batch);
        let mut end = self.last_sector;
        let mut next = Some(first);
        while let Some(id) = next {
            let request = &requests[id];
            next = self.fifos.after(requests, id);
            self.fifos.remove(requests, id);
            self.dispatching.push_back(id);
            budget -=
                i64::from(if request.start == end { request.sectors.div_ceil(256) } else { self.tunables.seek_cost });
            end = request.end();
            if budget <= 0 {
                return;
            }
        }
    }
}

impl Scheduler for DeadlineA {
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        Some(&mut self.fifos)
    }

    fn fifo_before(&self, bio: &Bio) -> Option<FifoId> {
        Some(bio.direction as usize)
    }

    fn may_merge(&self, _: &Requests, request: RequestId, _: &Bio) -> bool {
        !self.dispatching.contains(&request)
    }

    /// `deadline_add_request`.
    fn add(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let direction = requests[id].direction;
        let deadline = match direction {
            Direction::Read => now + self.tunables.read_expire_ns,
            Direction::Write => Time::MAX,
        };
        self.fifos.add(requests, id, direction as usize, deadline);
    }

    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        if self.dispatching.is_empty() {
            let first = self.choose(now)?;
            self.begin_batch(requests, first);
        }
        let id = self.dispatching.pop_front()?;
        self.last_sector = requests[id].end();
        Some(id)
    }

    fn queued(&self) -> usize {
        self.fifos.len() + self.dispatching.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants;
    use crate::invariants::bench::Bench;
    use Direction::{Read, Write};
    use proptest::prelude::*;

    fn bench() -> Bench<DeadlineA> {
        Bench::new(DeadlineA::new(DeadlineATunables::default()))
    }

    #[test]
    fn one_seek_exhausts_a_batch_and_the_next_begins_at_the_lowest_sector_again() {
        let mut bench = bench();
        bench.add(0, Write, &[500, 700]);
        assert_eq!(bench.dispatched(0, 1), [-500]);
        bench.add(0, Write, &[100]);
        assert_eq!(bench.dispatched(0, 2), [-100, -700]);
    }

    #[test]
    fn a_contiguous_run_is_one_batch_that_writes_cannot_enter() {
        let mut bench = bench();
        bench.add(0, Read, &[0, 8, 16, 24]);
        bench.add(0, Write, &[1000]);
        assert_eq!(bench.dispatched(0, 5), [0, 8, 16, 24, -1000]);
    }

    #[test]
    fn an_expired_read_comes_before_lower_ones() {
        let mut bench = bench();
        bench.add(0, Read, &[900]);
        bench.add(600 * MILLISECOND, Read, &[100]);
        assert_eq!(bench.dispatched(600 * MILLISECOND, 2), [900, 100]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..8) {
            let scheduler = Box::new(DeadlineA::new(DeadlineATunables::default()));
            invariants::completes_each_once(&invariants::serve(scheduler, &load, depth, 1_000_000));
        }
    }
}
