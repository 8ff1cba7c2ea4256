//! A disk: one arm, a platter that turns like a clock, a segmented read cache that reads ahead, a write cache, and a
//! command queue.
//!
//! Two servers work at once: the mechanism, one command or one piece of cached data at a time, and the interface, which
//! moves data between the cache and the host. Parameters as in DiskSim's files; the order in which the mechanism serves
//! reads, writes and cached data is inferred. docs/model/disk.md has the rules.

mod choice;
mod mechanics;
mod queue;
mod read_cache;
mod seek;
mod spec;
mod test_disk;
#[cfg(test)]
mod tests;
mod turnaround;
mod write_cache;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::completion_times::CompletionTimes;
use crate::server::{Link, Servers};
use crate::{Command, Completion, Device};
use block_layer::{Direction, Sector};
use choice::Aging;
use events::SpecError;
use events::time::Time;
use mechanics::{Arm, Mechanics, PhysicalSector};
use queue::{CommandQueue, QueuedCommand};
use read_cache::ReadCache;
pub use spec::{Cache, DiskSpec, Order, Queue, Seek, Zone};
#[doc(hidden)]
pub use test_disk::test_disk;
use turnaround::Turnaround;
use write_cache::{Extent, WriteCache};

/// A disk with one arm: mechanics, command queue, read segments and write cache.
#[derive(Clone, Debug)]
pub struct Disk {
    spec: DiskSpec,
    /// The same for all disks of an array.
    mechanics: Arc<Mechanics>,
    aging: Aging,
    /// What answers commands from the cache, one at a time.
    controller: Servers,
    interface: Link,
    arm: Arm,
    turnaround: Turnaround,
    waiting: CommandQueue,
    work: Option<Work>,
    read_cache: ReadCache,
    write_cache: WriteCache,
    /// Writes that wait for room in the cache, and since when.
    for_room: VecDeque<(Time, Command)>,
    completing: CompletionTimes,
    /// The cache is being emptied.
    flush: Option<Flush>,
}

/// A flush of what was in the cache when the flush came.
#[derive(Clone, Copy, Debug)]
struct Flush {
    tag: u32,
    sectors_left: u64,
}

/// What the mechanism is doing.
#[derive(Clone, Copy, Debug)]
struct Work {
    ends_at: Time,
    of: ArmWork,
}

#[derive(Clone, Copy, Debug)]
enum ArmWork {
    Command(Command, Arm),
    Destage(Extent, Arm),
    /// Reading ahead as far as commands wait for.
    ReadAhead,
}

impl Disk {
    /// An idle disk with an empty cache. The error names the key that is wrong.
    pub fn new(spec: &DiskSpec) -> Result<Disk, SpecError> {
        spec.check()?;
        let mechanics = Mechanics::new(spec);
        Ok(Disk {
            aging: Aging::new(mechanics.positioning_ns_max(), spec.queue.age_limit_ns),
            mechanics: Arc::new(mechanics),
            controller: Servers::new(1),
            interface: Link::new(spec.interface_bytes_per_s),
            arm: Arm::default(),
            turnaround: Turnaround::default(),
            waiting: CommandQueue::new(spec.queue.order, spec.queue.depth),
            work: None,
            read_cache: ReadCache::new(&spec.cache),
            write_cache: WriteCache::new(&spec.cache),
            for_room: VecDeque::new(),
            completing: CompletionTimes::default(),
            flush: None,
            spec: spec.clone(),
        })
    }

    fn submit_read(&mut self, now: Time, command: Command) {
        if self.write_cache.holds(command.start, command.sectors) {
            return self.answer_read(now, &command);
        }
        if !self.answer_from_read_ahead(now, &command) {
            self.wait_for_mechanism(now, command);
        }
    }

    /// The command's data are in the cache.
    fn answer_read(&mut self, now: Time, command: &Command) {
        let ready_at = self.controller.serve(now, self.spec.hit_read_ns);
        self.over_interface(ready_at, command);
    }

    /// Answers from what was read, or from what is being read ahead; but as long as others wait for the arm, the latter
    /// only in turn.
    fn answer_from_read_ahead(&mut self, now: Time, command: &Command) -> bool {
        let (start, sectors) = (command.start, command.sectors);
        if self.read_cache.holds(&self.mechanics, now, start, sectors) {
            self.answer_read(now, command);
            return true;
        }
        if !self.waiting.is_empty() {
            return false;
        }
        let Some(read_at) = self.follow_read_ahead(now, command) else {
            return false;
        };
        let ready_at = self.controller.serve(now, self.spec.hit_read_ns);
        self.over_interface(ready_at.max(read_at), command);
        true
    }

