//! A disk: one arm, a platter that turns like a clock, a segmented read cache that reads ahead, a write cache, and a
//! command queue.
//!
//! Two servers work at once: the mechanism, one command or one piece of cached data at a time, and the interface, which
//! moves data between the cache and the host. Source: note on disk models (DiskSim's parameter files); the order in
//! which the mechanism serves reads, writes and cached data is inferred.

mod mechanics;
mod read_cache;
mod spec;
mod write_cache;

use std::collections::VecDeque;

use crate::block::{Direction, SECTOR_BYTES, Sector};
use crate::device::{Command, Completion, Device};
use crate::time::{SECOND, Time};
use mechanics::{Arm, Mechanics, Place};
use read_cache::{Hit, ReadCache};
pub use spec::{Cache, DiskSpec, Impossible, Order, Queue, Seek, Zone};
use write_cache::{Extent, WriteCache};

#[derive(Clone, Debug)]
pub struct Disk {
    spec: DiskSpec,
    mechanics: Mechanics,
    ns_per_interface_sector: f64,
    arm: Arm,
    /// Waiting for the mechanism.
    waiting: Vec<Waiting>,
    work: Option<Work>,
    read_cache: ReadCache,
    write_cache: WriteCache,
    /// Writes that wait for room in the cache.
    for_room: VecDeque<Command>,
    /// What completes when, in order of time.
    completing: VecDeque<(Time, u32)>,
    interface_free_at: Time,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    command: Command,
    place: Place,
    arrived_at: Time,
}

/// What the mechanism is doing.
#[derive(Clone, Copy, Debug)]
struct Work {
    ends_at: Time,
    arm: Arm,
    of: WorkOf,
}

#[derive(Clone, Copy, Debug)]
enum WorkOf {
    Command(Command),
    Destage(Extent),
}

impl Disk {
    pub fn new(spec: &DiskSpec) -> Result<Disk, Impossible> {
        spec.check()?;
        Ok(Disk {
            mechanics: Mechanics::new(spec),
            ns_per_interface_sector: SECTOR_BYTES as f64 * SECOND as f64
                / spec.interface_bytes_per_s as f64,
            arm: Arm::default(),
            waiting: Vec::with_capacity(spec.queue.depth as usize),
            work: None,
            read_cache: ReadCache::new(&spec.cache),
            write_cache: WriteCache::new(&spec.cache),
            for_room: VecDeque::new(),
            completing: VecDeque::new(),
            interface_free_at: 0,
            spec: spec.clone(),
        })
    }

    /// What is in the write cache only, in sectors.
    pub fn dirty_sectors(&self) -> u64 {
        self.write_cache.sectors()
    }

    fn submit_read(&mut self, now: Time, command: Command) {
        if self.write_cache.holds(command.start, command.sectors) {
            return self.over_interface(now + self.spec.hit_read_ns, &command);
        }
        match self.read_cache.look_up(now, command.start, command.sectors) {
            Hit::At(ready_at) => {
                self.over_interface(ready_at.max(now + self.spec.hit_read_ns), &command);
            }
            Hit::Miss => self.wait_for_mechanism(now, command),
        }
    }

    fn submit_write(&mut self, now: Time, command: Command) {
        self.read_cache.forget(command.start, command.sectors);
        if !self.spec.cache.write_back || command.force_unit_access {
            self.write_cache
                .forget(&self.mechanics, command.start, command.sectors);
            self.wait_for_mechanism(now, command);
        } else if self.for_room.is_empty() && self.write_cache.has_room(command.sectors) {
            self.take_into_cache(now, command);
        } else {
            self.for_room.push_back(command);
        }
    }

    fn take_into_cache(&mut self, now: Time, command: Command) {
        self.write_cache
            .put(&self.mechanics, command.start, command.sectors);
        self.over_interface(now + self.spec.hit_write_ns, &command);
    }

    fn wait_for_mechanism(&mut self, now: Time, command: Command) {
        self.waiting.push(Waiting {
            command,
            place: self.mechanics.place(command.start),
            arrived_at: now,
        });
    }

    /// The command's data moves between cache and host from `ready_at` on, or as soon as the interface is free.
    fn over_interface(&mut self, ready_at: Time, command: &Command) {
        let begins_at = ready_at.max(self.interface_free_at);
        self.interface_free_at =
            begins_at + (f64::from(command.sectors) * self.ns_per_interface_sector) as Time;
        self.complete_at(self.interface_free_at, command.tag);
    }

    fn complete_at(&mut self, at: Time, tag: u32) {
        let place = self.completing.partition_point(|&(other, _)| other <= at);
        self.completing.insert(place, (at, tag));
    }

