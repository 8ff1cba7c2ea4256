//! The deadline scheduler of 2.5.58 to 2.6.24 (B) and of 2.6.35 and later, also mq-deadline's before priorities (C).
//!
//! Source: `deadline-iosched.c` of 2.5.58 to 2.5.61, 2.6.24 and 2.6.35 (docs/model/sources/deadline.md#variants-b-and-c).
//! Variant A and the timed batches of -mm have files of their own.

use serde::Deserialize;

use crate::scheduler::Scheduler;
use crate::scheduler::read_preference::ReadPreference;
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::{Bio, Direction, RequestId, Requests, Sector};
use events::time::{MILLISECOND, SECOND, Time};

/// Which rules end a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineVariant {
    /// A batch ends at any gap between requests; continuing after one does not count towards it.
    B,
    /// A batch continues in sector order, with or without gaps, up to `fifo_batch` requests.
    C,
}

/// The attributes of deadline in sysfs; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeadlineTunables {
    /// A read that has waited this long begins the next batch of reads.
    #[serde(rename = "read_expire")]
    pub read_expire_ns: Time,
    /// The same of writes.
    #[serde(rename = "write_expire")]
    pub write_expire_ns: Time,
    /// Batches of reads that writes let pass.
    pub writes_starved: u32,
    /// Requests in a batch.
    pub fifo_batch: u32,
    /// Look for requests that begin where a bio ends.
    pub front_merges: bool,
}

impl Default for DeadlineTunables {
    fn default() -> DeadlineTunables {
        DeadlineTunables {
            read_expire_ns: 500 * MILLISECOND,
            write_expire_ns: 5 * SECOND,
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
        }
    }
}

/// The state of one queue's deadline scheduler.
#[derive(Clone, Debug)]
pub struct Deadline {
    variant: DeadlineVariant,
    tunables: DeadlineTunables,
    /// The deadline of each direction.
    expire_ns: [Time; 2],
    /// A FIFO for each direction.
    fifos: RequestFifos,
    /// The sorted successor of what was dispatched last.
    next: Option<RequestId>,
    last_sector: Sector,
    batching: u32,
    read_preference: ReadPreference,
}

impl Deadline {
    /// An empty scheduler of this variant.
    pub fn new(variant: DeadlineVariant, tunables: DeadlineTunables) -> Deadline {
        Deadline {
            variant,
            expire_ns: [tunables.read_expire_ns, tunables.write_expire_ns],
            tunables,
            fifos: RequestFifos::default(),
            next: None,
            last_sector: 0,
            batching: 0,
            read_preference: ReadPreference::default(),
        }
    }

    /// The next of the batch, while it lasts (the beginning of `deadline_dispatch_requests`).
    fn next_of_batch(&mut self, requests: &Requests) -> Option<RequestId> {
        let next = self.next?;
        if self.variant == DeadlineVariant::B && requests[next].start != self.last_sector {
            self.batching = self.batching.saturating_add(self.tunables.fifo_batch);
        }
        (self.batching < self.tunables.fifo_batch).then_some(next)
    }

    /// The middle of `deadline_dispatch_requests`.
    fn choose_direction(&mut self) -> Option<Direction> {
        let waits = |direction| !self.fifos.is_empty(direction as usize);
        let (reads, writes) = (waits(Direction::Read), waits(Direction::Write));
        self.read_preference.next(reads, writes, self.tunables.writes_starved)
    }

    /// Where a batch of that direction begins (the end of `deadline_dispatch_requests`, and `deadline_check_fifo`).
    fn begin(&mut self, now: Time, requests: &Requests, direction: Direction) -> Option<RequestId> {
        let fifo = direction as usize;
        let next = self.next.filter(|&next| requests[next].direction == direction);
        let expired = self.fifos.overdue(fifo, now);
        if expired.is_none() && next.is_some() && self.variant == DeadlineVariant::B {
            return next;
        }
        self.batching = 0;
        let otherwise = match self.variant {
            DeadlineVariant::B => self.fifos.lowest(fifo),
            DeadlineVariant::C => self.fifos.oldest(fifo),
        };
        expired.or(next).or(otherwise)
    }

    /// `deadline_move_request`.
    fn take(&mut self, requests: &Requests, id: RequestId) -> RequestId {
        self.next = self.fifos.after(requests, id);
        self.last_sector = requests[id].end();
        self.fifos.remove(requests, id);
        self.batching += 1;
        id
    }
}

