//! The read cache: segments of consecutive sectors, one of which may be growing while the disk reads ahead.

use crate::disk::mechanics::{Arm, Mechanics};
use crate::disk::spec::Cache;
use block_layer::Sector;
use events::time::Time;

#[derive(Clone, Debug)]
pub(super) struct ReadCache {
    segments: Vec<Segment>,
    segments_max: usize,
    segment_sectors: u64,
    read_ahead_sectors: u64,
    read_ahead_min_sectors: u64,
    ahead: Option<GrowingSegment>,
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
struct GrowingSegment {
    /// Index of the segment that grows.
    segment: usize,
    from: Sector,
    /// Where it stops by itself.
    to: Sector,
    /// Where it stops at the earliest, whatever waits.
    at_least: Sector,
    since: Time,
    ns_per_sector: f64,
}

/// How far reading ahead has got, for the choice of the next command.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAheadPosition {
    from: Sector,
    reached: Sector,
    to: Sector,
    ns_per_sector: f64,
}

impl ReadCache {
    pub(super) fn new(spec: &Cache) -> ReadCache {
        ReadCache {
            segments: Vec::with_capacity(spec.segments as usize),
            segments_max: spec.segments as usize,
            segment_sectors: u64::from(spec.segment_sectors),
            read_ahead_sectors: u64::from(spec.read_ahead_sectors),
            read_ahead_min_sectors: u64::from(spec.read_ahead_min_sectors),
            ahead: None,
            clock: 0,
        }
    }

    /// Whether the sectors have been read. If they were read ahead, the disk continues reading.
    pub(super) fn holds(&mut self, mechanics: &Mechanics, now: Time, start: Sector, sectors: u32) -> bool {
        let end = start + u64::from(sectors);
        let growing = self.ahead.as_ref().map(|ahead| (ahead.segment, ahead.reached(now)));
        let Some(found) = (0..self.segments.len()).find(|&number| {
            let segment = &self.segments[number];
            let reached = match growing {
                Some((growing, reached)) if growing == number => reached.max(segment.end),
                _ => segment.end,
            };
            // Both at once: which of them fails is no pattern, and guessing wrong costs more than looking.
            (segment.start <= start) & (end <= reached)
        }) else {
            return false;
        };
        self.read_on(mechanics, now, found, start, end);
        true
    }

    /// When the sectors will have been read, if going on with reading ahead leads to them: the wait is then for the
    /// medium, not for the arm.
    pub(super) fn follow(&mut self, mechanics: &Mechanics, now: Time, start: Sector, sectors: u32) -> Option<Time> {
        let end = start + u64::from(sectors);
        let ahead = self.ahead.as_ref()?;
        let found = ahead.segment;
        if start < self.segments[found].start || ahead.to < start {
            return None;
        }
        self.read_on(mechanics, now, found, start, end);
        self.ahead.as_ref().map(|ahead| ahead.reaches(end))
    }

