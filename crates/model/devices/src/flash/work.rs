//! What a die does, one thing after the other: page reads, programs, collecting, erasing.

use crate::flash::die::{Page, Work};
use crate::flash::event_order::DieWork;
use crate::flash::mapping::Kind;
use crate::flash::thermal::DieHeat;
use crate::flash::{Event, Flash};
use events::time::Time;

/// What a die may do next.
enum DieStep {
    Read,
    Resume,
    Program,
    /// Block, and how far it is emptied.
    Collect((u32, u32)),
    /// Collect a block of the pseudo-SLC cache.
    Fold,
    Nothing,
}

impl Flash {
    /// Gives an idle die something to do.
    pub(super) fn start(&mut self, now: Time, die: u32) {
        if self.dies[die as usize].work.is_some() {
            return;
        }
        match self.next_of(now, die) {
            DieStep::Read => {
                let die_state = &mut self.dies[die as usize];
                if let Some(read) = die_state.reads.pop_front() {
                    self.reads_waiting -= 1;
                    let read_ns = self.spec.timing.page_read_ns;
                    let ends_at = now + self.stretch(now, DieHeat::Reads(1), read_ns);
                    self.work(die, Work::Sense(read), ends_at);
                }
            }
            DieStep::Resume => {
                if let Some((work, left_ns)) = self.dies[die as usize].suspended.take() {
                    self.work(die, work, now + left_ns);
                }
            }
            DieStep::Program => self.program(now, die),
            DieStep::Collect(victim) => self.collect(now, die, victim),
            DieStep::Fold => self.fold(now, die),
            DieStep::Nothing => {}
        }
    }

    /// A read has come: what takes long is interrupted for it, if the die can.
    pub(super) fn suspend(&mut self, now: Time, die: u32) {
        let Some(suspend) = self.spec.timing.suspend else {
            return;
        };
        let state = &mut self.dies[die as usize];
        let after_ns = match &state.work {
            Some(Work::Program { .. } | Work::Move { .. }) => suspend.program_ns,
            Some(Work::Erase { .. }) => suspend.erase_ns,
            _ => return,
        };
        let left_ns = state.ends_at - now;
        if state.suspended.is_some() || left_ns <= after_ns {
            return;
        }
        if let Some(work) = state.work.take() {
            state.suspended = Some((work, left_ns));
            self.work(die, Work::Suspend, now + after_ns);
        }
    }

    /// A die's work has ended.
    pub(super) fn done(&mut self, now: Time, DieWork { die, work: number }: DieWork) {
        let state = &mut self.dies[die as usize];
        if state.number != number {
            return;
        }
        match state.work.take() {
            Some(Work::Sense(read)) => {
                let sectors = u64::from(read.units) * self.unit_sectors;
                let at = self.channel(die).carry(now, sectors);
                if !self.spec.timing.has_cache_register() {
                    return self.work(die, Work::Transfer(read), at);
                }
                self.events.put(at, Event::Transferred(read.command));
                let free_at = &mut self.dies[die as usize].register_free_at;
                let held_until = std::mem::replace(free_at, at);
                if held_until > now {
                    return self.work(die, Work::Hold, held_until);
                }
            }
            Some(Work::Transfer(read)) => self.part_done(now, read.command),
            Some(Work::Program { at }) => self.programmed(now, die, at),
            Some(Work::Move { at }) => {
                self.mapping.moved(&state.moving, at);
                self.written.moved_units += state.moving.len() as u64;
            }
            Some(Work::Erase { block }) => {
                state.victim = None;
                self.mapping.erased(die, block);
                self.written.erased_blocks += 1;
            }
            Some(Work::Hold | Work::Suspend) | None => {}
        }
        self.start(now, die);
        self.drain(now);
    }

    fn next_of(&self, now: Time, die: u32) -> DieStep {
        let state = &self.dies[die as usize];
        let read_since = state.reads.front().map(|read| read.since);
        let program_since = state.program.as_ref().map(|page| page.since);
        let read_first = self.spec.firmware.read_first
            || state.suspended.is_some()
            || program_since.is_none_or(|program| read_since.is_some_and(|read| read <= program));
        if read_since.is_some() && read_first {
            return DieStep::Read;
        }
        if state.suspended.is_some() {
            return DieStep::Resume;
        }
        let programs = state
            .program
            .as_ref()
            .is_some_and(|page| self.mapping.has_page(die, page.handle) || self.mapping.slc_has_page(die));
        if programs && state.collected_last {
            return DieStep::Program;
        }
        let victim = state.victim.or_else(|| {
            let collects = self.mapping.free_blocks(die) <= self.sizes.collect_blocks;
            let chosen = collects.then(|| self.mapping.victim(die)).flatten();
            chosen.map(|block| (block, 0))
        });
        match victim {
            Some(victim) => DieStep::Collect(victim),
            None if programs => DieStep::Program,
            None if read_since.is_some() => DieStep::Read,
            None if self.is_idle(now) && self.mapping.can_fold(die) => DieStep::Fold,
            None => DieStep::Nothing,
        }
    }

