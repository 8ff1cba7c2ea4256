//! How much is touched, and how soon again: distinct blocks and reuse distances, estimated from blocks sampled by hash.
//!
//! Source: SHARDS (Waldspurger et al., FAST 2015): of a block that is in the sample, the distinct sampled blocks since its last
//! access, divided by the rate of sampling, are its reuse distance.

use std::collections::BTreeMap;

use serde::Serialize;
use workload::histogram::LatencyHistogram;

/// Blocks of 4 KiB that were touched.
#[derive(Clone, Debug)]
pub(super) struct Reuse {
    /// A block is in the sample when its hash is below.
    below: u64,
    /// Of each sampled block, when it was last touched, counted in touches of sampled blocks.
    last: BTreeMap<u64, u32>,
    /// A Fenwick tree: 1 at the last touch of each sampled block.
    tree: Vec<u32>,
    clock: u32,
    touches: u64,
    first_touches: f64,
    distance: LatencyHistogram,
}

/// The working set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ReuseFigures {
    /// Bytes touched, each counted once: an estimate from a sample of the blocks of 4 KiB.
    pub working_set_bytes: u64,
    /// Bytes touched, each time counted.
    pub touched_bytes: u64,
    /// Share of the blocks that was sampled; 1: all of them.
    pub sampled_share: f64,
    /// Of a cache of so many bytes that keeps what was touched last: the share of touches that it would serve.
    pub hit_share_by_cache_bytes: Vec<(u64, f64)>,
}

const BLOCK_BYTES: u64 = 4096;
const BLOCK_SECTORS: u64 = BLOCK_BYTES / 512;
const SAMPLE_MAX: usize = 1 << 13;
const TREE: u32 = 1 << 16;
/// Of one I/O; a discard of a whole disk is not looked at block by block.
const BLOCKS_MAX: u64 = 1 << 12;

impl Reuse {
    pub(super) fn new() -> Reuse {
        Reuse {
            below: u64::MAX,
            last: BTreeMap::new(),
            tree: vec![0; TREE as usize + 1],
            clock: 0,
            touches: 0,
            first_touches: 0.0,
            distance: LatencyHistogram::new(),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, device: u32, sector: u64, sectors: u64) {
        let first = sector / BLOCK_SECTORS;
        let end = sector.saturating_add(sectors).div_ceil(BLOCK_SECTORS);
        for block in first..end.min(first + BLOCKS_MAX) {
            self.touches += 1;
            let block = block ^ u64::from(device) << 44;
            let hash = mixed(block);
            if hash <= self.below {
                self.touch(block);
            }
        }
    }

    fn touch(&mut self, block: u64) {
        if self.clock == TREE {
            self.renumber();
        }
        self.clock += 1;
        match self.last.insert(block, self.clock) {
            Some(before) => {
                let since = self.sum(self.clock - 1) - self.sum(before);
                self.update(before, u32::MAX);
                let distance = f64::from(since) / self.share();
                self.distance.record((distance * BLOCK_BYTES as f64) as u64);
            }
            None => self.first_touches += 1.0 / self.share(),
        }
        self.update(self.clock, 1);
        if self.last.len() > SAMPLE_MAX {
            self.thin();
        }
    }

    fn share(&self) -> f64 {
        self.below as f64 / u64::MAX as f64
    }

    /// Half of the sample leaves.
    fn thin(&mut self) {
        self.below /= 2;
        let below = self.below;
        self.last.retain(|&block, _| mixed(block) <= below);
        self.renumber();
    }

    fn renumber(&mut self) {
        let mut order: Vec<(u32, u64)> =
            self.last.iter().map(|(&block, &at)| (at, block)).collect();
        order.sort_unstable();
        self.tree.fill(0);
        self.clock = 0;
        for (_, block) in order {
            self.clock += 1;
            self.last.insert(block, self.clock);
            self.update(self.clock, 1);
        }
    }

    fn update(&mut self, at: u32, by: u32) {
        let mut at = at;
        while at <= TREE {
            let node = &mut self.tree[at as usize];
            *node = node.wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    fn sum(&self, at: u32) -> u32 {
        let (mut at, mut sum) = (at, 0u32);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at as usize]);
            at &= at - 1;
        }
        sum
    }

    pub(super) fn figures(&self) -> ReuseFigures {
        let known = self.distance.count() as f64;
        let sampled_touches = known + self.first_sampled();
        let mut hits = 0u64;
        let mut shares = Vec::new();
        let mut buckets = self.distance.buckets().peekable();
        for power in 20..44 {
            let cache = 1u64 << power;
            while let Some(bucket) = buckets.next_if(|bucket| bucket.high_ns <= cache) {
                hits += bucket.count;
            }
            shares.push((cache, hits as f64 / sampled_touches.max(1.0)));
            if buckets.peek().is_none() {
                break;
            }
        }
        ReuseFigures {
            working_set_bytes: (self.first_touches * BLOCK_BYTES as f64) as u64,
            touched_bytes: self.touches * BLOCK_BYTES,
            sampled_share: self.share(),
            hit_share_by_cache_bytes: shares,
        }
    }

    /// First touches at the rate at which the others were sampled.
    fn first_sampled(&self) -> f64 {
        let reused = self.touches as f64 - self.first_touches;
        if reused <= 0.0 {
            return self.first_touches;
        }
        self.first_touches * self.distance.count() as f64 / reused
    }
}

/// splitmix64's last steps.
#[inline]
fn mixed(block: u64) -> u64 {
    let mut x = block.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_over_a_set_is_served_by_a_cache_of_its_size_and_by_none_smaller() {
        for blocks in [1000u64, 200_000] {
            let mut reuse = Reuse::new();
            for _ in 0..5 {
                (0..blocks).for_each(|block| reuse.add(1, block * BLOCK_SECTORS, BLOCK_SECTORS));
            }
            let figures = reuse.figures();
            let size = blocks * BLOCK_BYTES;
            let error = figures.working_set_bytes as f64 / size as f64 - 1.0;
            assert!(error.abs() < 0.1, "{blocks}: {figures:?}");
            let share_at = |bytes: u64| {
                let found = figures
                    .hit_share_by_cache_bytes
                    .iter()
                    .find(|(cache, _)| *cache >= bytes);
                found
                    .or(figures.hit_share_by_cache_bytes.last())
                    .map_or(0.0, |(_, share)| *share)
            };
            assert!(
                (share_at(size * 2) - 0.8).abs() < 0.08,
                "{blocks}: {figures:?}"
            );
            assert!(share_at(size / 4) < 0.05, "{blocks}: {figures:?}");
        }
    }
}
