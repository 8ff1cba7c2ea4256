//! A LUN behind a foreign controller, as the host sees it; its inside is not simulated.
//!
//! The way there and back, a link, a limit of commands per second, a cache for reads and writes, and behind it a back
//! end that is no more than an access time, how many accesses run at once, and a rate.

mod spec;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::commands_inside::{CommandId, CommandsInside};
use crate::line_cache::{LineCache, Presence};
use crate::server::{Link, Servers};
use crate::watermarks::Watermarks;
use crate::{Command, Completion, Device};
use block_layer::{Direction, SECTOR_BYTES, Sector};
use events::SpecError;
use events::event_queue::EventQueue;
use events::station::Violation;
use events::time::{SECOND, Time};
pub use spec::{BackEnd, LunCache, LunSpec};

/// A LUN as its host sees it: controller, link, cache, and a back end without any structure.
#[derive(Clone, Debug)]
pub struct Lun {
    spec: LunSpec,
    events: EventQueue<Event>,
    inside: CommandsInside,
    controller: Servers,
    command_ns: Time,
    link_in: Link,
    link_out: Link,
    read_lines: LineCache,
    /// In order of arrival.
    dirty_lines: LineCache,
    back_end: Servers,
    back_end_link: Link,
    /// Of writes, if they keep their servers.
    write_link: Link,
    /// Lines on their way to the back end, at most `servers` pieces.
    leaving_lines: u64,
    leaving: u32,
    /// In lines.
    watermarks: Watermarks,
    for_room: VecDeque<CommandId>,
    written_at: Time,
    flush_planned: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The controller looks at a command.
    Look(CommandId),
    /// Data of a read have come from the back end.
    Fetched(CommandId),
    /// A piece of this many lines is on the back end.
    Written(u32),
    Complete(CommandId),
    Flush,
    /// The host's flush of that tag is done.
    Flushed(u32),
}

/// A piece that is written to the back end at once (inferred).
const PIECE_LINES_MAX: u32 = 64;

impl Lun {
    /// An idle LUN with an empty cache. The error names the key that is wrong.
    pub fn new(spec: &LunSpec) -> Result<Lun, SpecError> {
        spec.check()?;
        let lines = |bytes: u64| bytes / spec.cache.line_bytes;
        Ok(Lun {
            events: EventQueue::new(),
            inside: CommandsInside::default(),
            controller: Servers::new(1),
            command_ns: SECOND / spec.controller_commands_per_s,
            link_in: Link::new(spec.link_bytes_per_s),
            link_out: Link::new(spec.link_bytes_per_s),
            read_lines: LineCache::new(lines(spec.cache.read_bytes)),
            dirty_lines: LineCache::new(u64::MAX),
            back_end: Servers::new(spec.back_end.servers),
            back_end_link: Link::new(spec.back_end.bytes_per_s),
            write_link: Link::new(spec.back_end.write_bytes_per_s.unwrap_or(spec.back_end.bytes_per_s)),
            leaving_lines: 0,
            leaving: 0,
            watermarks: Watermarks::new(lines(spec.cache.write_bytes), spec.cache.high_percent, spec.cache.low_percent),
            for_room: VecDeque::new(),
            written_at: 0,
            flush_planned: false,
            spec: spec.clone(),
        })
    }

    fn look(&mut self, now: Time, id: CommandId) {
        let command = self.inside.command(id);
        match command.direction {
            Direction::Read => {
                let lines = self.lines(&command);
                let mut here = true;
                for line in lines {
                    // Look at all of them: they have all been used.
                    here &= self.dirty_lines.has(line) | (self.read_lines.use_line(line) == Presence::Here);
                }
                if here {
                    self.answer_read(now, id);
                } else {
                    let sectors = u64::from(command.sectors);
                    let at = self.back_end_access(now, Direction::Read, sectors);
                    self.events.put(at, Event::Fetched(id));
                }
            }
            Direction::Write if self.spec.cache.write_bytes == 0 => {
                let sectors = u64::from(command.sectors);
                let at = self.back_end_access(now, Direction::Write, sectors);
                self.events.put(at, Event::Complete(id));
            }
            Direction::Write if self.for_room.is_empty() && self.has_room(&command) => {
                self.take_write(now, id);
            }
            Direction::Write => {
                self.for_room.push_back(id);
                self.drain(now);
            }
        }
    }

    fn take_write(&mut self, now: Time, id: CommandId) {
        for line in self.lines(&self.inside.command(id)) {
            if !self.dirty_lines.has(line) {
                self.dirty_lines.put(line);
            }
            self.read_lines.put(line);
        }
        self.written_at = now;
        self.events.put(now, Event::Complete(id));
        self.drain(now);
        self.plan_flush();
    }

    fn answer_read(&mut self, now: Time, id: CommandId) {
        let sectors = u64::from(self.inside.command(id).sectors);
        let at = self.link_in.carry(now, sectors);
        self.events.put(at, Event::Complete(id));
    }

