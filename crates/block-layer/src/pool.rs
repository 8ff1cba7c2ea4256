//! The pool of requests: how many a queue may have, who waits for one, and when it calls itself congested.
//!
//! Source: note on merging and plugging, section C (2.4.20, 2.5.59, 2.6.35 `ll_rw_blk.c` and `blk-core.c`).

use std::collections::VecDeque;

use crate::TaskId;
use events::time::{MILLISECOND, Time};

/// How a kernel shares its requests out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRules {
    /// Requests of one class.
    pub requests: u32,
    /// With this many allocated, a class is congested; it stays so until fewer than `uncongested_below` are.
    pub congested_from: u32,
    /// Congestion ends with fewer allocated requests than this.
    pub uncongested_below: u32,
    /// When a task that waits for a request is woken.
    pub waking: Waking,
}

/// How a kernel wakes tasks that found no free request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waking {
    /// One waiter is woken when this many of its class are free, so that it can take a run of them.
    WhenFree(u32),
    /// Who finds the class empty, or is woken, may go on for so many requests or so long, beyond the class up to half
    /// as many again; one waiter is woken for each request that is freed.
    Batching {
        /// How many requests a batch has.
        requests: u32,
        /// How long a batch lasts.
        time_ns: Time,
    },
    /// Tags of blk-mq: all I/O shares them, and one waiter is woken for each that is freed.
    Tags,
}

impl PoolRules {
    /// 128 requests, half for each direction; a waiter is woken when 32 are free.
    pub const LINUX_2_4_20: PoolRules = PoolRules {
        requests: 64,
        congested_from: 64,
        uncongested_below: 64,
        waking: Waking::WhenFree(32),
    };

    /// 128 for each direction; congested with fewer than 15 free until more than 17 are.
    pub const LINUX_2_5_59: PoolRules = PoolRules {
        requests: 128,
        congested_from: 128 - 14,
        uncongested_below: 128 - 17,
        waking: Waking::WhenFree(8),
    };

    /// `nr_requests` of blk-mq. With a scheduler that is twice the depth of a hardware queue, at most 256, for each;
    /// without, its depth.
    pub const fn tags(requests: u32) -> PoolRules {
        PoolRules {
            requests,
            // blk-mq knows no congestion.
            congested_from: u32::MAX,
            uncongested_below: u32::MAX,
            waking: Waking::Tags,
        }
    }

    /// `nr_requests` of 2.6 (`blk_queue_congestion_threshold`).
    pub const fn with_requests(self, requests: u32) -> PoolRules {
        PoolRules {
            requests,
            congested_from: requests - requests / 8 + 1,
            uncongested_below: requests - requests / 8 - requests / 16 - 1,
            ..self
        }
    }

    /// 128 for sync and async I/O each.
    pub const LINUX_2_6_35: PoolRules = PoolRules {
        requests: 128,
        congested_from: 113,
        uncongested_below: 103,
        waking: Waking::Batching {
            requests: 32,
            time_ns: 20 * MILLISECOND,
        },
    };
}

/// The requests of one class: of a direction, or of sync or async I/O.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    rules: PoolRules,
    allocated: u32,
    congested: bool,
    /// Somebody has taken the last one and nobody has given any back since: only batchers may go beyond.
    full: bool,
    waiting: VecDeque<TaskId>,
    batchers: Vec<Batcher>,
}

#[derive(Clone, Copy, Debug)]
struct Batcher {
    task: TaskId,
    left: u32,
    until: Time,
}

impl Pool {
    /// A pool with nothing allocated.
    pub(super) fn new(rules: PoolRules) -> Pool {
        Pool {
            rules,
            allocated: 0,
            congested: false,
            full: false,
            waiting: VecDeque::new(),
            batchers: Vec::new(),
        }
    }

    /// Requests in use, batchers' beyond the class included.
    pub(super) fn allocated(&self) -> u32 {
        self.allocated
    }

    /// Whether the class counts as congested, by the thresholds of its rules.
    pub(super) fn is_congested(&self) -> bool {
        self.congested
    }

    /// Requests that there are, for those who may have all.
    pub(super) fn size(&self) -> u32 {
        self.rules.requests
    }

