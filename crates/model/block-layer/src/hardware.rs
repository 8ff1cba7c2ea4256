//! Hardware queues: the queues of a device, each with its own number of tags, to which CPUs submit (`block/blk-mq.c`,
//! 3.13 on).

use std::collections::VecDeque;

use crate::{QueueMap, RequestId, tick_timer};
use events::time::{MILLISECOND, Time};
use kernels::hardware_queue::Runs;

/// A device's queues as the block layer sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareRules {
    /// The queue that each CPU submits to.
    pub map: QueueMap,
    /// Requests that a queue, or with `shared_tags` all together, may have at the device.
    pub depth: u32,
    /// `depth` is one limit for all queues together.
    pub shared_tags: bool,
    /// When they are run.
    pub runs: Runs,
    /// Between two of the kernel's clock ticks.
    pub tick_ns: Time,
}

impl HardwareRules {
    /// Sets of the device's tags.
    pub(super) fn tag_sets(&self) -> usize {
        match self.shared_tags {
            true => 1,
            false => usize::from(self.map.queues()),
        }
    }

    /// One queue without a limit of its own: devices before blk-mq.
    pub const SINGLE: HardwareRules = HardwareRules {
        map: QueueMap::SINGLE,
        depth: u32::MAX,
        shared_tags: true,
        runs: Runs { after_completions: true, again_after_ns: None, by_thread: false, pulls_ahead: false },
        tick_ns: 4 * MILLISECOND,
    };
}

/// `1 << BLK_MQ_DISPATCH_BUSY_EWMA_FACTOR` and `BLK_MQ_DISPATCH_BUSY_EWMA_WEIGHT` of block/blk-mq.c, 6.1.
const BUSY: u32 = 1 << 4;
const BUSY_WEIGHT: u32 = 8;

#[derive(Clone, Debug)]
pub(super) struct HardwareQueues {
    rules: HardwareRules,
    /// By tag set.
    in_use: Vec<u32>,
    /// By queue: a request that the scheduler gave out and that found no tag goes first when there is one.
    held: Vec<VecDeque<RequestId>>,
    /// By queue: the next completion runs it (`SCHED_RESTART`).
    restarts: Vec<bool>,
    /// By queue: how often it had too few tags of late (`dispatch_busy`).
    busy: Vec<u32>,
    turn: usize,
}

impl HardwareQueues {
    pub(super) fn new(rules: HardwareRules) -> HardwareQueues {
        let queues = usize::from(rules.map.queues());
        HardwareQueues {
            in_use: vec![0; rules.tag_sets()],
            rules,
            held: vec![VecDeque::new(); queues],
            restarts: vec![false; queues],
            busy: vec![0; queues],
            turn: 0,
        }
    }

    /// Whether the queue of that CPU takes requests from its scheduler one at a time.
    pub(super) fn is_busy(&self, cpu: u16) -> bool {
        self.busy[self.rules.map.queue_of(cpu)] > 0
    }

    /// Whether requests are held back and none of them has a tag now, which makes their queues busier.
    pub(super) fn is_held_up(&mut self) -> bool {
        let mut is_any = false;
        for queue in 0..self.held.len() {
            if !self.held[queue].is_empty() {
                self.was_run(queue, false);
                is_any = true;
            }
        }
        is_any
    }

    /// The queue has sent what it took, or has found too few tags for it (`blk_mq_update_dispatch_busy`, which keeps an
    /// eighth of each run in whole numbers).
    fn was_run(&mut self, queue: usize, has_sent: bool) {
        let new = if has_sent { 0 } else { BUSY };
        self.busy[queue] = ((BUSY_WEIGHT - 1) * self.busy[queue] + new) / BUSY_WEIGHT;
    }

    pub(super) fn runs(&self) -> Runs {
        self.rules.runs
    }

    /// When they are run again after the scheduler has kept what it has, whose timer is set now; None: not for that.
    pub(super) fn runs_again_at(&self, now: Time) -> Option<Time> {
        let after_ns = self.rules.runs.again_after_ns?;
        Some(tick_timer::expiry(now, after_ns, self.rules.tick_ns))
    }

    /// Whether any queue holds no request back and has a tag, or asks for one that it holds back
    /// (`__blk_mq_do_dispatch_sched`): the scheduler may be asked.
    pub(super) fn may_ask(&self) -> bool {
        let pulls = self.rules.runs.pulls_ahead;
        (0..self.held.len()).any(|queue| self.held[queue].is_empty() && (pulls || self.has_tag(queue)))
    }

    /// A request that was held back and now has a tag; queues take turns. A queue that has held one back when it is run
    /// is run by the next completion, too (`__blk_mq_sched_dispatch_requests`).
    pub(super) fn take_held(&mut self) -> Option<RequestId> {
        let count = self.held.len();
        let queue = (0..count)
            .map(|after| (self.turn + after) % count)
            .find(|&queue| !self.held[queue].is_empty() && self.has_tag(queue))?;
        self.turn = queue + 1;
        self.restarts[queue] = true;
        let set = self.set_of(queue);
        self.in_use[set] += 1;
        self.was_run(queue, true);
        self.held[queue].pop_front()
    }

    /// Takes a tag for a request of that CPU. False: there is none, and the request is held back.
    pub(super) fn take_tag(&mut self, cpu: u16, id: RequestId) -> bool {
        let queue = self.rules.map.queue_of(cpu);
        let is_sent = self.has_tag(queue) && self.held[queue].is_empty();
        self.was_run(queue, is_sent);
        if !is_sent {
            self.held[queue].push_back(id);
            self.restarts[queue] = true;
            return false;
        }
        let set = self.set_of(queue);
        self.in_use[set] += 1;
        true
    }

    /// The same for one that goes before those that are held back.
    pub(super) fn take_tag_first(&mut self, cpu: u16, id: RequestId) -> bool {
        let queue = self.rules.map.queue_of(cpu);
        let has_tag = self.has_tag(queue);
        match has_tag {
            true => {
                let set = self.set_of(queue);
                self.in_use[set] += 1;
            }
            false => {
                self.held[queue].push_front(id);
                self.restarts[queue] = true;
            }
        }
        has_tag
    }

    pub(super) fn tag_sets(&self) -> usize {
        self.in_use.len()
    }

    /// Which set of tags a request of that CPU has its own from.
    pub(super) fn tag_set_of(&self, cpu: u16) -> usize {
        self.set_of(self.rules.map.queue_of(cpu))
    }

    /// A request of that CPU is completed: whether that runs its queue (`blk_mq_sched_restart`).
    pub(super) fn give_back(&mut self, cpu: u16) -> bool {
        let queue = self.rules.map.queue_of(cpu);
        let set = self.set_of(queue);
        self.in_use[set] -= 1;
        std::mem::take(&mut self.restarts[queue])
    }

    fn has_tag(&self, queue: usize) -> bool {
        self.in_use[self.set_of(queue)] < self.rules.depth
    }

    fn set_of(&self, queue: usize) -> usize {
        if self.rules.shared_tags { 0 } else { queue }
    }
}