    fn program(&mut self, now: Time, die: u32) {
        let Some(Page { handle, slots, .. }) = self.dies[die as usize].program.take() else {
            return;
        };
        self.dies_taken -= 1;
        let buffer = &self.buffer;
        let units = slots.iter().map(|&slot| buffer.unit(slot));
        let timing = self.spec.timing;
        let (kind, program_ns) = match self.spec.slc {
            Some(slc) if self.mapping.slc_has_page(die) => (Kind::Slc, slc.page_program_ns),
            _ => (Kind::Host(handle), timing.page_program_ns),
        };
        let at = self.mapping.take_page(die, kind, units);
        let sectors = slots.len() as u64 * self.unit_sectors;
        let there_at = match timing.has_cache_register() {
            true => now.max(self.dies[die as usize].loaded_at),
            false => self.channel(die).carry(now, sectors),
        };
        let state = &mut self.dies[die as usize];
        state.programming = slots;
        state.collected_last = false;
        let ends_at = there_at + self.stretch(now, DieHeat::Program, program_ns);
        self.work(die, Work::Program { at }, ends_at);
    }

    fn programmed(&mut self, now: Time, die: u32, at: u32) {
        let slots = std::mem::take(&mut self.dies[die as usize].programming);
        let mut commands = Vec::new();
        let buffer = &self.buffer;
        let units = slots.iter().map(|&slot| (buffer.unit(slot), slot));
        self.mapping.programmed(units, at);
        for &slot in &slots {
            self.buffer.programmed(slot, &mut commands);
        }
        self.written.host_units += slots.len() as u64;
        self.flushed(now, slots.len() as u32);
        self.buffer.keep_list(slots);
        for command in commands {
            self.part_done(now, command);
        }
        self.admit(now);
    }

    /// So much of the buffer is programmed.
    fn flushed(&mut self, now: Time, units: u32) {
        let Some(flush) = &mut self.host_flush else {
            return;
        };
        flush.units_left = flush.units_left.saturating_sub(units);
        if flush.units_left == 0 || self.buffer.held() == 0 {
            let at = now.max(flush.processed_at);
            self.events.put(at, Event::Ended(flush.tag));
            self.host_flush = None;
        }
    }

    /// One step: moves a page's worth of what is still wanted, or erases the block when nothing is.
    fn collect(&mut self, now: Time, die: u32, (block, offset): (u32, u32)) {
        let timing = self.spec.timing;
        let state = &mut self.dies[die as usize];
        if state.victim.is_none() {
            self.mapping.collecting(die, block);
        }
        let units = &mut state.moving;
        units.clear();
        let next = self.mapping.wanted(die, block, offset, units);
        state.victim = Some((block, next));
        state.collected_last = true;
        if units.is_empty() {
            let ends_at = now + self.stretch(now, DieHeat::Erase, timing.block_erase_ns);
            return self.work(die, Work::Erase { block }, ends_at);
        }
        let page = |&(_, place): &(u32, u32)| place / self.sizes.page_units;
        let pages = 1 + units.windows(2).filter(|pair| page(&pair[0]) != page(&pair[1])).count() as u64;
        let to = Kind::Moved(self.mapping.moves_to(die, block));
        let at = self.mapping.take_page(die, to, units.iter().map(|&(unit, _)| unit));
        // Out to the controller, which checks them, and in again.
        let sectors = 2 * units.len() as u64 * self.unit_sectors;
        let reads = DieHeat::Reads(pages as u32);
        let read_at = now + self.stretch(now, reads, pages * timing.page_read_ns);
        let there_at = self.channel(die).carry(now, sectors).max(read_at);
        let ends_at = there_at + self.stretch(now, DieHeat::Program, timing.page_program_ns);
        self.work(die, Work::Move { at }, ends_at);
    }

    /// The cache's oldest block is emptied as one that is collected.
    fn fold(&mut self, now: Time, die: u32) {
        if let Some(block) = self.mapping.take_full_slc(die) {
            self.dies[die as usize].victim = Some((block, 0));
            self.collect(now, die, (block, 0));
        }
    }

    /// Whether the pseudo-SLC cache may be emptied.
    fn is_idle(&self, now: Time) -> bool {
        self.spec.slc.is_some_and(|slc| now >= self.written_at + slc.idle_ns)
    }

    pub(super) fn plan_idle(&mut self, now: Time) {
        if let (Some(slc), false) = (self.spec.slc, self.idle_planned) {
            self.idle_planned = true;
            self.events.put(now + slc.idle_ns, Event::Idle);
        }
    }

    pub(super) fn look_whether_idle(&mut self, now: Time) {
        self.idle_planned = false;
        if !self.is_idle(now) {
            return self.plan_idle(self.written_at);
        }
        for die in 0..self.sizes.dies {
            self.start(now, die);
        }
    }

    fn work(&mut self, die: u32, work: Work, ends_at: Time) {
        let state = &mut self.dies[die as usize];
        let is_inner = work.is_inner();
        state.work = Some(work);
        state.ends_at = ends_at;
        state.number = state.number.wrapping_add(1);
        let done = DieWork { die, work: state.number };
        match is_inner {
            true => self.events.put_inner(ends_at, done),
            false => self.events.put(ends_at, Event::Done(done)),
        }
    }

    /// How long a die's work takes on a device that it warms.
    fn stretch(&mut self, now: Time, what: DieHeat, work_ns: Time) -> Time {
        match &mut self.heat {
            Some(heat) => heat.stretch(now, what, work_ns),
            None => work_ns,
        }
    }

    /// Dies are numbered so that neighbours are on different channels.
    pub(super) fn channel(&mut self, die: u32) -> &mut crate::server::Link {
        let channels = self.channels.len();
        &mut self.channels[die as usize % channels]
    }
}
