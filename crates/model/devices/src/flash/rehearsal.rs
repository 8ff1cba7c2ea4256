//! A die without time: it programs and collects in turn, as `work` does, so that a long run costs little.

use crate::flash::mapping::{Kind, Mapping};
use crate::flash::placement::Handle;
use crate::flash::programmed::ProgrammedUnits;
use crate::flash::spec::Sizes;
use crate::flash::start::Start;

pub(super) struct Rehearsal {
    pub(super) sizes: Sizes,
    pub(super) mapping: Mapping,
    /// What waits until it is a page, by handle.
    waiting: Vec<Vec<u32>>,
    victim: Option<(u32, u32)>,
    pub(super) programmed: ProgrammedUnits,
    /// Free blocks at each program, summed.
    #[cfg(test)]
    free_sum: u64,
    #[cfg(test)]
    programs: u64,
}

const DIE: u32 = 0;

impl Rehearsal {
    pub(super) fn new(sizes: Sizes, start: Start) -> Rehearsal {
        Rehearsal {
            sizes,
            mapping: Mapping::new(sizes, start),
            waiting: vec![Vec::new(); sizes.handles as usize],
            victim: None,
            programmed: ProgrammedUnits::default(),
            #[cfg(test)]
            free_sum: 0,
            #[cfg(test)]
            programs: 0,
        }
    }

    pub(super) fn write(&mut self, unit: u32) {
        self.write_to(0, unit);
    }

    pub(super) fn write_to(&mut self, handle: Handle, unit: u32) {
        let waiting = &mut self.waiting[usize::from(handle)];
        waiting.push(unit);
        if waiting.len() < self.sizes.program_units as usize {
            return;
        }
        let units = std::mem::take(waiting);
        while !self.mapping.has_page(DIE, handle) {
            self.collect();
        }
        let at = self.mapping.take_page(DIE, Kind::Host(handle), units.iter().copied());
        // A unit that is written twice in a page is in the buffer's last slot for it.
        for (&unit, slot) in units.iter().zip(0..) {
            self.mapping.buffer(unit, slot);
        }
        self.mapping.programmed(units.iter().copied().zip(0..), at);
        self.programmed.host_units += units.len() as u64;
        #[cfg(test)]
        {
            self.free_sum += u64::from(self.mapping.free_blocks(DIE));
            self.programs += 1;
        }
        if self.victim.is_some() || self.mapping.free_blocks(DIE) <= self.sizes.collect_blocks {
            self.collect();
        }
    }

    #[cfg(test)]
    pub(super) fn write_at_random(&mut self, count: u64, seed: u64) {
        let mut draws = base::rng::stream(seed, 0);
        for _ in 0..count {
            self.write(draws.below(u64::from(self.sizes.units)) as u32);
        }
    }

    /// Since the start, or since this was asked last.
    pub(super) fn amplification(&mut self) -> f64 {
        let found = self.programmed.amplification().expect("something was written");
        self.programmed = ProgrammedUnits::default();
        found
    }

    /// The same of the mean number of free blocks.
    #[cfg(test)]
    pub(super) fn free_blocks(&mut self) -> f64 {
        let mean = self.free_sum as f64 / self.programs as f64;
        (self.free_sum, self.programs) = (0, 0);
        mean
    }

    fn collect(&mut self) {
        let (block, offset) = self.victim.unwrap_or_else(|| {
            let block = self.mapping.victim(DIE).expect("there is something to gain");
            self.mapping.collecting(DIE, block);
            (block, 0)
        });
        let mut units = Vec::new();
        let next = self.mapping.wanted(DIE, block, offset, &mut units);
        self.victim = Some((block, next));
        if units.is_empty() {
            self.victim = None;
            self.programmed.erased_blocks += 1;
            return self.mapping.erased(DIE, block);
        }
        let moved = units.iter().map(|&(unit, _)| unit);
        let to = Kind::Moved(self.mapping.moves_to(DIE, block));
        let at = self.mapping.take_page(DIE, to, moved);
        self.mapping.moved(&units, at);
        self.programmed.moved_units += units.len() as u64;
    }
}
