//! Deadline with batches of time, as 2.5.59-mm1 and -mm2 had it ("batch_expire").
//!
//! **Inferred.** The patches were not found; what their authors wrote about them, and the anticipatory scheduler into
//! which they went, are the sources (docs/model/sources/deadline.md#timed-batches). The length of a batch is not known.

use serde::Deserialize;

use crate::scheduler::Scheduler;
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::{Bio, Direction, RequestId, Requests};
use events::time::{MILLISECOND, SECOND, Time};

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeadlineTimedTunables {
    /// A read that has waited this long is served before those that are next by sector.
    #[serde(rename = "read_expire")]
    pub read_expire_ns: Time,
    /// The same of writes.
    #[serde(rename = "write_expire")]
    pub write_expire_ns: Time,
    /// How long a direction is served before the other has its turn.
    #[serde(rename = "batch_expire")]
    pub batch_expire_ns: Time,
}

impl Default for DeadlineTimedTunables {
    fn default() -> DeadlineTimedTunables {
        DeadlineTimedTunables {
            read_expire_ns: 500 * MILLISECOND,
            write_expire_ns: 5 * SECOND,
            batch_expire_ns: 500 * MILLISECOND,
        }
    }
}

/// The state of one queue's deadline scheduler.
#[derive(Clone, Debug)]
pub struct DeadlineTimed {
    tunables: DeadlineTimedTunables,
    /// By direction, as are the next two.
    expire_ns: [Time; 2],
    fifos: RequestFifos,
    checked_at: [Time; 2],
    direction: Direction,
    batch_ends_at: Time,
    next: Option<RequestId>,
}

impl DeadlineTimed {
    /// An empty scheduler.
    pub fn new(tunables: DeadlineTimedTunables) -> DeadlineTimed {
        DeadlineTimed {
            expire_ns: [tunables.read_expire_ns, tunables.write_expire_ns],
            tunables,
            fifos: RequestFifos::default(),
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
        let (here, there) = (!self.fifos.is_empty(self.direction as usize), !self.fifos.is_empty(other as usize));
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

    /// The oldest one, if it has expired; looked at once in the time that requests have.
    fn expired(&mut self, now: Time) -> Option<RequestId> {
        let fifo = self.direction as usize;
        if now < self.checked_at[fifo] + self.expire_ns[fifo] {
            return None;
        }
        self.checked_at[fifo] = now;
        self.fifos.overdue(fifo, now)
    }
}

impl Scheduler for DeadlineTimed {
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        Some(&mut self.fifos)
    }

    fn fifo_before(&self, bio: &Bio) -> Option<FifoId> {
        Some(bio.direction as usize)
    }

    fn merged_requests(&mut self, _: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        if self.next == Some(merged) {
            self.next = self.fifos.after(requests, merged);
        }
        self.fifos.merged_requests(requests, survivor, merged);
    }

    fn add(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let direction = requests[id].direction as usize;
        let deadline = now + self.expire_ns[direction];
        self.fifos.add(requests, id, direction, deadline);
    }

    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        let turned = self.turn(now);
        let expired = self.expired(now);
        let fifo = self.direction as usize;
        let first_in_line = self.fifos.oldest(fifo);
        let id = expired.or(if turned { first_in_line } else { self.next }).or(self.fifos.lowest(fifo))?;
        self.next = self.fifos.after(requests, id);
        self.fifos.remove(requests, id);
        Some(id)
    }

    fn queued(&self) -> usize {
        self.fifos.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants;
    use crate::invariants::bench::Bench;
    use Direction::{Read, Write};
    use proptest::prelude::*;

    #[test]
    fn a_direction_is_served_in_sector_order_until_its_time_is_over() {
        let mut bench = Bench::new(DeadlineTimed::new(DeadlineTimedTunables::default()));
        bench.add(0, Read, &[300, 100, 200, 400]);
        bench.add(0, Write, &[2000, 1000]);
        assert_eq!(bench.dispatched(1, 1), [-2000], "batches alternate; one begins with the oldest");
        assert_eq!(bench.dispatched(499 * MILLISECOND, 1), [-1000]);
        assert_eq!(bench.dispatched(499 * MILLISECOND, 4), [300, 400, 100, 200]);
    }

    #[test]
    fn one_expired_request_is_served_in_the_time_that_requests_have() {
        let tunables = DeadlineTimedTunables { read_expire_ns: 10 * MILLISECOND, ..DeadlineTimedTunables::default() };
        let mut bench = Bench::new(DeadlineTimed::new(tunables));
        bench.add(0, Read, &[900, 800, 100]);
        assert_eq!(bench.dispatched(20 * MILLISECOND, 3), [900, 100, 800]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..8) {
            let scheduler = Box::new(DeadlineTimed::new(DeadlineTimedTunables::default()));
            invariants::completes_each_once(&invariants::serve(scheduler, &load, depth, 1_000_000));
        }
    }
}
