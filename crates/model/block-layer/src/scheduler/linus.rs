//! The elevator of 2.4: one list for both directions, sorted as far as each request's patience allows.
//!
//! Source: `drivers/block/elevator.c` of 2.4.20 (docs/model/sources/plugging.md#the-elevator-of-24).

use std::collections::VecDeque;

use serde::Deserialize;

use crate::scheduler::{OwnMerge, Scheduler};
use crate::{Bio, Direction, RequestId, Requests, Side};
use events::time::Time;

/// elvtune(8)'s: how much may pass a request before it is passed no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinusTunables {
    /// Patience of a read: a merge in front of it costs 1, an insertion 16.
    pub read_latency: i32,
    /// Patience of a write, in the same units.
    pub write_latency: i32,
}

impl Default for LinusTunables {
    fn default() -> LinusTunables {
        LinusTunables { read_latency: 2048, write_latency: 8192 }
    }
}

/// What passing costs the patience of those that are passed.
const COST_OF_MERGE: i32 = 1;
const COST_OF_INSERTION: i32 = 16;

/// The state of one queue's elevator.
#[derive(Clone, Debug)]
pub struct Linus {
    tunables: LinusTunables,
    request_sectors_max: u32,
    /// The head is served next.
    list: VecDeque<RequestId>,
    /// By the request's number: what is left of its patience.
    patience: Vec<i32>,
    /// Where the last walk found that a new request belongs: how many stay before it.
    insert_after: Option<usize>,
    /// A request that may be passed no more may still be joined at its back.
    joins_impatient: bool,
}

impl Linus {
    /// `request_sectors_max`: the queue's; the walk needs it.
    pub fn new(tunables: LinusTunables, request_sectors_max: u32) -> Linus {
        Linus {
            tunables,
            request_sectors_max,
            list: VecDeque::new(),
            patience: Vec::new(),
            insert_after: None,
            joins_impatient: false,
        }
    }

    /// That of later 2.4: where the walk ends, it looks at the back of the last request.
    pub fn joining_impatient(mut self) -> Linus {
        self.joins_impatient = true;
        self
    }

    /// Those behind the first `count` have been passed.
    fn charge_behind(&mut self, count: usize, cost: i32) {
        for id in self.list.iter().skip(count) {
            self.patience[id.number() as usize] -= cost;
        }
    }

    /// Whether the bio belongs between the request at `position` and the one behind it (`bh_rq_in_between`). The list rises
    /// and may fall once, where the elevator turns back.
    fn is_between(&self, requests: &Requests, position: usize, bio: &Bio) -> bool {
        let Some(&next) = self.list.get(position + 1) else {
            return false;
        };
        let (here, next) = (requests[self.list[position]].start, requests[next].start);
        if here < next { here < bio.start && bio.start < next } else { here < bio.start || bio.start < next }
    }

    fn position(&self, id: RequestId) -> Option<usize> {
        self.list.iter().position(|&other| other == id)
    }
}

impl Scheduler for Linus {
    /// The walk from the tail, for a bio that comes in (`elevator_linus_merge`).
    fn own_merge(&mut self, requests: &Requests, bio: &Bio) -> OwnMerge {
        self.insert_after = None;
        for position in (0..self.list.len()).rev() {
            let id = self.list[position];
            let is_last = self.patience[id.number() as usize] <= 0;
            if is_last && !self.joins_impatient {
                break;
            }
            let is_between = || self.is_between(requests, position, bio);
            if !is_last && self.insert_after.is_none() && is_between() {
                self.insert_after = Some(position + 1);
            }
            let side = requests[id].touched_by(bio, self.request_sectors_max);
            let Some(side) = side.filter(|&side| !is_last || side == Side::Back) else {
                if is_last {
                    break;
                }
                continue;
            };
            self.charge_behind(position + 1, COST_OF_MERGE);
            if side == Side::Front {
                self.patience[id.number() as usize] -= COST_OF_MERGE;
            }
            self.insert_after = None;
            return OwnMerge::Into(id, side);
        }
        OwnMerge::Nothing
    }

