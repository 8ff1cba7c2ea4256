//! A disk array: a port, controllers with a cache, and disks behind them.
//!
//! A command waits its latency, takes a turn of a controller, and is looked at: reads come from the cache or make a job
//! that fetches lines from the disks; writes go into the cache, from which jobs destage stripes. Sequential reads are
//! recognised and fetched ahead. No primary source: the mechanisms are those that every such array documents, the
//! figures are estimates to be fitted (docs/model/array.md).

mod back_end;
mod dirty;
mod layout;
mod spec;
mod streams;

use std::collections::VecDeque;

use crate::agenda::Agenda;
use crate::block::{Direction, SECTOR_BYTES, Sector};
use crate::device::disk::Disk;
use crate::device::line_cache::{LineCache, Presence};
use crate::device::server::{Link, Servers};
use crate::device::{Command, Completion, Device, Impossible};
use crate::slab::{Id, Slab};
use crate::station::{Broken, Station};
use crate::time::Time;
use back_end::BackEnd;
use dirty::DirtyStripes;
use layout::{Layout, Piece, Range};
pub use spec::{ArrayCache, ArraySpec, ControllerSpec, LayoutSpec, Level, MirrorSpec};
use streams::Streams;

#[derive(Clone, Debug)]
pub struct Array {
    spec: ArraySpec,
    agenda: Agenda<Event>,
    commands: Slab<Waiting>,
    station: Station,
    controllers: Servers,
    port_in: Link,
    port_out: Link,
    mirror: Option<Link>,
    line_sectors: u64,
    lines: LineCache,
    streams: Streams,
    dirty: DirtyStripes,
    draining: bool,
    destages: u32,
    flush_at: Option<Time>,
    for_room: VecDeque<Id<Waiting>>,
    layout: Layout,
    back_end: BackEnd,
    jobs: Jobs,
    /// Room to work in, empty between uses.
    reads: Vec<Piece>,
    writes: Vec<Piece>,
    ended: Vec<u32>,
}

/// A command of the host's.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    command: Command,
    since: Time,
    /// Jobs that it waits for.
    jobs: u32,
}

/// Something that the disks do; its accesses are all sent, and when the last is back the next step follows.
#[derive(Clone, Debug)]
struct Job {
    accesses: u32,
    step: Step,
    /// Who waits for it. Kept with the number, so that no room is asked for each time.
    waiting: Vec<Id<Waiting>>,
}

#[derive(Clone, Debug)]
enum Step {
    Fetch {
        lines: Range,
    },
    /// Reading what the new parity is made of.
    Gather {
        stripe: u64,
        ranges: Vec<Range>,
    },
    Write {
        stripe: u64,
    },
}

#[derive(Clone, Debug, Default)]
struct Jobs {
    jobs: Vec<Job>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Look(Id<Waiting>),
    Complete(Id<Waiting>),
    Flush,
}

impl Array {
    pub fn new(spec: &ArraySpec) -> Result<Array, Impossible> {
        spec.check()?;
        let disk = Disk::new(&spec.disk).map_err(|error| error.within("disk"))?;
        let layout = Layout::new(&spec.layout, disk.sectors());
        Ok(Array {
            agenda: Agenda::new(),
            commands: Slab::new(),
            station: Station::default(),
            controllers: Servers::new(spec.controller.controllers),
            port_in: Link::new(spec.controller.port_bytes_per_s),
            port_out: Link::new(spec.controller.port_bytes_per_s),
            mirror: spec
                .cache
                .mirror
                .map(|mirror| Link::new(mirror.bytes_per_s)),
            line_sectors: spec.cache.line_bytes / SECTOR_BYTES,
            lines: LineCache::new(spec.cache.read_bytes / spec.cache.line_bytes),
            streams: Streams::new(&spec.cache),
            dirty: DirtyStripes::new(layout.stripe_sectors()),
            draining: false,
            destages: 0,
            flush_at: None,
            for_room: VecDeque::new(),
            back_end: BackEnd::new(&disk, spec.layout.disks),
            layout,
            jobs: Jobs::default(),
            reads: Vec::new(),
            writes: Vec::new(),
            ended: Vec::new(),
            spec: spec.clone(),
        })
    }

    /// Accesses that the disks have been sent.
    pub fn disk_accesses(&self) -> u64 {
        self.back_end.accesses_entered()
    }

