//! A LUN behind somebody else's controller: what is seen of it from the host, not what is inside.
//!
//! The way there and back, a link, a limit of commands per second, a cache for reads and writes, and behind it a back
//! end that is no more than an access time, how many accesses go on at once, and a rate.

use std::collections::VecDeque;

use serde::Deserialize;

use crate::agenda::Agenda;
use crate::block::{Direction, SECTOR_BYTES, Sector};
use crate::device::line_cache::{LineCache, Presence};
use crate::device::server::{Link, Servers};
use crate::device::spec::{
    CAPACITY_BYTES_MAX, QUEUE_DEPTH_MAX, RATE_BYTES_PER_S, WORK_NS_MAX, whole_sectors, within,
};
use crate::device::{Command, Completion, Device, Impossible};
use crate::slab::{Id, Slab};
use crate::time::{SECOND, Time};

/// Everything about a cached LUN; a machine file's device of kind `lun`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LunSpec {
    pub capacity_bytes: u64,
    pub queue_depth: u32,
    /// Host adapter, there and back together.
    pub adapter_ns: u64,
    /// Link and switches, there and back together.
    pub link_ns: u64,
    /// From the controller's taking a command to its answer, when the cache serves it.
    pub controller_ns: u64,
    pub controller_commands_per_s: u64,
    /// Each way.
    pub link_bytes_per_s: u64,
    pub cache: LunCache,
    pub back_end: BackEnd,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LunCache {
    /// Data are kept in pieces of this size.
    pub line_bytes: u64,
    /// 0: no cache for reads.
    pub read_bytes: u64,
    /// What may wait for the back end; 0: writes go through.
    pub write_bytes: u64,
    /// Of `write_bytes`: where writing to the back end begins, and where it ends.
    pub high_percent: u32,
    pub low_percent: u32,
    /// What lies below the marks is written when nothing has been for so long.
    pub idle_flush_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackEnd {
    pub access_ns: u64,
    /// Accesses that go on at once: spindles.
    pub servers: u32,
    /// Of all of them together.
    pub bytes_per_s: u64,
}

#[derive(Clone, Debug)]
pub struct Lun {
    spec: LunSpec,
    agenda: Agenda<Event>,
    commands: Slab<Command>,
    controller: Servers,
    command_ns: Time,
    link_in: Link,
    link_out: Link,
    read_lines: LineCache,
    /// In order of arrival.
    dirty_lines: LineCache,
    back_end: Servers,
    back_end_link: Link,
    /// Lines on their way to the back end, at most `servers` pieces.
    leaving_lines: u64,
    leaving: u32,
    draining: bool,
    for_room: VecDeque<Id<Command>>,
    written_at: Time,
    flush_planned: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The controller looks at a command.
    Look(Id<Command>),
    /// Data of a read have come from the back end.
    Fetched(Id<Command>),
    /// A piece of so many lines is on the back end.
    Written(u32),
    Complete(u32),
    Flush,
}

/// A piece that is written to the back end at once (inferred).
const PIECE_LINES_MAX: u32 = 64;

impl LunSpec {
    pub fn check(&self) -> Result<(), Impossible> {
        whole_sectors("capacity_bytes", self.capacity_bytes)?;
        within(
            "capacity_bytes",
            self.capacity_bytes,
            512,
            CAPACITY_BYTES_MAX,
        )?;
        within(
            "queue_depth",
            u64::from(self.queue_depth),
            1,
            QUEUE_DEPTH_MAX,
        )?;
        for (key, time_ns) in [
            ("adapter_ns", self.adapter_ns),
            ("link_ns", self.link_ns),
            ("controller_ns", self.controller_ns),
            ("cache.idle_flush_ns", self.cache.idle_flush_ns),
            ("back_end.access_ns", self.back_end.access_ns),
        ] {
            within(key, time_ns, 0, WORK_NS_MAX)?;
        }
        within(
            "controller_commands_per_s",
            self.controller_commands_per_s,
            1,
            SECOND,
        )?;
        let (least, most) = RATE_BYTES_PER_S;
        within("link_bytes_per_s", self.link_bytes_per_s, least, most)?;
        within(
            "back_end.bytes_per_s",
            self.back_end.bytes_per_s,
            least,
            most,
        )?;
        within(
            "back_end.servers",
            u64::from(self.back_end.servers),
            1,
            4096,
        )?;
        self.cache.check().map_err(|error| error.within("cache"))
    }
}

impl LunCache {
    fn check(&self) -> Result<(), Impossible> {
        whole_sectors("line_bytes", self.line_bytes)?;
        within("line_bytes", self.line_bytes, 512, 1 << 24)?;
        for (key, bytes) in [
            ("read_bytes", self.read_bytes),
            ("write_bytes", self.write_bytes),
        ] {
            within(key, bytes, 0, 1 << 44)?;
            if !bytes.is_multiple_of(self.line_bytes) {
                return Err(Impossible::because(
                    key,
                    "expected whole lines of line_bytes",
                ));
            }
        }
        within("high_percent", u64::from(self.high_percent), 1, 100)?;
        within(
            "low_percent",
            u64::from(self.low_percent),
            0,
            u64::from(self.high_percent),
        )
    }
}

impl Lun {
    pub fn new(spec: &LunSpec) -> Result<Lun, Impossible> {
        spec.check()?;
        let lines = |bytes: u64| bytes / spec.cache.line_bytes;
        Ok(Lun {
            agenda: Agenda::new(),
            commands: Slab::new(),
            controller: Servers::new(1),
            command_ns: SECOND / spec.controller_commands_per_s,
            link_in: Link::new(spec.link_bytes_per_s),
            link_out: Link::new(spec.link_bytes_per_s),
            read_lines: LineCache::new(lines(spec.cache.read_bytes)),
            dirty_lines: LineCache::new(u64::MAX),
            back_end: Servers::new(spec.back_end.servers),
            back_end_link: Link::new(spec.back_end.bytes_per_s),
            leaving_lines: 0,
            leaving: 0,
            draining: false,
            for_room: VecDeque::new(),
            written_at: 0,
            flush_planned: false,
            spec: spec.clone(),
        })
    }

    fn look(&mut self, now: Time, id: Id<Command>) {
        let command = self.commands[id];
        match command.direction {
            Direction::Read => {
                let lines = self.lines(&command);
                let mut here = true;
                for line in lines {
                    // Look at all of them: they have all been used.
                    here &= self.dirty_lines.has(line)
                        | (self.read_lines.use_line(line) == Presence::Here);
                }
                if here {
                    self.answer_read(now, id);
                } else {
                    let at = self.back_end_access(now, u64::from(command.sectors));
                    self.agenda.put(at, Event::Fetched(id));
                }
            }
            Direction::Write if self.spec.cache.write_bytes == 0 => {
                let at = self.back_end_access(now, u64::from(command.sectors));
                self.acknowledge(at, id);
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

    fn take_write(&mut self, now: Time, id: Id<Command>) {
        for line in self.lines(&self.commands[id]) {
            if !self.dirty_lines.has(line) {
                self.dirty_lines.put(line);
            }
            self.read_lines.put(line);
        }
        self.written_at = now;
        self.acknowledge(now, id);
        self.drain(now);
        self.plan_flush();
    }

    fn answer_read(&mut self, now: Time, id: Id<Command>) {
        let command = self.commands.take(id);
        let at = self.link_in.carry(now, u64::from(command.sectors));
        self.agenda.put(at, Event::Complete(command.tag));
    }

    fn acknowledge(&mut self, at: Time, id: Id<Command>) {
        let command = self.commands.take(id);
        self.agenda.put(at, Event::Complete(command.tag));
    }

    /// When the back end has moved so many sectors: it has found the place, and its turn on the way has come.
    fn back_end_access(&mut self, now: Time, sectors: u64) -> Time {
        let found_at = self.back_end.serve(now, self.spec.back_end.access_ns);
        self.back_end_link.carry(found_at, sectors)
    }

    fn has_room(&self, command: &Command) -> bool {
        let held = self.held_lines();
        held == 0 || held + self.lines(command).count() as u64 <= self.line_mark(100)
    }

    /// Dirty lines that are here or on their way.
    fn held_lines(&self) -> u64 {
        self.dirty_lines.len() as u64 + self.leaving_lines
    }

    fn line_mark(&self, percent: u32) -> u64 {
        let lines = self.spec.cache.write_bytes / self.spec.cache.line_bytes;
        (u128::from(lines) * u128::from(percent) / 100) as u64
    }

    /// Above the high mark, and from there down to the low one, or when somebody waits, dirty lines go to the back end.
    fn drain(&mut self, now: Time) {
        let held = self.held_lines();
        if held > self.line_mark(self.spec.cache.high_percent) || !self.for_room.is_empty() {
            self.draining = true;
        } else if held <= self.line_mark(self.spec.cache.low_percent) {
            self.draining = false;
        }
        if self.draining {
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
            let at = self.back_end_access(now, sectors);
            self.agenda.put(at, Event::Written(lines));
        }
    }

    fn written(&mut self, now: Time, lines: u32) {
        self.leaving -= 1;
        self.leaving_lines -= u64::from(lines);
        while let Some(&id) = self.for_room.front() {
            if !self.has_room(&self.commands[id]) {
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
            self.agenda.put(at, Event::Flush);
        }
    }

    /// Nothing was written for a while: what is left goes out too.
    fn flush(&mut self, now: Time) {
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
        let id = self.commands.put(command);
        let way_ns = self.spec.adapter_ns + self.spec.link_ns + self.spec.controller_ns;
        let turn_at = self.controller.serve(now, self.command_ns) - self.command_ns;
        let arrived_at = match command.direction {
            Direction::Read => turn_at,
            Direction::Write => self.link_out.carry(turn_at, u64::from(command.sectors)),
        };
        self.agenda.put(arrived_at + way_ns, Event::Look(id));
    }

    fn next_event(&self) -> Option<Time> {
        self.agenda.next_at()
    }

    fn advance(&mut self, now: Time, completed: &mut Vec<Completion>) {
        while self.agenda.next_at().is_some_and(|at| at <= now) {
            let (at, event) = self.agenda.take().expect("there is one");
            match event {
                Event::Look(id) => self.look(at, id),
                Event::Fetched(id) => {
                    for line in self.lines(&self.commands[id]) {
                        self.read_lines.put(line);
                    }
                    self.answer_read(at, id);
                }
                Event::Written(lines) => self.written(at, lines),
                Event::Complete(tag) => completed.push(Completion { tag, failed: false }),
                Event::Flush => self.flush(at),
            }
        }
    }

    fn dirty_sectors(&self) -> u64 {
        self.held_lines() * self.spec.cache.line_bytes / SECTOR_BYTES
    }
}

#[cfg(test)]
mod tests;
