//! The pool of requests: how many a queue may have, who waits for one, and when it calls itself congested.
//!
//! Source: `drivers/block/ll_rw_blk.c` of 2.4.20 and 2.5.59, `block/blk-core.c` of 2.6.35
//! (docs/model/sources/plugging.md#request-pool).

use std::collections::VecDeque;

use crate::TaskId;
use crate::tag_bits::{TagBits, TagCounts};
use crate::tag_waiters::TagWaiters;
use events::time::Time;
use kernels::hardware_queue::TagWakeRule;
use kernels::queue::{PoolRules, WakeRule};

/// The requests of one class: of a direction, or of sync or async I/O.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    rules: PoolRules,
    /// Which of the tags are in use, if it has tags.
    tags: TagBits,
    last_taken: u32,
    allocated: u32,
    congested: bool,
    /// Somebody has taken the last one and nobody has given any back since: only batchers may go beyond.
    full: bool,
    waiters: Waiters,
    batchers: Vec<Batcher>,
}

#[derive(Clone, Debug)]
enum Waiters {
    Line(VecDeque<TaskId>),
    OfTags(Box<TagWaiters>),
}

#[derive(Clone, Copy, Debug)]
struct Batcher {
    task: TaskId,
    left: u32,
    until: Time,
}

impl Waiters {
    fn count(&self, task: TaskId) -> usize {
        match self {
            Waiters::Line(line) => line.iter().filter(|&&waiting| waiting == task).count(),
            Waiters::OfTags(waiters) => waiters.count(task),
        }
    }

    fn sleeps(&mut self, task: TaskId) {
        match self {
            Waiters::Line(line) => line.push_back(task),
            Waiters::OfTags(waiters) => waiters.sleeps(task),
        }
    }
}

impl Pool {
    /// A pool with nothing allocated. `fewest`: the lowest limit of its tags that anybody may have.
    pub(super) fn new(rules: PoolRules, fewest: u32) -> Pool {
        let counts = Pool::counts(rules);
        // 4.18 to 4.20 are taken as later kernels.
        let defers = matches!(rules.waking, WakeRule::Tags(TagWakeRule::BatchOfOne | TagWakeRule::Batch));
        Pool {
            rules,
            tags: TagBits::new(counts, defers),
            last_taken: 0,
            allocated: 0,
            congested: false,
            full: false,
            waiters: match rules.waking {
                WakeRule::Tags(waking) => Waiters::OfTags(Box::new(TagWaiters::new(waking, counts.wake_batch(fewest)))),
                _ => Waiters::Line(VecDeque::new()),
            },
            batchers: Vec::new(),
        }
    }

    /// Requests in use, batchers' beyond the class included.
    pub(super) fn allocated(&self) -> u32 {
        self.allocated
    }

    /// Whether any request is free.
    pub(super) fn has_room(&self) -> bool {
        self.allocated < self.rules.requests
    }

    /// Whether the class counts as congested, by the thresholds of its rules.
    pub(super) fn is_congested(&self) -> bool {
        self.congested
    }

    /// Tags as those rules have them; without tags none.
    pub(super) fn counts(rules: PoolRules) -> TagCounts {
        let all = match rules.waking {
            WakeRule::Tags(_) => rules.requests,
            _ => 0,
        };
        TagCounts { told: rules.told, ..TagCounts::of(all, rules.limit) }
    }

    /// Its tags.
    pub(super) fn tags(&self) -> TagCounts {
        self.tags.counts()
    }

    /// Takes a request for the task, a tag only among those that the limit allows (`get_request`). False: there is none, and
    /// the task waits in the wait queue until `free` wakes it; or one more of its `workers` does, if it has any that does
    /// not.
    pub(super) fn allocate_below(&mut self, now: Time, task: TaskId, limit: u32, workers: u16) -> bool {
        let may = match self.rules.waking {
            WakeRule::WhenFree(_) => self.allocated < self.rules.requests,
            WakeRule::Tags(_) => match self.tags.take(limit) {
                Some(tag) => {
                    self.last_taken = tag;
                    true
                }
                None => false,
            },
            WakeRule::Batching { requests, time_ns } => self.may_batch(now, task, requests, time_ns),
        };
        if !may {
            self.wait(task, workers);
            return false;
        }
        if workers == 0 {
            self.waits_no_more(task);
        }
        self.allocated += 1;
        self.congested |= self.allocated >= self.rules.congested_from;
        true
    }

    /// The task waits until `free` wakes it, or one more of its `workers` does, if it has any that does not
    /// (`get_request_wait`).
    pub(super) fn wait(&mut self, task: TaskId, workers: u16) {
        if self.waiters.count(task) < usize::from(workers.max(1)) {
            self.waiters.sleeps(task);
        }
    }

    /// A task that was woken has taken a tag (`blk_mq_get_tag`).
    pub(super) fn has_looked_again(&mut self) {
        if let Waiters::OfTags(waiters) = &mut self.waiters {
            waiters.has_looked_again();
        }
    }

