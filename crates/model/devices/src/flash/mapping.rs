//! Where each of the host's units is, and which units of each block are still wanted.
//!
//! What was never written since the start costs no memory: `Start` computes where it is.

use std::collections::VecDeque;

use crate::flash::blocks::Blocks;
use crate::flash::collector::Candidate;
use crate::flash::placement::Handle;
use crate::flash::space::FlashSpace;
use crate::flash::spec::Sizes;
use crate::flash::start::{NOWHERE, Start};
use events::station::Violation;

#[derive(Clone, Debug)]
pub(super) struct Mapping {
    sizes: Sizes,
    start: Start,
    /// By unit in pieces of `PIECE`, empty until one of its units is written; each place with all bits turned, so that
    /// 0, which fresh memory is, can mean: as at the start.
    places: Vec<Vec<u32>>,
    blocks: Blocks,
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
    free: VecDeque<u32>,
    /// Blocks that can be collected, the one that was closed first before the others.
    closed: VecDeque<u32>,
    /// Blocks closed since the start.
    closings: u32,
    /// Of the pseudo-SLC cache: free blocks, and full ones in their order.
    slc_free: VecDeque<u32>,
    slc_full: VecDeque<u32>,
    /// Block and next page that the data of each kind go to, by `Sizes::number_of`.
    open: Vec<Option<(u32, u32)>>,
    wanted: u64,
}

/// Which data are programmed: they live differently long, and are kept in blocks of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Host(Handle),
    Moved(Handle),
    /// The host's, in the pseudo-SLC cache.
    Slc,
}

impl Kind {
    fn handle(self) -> Handle {
        match self {
            Kind::Host(handle) | Kind::Moved(handle) => handle,
            Kind::Slc => 0,
        }
    }
}

impl Sizes {
    /// Of an open block of a die.
    fn number_of(&self, kind: Kind) -> usize {
        match kind {
            Kind::Host(handle) => usize::from(handle),
            Kind::Moved(handle) => self.handles as usize + usize::from(handle),
            Kind::Slc => (self.handles + self.moved_handles) as usize,
        }
    }
}

/// Units whose places are kept together: so many that the allocator takes fresh memory for them, of which only what is
/// written costs any.
const PIECE: usize = 1 << 16;

/// Units of a block whose places are read together.
const AHEAD: u32 = 16;

const AS_AT_START: u32 = 0;

/// Discarded: nowhere either, but not as it was at the start.
const FORGOTTEN: u32 = NOWHERE - 1;
const IN_BUFFER: u32 = 1 << 31;

impl Mapping {
    pub(super) fn new(sizes: Sizes, start: Start) -> Mapping {
        let valid = (0..sizes.dies)
            .flat_map(|die| (0..sizes.blocks).map(move |block| (die, block)))
            .map(|(die, block)| start.valid(&sizes, die, block));
        let mut blocks = Blocks::new(sizes.block_units, valid);
        let dies = (0..sizes.dies).map(|die| DieSpace::new(&sizes, &start, die, &mut blocks));
        Mapping {
            sizes,
            places: vec![Vec::new(); (sizes.units as usize).div_ceil(PIECE)],
            dies: dies.collect(),
            blocks,
            start,
        }
    }

    #[inline]
    pub(super) fn place(&self, unit: u32) -> PageLocation {
        let place = match self.turned(unit) {
            AS_AT_START => self.start.place(&self.sizes, unit),
            turned => !turned,
        };
        match place {
            NOWHERE | FORGOTTEN => PageLocation::Nowhere,
            place if place >= IN_BUFFER => PageLocation::Buffer(place - IN_BUFFER),
            place => PageLocation::Flash(place),
        }
    }