    fn look_at_read(&mut self, now: Time, id: Id<Waiting>) {
        let command = self.commands[id].command;
        let lines = self.lines_of(command.start, command.end());
        let mut absent: Option<Range> = None;
        for line in lines {
            match self.lines.use_line(line) {
                Presence::Here => {}
                Presence::Coming(job) => {
                    let waiting = &mut self.jobs.jobs[job as usize].waiting;
                    if waiting.last() != Some(&id) {
                        waiting.push(id);
                        self.commands[id].jobs += 1;
                    }
                }
                Presence::Absent if self.is_dirty(line) => {}
                Presence::Absent => match &mut absent {
                    Some(run) if run.end == line => run.end += 1,
                    _ => {
                        if let Some(run) = absent.replace(line..line + 1) {
                            self.fetch(now, run, Some(id));
                        }
                    }
                },
            }
        }
        if let Some(run) = absent {
            self.fetch(now, run, Some(id));
        }
        if self.commands[id].jobs == 0 {
            self.answer_read(now, id);
        }
        if let Some((from, to)) = self.streams.follow(command.start, command.end()) {
            self.fetch_ahead(now, from, to.min(self.layout.sectors()));
        }
    }

    fn is_dirty(&self, line: u64) -> bool {
        let (start, stripe_sectors) = (line * self.line_sectors, self.layout.stripe_sectors());
        let inside = start % stripe_sectors;
        self.dirty.holds(
            start / stripe_sectors,
            &(inside..inside + self.line_sectors),
        )
    }

    /// Fetches what is not here of a stream's next sectors.
    fn fetch_ahead(&mut self, now: Time, from: Sector, to: Sector) {
        let mut absent: Option<Range> = None;
        for line in from / self.line_sectors..to / self.line_sectors {
            if self.lines.use_line(line) != Presence::Absent {
                continue;
            }
            match &mut absent {
                Some(run) if run.end == line => run.end += 1,
                _ => {
                    if let Some(run) = absent.replace(line..line + 1) {
                        self.fetch(now, run, None);
                    }
                }
            }
        }
        if let Some(run) = absent {
            self.fetch(now, run, None);
        }
    }

    fn fetch(&mut self, now: Time, lines: Range, whose: Option<Id<Waiting>>) {
        let (start, sectors) = (
            lines.start * self.line_sectors,
            (lines.end - lines.start) * self.line_sectors,
        );
        let job = self.jobs.begin(Step::Fetch {
            lines: lines.clone(),
        });
        if let Some(id) = whose {
            self.jobs.jobs[job as usize].waiting.push(id);
            self.commands[id].jobs += 1;
        }
        for line in lines {
            self.lines.expect(line, job);
        }
        let mut pieces = std::mem::take(&mut self.reads);
        let busier = |one, other| self.back_end.load(one) > self.back_end.load(other);
        self.layout.read(start, sectors, busier, &mut pieces);
        self.send(now, Direction::Read, &pieces, job);
        pieces.clear();
        self.reads = pieces;
    }

    fn answer_read(&mut self, now: Time, id: Id<Waiting>) {
        let sectors = u64::from(self.commands[id].command.sectors);
        let at = self.port_out.carry(now, sectors);
        self.agenda.put(at, Event::Complete(id));
    }

    fn look_at_write(&mut self, now: Time, id: Id<Waiting>) {
        let command = self.commands[id].command;
        if self.spec.cache.write_bytes == 0 {
            self.write_through(now, id);
        } else if self.for_room.is_empty() && self.has_room(&command) {
            self.take_write(now, id);
            self.destage(now);
        } else {
            self.for_room.push_back(id);
            self.destage(now);
        }
    }

    /// The cache keeps its data without power: force-unit-access writes are acknowledged from it too.
    fn take_write(&mut self, now: Time, id: Id<Waiting>) {
        let command = self.commands[id].command;
        self.put_lines(&command);
        let stripe_sectors = self.layout.stripe_sectors();
        for (stripe, range) in by_stripe(stripe_sectors, &command) {
            self.dirty.put(now, stripe, range);
        }
        let at = match (&mut self.mirror, &self.spec.cache.mirror) {
            (Some(link), Some(mirror)) => {
                link.carry(now, u64::from(command.sectors)) + mirror.latency_ns
            }
            _ => now,
        };
        self.agenda.put(at, Event::Complete(id));
    }

