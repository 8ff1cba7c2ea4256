//! Where each of the host's units is, and which units of each block are still wanted.
//!
//! What was never written since the start costs no memory: a filled device's units lie in sequence, page by page round
//! the dies.

use std::collections::VecDeque;

use crate::flash::spec::Sizes;

#[derive(Clone, Debug)]
pub(super) struct Mapping {
    sizes: Sizes,
    filled: bool,
    /// By unit in pieces of `PIECE`, empty until one of its units is written; each place with all bits turned, so that
    /// 0, which fresh memory is, can mean: as at the start.
    places: Vec<Vec<u32>>,
    dies: Vec<DieSpace>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageLocation {
    Nowhere,
    /// A slot of the write buffer.
    Buffer(u32),
    /// A unit of the flash, counted through dies, blocks and pages.
    Flash(u32),
}

/// What of a die is free.
#[derive(Clone, Debug)]
struct DieSpace {
    blocks: Vec<Block>,
    free: VecDeque<u32>,
    /// Block and next page that the host's data go to, and those that collecting moves.
    open: [Option<(u32, u32)>; 2],
    wanted: u64,
}

#[derive(Clone, Debug)]
struct Block {
    wanted: u32,
    closed: bool,
    /// Which of the host's units each unit was programmed with; None: as at the start.
    units: Option<Box<[u32]>>,
}

/// Which data are programmed: they live differently long, and are kept in blocks of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Host,
    Moved,
}

/// Units whose places are kept together: so many that the allocator takes fresh memory for them, of which only what is
/// written costs any.
const PIECE: usize = 1 << 16;

const AS_AT_START: u32 = 0;

const NOWHERE: u32 = u32::MAX;
/// Discarded: nowhere either, but not as it was at the start.
const FORGOTTEN: u32 = NOWHERE - 1;
const IN_BUFFER: u32 = 1 << 31;

impl Mapping {
    pub(super) fn new(sizes: Sizes, filled: bool) -> Mapping {
        let mut mapping = Mapping {
            sizes,
            filled,
            places: vec![Vec::new(); (sizes.units as usize).div_ceil(PIECE)],
            dies: Vec::with_capacity(sizes.dies as usize),
        };
        for die in 0..sizes.dies {
            let mut space = DieSpace {
                blocks: Vec::with_capacity(sizes.blocks as usize),
                free: VecDeque::new(),
                open: [None; 2],
                wanted: 0,
            };
            for block in 0..sizes.blocks {
                let wanted = if filled {
                    mapping.filled_units(die, block)
                } else {
                    0
                };
                if wanted == 0 {
                    space.free.push_back(block);
                }
                space.wanted += u64::from(wanted);
                space.blocks.push(Block {
                    wanted,
                    closed: wanted > 0,
                    units: None,
                });
            }
            mapping.dies.push(space);
        }
        mapping
    }

    #[inline]
    pub(super) fn place(&self, unit: u32) -> PageLocation {
        let piece = &self.places[unit as usize / PIECE];
        let place = match piece.get(unit as usize % PIECE) {
            None | Some(&AS_AT_START) => self.place_at_start(unit),
            Some(turned) => !turned,
        };
        match place {
            NOWHERE | FORGOTTEN => PageLocation::Nowhere,
            place if place >= IN_BUFFER => PageLocation::Buffer(place - IN_BUFFER),
            place => PageLocation::Flash(place),
        }
    }

    /// The unit is in the buffer now: where it was is no longer wanted.
    pub(super) fn buffer(&mut self, unit: u32, slot: u32) {
        if let PageLocation::Flash(old) = self.place(unit) {
            self.unwanted(old);
        }
        self.set(unit, IN_BUFFER + slot);
    }