    /// Takes a request for the task if fewer than `most` are in use (tags only). False: there is none, and the task waits
    /// in the wait queue until `free` names it; or one more of its `workers` does, if it has any that does not.
    pub(super) fn allocate_below(
        &mut self,
        now: Time,
        task: TaskId,
        most: u32,
        workers: u16,
    ) -> bool {
        let may = match self.rules.waking {
            Waking::WhenFree(_) => self.allocated < self.rules.requests,
            Waking::Tags => self.allocated < most.min(self.rules.requests),
            Waking::Batching { requests, time_ns } => self.may_batch(now, task, requests, time_ns),
        };
        if !may {
            self.wait(task, workers);
            return false;
        }
        self.allocated += 1;
        self.congested |= self.allocated >= self.rules.congested_from;
        true
    }

    /// The task waits until `free` names it, or one more of its `workers` does, if it has any that does not.
    pub(super) fn wait(&mut self, task: TaskId, workers: u16) {
        let waiting = self.waiting.iter().filter(|&&waiting| waiting == task);
        if waiting.count() < usize::from(workers.max(1)) {
            self.waiting.push_back(task);
        }
    }

    /// The same for a task that may have all.
    #[cfg(test)]
    pub(super) fn allocate(&mut self, now: Time, task: TaskId) -> bool {
        self.allocate_below(now, task, self.rules.requests, 0)
    }

    /// Takes one although there is none left, for whom the scheduler waits. False: even that has its limit.
    pub(super) fn allocate_beyond(&mut self) -> bool {
        let may = self.allocated < self.rules.requests * 3 / 2;
        self.allocated += u32::from(may);
        may
    }

    /// Gives one back without waking anybody.
    pub(super) fn give_back(&mut self) {
        self.allocated -= 1;
        if self.allocated < self.rules.uncongested_below {
            self.congested = false;
        }
    }

    /// Gives one back. Returns who is to be woken and try again.
    pub(super) fn free(&mut self, now: Time) -> Option<TaskId> {
        self.give_back();
        match self.rules.waking {
            Waking::WhenFree(free) if self.rules.requests - self.allocated < free => None,
            Waking::WhenFree(_) | Waking::Tags => self.waiting.pop_front(),
            Waking::Batching { requests, time_ns } => {
                if self.allocated >= self.rules.requests {
                    return None;
                }
                self.full = false;
                let task = self.waiting.pop_front()?;
                self.make_batcher(now, task, requests, time_ns);
                Some(task)
            }
        }
    }