impl Scheduler for Deadline {
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        Some(&mut self.fifos)
    }

    /// `deadline_merge`.
    fn fifo_before(&self, bio: &Bio) -> Option<FifoId> {
        let fifo = bio.direction as usize;
        self.tunables.front_merges.then_some(fifo)
    }

    /// `deadline_merged_requests`.
    fn merged_requests(&mut self, _: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        if self.next == Some(merged) {
            self.next = self.fifos.after(requests, merged);
        }
        self.fifos.merged_requests(requests, survivor, merged);
    }

    /// `deadline_add_request`.
    fn add(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let direction = requests[id].direction as usize;
        let deadline = now + self.expire_ns[direction];
        self.fifos.add(requests, id, direction, deadline);
    }

    /// `deadline_dispatch_requests`.
    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        let id = match self.next_of_batch(requests) {
            Some(next) => next,
            None => {
                let direction = self.choose_direction()?;
                self.begin(now, requests, direction)?
            }
        };
        Some(self.take(requests, id))
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
    use proptest::prelude::*;

    fn bench_of(variant: DeadlineVariant) -> Bench<Deadline> {
        Bench::new(Deadline::new(variant, DeadlineTunables::default()))
    }

    #[test]
    fn b_starts_at_the_lowest_sector_and_c_at_the_oldest_request() {
        for (variant, expected) in [(DeadlineVariant::B, [100, 200, 300]), (DeadlineVariant::C, [300, 100, 200])] {
            let mut bench = bench_of(variant);
            bench.add(0, Direction::Read, &[300, 100, 200]);
            assert_eq!(bench.dispatched(1, 3), expected, "{variant:?}");
        }
    }

    #[test]
    fn writes_wait_for_two_batches_of_reads() {
        let mut bench = bench_of(DeadlineVariant::B);
        bench.add(0, Direction::Read, &[100, 200, 300, 400]);
        bench.add(0, Direction::Write, &[1000, 2000]);
        // Each gap ends a batch of variant B.
        assert_eq!(bench.dispatched(1, 6), [100, 200, -1000, 300, 400, -2000]);
    }

    #[test]
    fn c_goes_on_over_gaps_for_16_requests() {
        let mut bench = bench_of(DeadlineVariant::C);
        let reads: Vec<Sector> = (0..20).map(|n| n * 100 + 100).collect();
        bench.add(0, Direction::Read, &reads);
        bench.add(0, Direction::Write, &[5000]);
        let dispatched = bench.dispatched(1, 21);
        // Two batches of reads may pass the write, and there are not more than that.
        assert_eq!(dispatched.iter().position(|&start| start < 0), Some(20));
        let mut bench = bench_of(DeadlineVariant::C);
        let reads: Vec<Sector> = (0..40).map(|n| n * 100 + 100).collect();
        bench.add(0, Direction::Read, &reads);
        bench.add(0, Direction::Write, &[5000]);
        let dispatched = bench.dispatched(1, 41);
        assert_eq!(dispatched.iter().position(|&start| start < 0), Some(32));
    }

    #[test]
    fn once_expired_b_serves_scattered_writes_in_order_of_arrival() {
        let mut bench = bench_of(DeadlineVariant::B);
        bench.add(0, Direction::Write, &[500, 100, 300, 200]);
        assert_eq!(bench.dispatched(5 * SECOND, 1), [-100], "not expired yet");
        assert_eq!(bench.dispatched(5 * SECOND + 1, 3), [-500, -300, -200]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..8, c: bool) {
            let variant = if c { DeadlineVariant::C } else { DeadlineVariant::B };
            let scheduler = Box::new(Deadline::new(variant, DeadlineTunables::default()));
            invariants::completes_each_once(&invariants::serve(scheduler, &load, depth, 1_000_000));
        }

        /// Behind an expired read there is at most a batch, and one of writes.
        #[test]
        fn a_read_waits_no_longer_than_its_deadline_and_what_is_ahead_of_it(load in invariants::arrivals(4)) {
            let tunables = DeadlineTunables { read_expire_ns: 20 * MILLISECOND, ..DeadlineTunables::default() };
            let scheduler = Box::new(Deadline::new(DeadlineVariant::C, tunables));
            let served = invariants::serve(scheduler, &load, 1, MILLISECOND);
            for served in served {
                let arrival = load[served.bio];
                if arrival.direction == Direction::Read {
                    // All that came before it, in the worst case, and the batches.
                    let ahead = served.bio as u64 + 2 * 16 + 1;
                    let waited = served.completed_at - served.submitted_at;
                    prop_assert!(waited <= 20 * MILLISECOND + ahead * MILLISECOND, "{}", waited);
                }
            }
        }
    }
}
