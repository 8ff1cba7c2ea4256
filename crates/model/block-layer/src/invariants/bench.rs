//! A scheduler alone on a bench: requests in by hand, their order out.

use crate::scheduler::{OwnMerge, Scheduler};
use crate::{Bio, Direction, Priority, Request, Requests, Sector};
use events::slab::Slab;
use events::time::Time;

/// A scheduler, and its requests by number.
pub struct Bench<S> {
    /// All that were added.
    pub requests: Requests,
    /// What is tried.
    pub scheduler: S,
}

impl<S: Scheduler> Bench<S> {
    /// Without requests.
    pub fn new(scheduler: S) -> Bench<S> {
        Bench { requests: Slab::new(), scheduler }
    }

    /// Requests of 8 sectors at these starts.
    pub fn add(&mut self, now: Time, direction: Direction, starts: &[Sector]) {
        for &start in starts {
            self.add_bio(now, &bio(now, direction, start));
        }
    }

    /// The same, as the queue offers them to schedulers that look for merges themselves.
    pub fn offer(&mut self, now: Time, direction: Direction, starts: &[Sector]) {
        for &start in starts {
            let bio = bio(now, direction, start);
            let merge = self.scheduler.own_merge(&self.requests, &bio);
            assert!(!matches!(merge, OwnMerge::Into(..)), "starts must not touch");
            self.add_bio(now, &bio);
        }
    }

    /// A request of that bio alone.
    pub fn add_bio(&mut self, now: Time, bio: &Bio) {
        let id = self.requests.put(Request::like(bio));
        self.scheduler.add(now, &self.requests, id);
    }

    /// Starts of the next requests, those of writes negative.
    pub fn dispatched(&mut self, now: Time, count: usize) -> Vec<i64> {
        (0..count)
            .map_while(|_| self.scheduler.dispatch(now, &self.requests))
            .map(|id| {
                let request = &self.requests[id];
                match request.direction {
                    Direction::Read => request.start as i64,
                    Direction::Write => -(request.start as i64),
                }
            })
            .collect()
    }
}

/// 8 sectors, sync if it reads.
pub fn bio(now: Time, direction: Direction, start: Sector) -> Bio {
    Bio {
        direction,
        sync: direction == Direction::Read,
        metadata: false,
        read_ahead: false,
        no_idle: false,
        writeback: false,
        behind_flush: false,
        force_unit_access: false,
        qos: Default::default(),
        allocated: None,
        workers: 0,
        polled: false,
        write_stream: 0,
        start,
        sectors: 8,
        segments: 1,
        task: 0,
        group: 0,
        priority: Priority::default(),
        cpu: 0,
        submitted_at: now,
        tag: 0,
        next: None,
    }
}
