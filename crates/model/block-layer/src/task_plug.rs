//! A task's own plug, from 2.6.39 on: what it submits is held back until there is enough of it, or the task sleeps.
//!
//! Source: `block/blk-core.c` of 3.4, `block/blk-mq.c` of 6.1 (docs/model/sources/plugging.md#plugging).

use crate::Bio;
use kernels::queue::TaskPlugRules;

/// Bios that a task holds back, each for one of the world's queues. Those that continue one another count as the one
/// request that they will be.
///
/// Simpler than the kernel's: requests are taken from the pool when the plug is flushed, not when a bio comes into it.
#[derive(Clone, Debug)]
pub struct TaskPlug {
    rules: TaskPlugRules,
    held: Vec<(usize, Bio)>,
    requests: usize,
    /// The request that was begun last.
    last_sectors: u32,
}

impl TaskPlug {
    /// A plug that holds nothing.
    pub fn new(rules: TaskPlugRules) -> TaskPlug {
        TaskPlug {
            rules,
            held: Vec::new(),
            requests: 0,
            last_sectors: 0,
        }
    }

    /// Whether a task that submits this many operations in one call plugs for all of them.
    pub fn is_for(&self, operations: usize) -> bool {
        operations > self.rules.submissions_above
    }

    /// The bio back: it begins a request for which the plug has to be flushed first (`attempt_plug_merge` and
    /// `BLK_MAX_REQUEST_COUNT` in `blk_queue_bio`, `BLK_PLUG_FLUSH_SIZE` in `blk_add_rq_to_plug`).
    pub fn hold(&mut self, queue: usize, bio: Bio) -> Option<Bio> {
        let touches = |(other_queue, other): &(usize, Bio)| {
            *other_queue == queue
                && other.direction == bio.direction
                && other.sync == bio.sync
                && (other.end() == bio.start || bio.end() == other.start)
        };
        if self.held.iter().rev().any(touches) {
            self.last_sectors += bio.sectors;
        } else if self.requests >= self.rules.requests
            || self.last_sectors >= self.rules.last_sectors
        {
            return Some(bio);
        } else {
            self.requests += 1;
            self.last_sectors = bio.sectors;
        }
        self.held.push((queue, bio));
        None
    }

    /// Whether the task holds nothing back.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// What is held, queue by queue and each queue's in the order in which it came (`blk_flush_plug_list`). Also to be
    /// called when the task sleeps.
    pub fn flush(&mut self) -> impl Iterator<Item = (usize, Bio)> + '_ {
        self.requests = 0;
        self.last_sectors = 0;
        self.held.sort_by_key(|&(queue, _)| queue);
        self.held.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use crate::invariants::bench::bio;

    const RULES: TaskPlugRules = TaskPlugRules {
        requests: 16,
        last_sectors: 256,
        submissions_above: 2,
    };

    fn holds(plug: &mut TaskPlug, start: u64) -> bool {
        plug.hold(0, bio(0, Direction::Read, start)).is_none()
    }

    #[test]
    fn it_is_flushed_before_the_17th_request() {
        let mut plug = TaskPlug::new(RULES);
        assert!((0..16).all(|n| holds(&mut plug, n * 100)));
        assert!(!holds(&mut plug, 1600));
        assert_eq!(plug.flush().count(), 16);
        assert!(plug.is_empty());
        assert!(holds(&mut plug, 1600));
    }

    #[test]
    fn bios_that_continue_one_another_are_one_request_until_another_follows_a_large_one() {
        let mut plug = TaskPlug::new(RULES);
        assert!((0..31).all(|n| holds(&mut plug, n * 8)));
        assert!(holds(&mut plug, 1000), "the last has 124 KiB");
        assert_eq!(plug.flush().count(), 32);
        assert!((0..32).all(|n| holds(&mut plug, n * 8)));
        assert!(!holds(&mut plug, 1000), "the last has 128 KiB");
    }

    #[test]
    fn each_queue_gets_its_own_in_order() {
        let mut plug = TaskPlug::new(RULES);
        for (queue, start) in [(1, 500), (0, 900), (1, 100)] {
            plug.hold(queue, bio(0, Direction::Read, start));
        }
        let flushed: Vec<(usize, u64)> = plug
            .flush()
            .map(|(queue, bio)| (queue, bio.start))
            .collect();
        assert_eq!(flushed, [(0, 900), (1, 500), (1, 100)]);
    }
}