    #[inline]
    fn turned(&self, unit: u32) -> u32 {
        let piece = &self.places[unit as usize / PIECE];
        piece.get(unit as usize % PIECE).copied().unwrap_or(AS_AT_START)
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

    #[inline]
    fn unwanted(&mut self, place: u32) {
        let block = self.blocks.of(place);
        self.blocks.forget(block, place);
        self.dies[(block / self.sizes.blocks) as usize].wanted -= 1;
    }

    /// Units of the buffer's slots have been programmed side by side from `at` on. Those are still wanted that were not
    /// written anew.
    pub(super) fn programmed(&mut self, units: impl Iterator<Item = (u32, u32)>, at: u32) {
        let block = self.blocks.of(at);
        let mut wanted = 0;
        for ((unit, slot), place) in units.zip(at..) {
            if self.turned(unit) == !(IN_BUFFER + slot) {
                self.set(unit, place);
                wanted += 1;
            } else {
                self.blocks.leave(block, place);
            }
        }
        self.blocks.add(block, wanted);
        self.dies[(block / self.sizes.blocks) as usize].wanted += u64::from(wanted);
    }

    /// The same of units that stood in one block of the same die, each with where.
    pub(super) fn moved(&mut self, units: &[(u32, u32)], at: u32) {
        let Some(&(_, first)) = units.first() else {
            return;
        };
        let (from, to) = (self.blocks.of(first), self.blocks.of(at));
        let mut wanted = 0;
        for (&(unit, old), place) in units.iter().zip(at..) {
            if self.blocks.is_wanted(from, old) {
                self.blocks.forget(from, old);
                self.set(unit, place);
                wanted += 1;
            } else {
                self.blocks.leave(to, place);
            }
        }
        self.blocks.add(to, wanted);
    }

    pub(super) fn die_of(&self, place: u32) -> u32 {
        place / (self.sizes.blocks * self.sizes.block_units)
    }

    pub(super) fn free_blocks(&self, die: u32) -> u32 {
        self.dies[die as usize].free.len() as u32
    }

    /// Whether the die can take a page of the host's without collecting first.
    pub(super) fn has_page(&self, die: u32, handle: Handle) -> bool {
        self.dies[die as usize].open[self.sizes.number_of(Kind::Host(handle))].is_some()
            || self.free_blocks(die) > self.sizes.collect_only_blocks
    }

    /// Whether this much more that is wanted leaves the die something to collect.
    pub(super) fn has_space(&self, die: u32, more: u32) -> bool {
        self.dies[die as usize].wanted + u64::from(more) <= u64::from(self.sizes.die_units_max)
    }

    /// The next page of all planes of the die: the place of its first unit. `units` is what it is programmed with.
    pub(super) fn take_page(&mut self, die: u32, kind: Kind, units: impl Iterator<Item = u32>) -> u32 {
        let sizes = self.sizes;
        let open = sizes.number_of(kind);
        let space = &mut self.dies[die as usize];
        let (block, page) = space.open[open].take().unwrap_or_else(|| {
            let free = match kind {
                Kind::Slc => &mut space.slc_free,
                Kind::Host(_) | Kind::Moved(_) => &mut space.free,
            };
            let block = free.pop_front().expect("collecting keeps blocks free");
            (block, 0)
        });
        let of_device = die * sizes.blocks + block;
        self.blocks.set_handle(of_device, kind.handle());
        let offset = page * sizes.program_units;
        self.blocks.program(of_device, offset, units);
        let pages = match kind {
            Kind::Slc => sizes.slc_pages,
            Kind::Host(_) | Kind::Moved(_) => sizes.pages,
        };
        if page + 1 < pages {
            space.open[open] = Some((block, page + 1));
        } else if kind == Kind::Slc {
            space.slc_full.push_back(block);
        } else {
            space.closings = space.closings.wrapping_add(1);
            space.closed.push_back(block);
            self.blocks.close(of_device, space.closings);
        }
        self.blocks.first_place(of_device) + offset
    }

    /// The block that the collector chooses, if that gains anything.
    pub(super) fn victim(&self, die: u32) -> Option<u32> {
        let sizes = &self.sizes;
        let space = &self.dies[die as usize];
        let first = die * sizes.blocks;
        let candidate = |block: u32| Candidate {
            block,
            valid: self.blocks.wanted(first + block),
            age: space.closings.wrapping_sub(self.blocks.closed_at(first + block)),
        };
        let closed = space.closed.iter().map(|&block| candidate(block));
        let fewest = || {
            let found = self.blocks.fewest_wanted(first..first + sizes.blocks);
            found.map(|block| candidate(block - first))
        };
        let gains = |candidate: &Candidate| candidate.valid + sizes.program_units <= sizes.block_units;
        let window = sizes.window_blocks as usize;
        sizes.collector.choose(window, sizes.block_units, closed, fewest, gains)
    }

    /// Wanted units of a block from `offset` on, with their places, at most a page of all planes; and where to
    /// continue.
    pub(super) fn wanted(&self, die: u32, block: u32, offset: u32, found: &mut Vec<(u32, u32)>) -> u32 {
        let most = self.sizes.program_units as usize;
        let at_start = |at| self.start.unit_from(&self.sizes, die, block, at);
        let block = die * self.sizes.blocks + block;
        let next = self.blocks.wanted_units((block, offset), at_start, most, found);
        if offset == 0 || offset / AHEAD != next / AHEAD {
            self.touch(self.blocks.units(block, next, AHEAD - next % AHEAD));
        }
        next
    }

    /// Reads the places of units that will be written soon. They are all over the drive: memory answers several reads at
    /// a time, and writes one after the other.
    #[inline]
    fn touch(&self, units: &[u32]) {
        for &unit in units.iter().filter(|&&unit| unit != NOWHERE) {
            std::hint::black_box(self.turned(unit));
        }
    }

    /// Age and wanted units of each block that can be collected, the one that was closed first before the others.
    pub(super) fn closed_units(&self, die: u32) -> impl Iterator<Item = (u32, Vec<u32>)> {
        let space = &self.dies[die as usize];
        space.closed.iter().map(move |&block| {
            let closed_at = self.blocks.closed_at(die * self.sizes.blocks + block);
            let (mut offset, mut found) = (0, Vec::new());
            let mut all = Vec::new();
            while offset < self.sizes.block_units {
                offset = self.wanted(die, block, offset, &mut found);
                all.extend(found.drain(..).map(|(unit, _)| unit));
            }
            (space.closings.wrapping_sub(closed_at), all)
        })
    }

    /// The handle whose open block takes what is moved out of this one.
    pub(super) fn moves_to(&self, die: u32, block: u32) -> Handle {
        match self.sizes.moved_handles {
            1 => 0,
            _ => self.blocks.handle(die * self.sizes.blocks + block),
        }
    }

    pub(super) fn erased(&mut self, die: u32, block: u32) {
        self.blocks.erase(die * self.sizes.blocks + block);
        let space = &mut self.dies[die as usize];
        match block < self.sizes.main_blocks {
            true => space.free.push_back(block),
            false => space.slc_free.push_back(block),
        }
    }

    /// Of all dies. A block of the cache that is being emptied counts as programmed until it is erased.
    pub(super) fn space(&self) -> FlashSpace {
        let sizes = &self.sizes;
        let slc_blocks = u64::from(sizes.blocks - sizes.main_blocks);
        let slc_pages = u64::from(sizes.slc_pages);
        self.dies
            .iter()
            .map(|space| {
                let unwritten = match space.open[sizes.number_of(Kind::Slc)] {
                    Some((_, page)) => slc_pages - u64::from(page),
                    None => 0,
                };
                let erased = space.slc_free.len() as u64 * slc_pages + unwritten;
                FlashSpace {
                    blocks: u64::from(sizes.main_blocks),
                    free_blocks: space.free.len() as u64,
                    slc_pages: slc_blocks * slc_pages,
                    slc_programmed_pages: slc_blocks * slc_pages - erased,
                    millicelsius: None,
                }
            })
            .fold(FlashSpace::default(), |sum, one| sum + one)
    }

    /// Whether the pseudo-SLC cache of the die takes a page.
    pub(super) fn slc_has_page(&self, die: u32) -> bool {
        let space = &self.dies[die as usize];
        space.open[self.sizes.number_of(Kind::Slc)].is_some() || !space.slc_free.is_empty()
    }

    /// Whether a full block of the cache can be moved: its data take a new block at most.
    pub(super) fn can_fold(&self, die: u32) -> bool {
        !self.dies[die as usize].slc_full.is_empty() && self.free_blocks(die) > self.sizes.collect_blocks
    }

    /// The block of the cache that was filled first.
    pub(super) fn take_full_slc(&mut self, die: u32) -> Option<u32> {
        self.dies[die as usize].slc_full.pop_front()
    }

    /// A block that is being collected is no victim for the next.
    pub(super) fn collecting(&mut self, die: u32, block: u32) {
        let closed = &mut self.dies[die as usize].closed;
        if let Some(at) = closed.iter().position(|&other| other == block) {
            closed.remove(at);
        }
        self.blocks.open(die * self.sizes.blocks + block);
    }

    fn set(&mut self, unit: u32, place: u32) {
        let piece = &mut self.places[unit as usize / PIECE];
        if piece.is_empty() {
            *piece = vec![AS_AT_START; PIECE];
        }
        piece[unit as usize % PIECE] = !place;
    }

    /// No block has more valid units than it holds, each die's sum is right, and no die is without a free block.
    pub(super) fn check(&self) -> Result<(), Violation> {
        for (number, space) in (0..).zip(&self.dies) {
            let first = number * self.sizes.blocks;
            let sum = self.blocks.sum(first..first + self.sizes.blocks);
            let is_free_and_valid = |&block: &u32| self.blocks.wanted(first + block) > 0;
            let what = if let Err(what) = sum {
                what
            } else if sum != Ok(space.wanted) {
                "the valid units of the blocks are not those of the die"
            } else if space.free.iter().any(is_free_and_valid) {
                "a free block has valid units"
            } else if space.free.is_empty() {
                "no block is free"
            } else {
                continue;
            };
            return Err(Violation { station: format!("flash, die {number}"), what: what.to_owned() });
        }
        Ok(())
    }
}

impl DieSpace {
    fn new(sizes: &Sizes, start: &Start, die: u32, blocks: &mut Blocks) -> DieSpace {
        let first = die * sizes.blocks;
        let closed = start.closed(sizes, die);
        let mut is_closed = vec![false; sizes.blocks as usize];
        let closings = closed.first().map_or(0, |&(_, age)| age + 1);
        for &(block, age) in &closed {
            blocks.close(first + block, closings - age);
            is_closed[block as usize] = true;
        }
        DieSpace {
            wanted: (first..first + sizes.blocks).map(|block| u64::from(blocks.wanted(block))).sum(),
            slc_free: (sizes.main_blocks..sizes.blocks).collect(),
            slc_full: VecDeque::new(),
            free: (0..sizes.main_blocks).filter(|&block| !is_closed[block as usize]).collect(),
            closings,
            closed: closed.into_iter().map(|(block, _)| block).collect(),
            open: vec![None; sizes.number_of(Kind::Slc) + 1],
        }
    }
}

#[cfg(test)]
mod tests;