    fn write_through(&mut self, now: Time, id: Id<Waiting>) {
        let command = self.commands[id].command;
        self.put_lines(&command);
        let stripe_sectors = self.layout.stripe_sectors();
        self.commands[id].jobs = by_stripe(stripe_sectors, &command).count() as u32;
        for (stripe, range) in by_stripe(stripe_sectors, &command) {
            self.write_stripe(now, stripe, vec![range], Some(id));
        }
    }

    /// Lines that are written whole are here from now on.
    fn put_lines(&mut self, command: &Command) {
        let (first, end) = (
            command.start.div_ceil(self.line_sectors),
            command.end() / self.line_sectors,
        );
        for line in first..end {
            self.lines.put(line);
        }
    }

    fn has_room(&self, command: &Command) -> bool {
        let held = self.dirty.sectors();
        held == 0 || held + u64::from(command.sectors) <= self.mark(100)
    }

    /// Sectors of a share of the write cache.
    fn mark(&self, percent: u32) -> u64 {
        let sectors = self.spec.cache.write_bytes / SECTOR_BYTES;
        (u128::from(sectors) * u128::from(percent) / 100) as u64
    }

    /// Full stripes go to the disks at once, as waiting can't make them cheaper; others above the high mark and from
    /// there down to the low one, when somebody waits for room, and when they are old.
    fn destage(&mut self, now: Time) {
        let held = self.dirty.sectors();
        if held > self.mark(self.spec.cache.high_percent) || !self.for_room.is_empty() {
            self.draining = true;
        } else if held <= self.mark(self.spec.cache.low_percent) {
            self.draining = false;
        }
        while self.destages < self.spec.cache.destages_max {
            let old = || {
                self.dirty
                    .oldest()
                    .is_some_and(|since| since + self.spec.cache.dirty_ns_max <= now)
            };
            let any = self.draining || old();
            let Some((stripe, ranges)) = self.dirty.take(!any) else {
                break;
            };
            self.destages += 1;
            self.write_stripe(now, stripe, ranges, None);
        }
        if self.flush_at.is_none()
            && self.destages < self.spec.cache.destages_max
            && let Some(since) = self.dirty.oldest()
        {
            let at = since + self.spec.cache.dirty_ns_max;
            self.flush_at = Some(at);
            self.agenda.put(at, Event::Flush);
        }
    }

    fn write_stripe(
        &mut self,
        now: Time,
        stripe: u64,
        ranges: Vec<Range>,
        whose: Option<Id<Waiting>>,
    ) {
        self.layout
            .write(stripe, &ranges, &mut self.reads, &mut self.writes);
        let gather = !self.reads.is_empty();
        let job = self.jobs.begin(if gather {
            Step::Gather { stripe, ranges }
        } else {
            Step::Write { stripe }
        });
        self.jobs.jobs[job as usize].waiting.extend(whose);
        let (mut reads, mut writes) = (
            std::mem::take(&mut self.reads),
            std::mem::take(&mut self.writes),
        );
        if gather {
            self.send(now, Direction::Read, &reads, job);
        } else {
            self.send(now, Direction::Write, &writes, job);
        }
        reads.clear();
        writes.clear();
        (self.reads, self.writes) = (reads, writes);
    }

    fn send(&mut self, now: Time, direction: Direction, pieces: &[Piece], job: u32) {
        self.jobs.jobs[job as usize].accesses = pieces.len() as u32;
        for piece in pieces {
            self.back_end.send(now, direction, piece, job);
        }
    }

    /// All accesses of a job's step are done.
    fn next_step(&mut self, now: Time, job: u32) {
        match std::mem::replace(
            &mut self.jobs.jobs[job as usize].step,
            Step::Write { stripe: 0 },
        ) {
            Step::Fetch { lines } => {
                for line in lines {
                    self.lines.arrive(line);
                }
                self.end_job(now, job);
            }
            Step::Gather { stripe, ranges } => {
                self.jobs.jobs[job as usize].step = Step::Write { stripe };
                self.layout
                    .write(stripe, &ranges, &mut self.reads, &mut self.writes);
                self.reads.clear();
                let mut writes = std::mem::take(&mut self.writes);
                self.send(now, Direction::Write, &writes, job);
                writes.clear();
                self.writes = writes;
            }
            Step::Write { stripe } => {
                if self.jobs.jobs[job as usize].waiting.is_empty() {
                    self.destages -= 1;
                    self.dirty.destaged(stripe);
                    self.admit(now);
                }
                self.end_job(now, job);
                self.destage(now);
            }
        }
    }

