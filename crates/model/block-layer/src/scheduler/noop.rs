//! noop: in order of arrival. Merging is the queue's, or in 2.4 its own; nothing else is done.

use std::collections::VecDeque;

use crate::scheduler::{OwnMerge, Scheduler};
use crate::{Bio, RequestId, Requests};
use events::time::Time;

/// A single FIFO.
#[derive(Clone, Debug, Default)]
pub struct Noop {
    fifo: VecDeque<RequestId>,
    /// The largest request, for one that looks for merges itself.
    walks_for: Option<u32>,
}

impl Noop {
    /// That of 2.4, which goes through the queue from the last request back (`elevator_noop_merge` of 2.4.20).
    pub fn of_2_4(request_sectors_max: u32) -> Noop {
        Noop { walks_for: Some(request_sectors_max), ..Noop::default() }
    }
}

impl Scheduler for Noop {
    fn own_merge(&mut self, requests: &Requests, bio: &Bio) -> OwnMerge {
        let Some(sectors_max) = self.walks_for else {
            return OwnMerge::AskTheQueue;
        };
        let touching = |&id: &RequestId| Some((id, requests[id].touched_by(bio, sectors_max)?));
        match self.fifo.iter().rev().find_map(touching) {
            Some((id, side)) => OwnMerge::Into(id, side),
            None => OwnMerge::Nothing,
        }
    }

    fn merged_requests(&mut self, _: Time, _: &Requests, _survivor: RequestId, merged: RequestId) {
        self.fifo.retain(|&id| id != merged);
    }

    fn add(&mut self, _: Time, _: &Requests, request: RequestId) {
        self.fifo.push_back(request);
    }

    fn dispatch(&mut self, _: Time, _: &Requests) -> Option<RequestId> {
        self.fifo.pop_front()
    }

    fn queued(&self) -> usize {
        self.fifo.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::{self, bench::Bench, bench::bio};
    use crate::{Direction::Read, Side};
    use proptest::prelude::*;

    #[test]
    fn that_of_2_4_finds_what_a_bio_touches_at_either_side_the_last_first() {
        let mut bench = Bench::new(Noop::of_2_4(255));
        bench.add(0, Read, &[100, 300, 200]);
        let mut merge = |start| {
            let bio = bio(0, Read, start);
            bench.scheduler.own_merge(&bench.requests, &bio)
        };
        let side = |merge| match merge {
            OwnMerge::Into(_, side) => Some(side),
            _ => None,
        };
        assert_eq!(side(merge(308)), Some(Side::Back));
        assert_eq!(side(merge(92)), Some(Side::Front));
        assert_eq!(merge(400), OwnMerge::Nothing);
        assert_eq!(bench.dispatched(0, 3), [100, 300, 200]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..8, of_2_4: bool) {
            let noop = if of_2_4 { Noop::of_2_4(64) } else { Noop::default() };
            let served = invariants::serve(Box::new(noop), &load, depth, 1_000_000);
            invariants::completes_each_once(&served);
        }
    }
}
