//! The blocks of a device: what each unit was programmed with, and whether that is still wanted.
//!
//! What a step looks at stands side by side, by block: a drive's mapping is far larger than any cache.

use crate::flash::placement::Handle;
use crate::flash::start::NOWHERE;

/// Blocks are counted through the dies.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    block_units: Divisor,
    /// Wanted units; with `NOT_CLOSED`, a block that cannot be collected.
    wanted: Vec<u32>,
    /// The die's count of closed blocks when this one was closed.
    closed_at: Vec<u32>,
    /// The handle whose data each holds.
    handles: Vec<Handle>,
    /// Which of the host's units each unit was programmed with; None: as at the start.
    units: Vec<Option<Box<[u32]>>>,
    /// A bit for each unit: what it was programmed with is no longer wanted.
    unwanted: Vec<u64>,
    /// Words of `unwanted` for each block.
    words: usize,
}

const NOT_CLOSED: u32 = 1 << 31;

impl Blocks {
    /// With so many wanted units each, none closed.
    pub(super) fn new(block_units: u32, wanted: impl Iterator<Item = u32>) -> Blocks {
        let wanted: Vec<u32> = wanted.map(|units| units | NOT_CLOSED).collect();
        let words = (block_units as usize).div_ceil(64);
        Blocks {
            block_units: Divisor::new(block_units),
            closed_at: vec![0; wanted.len()],
            handles: vec![0; wanted.len()],
            units: vec![None; wanted.len()],
            unwanted: vec![0; wanted.len() * words],
            words,
            wanted,
        }
    }

    /// The block of a place.
    #[inline]
    pub(super) fn of(&self, place: u32) -> u32 {
        self.block_units.quotient(place)
    }

    #[inline]
    pub(super) fn first_place(&self, block: u32) -> u32 {
        block * self.block_units.by
    }

    #[inline]
    pub(super) fn wanted(&self, block: u32) -> u32 {
        self.wanted[block as usize] & !NOT_CLOSED
    }

    #[inline]
    pub(super) fn closed_at(&self, block: u32) -> u32 {
        self.closed_at[block as usize]
    }

    #[inline]
    pub(super) fn handle(&self, block: u32) -> Handle {
        self.handles[block as usize]
    }

    pub(super) fn set_handle(&mut self, block: u32, handle: Handle) {
        self.handles[block as usize] = handle;
    }

    pub(super) fn close(&mut self, block: u32, closings: u32) {
        self.wanted[block as usize] &= !NOT_CLOSED;
        self.closed_at[block as usize] = closings;
    }

    /// It is being collected, and no victim for the next.
    pub(super) fn open(&mut self, block: u32) {
        self.wanted[block as usize] |= NOT_CLOSED;
    }

    /// The first of the closed ones with the fewest wanted units.
    pub(super) fn fewest_wanted(&self, blocks: std::ops::Range<u32>) -> Option<u32> {
        let all = &self.wanted[blocks.start as usize..blocks.end as usize];
        let fewest = *all.iter().min()?;
        let first = all.iter().position(|&units| units == fewest)?;
        (fewest < NOT_CLOSED).then_some(blocks.start + first as u32)
    }

    /// So many units of the block more are wanted.
    #[inline]
    pub(super) fn add(&mut self, block: u32, units: u32) {
        self.wanted[block as usize] += units;
    }

    #[inline]
    pub(super) fn is_wanted(&self, block: u32, place: u32) -> bool {
        let offset = place - self.first_place(block);
        self.unwanted[self.word(block, offset)] >> (offset % 64) & 1 == 0
    }

    /// What was programmed there is not wanted; it did not count as wanted.
    #[inline]
    pub(super) fn leave(&mut self, block: u32, place: u32) {
        let offset = place - self.first_place(block);
        let word = self.word(block, offset);
        self.unwanted[word] |= 1 << (offset % 64);
    }

    /// The same of what was wanted.
    #[inline]
    pub(super) fn forget(&mut self, block: u32, place: u32) {
        self.wanted[block as usize] -= 1;
        self.leave(block, place);
    }

    #[inline]
    fn word(&self, block: u32, offset: u32) -> usize {
        block as usize * self.words + offset as usize / 64
    }

    /// What the block's units are programmed with, from that offset on.
    pub(super) fn program(&mut self, block: u32, offset: u32, units: impl Iterator<Item = u32>) {
        let all = self.units[block as usize].get_or_insert_with(|| nothing(self.block_units.by));
        for (at, unit) in all[offset as usize..].iter_mut().zip(units) {
            *at = unit;
        }
    }

    /// What some units were programmed with; nothing of those that are as at the start.
    pub(super) fn units(&self, block: u32, offset: u32, count: u32) -> &[u32] {
        let Some(units) = &self.units[block as usize] else {
            return &[];
        };
        let end = (offset + count).min(self.block_units.by);
        &units[offset as usize..end as usize]
    }

    /// Appends the wanted units of a block from `offset` on with their places, at most `most`; returns where to
    /// continue.
    pub(super) fn wanted_units(
        &self,
        (block, offset): (u32, u32),
        at_start: impl Fn(u32) -> Option<(u32, u32)>,
        most: usize,
        found: &mut Vec<(u32, u32)>,
    ) -> u32 {
        let first = self.first_place(block);
        let mut at = offset;
        let units = &self.units[block as usize];
        while at < self.block_units.by && found.len() < most {
            let (place, unit) = match units {
                Some(units) => (at, units[at as usize]),
                None => match at_start(at) {
                    Some(next) => next,
                    None => return self.block_units.by,
                },
            };
            if unit != NOWHERE && self.is_wanted(block, first + place) {
                found.push((unit, first + place));
            }
            at = place + 1;
        }
        at
    }

    pub(super) fn erase(&mut self, block: u32) {
        debug_assert_eq!(self.wanted(block), 0);
        let first = self.word(block, 0);
        self.unwanted[first..first + self.words].fill(0);
        match &mut self.units[block as usize] {
            Some(units) => units.fill(NOWHERE),
            units => *units = Some(nothing(self.block_units.by)),
        }
    }

    /// Wanted units of some blocks, none of which has more than it holds.
    pub(super) fn sum(&self, blocks: std::ops::Range<u32>) -> Result<u64, &'static str> {
        let wanted = blocks.map(|block| self.wanted(block));
        match wanted.clone().any(|units| units > self.block_units.by) {
            true => Err("a block has more valid units than it holds"),
            false => Ok(wanted.map(u64::from).sum()),
        }
    }
}

fn nothing(units: u32) -> Box<[u32]> {
    vec![NOWHERE; units as usize].into()
}

/// Divides 32-bit numbers by a multiplication (Lemire, Kaser and Kurz, "Faster remainder by direct computation", 2019).
#[derive(Clone, Copy, Debug)]
struct Divisor {
    by: u32,
    inverse: u64,
}

impl Divisor {
    fn new(by: u32) -> Divisor {
        Divisor { by, inverse: (u64::MAX / u64::from(by)).wrapping_add(1) }
    }

    #[inline]
    fn quotient(self, number: u32) -> u32 {
        match self.by {
            1 => number,
            _ => ((u128::from(self.inverse) * u128::from(number)) >> 64) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_multiplication_divides(by in 1..=u32::MAX, number: u32) {
            prop_assert_eq!(Divisor::new(by).quotient(number), number / by);
            let multiple = number / by * by;
            prop_assert_eq!(Divisor::new(by).quotient(multiple), number / by);
            prop_assert_eq!(Divisor::new(by).quotient(multiple.saturating_sub(1)), multiple.saturating_sub(1) / by);
        }
    }
}
