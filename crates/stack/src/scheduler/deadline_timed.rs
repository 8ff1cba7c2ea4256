//! Deadline with batches of time, as 2.5.59-mm1 and -mm2 had it ("batch_expire").
//!
//! **Inferred.** The patches were not found; what their authors said of them, and the anticipatory scheduler into which
//! they went, are the sources (note on deadline and batch expiry). The length of a batch is not known.

use serde::Deserialize;

use crate::block::{Bio, Direction, RequestId, Requests, Sector, Side};
use crate::scheduler::Scheduler;
use crate::scheduler::line::{Fifo, Sorted};
use crate::time::{MILLISECOND, SECOND, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tunables {
    #[serde(rename = "read_expire")]
    pub read_expire_ns: Time,
    #[serde(rename = "write_expire")]
    pub write_expire_ns: Time,
    /// How long a direction is served before the other has its turn.
    #[serde(rename = "batch_expire")]
    pub batch_expire_ns: Time,
}

impl Default for Tunables {
    fn default() -> Tunables {
        Tunables {
            read_expire_ns: 500 * MILLISECOND,
            write_expire_ns: 5 * SECOND,
            batch_expire_ns: 500 * MILLISECOND,
        }
    }
}

#[derive(Clone, Debug)]
pub struct DeadlineTimed {
    tunables: Tunables,
    of: [OfDirection; 2],
    direction: Direction,
    batch_ends_at: Time,
    next: Option<RequestId>,
}

#[derive(Clone, Debug, Default)]
struct OfDirection {
    sorted: Sorted,
    fifo: Fifo,
    checked_at: Time,
}

impl DeadlineTimed {
    pub fn new(tunables: Tunables) -> DeadlineTimed {
        DeadlineTimed {
            tunables,
            of: Default::default(),
            direction: Direction::Read,
            batch_ends_at: 0,
            next: None,
        }
    }

    fn expire_ns(&self, direction: Direction) -> Time {
        match direction {
            Direction::Read => self.tunables.read_expire_ns,
            Direction::Write => self.tunables.write_expire_ns,
        }
    }

    /// Turns to the other direction when the batch is over, or nothing is left of this one. True: the batch is new.
    fn turn(&mut self, now: Time) -> bool {
        let other = match self.direction {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
        };
        let (here, there) = (
            !self.of[self.direction as usize].sorted.is_empty(),
            !self.of[other as usize].sorted.is_empty(),
        );
        if here && now < self.batch_ends_at {
            return false;
        }
        let turns = there;
        if turns {
            self.direction = other;
            self.next = None;
        }
        if turns || now >= self.batch_ends_at {
            self.batch_ends_at = now + self.tunables.batch_expire_ns;
        }
        turns
    }

    /// The one first in line, if it has expired; looked at once in the time that requests have.
    fn expired(&mut self, now: Time) -> Option<RequestId> {
        let expire_ns = self.expire_ns(self.direction);
        let of = &mut self.of[self.direction as usize];
        if now < of.checked_at + expire_ns {
            return None;
        }
        of.checked_at = now;
        let (deadline, first) = of.fifo.first()?;
        (now > deadline).then_some(first)
    }
}

impl Scheduler for DeadlineTimed {
    fn front_merge(&self, requests: &Requests, bio: &Bio) -> Option<RequestId> {
        self.of[bio.direction as usize]
            .sorted
            .front_merge(requests, bio)
    }

    fn neighbour(&self, requests: &Requests, id: RequestId, side: Side) -> Option<RequestId> {
        let of = &self.of[requests[id].direction as usize];
        of.sorted.neighbour(requests, id, side)
    }

    fn grown(&mut self, _: Time, requests: &Requests, id: RequestId, side: Side, was: Sector) {
        if side == Side::Front {
            let sorted = &mut self.of[requests[id].direction as usize].sorted;
            sorted.remove(was, id);
            sorted.insert(requests[id].start, id);
        }
    }

    fn absorbed(&mut self, _: Time, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        let gone = &requests[absorbed];
        let of = &mut self.of[gone.direction as usize];
        if self.next == Some(absorbed) {
            self.next = of.sorted.after(gone, absorbed);
        }
        of.fifo.absorb(survivor, absorbed);
        of.sorted.remove(gone.start, absorbed);
    }

    fn add(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let deadline = now + self.expire_ns(request.direction);
        let of = &mut self.of[request.direction as usize];
        of.sorted.insert(request.start, id);
        of.fifo.push(id, deadline);
    }

    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        let turned = self.turn(now);
        let expired = self.expired(now);
        let of = &mut self.of[self.direction as usize];
        let first_in_line = of.fifo.first().map(|(_, id)| id);
        let id = expired
            .or(if turned { first_in_line } else { self.next })
            .or(of.sorted.first())?;
        let request = &requests[id];
        self.next = of.sorted.after(request, id);
        of.sorted.remove(request.start, id);
        of.fifo.remove(id);
        Some(id)
    }

    fn queued(&self) -> usize {
        self.of.iter().map(|of| of.sorted.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::laws;
    use crate::scheduler::laws::bench::Bench;
    use Direction::{Read, Write};
    use proptest::prelude::*;

    #[test]
    fn a_direction_is_served_in_sector_order_until_its_time_is_over() {
        let mut bench = Bench::new(DeadlineTimed::new(Tunables::default()));
        bench.add(0, Read, &[300, 100, 200, 400]);
        bench.add(0, Write, &[2000, 1000]);
        assert_eq!(
            bench.dispatched(1, 1),
            [-2000],
            "batches alternate; one begins with the oldest"
        );
        assert_eq!(bench.dispatched(499 * MILLISECOND, 1), [-1000]);
        assert_eq!(bench.dispatched(499 * MILLISECOND, 4), [300, 400, 100, 200]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in laws::arrivals(4), depth in 1u32..8) {
            let scheduler = Box::new(DeadlineTimed::new(Tunables::default()));
            laws::completes_each_once(&laws::serve(scheduler, &load, depth, 1_000_000));
        }
    }
}