    /// The disk is reading ahead, and continues until it has what the command wants: when it has that.
    fn follow_read_ahead(&mut self, now: Time, command: &Command) -> Option<Time> {
        let read_at = self.read_cache.follow(&self.mechanics, now, command.start, command.sectors)?;
        self.work =
            Some(Work { ends_at: self.work.map_or(read_at, |work| work.ends_at.max(read_at)), of: ArmWork::ReadAhead });
        Some(read_at)
    }

    fn submit_write(&mut self, now: Time, command: Command) {
        self.read_cache.forget(command.start, command.sectors);
        if !self.spec.cache.write_back || command.force_unit_access {
            self.write_cache.forget(&self.mechanics, command.start, command.sectors);
            // That may have made room.
            self.admit(now);
            self.wait_for_mechanism(now, command);
        } else if self.for_room.is_empty() && self.write_cache.has_room(command.sectors) {
            self.take_into_cache(now, command);
        } else {
            self.for_room.push_back((now, command));
        }
    }

    fn take_into_cache(&mut self, now: Time, command: Command) {
        self.write_cache.put(&self.mechanics, now, command.start, command.sectors);
        let ready_at = self.controller.serve(now, self.spec.hit_write_ns);
        self.over_interface(ready_at, &command);
    }

    fn wait_for_mechanism(&mut self, now: Time, command: Command) {
        let overhead_ns = match command.direction {
            Direction::Read => self.spec.command_read_ns,
            Direction::Write => self.spec.command_write_ns,
        };
        self.waiting.put(QueuedCommand {
            command,
            place: self.mechanics.place(command.start),
            arrived_at: now,
            ready_at: now + overhead_ns,
        });
    }

    /// The command's data move between cache and host from `ready_at` on, or as soon as the interface is free.
    fn over_interface(&mut self, ready_at: Time, command: &Command) {
        let at = self.interface.carry(ready_at, u64::from(command.sectors));
        self.completing.put(at, command.tag);
    }

    /// Gives the idle mechanism its next piece of work.
    fn start_work(&mut self, now: Time) {
        while self.work.is_none() {
            let ahead = self.read_cache.ahead(now);
            let command = self.waiting.next(&self.mechanics, now, self.arm, self.aging, self.turnaround, ahead);
            // Commands first, because a task waits for them; but a task waits for room in the cache too.
            // A cache that is being emptied comes first: FLUSH CACHE is not queued beside commands (ATA).
            let flushes = self.flush.is_some();
            let extent = match self.for_room.front() {
                _ if flushes || command.is_none() => self.nearest_extent(now),
                Some(&(since, _)) => self.extent_for_room(now, since),
                None => None,
            };
            match (command, extent) {
                (Some((at, cost)), Some((_, other))) if cost <= other && !flushes => self.start_command(now, at),
                (_, Some((order, _))) => self.start_destage(now, order),
                (Some((at, _)), None) => self.start_command(now, at),
                (None, None) => return,
            }
        }
    }

    fn nearest_extent(&self, now: Time) -> Option<(u64, i64)> {
        self.write_cache.nearest(&self.mechanics, now, self.arm, self.aging, self.turnaround)
    }

    /// What makes room for a write that has waited since then, at a cost as of the commands in the queue: what lies in the
    /// cache keeps nobody waiting, however long it has.
    fn extent_for_room(&self, now: Time, since: Time) -> Option<(u64, i64)> {
        let (order, cost) = self.nearest_extent(now)?;
        let cost = match self.spec.queue.order {
            Order::FirstCome => since as i64,
            Order::ShortestPositioning => {
                let lies_since = self.write_cache.since(order);
                cost + self.aging.worth_ns(now - lies_since) - self.aging.worth_ns(now - since)
            }
        };
        Some((order, cost))
    }