    fn read_on(&mut self, mechanics: &Mechanics, now: Time, segment: usize, start: Sector, end: Sector) {
        self.clock += 1;
        self.segments[segment].used = self.clock;
        if let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.segment == segment) {
            ahead.extend(mechanics, now, end, self.read_ahead_sectors);
            ahead.at_least = ahead.at_least.max((end + self.read_ahead_min_sectors).min(ahead.to));
            self.keep_within_segment(segment, start);
        }
    }

    /// What the disk is reading ahead at `now`, if it is.
    pub(super) fn ahead(&self, now: Time) -> Option<ReadAheadPosition> {
        let ahead = self.ahead.as_ref()?;
        Some(ReadAheadPosition {
            from: self.segments[ahead.segment].start,
            reached: ahead.reached(now),
            to: ahead.to,
            ns_per_sector: ahead.ns_per_sector,
        })
    }

    /// The disk has read these sectors, and continues reading until something else is wanted of it.
    pub(super) fn fill(&mut self, mechanics: &Mechanics, now: Time, start: Sector, sectors: u32) {
        if self.segments_max == 0 {
            return;
        }
        self.clock += 1;
        let end = start + u64::from(sectors);
        let used = self.clock;
        let segment = match self.segments.iter().position(|s| (s.start <= start) & (start <= s.end)) {
            Some(extended) => {
                self.segments[extended].end = self.segments[extended].end.max(end);
                extended
            }
            None => self.emptied(start, end),
        };
        self.segments[segment].used = used;
        self.keep_within_segment(segment, start);
        let to = (end + self.read_ahead_sectors).min(mechanics.sectors());
        self.ahead = (to > end).then(|| GrowingSegment {
            segment,
            from: end,
            to,
            at_least: (end + self.read_ahead_min_sectors).min(to),
            since: now,
            ns_per_sector: mechanics.streaming_ns_per_sector(end),
        });
    }

    /// Something else is wanted of the mechanism: what has been read stays, and what the disk reads ahead in any case is read
    /// first. Returns where and when that left the arm.
    pub(super) fn stop_reading_ahead(&mut self, mechanics: &Mechanics, now: Time, arm: Arm) -> (Arm, Time) {
        let Some(ahead) = self.ahead.take() else {
            return (arm, now);
        };
        let stops_at = match ahead.at_least > ahead.from {
            true => now.max(ahead.reaches(ahead.at_least)),
            false => now,
        };
        let reached = match stops_at > now {
            true => ahead.at_least,
            false => ahead.reached(now),
        };
        let segment = &mut self.segments[ahead.segment];
        segment.end = segment.end.max(reached);
        self.keep_within_segment(ahead.segment, reached);
        (mechanics.place(reached.max(1) - 1).arm(), stops_at)
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
            Some(ahead) if std::ptr::eq(&self.segments[ahead.segment], segment) => ahead.to.max(segment.end),
            _ => segment.end,
        }
    }

    /// The segment that was used longest ago, or a new one, now holding `start..end`.
    fn emptied(&mut self, start: Sector, end: Sector) -> usize {
        let segment = Segment { start, end, used: 0 };
        if self.segments.len() < self.segments_max {
            self.segments.push(segment);
            return self.segments.len() - 1;
        }
        let oldest =
            (0..self.segments.len()).min_by_key(|&number| self.segments[number].used).expect("there is a segment");
        self.segments[oldest] = segment;
        oldest
    }

    /// A segment is a ring: what lies furthest before the place in use is overwritten.
    fn keep_within_segment(&mut self, number: usize, in_use: Sector) {
        let reach = self.end_of(&self.segments[number]);
        let segment = &mut self.segments[number];
        segment.start = segment.start.max(reach.saturating_sub(self.segment_sectors).min(in_use));
    }
}

impl GrowingSegment {
    /// When the sectors before `end` have been read.
    fn reaches(&self, end: Sector) -> Time {
        self.since + (end.saturating_sub(self.from) as f64 * self.ns_per_sector) as Time
    }

    /// Up to where the disk has read at `now`.
    fn reached(&self, now: Time) -> Sector {
        let read = (now.saturating_sub(self.since) as f64 / self.ns_per_sector) as u64;
        (self.from + read).min(self.to)
    }

    /// Goes on to at least `end`, and as far again beyond it as ever. Had it come to its end and stopped, the platter has to come round.
    fn extend(&mut self, mechanics: &Mechanics, now: Time, end: Sector, read_ahead_sectors: u64) {
        let to = (end + read_ahead_sectors).min(mechanics.sectors()).max(end);
        if to <= self.to {
            return;
        }
        let stopped_at = self.reaches(self.to);
        if now > stopped_at {
            let next = mechanics.place(self.to);
            self.since = now + mechanics.positioning_ns(now, self.arm_at_end(mechanics), &next, false);
            self.from = self.to;
            self.ns_per_sector = mechanics.streaming_ns_per_sector(self.from);
        }
        self.to = to;
    }

    fn arm_at_end(&self, mechanics: &Mechanics) -> Arm {
        mechanics.place(self.to.max(1) - 1).arm()
    }
}

impl ReadAheadPosition {
    /// Whether reading on gets there.
    #[inline]
    pub(super) fn leads_to(&self, start: Sector) -> bool {
        self.from <= start && start <= self.to
    }

    #[inline]
    pub(super) fn ns_to(&self, start: Sector) -> Time {
        (start.saturating_sub(self.reached) as f64 * self.ns_per_sector) as Time
    }
}
