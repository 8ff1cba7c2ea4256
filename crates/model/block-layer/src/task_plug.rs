//! A task's own plug, from 2.6.39 on: what it submits is held back until there is enough of it, or the task sleeps.
//!
//! Source: `block/blk-core.c` of 3.4, `block/blk-mq.c` of 6.1 (docs/model/sources/plugging.md#plugging).

use crate::{Bio, Direction, Sector};
use kernels::queue::TaskPlugRules;

/// Bios that a task holds back, each for one of the world's queues, and the requests that they make.
#[derive(Clone, Debug)]
pub struct TaskPlug {
    rules: TaskPlugRules,
    /// With the number of the request that each has become part of.
    held: Vec<HeldBio>,
    /// The one that was begun last at the end.
    requests: Vec<PluggedRequest>,
}

#[derive(Clone, Debug)]
struct HeldBio {
    queue: usize,
    request: usize,
    bio: Bio,
}

/// What queues let a request hold.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Sectors of 512 bytes.
    pub sectors: u32,
    /// Physically contiguous pieces of memory.
    pub segments: u16,
}

/// Bios of a queue that touch one another.
#[derive(Clone, Copy, Debug)]
struct PluggedRequest {
    queue: usize,
    direction: Direction,
    sync: bool,
    start: Sector,
    sectors: u32,
    segments: u16,
}

impl PluggedRequest {
    /// Whether the bio has become part of it.
    fn takes(&mut self, queue: usize, bio: &Bio, limits: RequestLimits) -> bool {
        let end = self.start + Sector::from(self.sectors);
        let takes = self.queue == queue
            && self.direction == bio.direction
            && self.sync == bio.sync
            && (end == bio.start || bio.end() == self.start)
            && self.sectors + bio.sectors <= limits.sectors
            && self.segments + bio.segments <= limits.segments;
        if takes {
            self.start = self.start.min(bio.start);
            self.sectors += bio.sectors;
            self.segments += bio.segments;
        }
        takes
    }
}

impl TaskPlug {
    /// A plug that holds nothing.
    pub fn new(rules: TaskPlugRules) -> TaskPlug {
        TaskPlug { rules, held: Vec::new(), requests: Vec::new() }
    }

    /// Whether a task that submits this many operations in one call plugs for all of them.
    pub fn is_for(&self, operations: usize) -> bool {
        operations > self.rules.submissions_above
    }

    /// The bio back: it begins a request for which the plug has to be flushed first.
    pub fn hold(&mut self, queue: usize, bio: Bio, limits: RequestLimits) -> Option<Bio> {
        if !self.joins(queue, &bio, limits) {
            if self.is_full() {
                return Some(bio);
            }
            self.begins(queue, bio);
        }
        None
    }

    /// Whether the bio has become part of a request that is held back (`attempt_plug_merge` in `blk_queue_bio`).
    pub fn joins(&mut self, queue: usize, bio: &Bio, limits: RequestLimits) -> bool {
        let mut requests = self.requests.iter_mut().enumerate().rev();
        let joined = requests.find_map(|(number, request)| request.takes(queue, bio, limits).then_some(number));
        if let Some(request) = joined {
            self.held.push(HeldBio { queue, request, bio: bio.clone() });
        }
        joined.is_some()
    }

    /// Whether it has to be flushed before it takes another request (`BLK_MAX_REQUEST_COUNT` in `blk_queue_bio`,
    /// `BLK_PLUG_FLUSH_SIZE` in `blk_add_rq_to_plug`).
    pub fn is_full(&self) -> bool {
        let last = self.requests.last();
        self.requests.len() >= self.rules.requests || last.is_some_and(|last| last.sectors >= self.rules.last_sectors)
    }

    /// The bio begins a request; the plug is not full.
    pub fn begins(&mut self, queue: usize, bio: Bio) {
        self.requests.push(PluggedRequest {
            queue,
            direction: bio.direction,
            sync: bio.sync,
            start: bio.start,
            sectors: bio.sectors,
            segments: bio.segments,
        });
        self.held.push(HeldBio { queue, request: self.requests.len() - 1, bio });
    }

    /// Whether the task holds nothing back.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// What is held, queue by queue and each queue's in the order in which it came (`blk_flush_plug_list`). Also to be
    /// called when the task sleeps.
    pub fn flush(&mut self) -> impl Iterator<Item = (usize, Bio)> + '_ {
        self.requests.clear();
        self.held.sort_by_key(|held| held.queue);
        self.held.drain(..).map(|held| (held.queue, held.bio))
    }

    /// The call ends, and all that is held is for one queue without a scheduler, which takes it at once: some kernels send
    /// the newest request first.
    pub fn flush_directly(&mut self) -> impl Iterator<Item = (usize, Bio)> + '_ {
        if self.rules.newest_first {
            self.held.sort_by_key(|held| std::cmp::Reverse(held.request));
        }
        self.flush()
    }

    /// The queue that all is for that is held.
    pub fn only_queue(&self) -> Option<usize> {
        let first = self.held.first()?.queue;
        self.held.iter().all(|held| held.queue == first).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use crate::invariants::bench::bio;

    const RULES: TaskPlugRules =
        TaskPlugRules { requests: 16, last_sectors: 256, submissions_above: 2, newest_first: true };

    const LIMITS: RequestLimits = RequestLimits { sectors: 1024, segments: 128 };

    fn holds(plug: &mut TaskPlug, start: u64) -> bool {
        plug.hold(0, bio(0, Direction::Read, start), LIMITS).is_none()
    }

    #[test]
    fn a_call_that_ends_sends_its_newest_request_first_to_a_queue_without_a_scheduler() {
        let mut plug = TaskPlug::new(RULES);
        assert!([100, 300, 108, 500].into_iter().all(|start| holds(&mut plug, start)));
        assert_eq!(plug.only_queue(), Some(0));
        let starts = |(_, bio): (usize, Bio)| bio.start;
        assert_eq!(plug.flush_directly().map(starts).collect::<Vec<_>>(), [500, 300, 100, 108]);
        assert_eq!(plug.only_queue(), None);
        assert!(holds(&mut plug, 100) && holds(&mut plug, 300));
        assert_eq!(plug.flush().map(starts).collect::<Vec<_>>(), [100, 300]);
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
    fn a_request_grows_no_larger_than_its_queue_takes() {
        let mut plug = TaskPlug::new(RULES);
        let limits = RequestLimits { sectors: 16, ..LIMITS };
        let mut joins = |start| {
            let bio = bio(0, Direction::Read, start);
            let joins = plug.joins(0, &bio, limits);
            if !joins {
                plug.begins(0, bio);
            }
            joins
        };
        assert_eq!([0, 8, 16, 24].map(&mut joins), [false, true, false, true]);
    }

    #[test]
    fn each_queue_gets_its_own_in_order() {
        let mut plug = TaskPlug::new(RULES);
        for (queue, start) in [(1, 500), (0, 900), (1, 100)] {
            plug.hold(queue, bio(0, Direction::Read, start), LIMITS);
        }
        let flushed: Vec<(usize, u64)> = plug.flush().map(|(queue, bio)| (queue, bio.start)).collect();
        assert_eq!(flushed, [(0, 900), (1, 500), (1, 100)]);
    }
}