    /// The task waits for something else, or has a request: it is not woken for a tag any more (`sbitmap_finish_wait`).
    fn waits_no_more(&mut self, task: TaskId) {
        if let Waiters::OfTags(waiters) = &mut self.waiters {
            waiters.leaves(task);
        }
    }

    /// The task, which may have been woken for a tag, takes none: appends another that waits, if one is free.
    pub(super) fn passes_on(&mut self, task: TaskId, woken: &mut Vec<TaskId>) {
        self.waits_no_more(task);
        if let Waiters::OfTags(waiters) = &mut self.waiters
            && self.allocated < self.rules.requests
        {
            woken.extend(waiters.next());
        }
    }

    /// The same for a task that may have all.
    #[cfg(test)]
    pub(super) fn allocate(&mut self, now: Time, task: TaskId) -> bool {
        self.allocate_below(now, task, u32::MAX, 0)
    }

    /// Takes one although there is none left, for whom the scheduler waits (`ELV_MQUEUE_MUST` in `get_request`). False:
    /// even that has its limit.
    pub(super) fn allocate_beyond(&mut self) -> bool {
        let may = self.allocated < self.rules.requests * 3 / 2;
        self.allocated += u32::from(may);
        may
    }

    /// The tag of who took a request last; 0 if the pool has no tags.
    pub(super) fn last_taken(&self) -> u32 {
        self.last_taken
    }

    /// Gives one back without waking anybody (`__freed_request`).
    pub(super) fn give_back(&mut self, tag: u32) {
        self.allocated -= 1;
        if let WakeRule::Tags(_) = self.rules.waking {
            self.tags.give_back(tag);
        }
        if self.allocated < self.rules.uncongested_below {
            self.congested = false;
        }
    }

    /// Gives one back (`freed_request`). Appends who is woken, to try again.
    pub(super) fn free(&mut self, now: Time, tag: u32, woken: &mut Vec<TaskId>) {
        self.give_back(tag);
        match (self.rules.waking, &mut self.waiters) {
            (_, Waiters::OfTags(waiters)) => waiters.freed(woken),
            (WakeRule::Batching { requests, time_ns }, Waiters::Line(line)) => {
                if self.allocated >= self.rules.requests {
                    return;
                }
                self.full = false;
                if let Some(task) = line.pop_front() {
                    self.make_batcher(now, task, requests, time_ns);
                    woken.push(task);
                }
            }
            (WakeRule::WhenFree(free), Waiters::Line(line)) => {
                if self.rules.requests - self.allocated >= free {
                    woken.extend(line.pop_front());
                }
            }
            (WakeRule::Tags(_), Waiters::Line(_)) => unreachable!("tags have waiters of their own"),
        }
    }

    /// Nobody has been woken for the last tag that was given back: appends the tasks that still wait although none is in
    /// use. A task that was woken before may not have taken one.
    pub(super) fn wake_forgotten(&mut self, woken: &mut Vec<TaskId>) {
        if let Waiters::OfTags(waiters) = &mut self.waiters
            && self.allocated == 0
        {
            waiters.wake_all(woken);
        }
    }

    /// The part of `get_request` for a pool that is full or about to be.
    fn may_batch(&mut self, now: Time, task: TaskId, requests: u32, time_ns: Time) -> bool {
        if self.allocated + 1 >= self.rules.requests {
            if !self.full {
                // The task that takes the last request may exceed the limit for a while.
                self.full = true;
                self.make_batcher(now, task, requests, time_ns);
            } else if !self.is_batcher(now, task, requests) {
                return false;
            }
        }
        if self.allocated >= self.rules.requests * 3 / 2 {
            return false;
        }
        if let Some(batcher) = self.batchers.iter_mut().find(|batcher| batcher.task == task) {
            batcher.left = batcher.left.saturating_sub(1);
        }
        true
    }

    /// An unused batch does not expire (`ioc_batching`): a task that is woken late gets a request too.
    fn is_batcher(&mut self, now: Time, task: TaskId, whole: u32) -> bool {
        self.batchers.retain(|batcher| batcher.left == whole || batcher.left > 0 && now < batcher.until);
        self.batchers.iter().any(|batcher| batcher.task == task)
    }

    /// `ioc_set_batching`.
    fn make_batcher(&mut self, now: Time, task: TaskId, left: u32, time_ns: Time) {
        self.batchers.retain(|batcher| batcher.task != task);
        self.batchers.push(Batcher { task, left, until: now + time_ns });
    }
}

#[cfg(test)]
mod tests {
    use events::time::MILLISECOND;
    use kernels::hardware_queue::TagLimit;

    use super::*;

    fn filled(rules: PoolRules) -> Pool {
        let mut pool = Pool::new(rules, rules.requests);
        while pool.allocate(0, 1) {}
        pool
    }

    /// Who is woken when one is given back.
    fn woken(pool: &mut Pool) -> Vec<TaskId> {
        let mut woken = Vec::new();
        let tag = pool.tags.any_taken();
        pool.free(0, tag, &mut woken);
        woken
    }