    fn neighbour(&mut self, _: &Requests, id: RequestId, side: Side) -> Option<RequestId> {
        let position = self.position(id)?;
        match side {
            Side::Back => self.list.get(position + 1).copied(),
            Side::Front => self.list.get(position.checked_sub(1)?).copied(),
        }
    }

    /// `elevator_linus_merge_req`.
    fn merged_requests(&mut self, _: Time, _: &Requests, survivor: RequestId, merged: RequestId) {
        let left = self.patience[merged.number() as usize];
        let patience = &mut self.patience[survivor.number() as usize];
        *patience = left.min(*patience);
        self.list.retain(|&id| id != merged);
    }

    fn add(&mut self, _: Time, requests: &Requests, id: RequestId) {
        let number = id.number() as usize;
        if self.patience.len() <= number {
            self.patience.resize(number + 1, 0);
        }
        self.patience[number] = match requests[id].direction {
            Direction::Read => self.tunables.read_latency,
            Direction::Write => self.tunables.write_latency,
        };
        match self.insert_after.take() {
            Some(count) => {
                self.charge_behind(count, COST_OF_INSERTION);
                self.list.insert(count, id);
            }
            None => self.list.push_back(id),
        }
    }

    fn dispatch(&mut self, _: Time, _: &Requests) -> Option<RequestId> {
        self.insert_after = None;
        self.list.pop_front()
    }

    fn queued(&self) -> usize {
        self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants;
    use crate::invariants::bench::{Bench, bio};
    use Direction::{Read, Write};
    use proptest::prelude::*;

    fn bench(tunables: LinusTunables) -> Bench<Linus> {
        Bench::new(Linus::new(tunables, 255))
    }

    #[test]
    fn requests_are_sorted_into_the_sweep_that_is_in_flight() {
        let mut bench = bench(LinusTunables::default());
        bench.offer(0, Read, &[100, 300, 200]);
        assert_eq!(bench.dispatched(0, 3), [100, 200, 300]);
    }

    #[test]
    fn a_read_below_a_backlog_of_writes_waits_behind_all_of_it() {
        let mut bench = bench(LinusTunables::default());
        bench.offer(0, Write, &[1000, 2000, 3000]);
        bench.offer(0, Read, &[500]);
        assert_eq!(bench.dispatched(0, 4), [-1000, -2000, -3000, 500]);
    }

    #[test]
    fn later_2_4_still_joins_a_request_that_may_be_passed_no_more_at_its_back() {
        let impatient = LinusTunables { read_latency: 0, ..LinusTunables::default() };
        for joins in [false, true] {
            let mut linus = Linus::new(impatient, 255);
            linus.joins_impatient = joins;
            let mut bench = Bench::new(linus);
            bench.add(0, Read, &[1000, 5000]);
            let mut merge = |start| {
                let bio = bio(0, Read, start);
                bench.scheduler.own_merge(&bench.requests, &bio)
            };
            let at_back = matches!(merge(5008), OwnMerge::Into(_, Side::Back));
            assert_eq!(at_back, joins);
            assert_eq!(merge(4992), OwnMerge::Nothing, "not at its front");
            assert_eq!(merge(1008), OwnMerge::Nothing, "nor beyond it");
        }
    }

    #[test]
    fn at_most_128_insertions_pass_a_read() {
        let mut bench = bench(LinusTunables::default());
        bench.offer(0, Read, &[10_000, 1_000_000]);
        let between: Vec<u64> = (1..200).map(|n| 10_000 + n * 1000).collect();
        bench.offer(0, Read, &between);
        let order = bench.dispatched(0, 201);
        let place = order.iter().position(|&start| start == 1_000_000).unwrap();
        assert_eq!(place, 1 + 2048 / 16);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..8) {
            let scheduler = Box::new(Linus::new(LinusTunables::default(), 64));
            invariants::completes_each_once(&invariants::serve(scheduler, &load, depth, 1_000_000));
        }
    }
}
