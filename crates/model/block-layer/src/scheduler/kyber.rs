//! Kyber: no sorting; each kind of request has a number of tokens, and gets fewer while another kind is too slow.
//!
//! Source: `block/kyber-iosched.c` of 5.10 and of 4.14 (docs/model/sources/kyber.md). Domains of which the model has no
//! requests are left out: of discards, and from 4.20 on of others.

mod latency;
mod means;

use std::collections::VecDeque;

use serde::Deserialize;

use crate::scheduler::none::{fifo_of, merge_near_end};
use crate::scheduler::{OwnMerge, Scheduler};
use crate::{Bio, Direction, QueueMap, Request, RequestId, Requests, TagCounts};
use events::time::{MILLISECOND, Time};
use latency::Latencies;
use means::Means;

/// Targets in nanoseconds, under the kernel's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KyberTunables {
    /// Target latency of reads.
    pub read_lat_nsec: Time,
    /// Target latency of sync writes.
    pub write_lat_nsec: Time,
}

impl Default for KyberTunables {
    fn default() -> KyberTunables {
        KyberTunables { read_lat_nsec: 2 * MILLISECOND, write_lat_nsec: 10 * MILLISECOND }
    }
}

/// Reads, writes, and others: async writes until 4.19.
const DOMAINS: usize = 3;
const OTHERS: usize = 2;
/// Tokens of each, at most.
const DEPTH_MAX: [u32; DOMAINS] = [256, 128, 64];
/// Requests that a domain has in one turn.
const BATCH: [u32; DOMAINS] = [16, 8, 8];
const ASYNC_PERCENT: u32 = 75;
/// From a completion to the next look at the latencies.
const LOOK_AFTER_NS: Time = 100 * MILLISECOND;

/// The state of one queue's Kyber.
#[derive(Clone, Debug)]
pub struct Kyber {
    targets_ns: [Time; OTHERS],
    depth: [u32; DOMAINS],
    in_use: [u32; DOMAINS],
    /// By domain and CPU: not yet seen by their hardware queue.
    fifos: [Vec<VecDeque<RequestId>>; DOMAINS],
    map: QueueMap,
    queues: Vec<HardwareQueue>,
    turn: usize,
    queued: usize,
    judges: LatencyJudge,
}

/// How a kernel finds out whether requests are slow.
#[derive(Clone, Debug)]
enum LatencyJudge {
    /// By mean latencies: until 4.19.
    Means(Means),
    /// By percentiles, for which it looks at that time.
    Percentiles { latencies: [Latencies; OTHERS], looks_at: Option<Time> },
}

#[derive(Clone, Debug, Default)]
struct HardwareQueue {
    lists: [VecDeque<RequestId>; DOMAINS],
    domain: usize,
    batching: u32,
}

impl Kyber {
    /// `map`: the hardware queue that each CPU submits to.
    pub fn new(tunables: KyberTunables, map: QueueMap) -> Kyber {
        Kyber {
            targets_ns: [tunables.read_lat_nsec, tunables.write_lat_nsec],
            depth: DEPTH_MAX,
            in_use: [0; DOMAINS],
            fifos: Default::default(),
            queues: vec![HardwareQueue::default(); usize::from(map.queues())],
            map,
            turn: 0,
            queued: 0,
            judges: LatencyJudge::Percentiles { latencies: Default::default(), looks_at: None },
        }
    }

    /// That of 4.12 to 4.19.
    pub fn by_means(mut self) -> Kyber {
        self.judges = LatencyJudge::Means(Means::default());
        self
    }

    /// Tokens of reads and of writes.
    #[cfg(test)]
    pub fn depths(&self) -> [u32; OTHERS] {
        [self.depth[0], self.depth[1]]
    }

    /// `kyber_sched_domain`.
    fn domain_of(&self, direction: Direction, sync: bool) -> usize {
        match (&self.judges, direction) {
            (LatencyJudge::Means(_), Direction::Write) if !sync => OTHERS,
            _ => direction as usize,
        }
    }

    /// `kyber_dispatch_request`.
    fn dispatch_to(&mut self, queue: usize) -> Option<RequestId> {
        let HardwareQueue { domain, batching, .. } = self.queues[queue];
        if batching < BATCH[domain]
            && let Some(id) = self.take(queue, domain)
        {
            return Some(id);
        }
        self.queues[queue].batching = 0;
        // The current domain comes last.
        (1..=DOMAINS).find_map(|after| {
            let domain = (domain + after) % DOMAINS;
            self.queues[queue].domain = domain;
            self.take(queue, domain)
        })
    }

