//! A disk array: a port, controllers with a cache, and disks behind them.
//!
//! A command waits its latency, takes a turn of a controller, and is looked at: reads come from the cache or make a job
//! that fetches lines from the disks; writes go into the cache, from which jobs destage stripes. Sequential reads are
//! recognised and fetched ahead. No primary source: the mechanisms are those that every such array documents, the
//! figures are estimates to be fitted (docs/model/array.md).

mod back_end;
mod dirty;
mod jobs;
mod layout;
mod reads;
mod spec;
mod streams;
#[cfg(test)]
mod tests;
mod writes;

use std::collections::VecDeque;

use crate::commands_inside::{CommandId, CommandsInside};
use crate::disk::Disk;
use crate::line_cache::LineCache;
use crate::server::{Link, Servers};
use crate::watermarks::Watermarks;
use crate::{Command, Completion, Device};
use back_end::BackEnd;
use block_layer::{Direction, SECTOR_BYTES, Sector};
use dirty::DirtyStripes;
use events::SpecError;
use events::event_queue::EventQueue;
use events::station::Violation;
use events::time::Time;
use jobs::Jobs;
use layout::{Layout, Piece};
pub use layout::{LayoutSpec, Level};
pub use spec::{ArrayCache, ArraySpec, ControllerSpec, MirrorSpec};
use streams::Streams;

/// A RAID array with its controllers, their cache and its disks, as one device.
#[derive(Clone, Debug)]
pub struct Array {
    spec: ArraySpec,
    events: EventQueue<Event>,
    inside: CommandsInside,
    controllers: Servers,
    port_in: Link,
    port_out: Link,
    mirror: Option<Link>,
    line_sectors: u64,
    lines: LineCache,
    streams: Streams,
    dirty: DirtyStripes,
    watermarks: Watermarks,
    destages: u32,
    flush_at: Option<Time>,
    for_room: VecDeque<CommandId>,
    layout: Layout,
    back_end: BackEnd,
    jobs: Jobs,
    /// Watermarks to work in, empty between uses.
    reads: Vec<Piece>,
    writes: Vec<Piece>,
    ended: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Look(CommandId),
    Complete(CommandId),
    Flush,
}

impl Array {
    /// An idle array with an empty cache. The error names the key that is wrong.
    pub fn new(spec: &ArraySpec) -> Result<Array, SpecError> {
        spec.check()?;
        let disk = Disk::new(&spec.disk).map_err(|error| error.within("disk"))?;
        let layout = Layout::new(&spec.layout, disk.sectors());
        Ok(Array {
            events: EventQueue::new(),
            inside: CommandsInside::default(),
            controllers: Servers::new(spec.controller.controllers),
            port_in: Link::new(spec.controller.port_bytes_per_s),
            port_out: Link::new(spec.controller.port_bytes_per_s),
            mirror: spec.cache.mirror.map(|mirror| Link::new(mirror.bytes_per_s)),
            line_sectors: spec.cache.line_bytes / SECTOR_BYTES,
            lines: LineCache::new(spec.cache.read_bytes / spec.cache.line_bytes),
            streams: Streams::new(&spec.cache),
            dirty: DirtyStripes::new(layout.stripe_sectors()),
            watermarks: Watermarks::new(
                spec.cache.write_bytes / SECTOR_BYTES,
                spec.cache.high_percent,
                spec.cache.low_percent,
            ),
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

    fn happens(&mut self, now: Time, event: Event, completed: &mut Vec<Completion>) {
        match event {
            Event::Look(id) => match self.inside.command(id).direction {
                Direction::Read => self.look_at_read(now, id),
                Direction::Write => self.look_at_write(now, id),
            },
            Event::Complete(id) => completed.push(self.inside.leave(now, id)),
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
        let id = self.inside.enter(now, command);
        let ControllerSpec { latency_ns, command_ns, .. } = self.spec.controller;
        let served_at = self.controllers.serve(now + latency_ns, command_ns);
        let at = match command.direction {
            Direction::Read => served_at,
            Direction::Write => self.port_in.carry(served_at, u64::from(command.sectors)),
        };
        self.events.put(at, Event::Look(id));
    }

    fn next_event(&self) -> Option<Time> {
        match (self.events.next_at(), self.back_end.next_event()) {
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
                    self.access_done(at, job);
                }
                self.ended = ended;
            } else if let Some((at, event)) = self.events.take() {
                self.happens(at, event, completed);
            }
        }
    }

    fn dirty_sectors(&self) -> u64 {
        self.dirty.sectors() + self.back_end.dirty_sectors()
    }

    fn check(&self, now: Time) -> Result<(), Violation> {
        self.inside.check("array", now)?;
        self.back_end.check(now)
    }
}
