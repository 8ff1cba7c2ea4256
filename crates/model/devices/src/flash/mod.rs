//! A flash device: dies that read, program and erase, channels that they share, a write buffer before them, and a
//! mapping that has to be collected. How much is written twice comes out of that.
//!
//! Each die does one thing at a time. Parameters as in MQSim's configuration; the order of things in a die, and the
//! greedy choice of what to collect, are inferred (docs/model/flash.md).

mod arrangement;
mod blocks;
mod buffer;
mod coalesce;
mod collector;
mod die;
mod event_order;
mod mapping;
mod placement;
mod programmed;
mod rehearsal;
mod scatter;
mod skew;
mod skew_law;
mod skewed;
mod small_die;
mod space;
mod spec;
mod start;
mod steady_law;
mod thermal;

use std::collections::VecDeque;

use crate::commands_inside::{CommandId, CommandsInside};
use crate::server::{Link, Servers};
use crate::{Command, Completion, Device};
use block_layer::{Direction, SECTOR_BYTES, Sector};
use buffer::Buffer;
pub use coalesce::Coalesce;
use coalesce::{HeldCompletions, Interrupt};
pub use collector::Collector;
use die::{Die, Page, Read};
use event_order::{DieWork, FlashEvents};
use events::SpecError;
use events::station::Violation;
use events::time::Time;
use mapping::{Mapping, PageLocation};
use placement::handle_of;
pub use placement::{Isolation, Placement};
pub use programmed::ProgrammedUnits;
use skew::Skew;
pub use skew::SkewSpec;
use small_die::Order;
pub use space::FlashSpace;
use spec::Sizes;
pub use spec::{Firmware, FlashSpec, Geometry, Interface, SlcCache, SteadyPattern, Suspend, Timing, WriteStall};
use start::{Start, Strides};
use thermal::Heat;
pub use thermal::Thermal;

/// An SSD: interface, firmware, write buffer, mapping, channels and dies.
#[derive(Clone, Debug)]
pub struct Flash {
    spec: FlashSpec,
    sizes: Sizes,
    unit_sectors: u64,
    events: FlashEvents<Event>,
    inside: CommandsInside,
    cores: Servers,
    /// Since the last stall.
    writes: u32,
    link_in: Link,
    /// None: the same as `link_in`.
    link_out: Option<Link>,
    buffer: Buffer,
    /// Writes that wait for room in the buffer.
    for_room: VecDeque<CommandId>,
    written_at: Time,
    flush_planned: bool,
    /// When to look whether nothing was written for long enough to empty the pseudo-SLC cache.
    idle_planned: bool,
    host_flush: Option<HostFlush>,
    mapping: Mapping,
    dies: Vec<Die>,
    /// Dies that have a page waiting, and take no other.
    dies_taken: u32,
    /// Page reads that no die has begun.
    reads_waiting: u32,
    channels: Vec<Link>,
    heat: Option<Heat>,
    /// Where the next page of the buffer goes, if that die can take it.
    next_die: u32,
    written: ProgrammedUnits,
    /// Completions that the host has not received yet.
    held: HeldCompletions<InnerCompletion>,
}

/// What has ended inside.
#[derive(Clone, Copy, Debug)]
enum InnerCompletion {
    Command(CommandId),
    /// A flush or a discard.
    WithoutData(u32),
}

#[derive(Clone, Copy, Debug)]
struct HostFlush {
    tag: u32,
    /// Units that were in the buffer when it came and are not programmed yet.
    units_left: u32,
    /// When the firmware is done with the command itself.
    processed_at: Time,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Look(CommandId),
    /// The die is done with what it does, if that is still the same.
    Done(DieWork),
    /// A page read for the command has crossed the channel from a die's second register.
    Transferred(CommandId),
    Complete(CommandId),
    Flush,
    /// The device may have been idle for long enough.
    Idle,
    /// All that was in the buffer when the host asked for it is programmed, or what the host discards is forgotten.
    Ended(u32),
    /// What has completed has waited long enough for more.
    Interrupt(u32),
}

impl From<DieWork> for Event {
    fn from(work: DieWork) -> Event {
        Event::Done(work)
    }
}