    /// Gives the idle mechanism its next piece of work.
    fn start_work(&mut self, now: Time) {
        // Commands first: somebody waits for them, unless writes wait for room.
        let command = if self.for_room.is_empty() || self.write_cache.is_empty() {
            self.next_command(now)
        } else {
            None
        };
        let (place, sectors, direction, overhead_ns, of) = if let Some(at) = command {
            let Waiting { command, place, .. } = self.waiting.swap_remove(at);
            let overhead_ns = match command.direction {
                Direction::Read => self.spec.command_read_ns,
                Direction::Write => self.spec.command_write_ns,
            };
            (
                place,
                command.sectors,
                command.direction,
                overhead_ns,
                WorkOf::Command(command),
            )
        } else if let Some(extent) = self.write_cache.nearest(&self.mechanics, now, self.arm) {
            // The disk knows what it holds: no command to take apart.
            (
                extent.place,
                extent.sectors,
                Direction::Write,
                0,
                WorkOf::Destage(extent),
            )
        } else {
            return;
        };
        self.arm = self
            .read_cache
            .stop_reading_ahead(&self.mechanics, now, self.arm);
        let ready_at = now + overhead_ns;
        let write = direction == Direction::Write;
        let positioned_at = ready_at
            + self
                .mechanics
                .positioning_ns(ready_at, self.arm, &place, write);
        let (transfer_ns, arm) = self.mechanics.transfer(&place, sectors);
        self.work = Some(Work {
            ends_at: positioned_at + transfer_ns,
            arm,
            of,
        });
    }

    /// Which of the waiting commands: the oldest, or the one that the arm and the platter reach first.
    fn next_command(&self, now: Time) -> Option<usize> {
        let (oldest, first) = self
            .waiting
            .iter()
            .enumerate()
            .min_by_key(|(_, waiting)| waiting.arrived_at)?;
        let by_age = self.spec.queue.order == Order::FirstCome
            || now - first.arrived_at >= self.spec.queue.age_limit_ns;
        if by_age || self.waiting.len() == 1 {
            return Some(oldest);
        }
        let (nearest, _) = self
            .waiting
            .iter()
            .map(|Waiting { command, place, .. }| {
                let write = command.direction == Direction::Write;
                self.mechanics.positioning_ns(now, self.arm, place, write)
            })
            .enumerate()
            .min_by_key(|&(_, time)| time)?;
        Some(nearest)
    }

    fn end_work(&mut self, now: Time, work: Work) {
        self.arm = work.arm;
        match work.of {
            WorkOf::Command(command) if command.direction == Direction::Read => {
                self.read_cache
                    .fill(&self.mechanics, now, command.start, command.sectors);
                // Data crosses the interface while they come off the medium; the last sector's part is left.
                let rest = self.ns_per_interface_sector as Time;
                self.interface_free_at = self.interface_free_at.max(now + rest);
                self.complete_at(self.interface_free_at, command.tag);
            }
            WorkOf::Command(command) => self.complete_at(now, command.tag),
            WorkOf::Destage(extent) => {
                self.write_cache.written(extent);
                self.admit(now);
            }
        }
    }

    /// Takes writes that waited for room into the cache.
    fn admit(&mut self, now: Time) {
        while let Some(&command) = self.for_room.front() {
            if !self.write_cache.has_room(command.sectors) {
                return;
            }
            self.for_room.pop_front();
            self.take_into_cache(now, command);
        }
    }
}

impl Device for Disk {
    fn sectors(&self) -> Sector {
        self.mechanics.sectors()
    }

    fn queue_depth(&self) -> u32 {
        self.spec.queue.depth
    }

    fn submit(&mut self, now: Time, command: Command) {
        match command.direction {
            Direction::Read => self.submit_read(now, command),
            Direction::Write => self.submit_write(now, command),
        }
        if self.work.is_none() {
            self.start_work(now);
        }
    }

    fn next_event(&self) -> Option<Time> {
        let completion = self.completing.front().map(|&(at, _)| at);
        let work = self.work.map(|work| work.ends_at);
        match (completion, work) {
            (Some(completion), Some(work)) => Some(completion.min(work)),
            (one, other) => one.or(other),
        }
    }

    fn advance(&mut self, now: Time, completed: &mut Vec<Completion>) {
        while let Some(work) = self.work.filter(|work| work.ends_at <= now) {
            self.work = None;
            self.end_work(work.ends_at, work);
            self.start_work(work.ends_at);
        }
        while let Some((_, tag)) = self
            .completing
            .front()
            .filter(|(at, _)| *at <= now)
            .copied()
        {
            self.completing.pop_front();
            completed.push(Completion { tag, failed: false });
        }
    }
}

/// 100 cylinders of two surfaces and 200 of two, 10 ms a revolution.
#[cfg(test)]
pub(crate) fn test_disk() -> DiskSpec {
    DiskSpec {
        revolutions_per_minute: 6000,
        surfaces: 2,
        zones: vec![
            Zone {
                cylinders: 100,
                sectors_per_track: 100,
            },
            Zone {
                cylinders: 200,
                sectors_per_track: 80,
            },
        ],
        seeks: vec![
            Seek {
                cylinders: 1,
                time_ns: 1_000_000,
            },
            Seek {
                cylinders: 100,
                time_ns: 5_000_000,
            },
        ],
        head_switch_ns: 1_000_000,
        write_settle_ns: 500_000,
        command_read_ns: 100_000,
        command_write_ns: 100_000,
        hit_read_ns: 50_000,
        hit_write_ns: 50_000,
        interface_bytes_per_s: 100_000_000,
        cache: Cache {
            segments: 4,
            segment_sectors: 200,
            read_ahead_sectors: 200,
            write_back: false,
            dirty_sectors_max: 400,
        },
        queue: Queue {
            depth: 32,
            order: Order::ShortestPositioning,
            age_limit_ns: 1_000_000_000,
        },
    }
}

#[cfg(test)]
mod tests;
