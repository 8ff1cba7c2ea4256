//! How much is touched, and how soon again: distinct blocks and reuse distances, estimated from blocks sampled by hash.
//!
//! Source: SHARDS (Waldspurger et al., FAST 2015): of a block that is in the sample, the distinct sampled blocks since its last
//! access, divided by the rate of sampling, are its reuse distance.

use std::collections::BTreeMap;

use base::SECTOR_BYTES;
use serde::Serialize;

/// Blocks of 4 KiB that were touched.
#[derive(Clone, Debug)]
pub(super) struct Reuse {
    /// A block is in the sample when its hash is below.
    below: u64,
    /// The last touch of each sampled block, counted in touches of sampled blocks.
    last: BTreeMap<u64, u32>,
    /// A Fenwick tree: 1 at the last touch of each sampled block.
    tree: Vec<u32>,
    clock: u32,
    touches: u64,
    /// In the rates at which blocks were sampled then.
    first_touches: f64,
    /// By the power of two of the smallest cache that serves it, what each touch again stands for, by part of the sample.
    again: [[f64; PARTS]; POWERS],
    /// What all sampled touches stand for.
    sampled: [f64; PARTS],
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
    /// The share of touches that a cache of this many bytes would serve if it kept the blocks touched last, and the
    /// standard error of that estimate, 0 if all blocks were counted.
    pub hit_share_by_cache_bytes: Vec<(u64, f64, f64)>,
}

const BLOCK_BYTES: u64 = 4096;
const BLOCK_SECTORS: u64 = BLOCK_BYTES / SECTOR_BYTES;
const SAMPLE_MAX: usize = 1 << 15;
/// The parts of the sample, by hash, each an estimate of its own: their differences are the error.
const PARTS: usize = 16;
/// Caches of up to 2 to that many bytes.
const POWERS: usize = 64;
const SMALLEST_POWER: usize = 20;
const TREE: u32 = 1 << 18;
/// The blocks of one I/O: a discard of a whole disk is not followed block by block.
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
            again: [[0.0; PARTS]; POWERS],
            sampled: [0.0; PARTS],
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
                self.touch(block, part(hash));
            }
        }
    }

    fn touch(&mut self, block: u64, part: usize) {
        if self.clock == TREE {
            self.renumber();
        }
        self.clock += 1;
        let stands_for = 1.0 / self.share();
        self.sampled[part] += stands_for;
        match self.last.insert(block, self.clock) {
            Some(before) => {
                let since = self.sum(self.clock - 1) - self.sum(before);
                self.update(before, u32::MAX);
                // The block itself has to be in the cache too.
                let blocks = f64::from(since) * stands_for + 1.0;
                let bytes = (blocks * BLOCK_BYTES as f64) as u64;
                let power = bytes.next_power_of_two().ilog2() as usize;
                self.again[power.min(POWERS - 1)][part] += stands_for;
            }
            None => self.first_touches += stands_for,
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
        let mut order: Vec<(u32, u64)> = self.last.iter().map(|(&block, &at)| (at, block)).collect();
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

    /// SHARDS' adjustment: what the sample has too few touches or too many, by the touches of a few blocks that are touched
    /// all the time, it has of those that every cache serves.
    pub(super) fn figures(&self) -> ReuseFigures {
        let touches = self.touches as f64;
        let of_part = touches / PARTS as f64;
        let whole = self.below == u64::MAX;
        let largest = self.again.iter().rposition(|parts| parts.iter().any(|&it| it > 0.0));
        let largest = largest.unwrap_or(0).max(SMALLEST_POWER);
        let mut hits = match whole {
            true => [0.0; PARTS],
            false => self.sampled.map(|sampled| of_part - sampled),
        };
        let mut shares = Vec::new();
        for (power, parts) in self.again.iter().enumerate().take(largest + 1) {
            for (hits, again) in hits.iter_mut().zip(parts) {
                *hits += again;
            }
            if power >= SMALLEST_POWER && touches > 0.0 {
                let share = hits.iter().sum::<f64>() / touches;
                let square = |hits: &f64| (hits / of_part - share).powi(2);
                let squares: f64 = hits.iter().map(square).sum();
                let error = (squares / (PARTS * (PARTS - 1)) as f64).sqrt();
                let error = if whole { 0.0 } else { error };
                shares.push((1 << power, share.clamp(0.0, 1.0), error));
            }
        }
        ReuseFigures {
            working_set_bytes: (self.first_touches * BLOCK_BYTES as f64) as u64,
            touched_bytes: self.touches * BLOCK_BYTES,
            sampled_share: self.share(),
            hit_share_by_cache_bytes: shares,
        }
    }
}

/// Which part of the sample a block is in: bits that do not decide whether it is sampled.
#[inline]
fn part(hash: u64) -> usize {
    hash as usize % PARTS
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
                let found = figures.hit_share_by_cache_bytes.iter().find(|(cache, ..)| *cache >= bytes);
                found.or(figures.hit_share_by_cache_bytes.last()).map_or(0.0, |(_, share, _)| *share)
            };
            assert!((share_at(size * 2) - 0.8).abs() < 0.08, "{blocks}: {figures:?}");
            assert!(share_at(size / 4) < 0.05, "{blocks}: {figures:?}");
        }
    }

    /// Half of the touches are of a few blocks, which are in the sample or not; the others go round a large set.
    #[test]
    fn a_sample_without_the_blocks_that_are_touched_most_still_tells_their_hits() {
        let mut reuse = Reuse::new();
        let (few, many) = (8, 100_000);
        for touch in 0..600_000u64 {
            let block = match touch % 2 {
                0 => touch / 2 % few,
                _ => 1000 + touch / 2 % many,
            };
            reuse.add(1, block * BLOCK_SECTORS, BLOCK_SECTORS);
        }
        let figures = reuse.figures();
        assert!(figures.sampled_share < 0.5);
        let of = |bytes: u64| {
            let shares = figures.hit_share_by_cache_bytes.iter();
            let found = shares.clone().find(|(cache, ..)| *cache == bytes);
            *found.or(shares.clone().last()).expect("some cache")
        };
        for (bytes, exact) in [(1 << 20, 0.5), (64 << 20, 0.5), (1 << 30, 5.0 / 6.0)] {
            let (_, share, error) = of(bytes);
            assert!(error > 0.0 && error < 0.2, "{figures:?}");
            assert!((share - exact).abs() < 0.01 + 3.0 * error, "{bytes}: {figures:?}");
        }
        assert!((of(1 << 20).1 - 0.5).abs() < 0.05, "{figures:?}");
    }
}