    /// `kyber_dispatch_cur_domain`, `kyber_get_domain_token`.
    fn take(&mut self, queue: usize, domain: usize) -> Option<RequestId> {
        if self.queues[queue].lists[domain].is_empty() {
            self.flush_lines(queue, domain);
        }
        if self.in_use[domain] >= self.depth[domain] {
            return None;
        }
        let id = self.queues[queue].lists[domain].pop_front()?;
        self.queues[queue].batching += 1;
        self.in_use[domain] += 1;
        self.queued -= 1;
        Some(id)
    }

    /// What the queue's CPUs have queued becomes visible to it, and takes no more merges (`kyber_flush_busy_kcqs`).
    fn flush_lines(&mut self, queue: usize, domain: usize) {
        let list = &mut self.queues[queue].lists[domain];
        for (cpu, fifo) in (0..).zip(&mut self.fifos[domain]) {
            if self.map.queue_of(cpu) == queue {
                list.append(fifo);
            }
        }
    }

    /// `kyber_timer_fn`, `kyber_stat_timer_fn`.
    fn adjust(&mut self, now: Time) {
        match &mut self.judges {
            LatencyJudge::Means(means) => {
                self.depth = means.adjust(now, self.targets_ns, self.depth, DEPTH_MAX);
            }
            LatencyJudge::Percentiles { looks_at, .. } => {
                *looks_at = None;
                self.adjust_by_percentiles(now);
            }
        }
    }

    /// Congestion in any domain makes all that are better off give tokens up (`kyber_timer_fn`); those that suffer get
    /// more.
    fn adjust_by_percentiles(&mut self, now: Time) {
        let LatencyJudge::Percentiles { latencies, .. } = &mut self.judges else {
            return;
        };
        let mut congested = false;
        for latencies in latencies.iter_mut() {
            congested |= latencies.device_is_slow(now);
        }
        for (domain, latencies) in latencies.iter_mut().enumerate() {
            let factor = latencies.quarters_of_target(now, congested);
            if let Some(quarters) = factor {
                let depth = self.depth[domain] * quarters / 4;
                self.depth[domain] = depth.clamp(1, DEPTH_MAX[domain]);
            }
        }
    }
}

fn latencies_of(request: &Request, now: Time) -> (Time, Time) {
    let issued_at = request.issued_at.unwrap_or(request.queued_at);
    (now - request.queued_at, now - issued_at)
}

impl Scheduler for Kyber {
    /// `kyber_bio_merge`.
    fn own_merge(&mut self, requests: &Requests, bio: &Bio) -> OwnMerge {
        let domain = self.domain_of(bio.direction, bio.sync);
        match self.fifos[domain].get(usize::from(bio.cpu)) {
            Some(fifo) => merge_near_end(fifo, requests, bio),
            None => OwnMerge::Nothing,
        }
    }

    /// `kyber_limit_depth`.
    fn tags_allowed(&self, bio: &Bio, tags: TagCounts) -> u32 {
        if bio.sync { tags.most() } else { self.fewest_tags(tags) }
    }

    /// `kyber_depth_updated`; a limit of 0 is none (`__blk_mq_get_tag`).
    fn fewest_tags(&self, tags: TagCounts) -> u32 {
        match tags.shared() * ASYNC_PERCENT / 100 {
            0 => tags.most(),
            limit => limit,
        }
    }

    /// `kyber_insert_requests`.
    fn add(&mut self, _: Time, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let domain = self.domain_of(request.direction, request.sync);
        fifo_of(&mut self.fifos[domain], request).push_back(id);
        self.queued += 1;
    }

    fn dispatch(&mut self, _: Time, _: &Requests) -> Option<RequestId> {
        if self.queued == 0 {
            return None;
        }
        let count = self.queues.len();
        let (queue, id) = (0..count).find_map(|after| {
            let queue = (self.turn + after) % count;
            Some((queue, self.dispatch_to(queue)?))
        })?;
        self.turn = queue + 1;
        Some(id)
    }

    /// `kyber_completed_request`.
    fn completed(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let domain = self.domain_of(request.direction, request.sync);
        self.in_use[domain] -= 1;
        let (total, device) = latencies_of(request, now);
        let target_ns = self.targets_ns.get(domain).copied();
        match &mut self.judges {
            LatencyJudge::Means(means) => means.record(now, domain, device, target_ns),
            LatencyJudge::Percentiles { latencies, looks_at } => {
                let target_ns = target_ns.expect("reads and writes are all there is");
                latencies[domain].record(total, device, target_ns);
                looks_at.get_or_insert(now + LOOK_AFTER_NS);
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        match &self.judges {
            LatencyJudge::Means(means) => means.until,
            LatencyJudge::Percentiles { looks_at, .. } => *looks_at,
        }
    }

    fn wake(&mut self, now: Time, _: &Requests) {
        if self.next_wakeup().is_some_and(|at| at <= now) {
            self.adjust(now);
        }
    }

    fn queued(&self) -> usize {
        self.queued
    }
}

#[cfg(test)]
mod tests;