/// What a device holds at first whose specification has passed `check`.
fn start_of(sizes: &Sizes, spec: &FlashSpec) -> Start {
    let firmware = &spec.firmware;
    let block_units = firmware.steady_block_bytes.unwrap_or(0) / firmware.unit_bytes;
    let even = Skew::Ranks { block_units: block_units.max(1) };
    match firmware.steady {
        None if !firmware.filled => Start::New,
        None => Start::InSequence { overwritten: false },
        Some(SteadyPattern::Sequential) => match firmware.steady_stride_bytes {
            None => Start::InSequence { overwritten: true },
            Some(bytes) => {
                Start::Strided(Strides::new(sizes.units, block_units, bytes / u64::from(firmware.unit_bytes)))
            }
        },
        Some(SteadyPattern::Random) if block_units <= 1 => Start::random(sizes),
        Some(SteadyPattern::Random) => small_die::start(sizes, even, Order::Drawn),
        Some(SteadyPattern::Permutation) => small_die::start(sizes, even, Order::Permuted),
        Some(SteadyPattern::Skewed) => {
            let skew = spec.skew.as_ref().expect("`check` has seen it");
            small_die::start(sizes, skew.on(sizes.units, firmware.unit_bytes), Order::Drawn)
        }
    }
}

impl Flash {
    /// An idle device, new or filled. The error names the key that is wrong.
    pub fn new(spec: &FlashSpec) -> Result<Flash, SpecError> {
        spec.check()?;
        let sizes = spec.sizes();
        let start = start_of(&sizes, spec);
        let interface = spec.interface;
        let link = Link::new(interface.bytes_per_s).with_pieces_of(interface.command_ns.unwrap_or_default());
        Ok(Flash {
            sizes,
            unit_sectors: u64::from(spec.firmware.unit_bytes) / SECTOR_BYTES,
            events: FlashEvents::new(),
            inside: CommandsInside::default(),
            cores: Servers::new(spec.firmware.cores),
            writes: 0,
            link_out: (!spec.interface.half_duplex).then(|| link.clone()),
            link_in: link,
            buffer: Buffer::new(spec.firmware.buffer_bytes / u64::from(spec.firmware.unit_bytes), sizes.handles),
            for_room: VecDeque::new(),
            written_at: 0,
            flush_planned: false,
            idle_planned: false,
            host_flush: None,
            mapping: Mapping::new(sizes, start),
            dies: vec![Die::default(); sizes.dies as usize],
            dies_taken: 0,
            reads_waiting: 0,
            channels: vec![Link::new(spec.timing.channel_bytes_per_s); spec.geometry.channels as usize],
            heat: spec.thermal.map(Heat::new),
            next_die: 0,
            written: ProgrammedUnits::default(),
            held: HeldCompletions::new(spec.interface.coalesce),
            spec: spec.clone(),
        })
    }

    /// One page read for each page that holds some of the units.
    fn look_at_read(&mut self, now: Time, id: CommandId) {
        let (mut page, mut units) = (None, 0);
        for unit in self.units_of(&self.inside.command(id)) {
            let PageLocation::Flash(place) = self.mapping.place(unit) else {
                continue;
            };
            let its_page = place / self.sizes.page_units;
            if page != Some(its_page) {
                self.read_page(now, id, page, units);
                (page, units) = (Some(its_page), 0);
            }
            units += 1;
        }
        self.read_page(now, id, page, units);
        if self.inside.awaits_nothing(id) {
            self.answer_read(now, id);
        }
    }

    fn read_page(&mut self, now: Time, id: CommandId, page: Option<u32>, units: u32) {
        let Some(page) = page else {
            return;
        };
        self.inside.await_part(id);
        let die = self.mapping.die_of(page * self.sizes.page_units);
        self.dies[die as usize].reads.push_back(Read { command: id, units, since: now });
        self.reads_waiting += 1;
        self.suspend(now, die);
        self.start(now, die);
    }

    fn answer_read(&mut self, now: Time, id: CommandId) {
        let sectors = u64::from(self.inside.command(id).sectors);
        let link = self.link_out.as_mut().unwrap_or(&mut self.link_in);
        let at = link.carry(now, sectors);
        self.events.put(at, Event::Complete(id));
    }

    /// What a write that comes now takes besides, for all since the last stall.
    fn stall_ns(&mut self) -> Time {
        let Some(stall) = self.spec.firmware.stall else {
            return 0;
        };
        self.writes = (self.writes + 1) % stall.writes;
        match self.writes {
            0 => stall.ns,
            _ => 0,
        }
    }

    fn look_at_write(&mut self, now: Time, id: CommandId) {
        if self.for_room.is_empty() && self.has_room(id) {
            self.take_write(now, id);
        } else {
            self.for_room.push_back(id);
        }
        self.drain(now);
    }