    /// When the back end has moved this many sectors: it has found the place, and its turn on the way has come.
    fn back_end_access(&mut self, now: Time, direction: Direction, sectors: u64) -> Time {
        let spec = &self.spec.back_end;
        if spec.holds_server.unwrap_or(false) {
            let (access_ns, link) = match direction {
                Direction::Read => (spec.access_ns, &self.back_end_link),
                Direction::Write => (spec.write_access_ns.unwrap_or(spec.access_ns), &self.write_link),
            };
            let work_ns = access_ns + link.carry_ns(sectors);
            return self.back_end.serve(now, work_ns);
        }
        let found_at = self.back_end.serve(now, spec.access_ns);
        self.back_end_link.carry(found_at, sectors)
    }

    fn has_room(&self, command: &Command) -> bool {
        self.watermarks.fits(self.held_lines(), self.lines(command).count() as u64)
    }

    /// Dirty lines that are here or on their way.
    fn held_lines(&self) -> u64 {
        self.dirty_lines.len() as u64 + self.leaving_lines
    }

    /// Above the high mark, and from there down to the low one, or when a task waits, dirty lines go to the back end.
    fn drain(&mut self, now: Time) {
        let somebody_waits = !self.for_room.is_empty();
        if self.watermarks.drains(self.held_lines(), somebody_waits) {
            self.write_pieces(now);
        }
    }

    fn write_pieces(&mut self, now: Time) {
        while self.leaving < self.spec.back_end.servers
            && let Some(first) = self.dirty_lines.take_oldest()
        {
            let mut lines = 1;
            while lines < PIECE_LINES_MAX && self.dirty_lines.take(first + u64::from(lines)) {
                lines += 1;
            }
            self.leaving += 1;
            self.leaving_lines += u64::from(lines);
            let sectors = u64::from(lines) * self.spec.cache.line_bytes / SECTOR_BYTES;
            let at = self.back_end_access(now, Direction::Write, sectors);
            self.events.put(at, Event::Written(lines));
        }
    }

    fn written(&mut self, now: Time, lines: u32) {
        self.leaving -= 1;
        self.leaving_lines -= u64::from(lines);
        while let Some(&id) = self.for_room.front() {
            if !self.has_room(&self.inside.command(id)) {
                break;
            }
            self.for_room.pop_front();
            self.take_write(now, id);
        }
        self.drain(now);
        self.plan_flush();
    }

    fn plan_flush(&mut self) {
        if !self.flush_planned && self.dirty_lines.len() > 0 {
            self.flush_planned = true;
            let at = self.written_at + self.spec.cache.idle_flush_ns;
            self.events.put(at, Event::Flush);
        }
    }

    /// Nothing was written for a while: what is left goes out too.
    fn write_rest(&mut self, now: Time) {
        self.flush_planned = false;
        if now >= self.written_at + self.spec.cache.idle_flush_ns {
            self.write_pieces(now);
            if self.leaving > 0 {
                // The next pieces follow when these are written.
                return;
            }
        }
        self.plan_flush();
    }

    fn lines(&self, command: &Command) -> std::ops::Range<u64> {
        let line = self.spec.cache.line_bytes / SECTOR_BYTES;
        command.start / line..command.end().div_ceil(line)
    }
}

impl Device for Lun {
    fn sectors(&self) -> Sector {
        self.spec.capacity_bytes / SECTOR_BYTES
    }

    fn queue_depth(&self) -> u32 {
        self.spec.queue_depth
    }

    fn submit(&mut self, now: Time, command: Command) {
        let id = self.inside.enter(now, command);
        let way_ns = self.spec.adapter_ns + self.spec.link_ns + self.spec.controller_ns;
        let turn_at = self.controller.serve(now, self.command_ns) - self.command_ns;
        let arrived_at = match command.direction {
            Direction::Read => turn_at,
            Direction::Write => self.link_out.carry(turn_at, u64::from(command.sectors)),
        };
        self.events.put(arrived_at + way_ns, Event::Look(id));
    }

    fn next_event(&self) -> Option<Time> {
        self.events.next_at()
    }

    fn advance(&mut self, now: Time, completed: &mut Vec<Completion>) {
        while self.events.next_at().is_some_and(|at| at <= now) {
            let (at, event) = self.events.take().expect("there is one");
            match event {
                Event::Look(id) => self.look(at, id),
                Event::Fetched(id) => {
                    for line in self.lines(&self.inside.command(id)) {
                        self.read_lines.put(line);
                    }
                    self.answer_read(at, id);
                }
                Event::Written(lines) => self.written(at, lines),
                Event::Complete(id) => completed.push(self.inside.leave(at, id)),
                Event::Flush => self.write_rest(at),
                Event::Flushed(tag) => completed.push(Completion { tag, failed: false }),
            }
        }
    }

    /// It takes its turn behind the accesses that have begun.
    fn flush(&mut self, now: Time, tag: u32) -> bool {
        let Some(work_ns) = self.spec.flush_ns else {
            return false;
        };
        let at = self.back_end.serve(now, work_ns);
        self.events.put(at, Event::Flushed(tag));
        true
    }

    fn dirty_sectors(&self) -> u64 {
        self.held_lines() * self.spec.cache.line_bytes / SECTOR_BYTES
    }

    fn check(&self, now: Time) -> Result<(), Violation> {
        self.inside.check("lun", now)
    }
}
