//! Where the host's units are before any was written: nothing of it costs memory by the unit.

use base::permutation::Permutation;
use base::rng::{Stream, stream};

use crate::flash::arrangement::{SEED, shuffle, sums};
use crate::flash::skewed::Skewed;
use crate::flash::spec::Sizes;
use crate::flash::steady_law::SteadyLaw;

/// The place of a unit that is at none, and the unit of a place that holds none.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What a device holds at the start.
#[derive(Clone, Debug)]
pub(super) enum Start {
    /// Nothing.
    New,
    /// All units in sequence, page by page round the dies. With `overwritten`, what is spare holds what was valid
    /// before: so sequential writing leaves it.
    InSequence { overwritten: bool },
    /// The same of writes in strides, over and over.
    Strided(Strides),
    /// What a long run of random writes leaves.
    Scattered(Scattered),
    /// The same of writes that are not uniform.
    Skewed(Box<Skewed>),
}

/// The order of a pass of strided writes: `stride_blocks` laps over the drive, each a block further on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strides {
    block_units: u32,
    stride_blocks: u32,
    /// Whole blocks of the drive; what is behind them keeps its place.
    blocks: u32,
}

impl Strides {
    pub(super) fn new(units: u32, block_units: u32, stride_units: u64) -> Strides {
        let block_units = block_units.max(1);
        let blocks = units / block_units;
        let stride_blocks = stride_units / u64::from(block_units);
        Strides { block_units, stride_blocks: stride_blocks.clamp(1, u64::from(blocks.max(1))) as u32, blocks }
    }

    /// How many units of a pass are written before this one.
    fn turn(&self, unit: u32) -> u32 {
        let block = unit / self.block_units;
        if block >= self.blocks {
            return unit;
        }
        let (lap, of_lap) = (block % self.stride_blocks, block / self.stride_blocks);
        let (short, long_laps) = (self.blocks / self.stride_blocks, self.blocks % self.stride_blocks);
        let before = lap * short + lap.min(long_laps);
        (before + of_lap) * self.block_units + unit % self.block_units
    }

    /// The unit of a turn.
    fn unit(&self, turn: u32) -> u32 {
        let block = turn / self.block_units;
        if block >= self.blocks {
            return turn;
        }
        // The first laps have a block more than the others.
        let (short, long_laps) = (self.blocks / self.stride_blocks, self.blocks % self.stride_blocks);
        let (lap, of_lap) = match block.checked_sub(long_laps * (short + 1)) {
            Some(behind) => (long_laps + behind / short, behind % short),
            None => (block / (short + 1), block % (short + 1)),
        };
        (of_lap * self.stride_blocks + lap) * self.block_units + turn % self.block_units
    }
}

/// Units at random, in blocks of which each has a number of valid ones.
#[derive(Clone, Debug)]
pub(super) struct Scattered {
    order: Permutation,
    /// Of the order.
    key: u64,
    /// By die and block: the valid units in blocks before it, and in all of the die at the end.
    before: Vec<Vec<u32>>,
    /// By die, blocks in the order in which they were closed.
    closed: Vec<Vec<u32>>,
}

impl Start {
    /// As uniform random writes of a unit leave it.
    pub(super) fn random(sizes: &Sizes) -> Start {
        let closed = sizes.main_blocks - free_after_random_writes(sizes);
        let mut draws = stream(SEED, 0);
        let mut before = Vec::new();
        let mut closing = Vec::new();
        for die in 0..sizes.dies {
            let units = (sizes.units - die).div_ceil(sizes.dies);
            let law = sizes.steady_law(f64::from(closed), f64::from(units));
            let valid = valid_by_age(&mut draws, law, closed, units, sizes);
            let mut blocks: Vec<u32> = (0..closed).collect();
            shuffle(&mut draws, &mut blocks);
            let mut by_block = vec![0; sizes.blocks as usize];
            for (&block, valid) in blocks.iter().zip(valid) {
                by_block[block as usize] = valid;
            }
            before.push(sums(by_block.iter().copied()));
            blocks.reverse();
            closing.push(blocks);
        }
        Start::Scattered(Scattered {
            order: Permutation::new(u64::from(sizes.units)),
            key: draws.next_u64(),
            before,
            closed: closing,
        })
    }

    /// The place of a unit.
    pub(super) fn place(&self, sizes: &Sizes, unit: u32) -> u32 {
        match self {
            Start::New => NOWHERE,
            Start::InSequence { .. } => place_in_sequence(sizes, unit),
            Start::Strided(strides) => place_in_sequence(sizes, strides.turn(unit)),
            Start::Scattered(scattered) => scattered.place(sizes, unit),
            Start::Skewed(skewed) => skewed.place(sizes, unit),
        }
    }

    /// The first place of a block from `offset` on where a unit is valid, and which; None: there is none.
    pub(super) fn unit_from(&self, sizes: &Sizes, die: u32, block: u32, offset: u32) -> Option<(u32, u32)> {
        match self {
            Start::New => None,
            Start::InSequence { .. } | Start::Strided(_) => {
                let turn = unit_in_sequence(sizes, die, block, offset);
                let unit = match self {
                    Start::Strided(strides) if turn != NOWHERE => strides.unit(turn),
                    _ => turn,
                };
                (turn != NOWHERE).then_some((offset, unit))
            }
            Start::Scattered(scattered) => scattered.unit_from(sizes, die, block, offset),
            Start::Skewed(skewed) => skewed.unit_from(sizes, die * sizes.blocks + block, offset),
        }
    }

    /// How many units of a block are valid.
    pub(super) fn valid(&self, sizes: &Sizes, die: u32, block: u32) -> u32 {
        match self {
            Start::New => 0,
            Start::InSequence { .. } | Start::Strided(_) => valid_in_sequence(sizes, die, block),
            Start::Scattered(scattered) => scattered.valid(die, block),
            Start::Skewed(skewed) => skewed.valid(die * sizes.blocks + block),
        }
    }