    fn tags(count: u32) -> Pool {
        Pool::new(PoolRules::tags(count, TagWakeRule::Batch, TagLimit::OfWord), count)
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
        let woken: Vec<Vec<TaskId>> = (0..33).map(|_| woken(&mut pool)).collect();
        assert!(woken[..31].iter().all(Vec::is_empty));
        assert_eq!(woken[31..], [[1], [2]]);
    }

    #[test]
    fn in_2_6_35_the_one_that_fills_the_pool_may_go_on_for_32_requests() {
        assert_eq!(filled(PoolRules::LINUX_2_6_35).allocated(), 127 + 32);
        let mut pool = Pool::new(PoolRules::LINUX_2_6_35, 128);
        for _ in 0..128 {
            assert!(pool.allocate(0, 1));
        }
        assert!(!pool.allocate(0, 2), "another does not share in it");
        assert!(!pool.allocate(20 * MILLISECOND, 1), "nor does it last longer than 20 ms");
    }

    #[test]
    fn nobody_has_more_than_half_as_many_again() {
        let mut pool = filled(PoolRules::LINUX_2_6_35);
        for task in 2..10 {
            pool.allocate(0, task);
        }
        while pool.allocated() > 127 {
            woken(&mut pool);
        }
        for task in 2..10 {
            while pool.allocate(0, task) {}
        }
        assert!(pool.allocated() <= 192, "{}", pool.allocated());
    }

    #[test]
    fn a_batch_of_which_nothing_is_used_does_not_expire() {
        let mut pool = filled(PoolRules::LINUX_2_6_35);
        assert!(!pool.allocate(0, 2));
        let mut to_be_woken = vec![1, 2];
        while !to_be_woken.is_empty() {
            let woken = woken(&mut pool);
            to_be_woken.retain(|task| !woken.contains(task));
        }
        // The class is full again before the task has had a CPU.
        assert!(pool.allocate(0, 3) && pool.allocate(0, 3));
        assert!(!pool.allocate(0, 4));
        assert!(pool.allocate(MILLISECOND * 1000, 2));
        assert!(!pool.allocate(MILLISECOND * 1000, 2));
    }

    #[test]
    fn of_tags_some_may_have_fewer_than_others() {
        let mut pool = tags(8);
        let writes = (0..8).filter(|_| pool.allocate_below(0, 1, 1, 0)).count();
        let reads = (0..8).filter(|_| pool.allocate(0, 2)).count();
        assert_eq!((writes, reads), (4, 4));
        assert_eq!(woken(&mut pool), [1]);
        assert_eq!(woken(&mut pool), [2]);
        assert!(woken(&mut pool).is_empty());
    }

    #[test]
    fn a_tag_is_kept_for_nobody() {
        let mut pool = tags(1);
        assert!(pool.allocate(0, 1));
        assert!(!pool.allocate(0, 2));
        assert_eq!(woken(&mut pool), [2]);
        assert!(pool.allocate(0, 3), "it comes before 2 has a CPU");
        assert!(!pool.allocate(0, 2));
        assert_eq!(woken(&mut pool), [2]);
    }

    #[test]
    fn of_a_ring_as_many_workers_wait_as_there_are() {
        let mut pool = tags(1);
        assert!(pool.allocate(0, 1));
        (0..9).for_each(|_| assert!(!pool.allocate_below(0, 1, 1, 3)));
        assert!(!pool.allocate(0, 2));
        let woken = [(); 5].map(|()| {
            let woken = woken(&mut pool);
            pool.allocated += 1;
            pool.tags.take(1);
            woken
        });
        assert_eq!(woken, [vec![1], vec![1], vec![1], vec![2], vec![]]);
    }

    #[test]
    fn a_wake_up_that_finds_nothing_to_do_leaves_nobody_waiting_for_ever() {
        let forgotten = |pool: &mut Pool| {
            let mut woken = Vec::new();
            pool.wake_forgotten(&mut woken);
            woken
        };
        let mut pool = tags(1);
        assert!(pool.allocate(0, 1));
        (0..2).for_each(|_| assert!(!pool.allocate_below(0, 2, 1, 2)));
        assert!(!pool.allocate(0, 3));
        assert_eq!(woken(&mut pool), [2]);
        let mut all = forgotten(&mut pool);
        all.sort_unstable();
        assert_eq!(all, [2, 3]);
        assert!(pool.allocate(0, 1));
        assert!(!pool.allocate(0, 3));
        assert!(forgotten(&mut pool).is_empty(), "a completion is to come");
    }

    #[test]
    fn congestion_ends_lower_than_it_begins() {
        let mut pool = Pool::new(PoolRules::LINUX_2_6_35, 128);
        let congested_at = (1..=128).find(|_| pool.allocate(0, 1) && pool.is_congested());
        assert_eq!(congested_at, Some(113));
        while pool.is_congested() {
            woken(&mut pool);
        }
        assert_eq!(pool.allocated(), 102);
    }
}