    fn start_command(&mut self, now: Time, at: usize) {
        let QueuedCommand { command, place, ready_at, .. } = self.waiting.take(at);
        let ready_at = ready_at.max(now);
        if command.direction == Direction::Read {
            if self.read_cache.holds(&self.mechanics, now, command.start, command.sectors) {
                return self.over_interface(ready_at, &command);
            }
            if let Some(read_at) = self.follow_read_ahead(now, &command) {
                return self.over_interface(ready_at.max(read_at), &command);
            }
        }
        let ready_at = self.turnaround.ready_at(command.start, ready_at);
        let (ends_at, arm) = self.move_data(ready_at, now, &place, command.sectors, command.direction);
        self.turn_around(command.start, command.sectors, ends_at);
        self.work = Some(Work { ends_at, of: ArmWork::Command(command, arm) });
    }

    fn start_destage(&mut self, now: Time, order: u64) {
        let extent = self.write_cache.take(order);
        // The disk has these data already: no command to parse.
        let ready_at = self.turnaround.ready_at(extent.start, now);
        let (ends_at, arm) = self.move_data(ready_at, now, &extent.place, extent.sectors, Direction::Write);
        self.turn_around(extent.start, extent.sectors, ends_at);
        self.work = Some(Work { ends_at, of: ArmWork::Destage(extent, arm) });
    }

    fn turn_around(&mut self, start: Sector, sectors: u32, ends_at: Time) {
        let next = start + Sector::from(sectors);
        self.turnaround = Turnaround::after(next, ends_at + self.spec.turnaround_ns);
    }

    /// Leaves off reading ahead, goes to the place and moves data between it and the buffer: when that ends, and where
    /// the arm is then.
    fn move_data(
        &mut self,
        ready_at: Time,
        now: Time,
        place: &PhysicalSector,
        sectors: u32,
        direction: Direction,
    ) -> (Time, Arm) {
        let (arm, left_off_at) = self.read_cache.stop_reading_ahead(&self.mechanics, now, self.arm);
        self.arm = arm;
        let ready_at = ready_at.max(left_off_at);
        let write = direction == Direction::Write;
        let positioned_at = ready_at + self.mechanics.positioning_ns(ready_at, self.arm, place, write);
        let (transfer_ns, arm) = self.mechanics.transfer(place, sectors);
        (positioned_at + transfer_ns, arm)
    }

    fn end_work(&mut self, now: Time, work: Work) {
        match work.of {
            ArmWork::Command(command, arm) if command.direction == Direction::Read => {
                self.arm = arm;
                self.read_cache.fill(&self.mechanics, now, command.start, command.sectors);
                // Data cross the interface while they come off the medium; the last sector's part is left.
                let sectors = u64::from(command.sectors);
                let (all_ns, rest_ns) = (self.interface.carry_ns(sectors), self.interface.carry_ns(1));
                let at = (self.interface.free_at() + all_ns).max(now + rest_ns);
                self.interface.keep_until(at);
                self.completing.put(at, command.tag);
            }
            ArmWork::Command(command, arm) => {
                self.arm = arm;
                self.completing.put(now, command.tag);
            }
            ArmWork::Destage(extent, arm) => {
                self.arm = arm;
                self.write_cache.written(extent);
                self.flushed(now, extent.sectors);
                self.admit(now);
            }
            ArmWork::ReadAhead => {}
        }
    }

    /// So much of the cache is on the medium.
    fn flushed(&mut self, now: Time, sectors: u32) {
        let Some(flush) = &mut self.flush else {
            return;
        };
        flush.sectors_left = flush.sectors_left.saturating_sub(u64::from(sectors));
        if flush.sectors_left == 0 || self.write_cache.sectors() == 0 {
            self.completing.put(now, flush.tag);
            self.flush = None;
        }
    }

    /// Takes writes that waited for room into the cache.
    fn admit(&mut self, now: Time) {
        while let Some(&(_, command)) = self.for_room.front() {
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
        self.start_work(now);
    }

    fn next_event(&self) -> Option<Time> {
        let completion = self.completing.next_at();
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
        self.completing.take_due(now, completed);
    }

    fn flush(&mut self, now: Time, tag: u32) -> bool {
        if !self.spec.cache.write_back {
            return false;
        }
        match self.write_cache.sectors() {
            0 => self.completing.put(now + self.spec.hit_write_ns, tag),
            sectors_left => self.flush = Some(Flush { tag, sectors_left }),
        }
        self.start_work(now);
        true
    }

    fn dirty_sectors(&self) -> u64 {
        self.write_cache.sectors()
    }
}