    /// The host wants the unit no longer, wherever it is.
    pub(super) fn forget(&mut self, unit: u32) {
        match self.place(unit) {
            PageLocation::Nowhere => return,
            PageLocation::Flash(old) => self.unwanted(old),
            PageLocation::Buffer(_) => {}
        }
        self.set(unit, FORGOTTEN);
    }

    fn unwanted(&mut self, place: u32) {
        let (die, block) = self.block_of(place);
        let space = &mut self.dies[die as usize];
        space.wanted -= 1;
        space.blocks[block as usize].wanted -= 1;
    }

    /// The unit has been programmed there, and is still wanted if it was still at `from`.
    pub(super) fn programmed(&mut self, unit: u32, from: PageLocation, at: u32) -> bool {
        if self.place(unit) != from {
            return false;
        }
        if let PageLocation::Flash(old) = from {
            self.unwanted(old);
        }
        self.set(unit, at);
        let (die, block) = self.block_of(at);
        let space = &mut self.dies[die as usize];
        space.wanted += 1;
        space.blocks[block as usize].wanted += 1;
        true
    }

    pub(super) fn die_of(&self, place: u32) -> u32 {
        place / (self.sizes.blocks * self.sizes.block_units)
    }

    pub(super) fn free_blocks(&self, die: u32) -> u32 {
        self.dies[die as usize].free.len() as u32
    }

    /// Whether the die can take a page of the host's without collecting first.
    pub(super) fn has_page(&self, die: u32) -> bool {
        self.dies[die as usize].open[Kind::Host as usize].is_some()
            || self.free_blocks(die) > self.sizes.collect_only_blocks
    }

    /// Whether this much more that is wanted leaves the die something to collect.
    pub(super) fn has_space(&self, die: u32, more: u32) -> bool {
        self.dies[die as usize].wanted + u64::from(more) <= u64::from(self.sizes.die_units_max)
    }

    /// The next page of all planes of the die: the place of its first unit. `units` is what it is programmed with.
    pub(super) fn take_page(
        &mut self,
        die: u32,
        kind: Kind,
        units: impl Iterator<Item = u32>,
    ) -> u32 {
        let sizes = self.sizes;
        let space = &mut self.dies[die as usize];
        let (block, page) = space.open[kind as usize].take().unwrap_or_else(|| {
            let block = space
                .free
                .pop_front()
                .expect("collecting keeps blocks free");
            (block, 0)
        });
        let held = &mut space.blocks[block as usize];
        let all = held
            .units
            .get_or_insert_with(|| vec![NOWHERE; sizes.block_units as usize].into());
        for (at, unit) in (page * sizes.program_units..).zip(units) {
            all[at as usize] = unit;
        }
        if page + 1 < sizes.pages {
            space.open[kind as usize] = Some((block, page + 1));
        } else {
            held.closed = true;
        }
        (die * sizes.blocks + block) * sizes.block_units + page * sizes.program_units
    }

    /// The block that costs least to collect, if that gains anything.
    pub(super) fn victim(&self, die: u32) -> Option<u32> {
        let blocks = &self.dies[die as usize].blocks;
        (0..self.sizes.blocks)
            .filter(|&block| blocks[block as usize].closed)
            .min_by_key(|&block| blocks[block as usize].wanted)
            .filter(|&block| {
                blocks[block as usize].wanted + self.sizes.program_units <= self.sizes.block_units
            })
    }

    /// Wanted units of a block from `offset` on, with their places, at most a page of all planes; and where to
    /// continue.
    pub(super) fn wanted(
        &self,
        die: u32,
        block: u32,
        offset: u32,
        found: &mut Vec<(u32, u32)>,
    ) -> u32 {
        let first = (die * self.sizes.blocks + block) * self.sizes.block_units;
        let held = &self.dies[die as usize].blocks[block as usize];
        let mut at = offset;
        while at < self.sizes.block_units && found.len() < self.sizes.program_units as usize {
            let unit = match &held.units {
                Some(units) => units[at as usize],
                None => self.unit_at_start(die, block, at),
            };
            if unit != NOWHERE && self.place(unit) == PageLocation::Flash(first + at) {
                found.push((unit, first + at));
            }
            at += 1;
        }
        at
    }

