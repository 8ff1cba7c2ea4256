//! The read cache: segments of consecutive sectors, one of which may be growing while the disk reads ahead.

use crate::block::Sector;
use crate::device::disk::mechanics::{Arm, Mechanics};
use crate::device::disk::spec::Cache;
use crate::time::Time;

#[derive(Clone, Debug)]
pub(super) struct ReadCache {
    segments: Vec<Segment>,
    segments_max: usize,
    segment_sectors: u64,
    read_ahead_sectors: u64,
    ahead: Option<Ahead>,
    /// Counts look-ups and fills: when a segment was used last.
    clock: u64,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    start: Sector,
    end: Sector,
    used: u64,
}

/// Reading on behind what was asked for.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// Index of the segment that grows.
    segment: usize,
    from: Sector,
    /// Where it stops by itself.
    to: Sector,
    since: Time,
    ns_per_sector: f64,
}

/// When data are in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    At(Time),
    Miss,
}

impl ReadCache {
    pub(super) fn new(spec: &Cache) -> ReadCache {
        ReadCache {
            segments: Vec::with_capacity(spec.segments as usize),
            segments_max: spec.segments as usize,
            segment_sectors: u64::from(spec.segment_sectors),
            read_ahead_sectors: u64::from(spec.read_ahead_sectors),
            ahead: None,
            clock: 0,
        }
    }

    /// Whether the sectors are here, or will be when the disk has read ahead that far.
    pub(super) fn look_up(&mut self, now: Time, start: Sector, sectors: u32) -> Hit {
        let end = start + u64::from(sectors);
        let Some(found) = self
            .segments
            .iter()
            .position(|segment| segment.start <= start && end <= self.end_of(segment))
        else {
            return Hit::Miss;
        };
        self.clock += 1;
        self.segments[found].used = self.clock;
        match self.ahead.filter(|ahead| ahead.segment == found) {
            Some(mut ahead) => {
                let ready_at = ahead.reaches(end);
                // It goes on reading as far beyond what was asked for last.
                ahead.to = ahead.to.max(end + self.read_ahead_sectors);
                self.ahead = Some(ahead);
                self.keep_within_segment(found, start);
                Hit::At(ready_at.max(now))
            }
            None => Hit::At(now),
        }
    }

    /// The disk has read these sectors, and goes on reading until something else is wanted of it.
    pub(super) fn fill(&mut self, mechanics: &Mechanics, now: Time, start: Sector, sectors: u32) {
        if self.segments_max == 0 {
            return;
        }
        self.clock += 1;
        let end = start + u64::from(sectors);
        let used = self.clock;
        let segment = match self
            .segments
            .iter()
            .position(|s| s.start <= start && start <= s.end)
        {
            Some(grown) => {
                self.segments[grown].end = self.segments[grown].end.max(end);
                grown
            }
            None => self.emptied(start, end),
        };
        self.segments[segment].used = used;
        self.keep_within_segment(segment, start);
        let to = (end + self.read_ahead_sectors).min(mechanics.sectors());
        self.ahead = (to > end).then(|| Ahead {
            segment,
            from: end,
            to,
            since: now,
            ns_per_sector: mechanics.streaming_ns_per_sector(&mechanics.place(end)),
        });
    }

    /// Something else is wanted of the mechanism: what has been read stays. Returns where that left the arm.
    pub(super) fn stop_reading_ahead(&mut self, mechanics: &Mechanics, now: Time, arm: Arm) -> Arm {
        let Some(ahead) = self.ahead.take() else {
            return arm;
        };
        let reached = ahead.reached(now);
        let segment = &mut self.segments[ahead.segment];
        segment.end = segment.end.max(reached);
        self.keep_within_segment(ahead.segment, reached);
        let place = mechanics.place(reached.max(1) - 1);
        Arm {
            cylinder: place.cylinder,
            surface: place.surface,
        }
    }

    /// These sectors are being written: what is held of them is old.
    pub(super) fn forget(&mut self, start: Sector, sectors: u32) {
        let end = start + u64::from(sectors);
        for number in 0..self.segments.len() {
            let reach = self.end_of(&self.segments[number]);
            let segment = &mut self.segments[number];
            if segment.start < end && start < reach {
                // The part before stays.
                segment.end = segment.end.min(start.max(segment.start));
                if self.ahead.is_some_and(|ahead| ahead.segment == number) {
                    self.ahead = None;
                }
            }
        }
    }

    /// Where the segment ends, or will when the disk has read ahead.
    fn end_of(&self, segment: &Segment) -> Sector {
        match self.ahead {
            Some(ahead) if std::ptr::eq(&self.segments[ahead.segment], segment) => {
                ahead.to.max(segment.end)
            }
            _ => segment.end,
        }
    }

    /// The segment that was used longest ago, or a new one, now holding `start..end`.
    fn emptied(&mut self, start: Sector, end: Sector) -> usize {
        let segment = Segment {
            start,
            end,
            used: 0,
        };
        if self.segments.len() < self.segments_max {
            self.segments.push(segment);
            return self.segments.len() - 1;
        }
        let oldest = (0..self.segments.len())
            .min_by_key(|&number| self.segments[number].used)
            .expect("there is a segment");
        self.segments[oldest] = segment;
        oldest
    }

    /// A segment is a ring: what lies furthest before the place in use is overwritten.
    fn keep_within_segment(&mut self, number: usize, in_use: Sector) {
        let reach = self.end_of(&self.segments[number]);
        let segment = &mut self.segments[number];
        segment.start = segment
            .start
            .max(reach.saturating_sub(self.segment_sectors).min(in_use));
    }
}

impl Ahead {
    /// When the sectors before `end` have been read.
    fn reaches(&self, end: Sector) -> Time {
        self.since + (end.saturating_sub(self.from) as f64 * self.ns_per_sector) as Time
    }

    /// Up to where the disk has read at `now`.
    fn reached(&self, now: Time) -> Sector {
        let read = ((now - self.since) as f64 / self.ns_per_sector) as u64;
        (self.from + read).min(self.to)
    }
}