    /// The blocks of a die that are not free, the one that was closed first before the others, and how many were closed
    /// after each.
    pub(super) fn closed(&self, sizes: &Sizes, die: u32) -> Vec<(u32, u32)> {
        let blocks = match self {
            Start::Skewed(skewed) => return skewed.closed(die).to_vec(),
            _ => self.closed_in_turn(sizes, die),
        };
        let ages = (0..blocks.len() as u32).rev();
        blocks.into_iter().zip(ages).collect()
    }

    fn closed_in_turn(&self, sizes: &Sizes, die: u32) -> Vec<u32> {
        let has_some = |block: &u32| self.valid(sizes, die, *block) > 0;
        match self {
            Start::New | Start::Skewed(_) => Vec::new(),
            Start::InSequence { .. } | Start::Strided(_) => {
                let (full, empty): (Vec<u32>, Vec<u32>) = (0..sizes.main_blocks).partition(has_some);
                let invalid = match self {
                    Start::InSequence { overwritten: false } => 0,
                    _ => empty.len().saturating_sub(sizes.collect_blocks as usize + 1),
                };
                empty[..invalid].iter().copied().chain(full).collect()
            }
            Start::Scattered(scattered) => scattered.closed[die as usize].clone(),
        }
    }
}

fn place_in_sequence(sizes: &Sizes, unit: u32) -> u32 {
    let page = unit / sizes.program_units;
    let (die, of_die) = (page % sizes.dies, page / sizes.dies);
    let first = die * sizes.blocks * sizes.block_units;
    first + of_die * sizes.program_units + unit % sizes.program_units
}

/// The unit that is valid at a place of a device that was written in sequence.
fn unit_in_sequence(sizes: &Sizes, die: u32, block: u32, offset: u32) -> u32 {
    let of_die = u64::from(block) * u64::from(sizes.pages) + u64::from(offset / sizes.program_units);
    let page = of_die * u64::from(sizes.dies) + u64::from(die);
    let unit = page * u64::from(sizes.program_units) + u64::from(offset % sizes.program_units);
    match unit < u64::from(sizes.units) {
        true => unit as u32,
        false => NOWHERE,
    }
}

fn valid_in_sequence(sizes: &Sizes, die: u32, block: u32) -> u32 {
    if unit_in_sequence(sizes, die, block, sizes.block_units - 1) != NOWHERE {
        return sizes.block_units;
    }
    // Units of a block rise with the offset: the first that is beyond the end ends them all.
    (0..sizes.pages)
        .map(|page| {
            let first = page * sizes.program_units;
            (first..first + sizes.program_units)
                .take_while(|&offset| unit_in_sequence(sizes, die, block, offset) != NOWHERE)
                .count() as u32
        })
        .take_while(|&units| units > 0)
        .sum()
}

/// Free blocks of each die.
fn free_after_random_writes(sizes: &Sizes) -> u32 {
    let in_turn = sizes.collect_blocks + 1;
    let law = sizes.steady_law(f64::from(sizes.main_blocks - in_turn), sizes.die_units());
    sizes.free_blocks(law.amplification())
}

impl Scattered {
    fn place(&self, sizes: &Sizes, unit: u32) -> u32 {
        let at = self.order.at(self.key, u64::from(unit)) as u32;
        let (die, of_die) = (at % sizes.dies, at / sizes.dies);
        let before = &self.before[die as usize];
        let block = before.partition_point(|&units| units <= of_die) as u32 - 1;
        let of_block = of_die - before[block as usize];
        let offset = u64::from(of_block) * u64::from(sizes.block_units) / u64::from(self.valid(die, block));
        (die * sizes.blocks + block) * sizes.block_units + offset as u32
    }

    /// Valid units are spread evenly over the block.
    fn unit_from(&self, sizes: &Sizes, die: u32, block: u32, offset: u32) -> Option<(u32, u32)> {
        let valid = u64::from(self.valid(die, block));
        let all = u64::from(sizes.block_units);
        let of_block = (u64::from(offset) * valid).div_ceil(all);
        if of_block >= valid {
            return None;
        }
        let of_die = u64::from(self.before[die as usize][block as usize]) + of_block;
        let place = of_die * u64::from(sizes.dies) + u64::from(die);
        let unit = self.order.index_at(self.key, place) as u32;
        Some(((of_block * all / valid) as u32, unit))
    }

    fn valid(&self, die: u32, block: u32) -> u32 {
        let before = &self.before[die as usize];
        before[block as usize + 1] - before[block as usize]
    }
}

/// Valid units of each closed block of a die, the youngest first. Strata, not single draws: the blocks of a real die are
/// as evenly aged.
fn valid_by_age(draws: &mut Stream, law: SteadyLaw, closed: u32, units: u32, sizes: &Sizes) -> Vec<u32> {
    assert!(u64::from(closed) * u64::from(sizes.block_units) >= u64::from(units), "FlashSpec::check leaves a die room");
    let shift = draws.unit();
    let mut valid: Vec<u32> =
        (0..closed).map(|number| law.valid((f64::from(number) + shift) / f64::from(closed)) as u32).collect();
    // What rounding leaves over is spread over the blocks.
    let mut sum: u64 = valid.iter().map(|&units| u64::from(units)).sum();
    while sum != u64::from(units) {
        for block in &mut valid {
            if sum < u64::from(units) && *block < sizes.block_units {
                *block += 1;
                sum += 1;
            } else if sum > u64::from(units) && *block > 0 {
                *block -= 1;
                sum -= 1;
            }
        }
    }
    valid
}