    fn has_room(&self, id: CommandId) -> bool {
        let units = self.units_of(&self.inside.command(id));
        self.buffer.has_room(units.end - units.start)
    }

    /// A unit that is written in part counts as written whole.
    fn take_write(&mut self, now: Time, id: CommandId) {
        let command = self.inside.command(id);
        let waits = command.force_unit_access && !self.spec.firmware.is_protected();
        let handle = handle_of(command.write_stream, self.sizes.handles);
        for unit in self.units_of(&command) {
            let slot = match self.mapping.place(unit) {
                PageLocation::Buffer(slot) if self.buffer.waits(slot) => slot,
                _ => {
                    let slot = self.buffer.put(unit, handle);
                    self.mapping.buffer(unit, slot);
                    slot
                }
            };
            if waits {
                self.buffer.name_waiting(slot, id);
                self.inside.await_part(id);
            }
        }
        self.written_at = now;
        self.plan_idle(now);
        if waits {
            self.buffer.flush();
        } else {
            self.events.put(now, Event::Complete(id));
        }
    }

    /// Hands what is in the buffer to dies, a page of all planes at a time, going round them.
    fn drain(&mut self, now: Time) {
        if !self.for_room.is_empty() {
            self.buffer.flush();
        }
        let units = self.sizes.program_units as usize;
        let dies = self.sizes.dies;
        while self.dies_taken < dies && self.buffer.has_page(units) {
            let Some(die) = (0..dies).map(|number| (self.next_die + number) % dies).find(|&die| self.takes_page(die))
            else {
                break;
            };
            self.next_die = (die + 1) % dies;
            let (handle, slots) = self.buffer.take_page(units);
            if self.spec.timing.has_cache_register() {
                let sectors = slots.len() as u64 * self.unit_sectors;
                self.dies[die as usize].loaded_at = self.channel(die).carry(now, sectors);
            }
            self.dies[die as usize].program = Some(Page { since: now, handle, slots });
            self.dies_taken += 1;
            self.start(now, die);
        }
        if !self.flush_planned && self.buffer.is_waiting() && !self.buffer.is_flushing() {
            self.flush_planned = true;
            let at = self.written_at + self.spec.firmware.buffer_ns_max;
            self.events.put(at, Event::Flush);
        }
    }

    fn takes_page(&self, die: u32) -> bool {
        self.dies[die as usize].program.is_none() && self.mapping.has_space(die, 2 * self.sizes.program_units)
    }

    /// Nothing was written for a while: parts of pages are programmed too. What finds no die goes when one is done.
    fn program_rest(&mut self, now: Time) {
        self.flush_planned = false;
        if now >= self.written_at + self.spec.firmware.buffer_ns_max {
            self.buffer.flush();
        }
        self.drain(now);
    }

    /// Takes writes that waited for room into the buffer.
    fn admit(&mut self, now: Time) {
        while let Some(&id) = self.for_room.front() {
            if !self.has_room(id) {
                break;
            }
            self.for_room.pop_front();
            self.take_write(now, id);
        }
        self.drain(now);
    }

    /// One of the parts that a command waits for is done.
    fn part_done(&mut self, now: Time, id: CommandId) {
        if self.inside.part_done(id) {
            match self.inside.command(id).direction {
                Direction::Read => self.answer_read(now, id),
                Direction::Write => self.events.put(now, Event::Complete(id)),
            }
        }
    }

    /// The host is interrupted at once, or for several together.
    fn end(&mut self, now: Time, what: InnerCompletion, completed: &mut Vec<Completion>) {
        if !self.held.holds() {
            return completed.push(self.leave(now, what));
        }
        match self.held.completed(now, what) {
            Interrupt::Now => self.interrupt(now, completed),
            Interrupt::At(at, number) => self.events.put(at, Event::Interrupt(number)),
            Interrupt::Planned => {}
        }
    }

    fn interrupt(&mut self, now: Time, completed: &mut Vec<Completion>) {
        for what in self.held.interrupt() {
            completed.push(self.leave(now, what));
        }
    }

    fn leave(&mut self, now: Time, what: InnerCompletion) -> Completion {
        match what {
            InnerCompletion::Command(id) => self.inside.leave(now, id),
            InnerCompletion::WithoutData(tag) => Completion { tag, failed: false },
        }
    }

    /// Does what is due before `now` and completes nothing for the host.
    fn catch_up(&mut self, now: Time) {
        while let Some((at, work)) = self.events.take_inner_before(now) {
            self.done(at, work);
        }
    }

