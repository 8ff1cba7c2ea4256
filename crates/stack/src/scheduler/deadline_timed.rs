//! Deadline with batches of time, as 2.5.59-mm1 and -mm2 had it ("batch_expire").
//!
//! **Inferred.** The patches were not found; what their authors said of them, and the anticipatory scheduler into which
//! they went, are the sources (note on deadline and batch expiry). The length of a batch is not known.

use serde::Deserialize;

use crate::block::{Bio, Direction, RequestId, Requests, Sector, Side};
use crate::scheduler::Scheduler;
use crate::scheduler::line::Lines;
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
    /// Of each direction, as are the next two.
    expire_ns: [Time; 2],
    lines: Lines,
    checked_at: [Time; 2],
    direction: Direction,
    batch_ends_at: Time,
    next: Option<RequestId>,
}

impl DeadlineTimed {
    pub fn new(tunables: Tunables) -> DeadlineTimed {
        DeadlineTimed {
            expire_ns: [tunables.read_expire_ns, tunables.write_expire_ns],
            tunables,
            lines: Lines::default(),
            checked_at: [0; 2],
            direction: Direction::Read,
            batch_ends_at: 0,
            next: None,
        }
    }

    /// Turns to the other direction when the batch is over, or nothing is left of this one. True: the batch is new.
    fn turn(&mut self, now: Time) -> bool {
        let other = match self.direction {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
        };
        let (here, there) = (
            !self.lines.is_empty(self.direction as usize),
            !self.lines.is_empty(other as usize),
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
        let line = self.direction as usize;
        if now < self.checked_at[line] + self.expire_ns[line] {
            return None;
        }
        self.checked_at[line] = now;
        self.lines.overdue(line, now)
    }
}

impl Scheduler for DeadlineTimed {
    fn front_merge(&self, requests: &Requests, bio: &Bio) -> Option<RequestId> {
        self.lines
            .front_merge(requests, bio.direction as usize, bio)
    }

    fn neighbour(&self, requests: &Requests, id: RequestId, side: Side) -> Option<RequestId> {
        self.lines.neighbour(requests, id, side)
    }

    fn grown(&mut self, _: Time, requests: &Requests, id: RequestId, side: Side, was: Sector) {
        self.lines.grown(requests, id, side, was);
    }

    fn absorbed(&mut self, _: Time, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        if self.next == Some(absorbed) {
            self.next = self.lines.after(requests, absorbed);
        }
        self.lines.absorbed(requests, survivor, absorbed);
    }

    fn add(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let direction = requests[id].direction as usize;
        let deadline = now + self.expire_ns[direction];
        self.lines.add(requests, id, direction, deadline);
    }

    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        let turned = self.turn(now);
        let expired = self.expired(now);
        let line = self.direction as usize;
        let first_in_line = self.lines.oldest(line);
        let id = expired
            .or(if turned { first_in_line } else { self.next })
            .or(self.lines.lowest(line))?;
        self.next = self.lines.after(requests, id);
        self.lines.remove(requests, id);
        Some(id)
    }

    fn queued(&self) -> usize {
        self.lines.len()
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

    #[test]
    fn one_expired_request_is_served_in_the_time_that_requests_have() {
        let tunables = Tunables {
            read_expire_ns: 10 * MILLISECOND,
            ..Tunables::default()
        };
        let mut bench = Bench::new(DeadlineTimed::new(tunables));
        bench.add(0, Read, &[900, 800, 100]);
        assert_eq!(bench.dispatched(20 * MILLISECOND, 3), [900, 100, 800]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in laws::arrivals(4), depth in 1u32..8) {
            let scheduler = Box::new(DeadlineTimed::new(Tunables::default()));
            laws::completes_each_once(&laws::serve(scheduler, &load, depth, 1_000_000));
        }
    }
}