    fn end_job(&mut self, now: Time, job: u32) {
        let mut waiting = std::mem::take(&mut self.jobs.jobs[job as usize].waiting);
        for id in waiting.drain(..) {
            let command = &mut self.commands[id];
            command.jobs -= 1;
            if command.jobs == 0 {
                match command.command.direction {
                    Direction::Read => self.answer_read(now, id),
                    Direction::Write => self.agenda.put(now, Event::Complete(id)),
                }
            }
        }
        self.jobs.jobs[job as usize].waiting = waiting;
        self.jobs.free.push(job);
    }

    /// Takes writes that waited for room into the cache.
    fn admit(&mut self, now: Time) {
        while let Some(&id) = self.for_room.front() {
            if !self.has_room(&self.commands[id].command) {
                return;
            }
            self.for_room.pop_front();
            self.take_write(now, id);
        }
    }

    fn lines_of(&self, start: Sector, end: Sector) -> Range {
        start / self.line_sectors..end.div_ceil(self.line_sectors)
    }

    fn happens(&mut self, now: Time, event: Event, completed: &mut Vec<Completion>) {
        match event {
            Event::Look(id) => match self.commands[id].command.direction {
                Direction::Read => self.look_at_read(now, id),
                Direction::Write => self.look_at_write(now, id),
            },
            Event::Complete(id) => {
                let Waiting { command, since, .. } = self.commands.take(id);
                self.station.leave(now, since);
                completed.push(Completion {
                    tag: command.tag,
                    failed: false,
                });
            }
            Event::Flush => {
                self.flush_at = None;
                self.destage(now);
            }
        }
    }
}

impl Device for Array {
    fn sectors(&self) -> Sector {
        self.layout.sectors()
    }

    fn queue_depth(&self) -> u32 {
        self.spec.queue_depth
    }

    fn submit(&mut self, now: Time, command: Command) {
        self.station.enter(now);
        let id = self.commands.put(Waiting {
            command,
            since: now,
            jobs: 0,
        });
        let ControllerSpec {
            latency_ns,
            command_ns,
            ..
        } = self.spec.controller;
        let served_at = self.controllers.serve(now + latency_ns, command_ns);
        let at = match command.direction {
            Direction::Read => served_at,
            Direction::Write => self.port_in.carry(served_at, u64::from(command.sectors)),
        };
        self.agenda.put(at, Event::Look(id));
    }

    fn next_event(&self) -> Option<Time> {
        match (self.agenda.next_at(), self.back_end.next_event()) {
            (Some(event), Some(disk)) => Some(event.min(disk)),
            (one, other) => one.or(other),
        }
    }

    fn advance(&mut self, now: Time, completed: &mut Vec<Completion>) {
        while let Some(at) = self.next_event().filter(|&at| at <= now) {
            if self.back_end.next_event() == Some(at) {
                let mut ended = std::mem::take(&mut self.ended);
                self.back_end.advance(&mut ended);
                for job in ended.drain(..) {
                    let accesses = &mut self.jobs.jobs[job as usize].accesses;
                    *accesses -= 1;
                    if *accesses == 0 {
                        self.next_step(at, job);
                    }
                }
                self.ended = ended;
            } else if let Some((at, event)) = self.agenda.take() {
                self.happens(at, event, completed);
            }
        }
    }

    fn dirty_sectors(&self) -> u64 {
        self.dirty.sectors() + self.back_end.dirty_sectors()
    }

    fn check(&self, now: Time) -> Result<(), Broken> {
        let since = self.commands.iter().map(|(_, waiting)| waiting.since);
        self.station.check("array", now, since)?;
        self.back_end.check(now)
    }
}

impl Jobs {
    fn begin(&mut self, step: Step) -> u32 {
        if let Some(job) = self.free.pop() {
            self.jobs[job as usize].step = step;
            return job;
        }
        self.jobs.push(Job {
            accesses: 0,
            step,
            waiting: Vec::new(),
        });
        self.jobs.len() as u32 - 1
    }
}

/// A command's parts by stripe.
fn by_stripe(stripe_sectors: u64, command: &Command) -> impl Iterator<Item = (u64, Range)> {
    let (start, end) = (command.start, command.end());
    (start / stripe_sectors..end.div_ceil(stripe_sectors)).map(move |stripe| {
        let first = stripe * stripe_sectors;
        (
            stripe,
            start.max(first) - first..end.min(first + stripe_sectors) - first,
        )
    })
}

#[cfg(test)]
mod tests;