    /// Whoever still waits although nothing is in use: tags only. A worker's wake-up may have found its work done.
    pub(super) fn forgotten(&mut self) -> impl Iterator<Item = TaskId> + '_ {
        let all = self.allocated == 0 && self.rules.waking == Waking::Tags;
        let end = if all { self.waiting.len() } else { 0 };
        self.waiting.drain(..end)
    }

    fn may_batch(&mut self, now: Time, task: TaskId, requests: u32, time_ns: Time) -> bool {
        if self.allocated + 1 >= self.rules.requests {
            if !self.full {
                // Whoever takes the last one may go on a little.
                self.full = true;
                self.make_batcher(now, task, requests, time_ns);
            } else if !self.is_batcher(now, task) {
                return false;
            }
        }
        if self.allocated >= self.rules.requests * 3 / 2 {
            return false;
        }
        if let Some(batcher) = self
            .batchers
            .iter_mut()
            .find(|batcher| batcher.task == task)
        {
            batcher.left = batcher.left.saturating_sub(1);
        }
        true
    }

    fn is_batcher(&mut self, now: Time, task: TaskId) -> bool {
        self.batchers
            .retain(|batcher| batcher.left > 0 && now < batcher.until);
        self.batchers.iter().any(|batcher| batcher.task == task)
    }

    fn make_batcher(&mut self, now: Time, task: TaskId, left: u32, time_ns: Time) {
        self.batchers.retain(|batcher| batcher.task != task);
        self.batchers.push(Batcher {
            task,
            left,
            until: now + time_ns,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(rules: PoolRules) -> Pool {
        let mut pool = Pool::new(rules);
        while pool.allocate(0, 1) {}
        pool
    }

    #[test]
    fn thresholds_follow_the_number_of_requests() {
        let rules = PoolRules::LINUX_2_6_35;
        assert_eq!(rules.with_requests(128), rules);
        let small = rules.with_requests(4);
        assert!(small.uncongested_below < small.congested_from);
    }

    #[test]
    fn in_2_4_a_waiter_is_woken_when_it_can_take_a_run_of_32() {
        let mut pool = filled(PoolRules::LINUX_2_4_20);
        assert_eq!(pool.allocated(), 64);
        assert!(!pool.allocate(0, 2));
        let woken: Vec<Option<TaskId>> = (0..33).map(|_| pool.free(0)).collect();
        assert_eq!(woken[..31], [None; 31]);
        assert_eq!(woken[31..], [Some(1), Some(2)]);
    }

    #[test]
    fn in_2_6_35_the_one_that_fills_the_pool_may_go_on_for_32_requests() {
        assert_eq!(filled(PoolRules::LINUX_2_6_35).allocated(), 127 + 32);
        let mut pool = Pool::new(PoolRules::LINUX_2_6_35);
        for _ in 0..128 {
            assert!(pool.allocate(0, 1));
        }
        assert!(!pool.allocate(0, 2), "another does not share in it");
        assert!(
            !pool.allocate(20 * MILLISECOND, 1),
            "nor does it last longer than 20 ms"
        );
    }

    #[test]
    fn nobody_has_more_than_half_as_many_again() {
        let mut pool = filled(PoolRules::LINUX_2_6_35);
        for task in 2..10 {
            pool.allocate(0, task);
        }
        while pool.allocated() > 127 {
            pool.free(0);
        }
        for task in 2..10 {
            while pool.allocate(0, task) {}
        }
        assert!(pool.allocated() <= 192, "{}", pool.allocated());
    }

    #[test]
    fn of_tags_some_may_have_fewer_than_others() {
        let mut pool = Pool::new(PoolRules::tags(8));
        let writes = (0..8).filter(|_| pool.allocate_below(0, 1, 6, 0)).count();
        let reads = (0..8).filter(|_| pool.allocate(0, 2)).count();
        assert_eq!((writes, reads), (6, 2));
        assert_eq!([(); 3].map(|()| pool.free(0)), [Some(1), Some(2), None]);
    }

    #[test]
    fn of_a_ring_as_many_workers_wait_as_there_are() {
        let mut pool = Pool::new(PoolRules::tags(1));
        assert!(pool.allocate(0, 1));
        (0..9).for_each(|_| assert!(!pool.allocate_below(0, 1, 1, 3)));
        assert!(!pool.allocate(0, 2));
        let woken = [(); 5].map(|()| {
            let woken = pool.free(0);
            pool.allocated += 1;
            woken
        });
        assert_eq!(woken, [Some(1), Some(1), Some(1), Some(2), None]);
    }

    #[test]
    fn a_wake_up_that_finds_nothing_to_do_leaves_nobody_waiting_for_ever() {
        let mut pool = Pool::new(PoolRules::tags(1));
        assert!(pool.allocate(0, 1));
        (0..2).for_each(|_| assert!(!pool.allocate_below(0, 2, 1, 2)));
        assert!(!pool.allocate(0, 3));
        assert_eq!(pool.free(0), Some(2));
        assert_eq!(pool.forgotten().collect::<Vec<_>>(), [2, 3]);
        assert!(pool.allocate(0, 1));
        assert!(!pool.allocate(0, 3));
        assert_eq!(pool.forgotten().count(), 0, "a completion is to come");
    }

    #[test]
    fn congestion_ends_lower_than_it_begins() {
        let mut pool = Pool::new(PoolRules::LINUX_2_6_35);
        let congested_at = (1..=128).find(|_| pool.allocate(0, 1) && pool.is_congested());
        assert_eq!(congested_at, Some(113));
        while pool.is_congested() {
            pool.free(0);
        }
        assert_eq!(pool.allocated(), 102);
    }
}
