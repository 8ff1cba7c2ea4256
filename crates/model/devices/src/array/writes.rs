//! Writes: into the cache and from there to the disks in stripes, or through.

use crate::Command;
use crate::array::jobs::Step;
use crate::array::layout::Range;
use crate::array::{Array, Event};
use crate::commands_inside::CommandId;
use block_layer::Direction;
use events::time::Time;

impl Array {
    pub(super) fn look_at_write(&mut self, now: Time, id: CommandId) {
        let command = self.inside.command(id);
        if self.spec.cache.write_bytes == 0 {
            return self.write_through(now, id);
        }
        if self.for_room.is_empty() && self.has_room(&command) {
            self.take_write(now, id);
        } else {
            self.for_room.push_back(id);
        }
        self.destage(now);
    }

    /// The cache keeps its data without power: force-unit-access writes are acknowledged from it too.
    fn take_write(&mut self, now: Time, id: CommandId) {
        let command = self.inside.command(id);
        self.put_lines(&command);
        let stripe_sectors = self.layout.stripe_sectors();
        for (stripe, range) in by_stripe(stripe_sectors, &command) {
            self.dirty.put(now, stripe, range);
        }
        let at = match (&mut self.mirror, &self.spec.cache.mirror) {
            (Some(link), Some(mirror)) => link.carry(now, u64::from(command.sectors)) + mirror.latency_ns,
            _ => now,
        };
        self.events.put(at, Event::Complete(id));
    }

    fn write_through(&mut self, now: Time, id: CommandId) {
        let command = self.inside.command(id);
        self.put_lines(&command);
        let stripe_sectors = self.layout.stripe_sectors();
        // All of them before the first begins.
        for _ in by_stripe(stripe_sectors, &command) {
            self.inside.await_part(id);
        }
        for (stripe, range) in by_stripe(stripe_sectors, &command) {
            self.write_stripe(now, stripe, vec![range], Some(id));
        }
    }

    /// Lines that are written whole are here from now on.
    fn put_lines(&mut self, command: &Command) {
        let (first, end) = (command.start.div_ceil(self.line_sectors), command.end() / self.line_sectors);
        for line in first..end {
            self.lines.put(line);
        }
    }

    fn has_room(&self, command: &Command) -> bool {
        self.watermarks.fits(self.dirty.sectors(), u64::from(command.sectors))
    }

    /// Full stripes go to the disks at once, as waiting can't make them cheaper; others above the high mark and from
    /// there down to the low one, when a task waits for room, and when they are old.
    pub(super) fn destage(&mut self, now: Time) {
        let somebody_waits = !self.for_room.is_empty();
        let draining = self.watermarks.drains(self.dirty.sectors(), somebody_waits);
        while self.destages < self.spec.cache.destages_max {
            let old = || self.dirty.oldest().is_some_and(|since| since + self.spec.cache.dirty_ns_max <= now);
            let any = draining || old();
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
            self.events.put(at, Event::Flush);
        }
    }

    fn write_stripe(&mut self, now: Time, stripe: u64, ranges: Vec<Range>, whose: Option<CommandId>) {
        self.layout.write(stripe, &ranges, &mut self.reads, &mut self.writes);
        let gather = !self.reads.is_empty();
        let job = self.jobs.begin(if gather { Step::Gather { stripe, ranges } } else { Step::Write { stripe } });
        if let Some(id) = whose {
            self.jobs.wait_for(job, id);
        }
        let (mut reads, mut writes) = (std::mem::take(&mut self.reads), std::mem::take(&mut self.writes));
        if gather {
            self.send(now, Direction::Read, &reads, job);
        } else {
            self.send(now, Direction::Write, &writes, job);
        }
        reads.clear();
        writes.clear();
        (self.reads, self.writes) = (reads, writes);
    }

    /// All that the parity is made of has been read.
    pub(super) fn write_gathered(&mut self, now: Time, stripe: u64, ranges: &[Range], job: u32) {
        self.layout.write(stripe, ranges, &mut self.reads, &mut self.writes);
        self.reads.clear();
        let mut writes = std::mem::take(&mut self.writes);
        self.send(now, Direction::Write, &writes, job);
        writes.clear();
        self.writes = writes;
    }

    /// The disks have what the cache held of a stripe: writes that waited for room get it.
    pub(super) fn destaged(&mut self, now: Time, stripe: u64) {
        self.destages -= 1;
        self.dirty.destaged(stripe);
        while let Some(&id) = self.for_room.front() {
            if !self.has_room(&self.inside.command(id)) {
                return;
            }
            self.for_room.pop_front();
            self.take_write(now, id);
        }
    }
}

/// A command's parts by stripe.
fn by_stripe(stripe_sectors: u64, command: &Command) -> impl Iterator<Item = (u64, Range)> {
    let (start, end) = (command.start, command.end());
    (start / stripe_sectors..end.div_ceil(stripe_sectors)).map(move |stripe| {
        let first = stripe * stripe_sectors;
        (stripe, start.max(first) - first..end.min(first + stripe_sectors) - first)
    })
}