    pub(super) fn erased(&mut self, die: u32, block: u32) {
        let space = &mut self.dies[die as usize];
        let held = &mut space.blocks[block as usize];
        debug_assert_eq!(held.wanted, 0);
        held.closed = false;
        if let Some(units) = &mut held.units {
            units.fill(NOWHERE);
        } else {
            held.units = Some(vec![NOWHERE; self.sizes.block_units as usize].into());
        }
        space.free.push_back(block);
    }

    /// A block that is being collected is no victim for the next.
    pub(super) fn collecting(&mut self, die: u32, block: u32) {
        self.dies[die as usize].blocks[block as usize].closed = false;
    }

    fn set(&mut self, unit: u32, place: u32) {
        let piece = &mut self.places[unit as usize / PIECE];
        if piece.is_empty() {
            *piece = vec![AS_AT_START; PIECE];
        }
        piece[unit as usize % PIECE] = !place;
    }

    fn block_of(&self, place: u32) -> (u32, u32) {
        let block = place / self.sizes.block_units;
        (block / self.sizes.blocks, block % self.sizes.blocks)
    }

    fn place_at_start(&self, unit: u32) -> u32 {
        if !self.filled {
            return NOWHERE;
        }
        let page = unit / self.sizes.program_units;
        let (die, of_die) = (page % self.sizes.dies, page / self.sizes.dies);
        let first = die * self.sizes.blocks * self.sizes.block_units;
        first + of_die * self.sizes.program_units + unit % self.sizes.program_units
    }

    fn unit_at_start(&self, die: u32, block: u32, offset: u32) -> u32 {
        let of_die = u64::from(block) * u64::from(self.sizes.pages)
            + u64::from(offset / self.sizes.program_units);
        let page = of_die * u64::from(self.sizes.dies) + u64::from(die);
        let unit = page * u64::from(self.sizes.program_units)
            + u64::from(offset % self.sizes.program_units);
        if self.filled && unit < u64::from(self.sizes.units) {
            unit as u32
        } else {
            NOWHERE
        }
    }

    /// How many of the host's units a block holds at the start.
    fn filled_units(&self, die: u32, block: u32) -> u32 {
        if self.unit_at_start(die, block, self.sizes.block_units - 1) != NOWHERE {
            return self.sizes.block_units;
        }
        // Units of a block rise with the offset: the first that is beyond the end ends them all.
        (0..self.sizes.pages)
            .map(|page| {
                let first = page * self.sizes.program_units;
                (first..first + self.sizes.program_units)
                    .take_while(|&offset| self.unit_at_start(die, block, offset) != NOWHERE)
                    .count() as u32
            })
            .take_while(|&units| units > 0)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_device_has_each_unit_where_its_block_says() {
        let sizes = Sizes {
            dies: 3,
            blocks: 10,
            pages: 4,
            page_units: 2,
            program_units: 4,
            block_units: 16,
            units: 301,
            collect_blocks: 3,
            collect_only_blocks: 2,
            die_units_max: 160,
        };
        let mapping = Mapping::new(sizes, true);
        let mut found = 0;
        for die in 0..3 {
            for block in 0..10 {
                let (mut all, mut offset) = (0, 0);
                while offset < 16 {
                    let mut units = Vec::new();
                    offset = mapping.wanted(die, block, offset, &mut units);
                    all += units.len() as u32;
                    assert!(
                        units
                            .iter()
                            .all(|&(unit, place)| mapping.place(unit) == PageLocation::Flash(place))
                    );
                }
                assert_eq!(
                    all,
                    mapping.dies[die as usize].blocks[block as usize].wanted
                );
                found += all;
            }
        }
        assert_eq!(found, 301);
    }
}