    /// The end of a move or an erase completes nothing for the host before a page is read or programmed.
    fn sees_after_ns(&self) -> Time {
        let program_ns = self.spec.timing.page_program_ns;
        let sees_ns = match self.spec.slc {
            Some(slc) => program_ns.min(slc.page_program_ns),
            None => program_ns,
        };
        match self.reads_waiting {
            0 => sees_ns,
            _ => sees_ns.min(self.spec.timing.page_read_ns),
        }
    }

    fn units_of(&self, command: &Command) -> std::ops::Range<u32> {
        (command.start / self.unit_sectors) as u32..command.end().div_ceil(self.unit_sectors) as u32
    }
}

impl Device for Flash {
    fn sectors(&self) -> Sector {
        u64::from(self.sizes.units) * self.unit_sectors
    }

    fn queue_depth(&self) -> u32 {
        self.spec.queue_depth
    }

    fn submit(&mut self, now: Time, command: Command) {
        self.catch_up(now);
        let id = self.inside.enter(now, command);
        let firmware = self.spec.firmware;
        let work_ns = match command.direction {
            Direction::Read => firmware.command_ns,
            Direction::Write => firmware.command_ns + firmware.write_ns.unwrap_or_default() + self.stall_ns(),
        };
        let served_at = self.cores.serve(now, work_ns);
        let at = match command.direction {
            Direction::Read => served_at,
            Direction::Write => self.link_in.carry(served_at, u64::from(command.sectors)),
        };
        self.events.put(at, Event::Look(id));
    }

    fn next_event(&self) -> Option<Time> {
        self.events.next_at(self.sees_after_ns())
    }

    fn advance(&mut self, now: Time, completed: &mut Vec<Completion>) {
        while let Some((at, event)) = self.events.take_until(now) {
            match event {
                Event::Look(id) => match self.inside.command(id).direction {
                    Direction::Read => self.look_at_read(at, id),
                    Direction::Write => self.look_at_write(at, id),
                },
                Event::Done(work) => self.done(at, work),
                Event::Transferred(id) => self.part_done(at, id),
                Event::Complete(id) => self.end(at, InnerCompletion::Command(id), completed),
                Event::Flush => self.program_rest(at),
                Event::Idle => self.look_whether_idle(at),
                Event::Ended(tag) => self.end(at, InnerCompletion::WithoutData(tag), completed),
                Event::Interrupt(number) => {
                    if self.held.awaits(number) {
                        self.interrupt(at, completed);
                    }
                }
            }
        }
    }

    fn flush(&mut self, now: Time, tag: u32) -> bool {
        self.catch_up(now);
        let firmware = self.spec.firmware;
        let units_left = match firmware.is_protected() {
            true => 0,
            false => self.buffer.held(),
        };
        if units_left == 0 {
            let work_ns = firmware.flush_ns.unwrap_or(firmware.command_ns);
            let at = self.cores.serve(now, work_ns);
            self.events.put(at, Event::Ended(tag));
            return true;
        }
        let processed_at = firmware.flush_ns.map_or(now, |work_ns| self.cores.serve(now, work_ns));
        self.host_flush = Some(HostFlush { tag, units_left, processed_at });
        self.buffer.flush();
        self.drain(now);
        true
    }

    /// Takes a command's time, however long it is; a unit that is discarded in part stays.
    fn discard(&mut self, now: Time, tag: u32, start: Sector, sectors: Sector) -> bool {
        self.catch_up(now);
        let end = (start + sectors).min(self.sectors());
        for unit in start.div_ceil(self.unit_sectors)..end / self.unit_sectors {
            self.mapping.forget(unit as u32);
        }
        let at = self.cores.serve(now, self.spec.firmware.command_ns);
        self.events.put(at, Event::Ended(tag));
        self.drain(now);
        true
    }

    fn programmed(&mut self, now: Time) -> ProgrammedUnits {
        self.catch_up(now);
        self.written
    }

    fn flash_space(&mut self, now: Time) -> FlashSpace {
        self.catch_up(now);
        let celsius = self.heat.as_ref().map(|heat| heat.celsius(now));
        FlashSpace { millicelsius: celsius.map(|celsius| (celsius * 1000.0).round() as u32), ..self.mapping.space() }
    }

    fn dirty_sectors(&self) -> u64 {
        u64::from(self.buffer.held()) * self.unit_sectors
    }

    fn check(&self, now: Time) -> Result<(), Violation> {
        self.mapping.check()?;
        self.inside.check("flash", now)
    }
}

#[cfg(test)]
mod tests;
mod work;
