//! No scheduler over hardware queues ("none"): a FIFO for each CPU, from which each hardware queue takes in turn.
//!
//! Source: `block/blk-mq.c`, `block/blk-mq-sched.c` of 5.x.

use std::collections::VecDeque;

use crate::scheduler::{OwnMerge, Scheduler};
use crate::{Bio, Request, RequestId, Requests, Side};
use events::time::Time;

/// The software queues of one request queue.
#[derive(Clone, Debug, Default)]
pub struct NoScheduler {
    /// By CPU.
    fifos: Vec<VecDeque<RequestId>>,
    turn: usize,
    queued: usize,
}

impl Scheduler for NoScheduler {
    /// `blk_mq_sched_bio_merge`.
    fn own_merge(&mut self, requests: &Requests, bio: &Bio) -> OwnMerge {
        match self.fifos.get(usize::from(bio.cpu)) {
            Some(fifo) => merge_near_end(fifo, requests, bio),
            None => OwnMerge::Nothing,
        }
    }

    fn add(&mut self, _: Time, requests: &Requests, id: RequestId) {
        fifo_of(&mut self.fifos, &requests[id]).push_back(id);
        self.queued += 1;
    }

    /// `blk_mq_do_dispatch_ctx`.
    fn dispatch(&mut self, _: Time, _: &Requests) -> Option<RequestId> {
        let count = self.fifos.len();
        let (fifo, id) = (0..count).find_map(|after| {
            let fifo = (self.turn + after) % count;
            Some((fifo, self.fifos[fifo].pop_front()?))
        })?;
        self.turn = fifo + 1;
        self.queued -= 1;
        Some(id)
    }

    fn queued(&self) -> usize {
        self.queued
    }
}

/// The FIFO of the CPU that submitted the request.
pub(super) fn fifo_of<'a>(fifos: &'a mut Vec<VecDeque<RequestId>>, request: &Request) -> &'a mut VecDeque<RequestId> {
    let cpu = usize::from(request.cpu);
    if fifos.len() <= cpu {
        fifos.resize_with(cpu + 1, VecDeque::new);
    }
    &mut fifos[cpu]
}

/// How far back from the end of a FIFO a bio looks for a request to join.
const LOOKS_BACK: usize = 8;

/// A request among the last few queued that the bio continues or precedes (`blk_bio_list_merge`).
pub(super) fn merge_near_end(fifo: &VecDeque<RequestId>, requests: &Requests, bio: &Bio) -> OwnMerge {
    fifo.iter()
        .rev()
        .take(LOOKS_BACK)
        .find_map(|&id| {
            let request = &requests[id];
            if request.direction != bio.direction || request.sync != bio.sync {
                None
            } else if request.end() == bio.start {
                Some(OwnMerge::Into(id, Side::Back))
            } else if bio.end() == request.start {
                Some(OwnMerge::Into(id, Side::Front))
            } else {
                None
            }
        })
        .unwrap_or(OwnMerge::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction::Read;
    use crate::invariants;
    use crate::invariants::bench::{Bench, bio};
    use proptest::prelude::*;

    fn on_cpu(cpu: u16, start: u64) -> Bio {
        Bio { cpu, ..bio(0, Read, start) }
    }

    #[test]
    fn cpus_take_turns_and_each_keeps_its_order() {
        let mut bench = Bench::new(NoScheduler::default());
        for (cpu, start) in [(0, 500), (0, 100), (0, 300), (3, 900), (3, 800)] {
            bench.add_bio(0, &on_cpu(cpu, start));
        }
        assert_eq!(bench.dispatched(0, 9), [500, 900, 100, 800, 300]);
    }

    #[test]
    fn a_bio_joins_only_what_its_own_cpu_has_queued_lately() {
        let mut bench = Bench::new(NoScheduler::default());
        bench.add_bio(0, &on_cpu(0, 100));
        let merge = |bench: &mut Bench<NoScheduler>, cpu, start| {
            let bio = on_cpu(cpu, start);
            bench.scheduler.own_merge(&bench.requests, &bio) != OwnMerge::Nothing
        };
        assert!(merge(&mut bench, 0, 108) && merge(&mut bench, 0, 92));
        assert!(!merge(&mut bench, 1, 108));
        for n in 0..8 {
            bench.add_bio(0, &on_cpu(0, 1000 + 100 * n));
        }
        assert!(!merge(&mut bench, 0, 108), "8 have come since");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..8) {
            let served = invariants::serve(Box::new(NoScheduler::default()), &load, depth, 1_000_000);
            invariants::completes_each_once(&served);
        }
    }
}
