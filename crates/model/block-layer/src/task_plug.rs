//! A task's own plug, from 2.6.39 on: what it submits is held back until there is enough of it, or the task sleeps.
//!
//! Source: `block/blk-core.c` of 3.4 (docs/model/sources/plugging.md#plugging).

use crate::Bio;

/// Bios that a task holds back, each for one of the world's queues. Those that continue one another count as the one
/// request that they will be.
///
/// Simpler than the kernel's: requests are taken from the pool when the plug is flushed, not when a bio comes into it.
#[derive(Clone, Debug)]
pub struct TaskPlug {
    most: usize,
    held: Vec<(usize, Bio)>,
    requests: usize,
}

impl TaskPlug {
    /// The plug is full with this many requests.
    pub fn new(most: usize) -> TaskPlug {
        TaskPlug {
            most,
            held: Vec::new(),
            requests: 0,
        }
    }

    /// `attempt_plug_merge` and `BLK_MAX_REQUEST_COUNT` in `blk_queue_bio`. True: it is full, and has to be flushed now.
    pub fn hold(&mut self, queue: usize, bio: Bio) -> bool {
        let touches = |(other_queue, other): &(usize, Bio)| {
            *other_queue == queue
                && other.direction == bio.direction
                && other.sync == bio.sync
                && (other.end() == bio.start || bio.end() == other.start)
        };
        if !self.held.iter().rev().any(touches) {
            self.requests += 1;
        }
        self.held.push((queue, bio));
        self.requests >= self.most
    }

    /// Whether the task holds nothing back.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// What is held, queue by queue and each queue's in the order in which it came (`blk_flush_plug_list`). Also to be
    /// called when the task sleeps.
    pub fn flush(&mut self) -> impl Iterator<Item = (usize, Bio)> + '_ {
        self.requests = 0;
        self.held.sort_by_key(|&(queue, _)| queue);
        self.held.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use crate::invariants::bench::bio;

    #[test]
    fn it_is_flushed_with_the_16th_request() {
        let mut plug = TaskPlug::new(16);
        let full: Vec<bool> = (0..16)
            .map(|n| plug.hold(0, bio(0, Direction::Read, n * 100)))
            .collect();
        assert_eq!(full.iter().position(|&full| full), Some(15));
        assert_eq!(plug.flush().count(), 16);
        assert!(plug.is_empty());
        assert!(!plug.hold(0, bio(0, Direction::Read, 0)));
    }

    #[test]
    fn bios_that_continue_one_another_count_once() {
        let mut plug = TaskPlug::new(16);
        assert!(!(0..100).any(|n| plug.hold(0, bio(0, Direction::Read, n * 8))));
    }

    #[test]
    fn each_queue_gets_its_own_in_order() {
        let mut plug = TaskPlug::new(16);
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
