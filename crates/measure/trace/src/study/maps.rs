//! What happened when: columns over time that widen instead of growing, and maps of latency and place over time.

use std::collections::BTreeMap;

use base::SECTOR_BYTES;
use serde::Serialize;

use super::keyed_values::KeyedValues;
use crate::event::Op;
use crate::request::Io;

/// Over time. All columns have `length` values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Maps {
    /// The length of each interval.
    pub interval_ns: u64,
    /// Reads handed to the driver (or that arrived) in each interval.
    pub reads: Vec<u64>,
    /// Writes.
    pub writes: Vec<u64>,
    /// Discards.
    pub discards: Vec<u64>,
    /// Bytes of the reads.
    pub bytes_read: Vec<u64>,
    /// Bytes of the writes.
    pub bytes_written: Vec<u64>,
    /// Bytes of the discards.
    pub bytes_discarded: Vec<u64>,
    /// Requests that the driver has: their sum over the nanoseconds of the interval.
    pub depth_ns: Vec<u64>,
    /// The most of them at once.
    pub depth_max: Vec<u64>,
    /// By interval, how many I/Os took how long: whole latency, or the device's if that is unknown. Row n counts those
    /// from 2^(n/2) us on.
    pub latency: Vec<Vec<u32>>,
    /// By interval, how many I/Os began in which part of the device.
    pub places: Vec<Vec<u32>>,
    /// Sectors of one part.
    pub place_sectors: u64,
    /// By task, requests in each interval; of the tasks that came first, all others as task 0.
    pub by_pid: BTreeMap<u32, Vec<u32>>,
    #[serde(skip)]
    counted: KeyedValues<u32, Vec<u32>>,
    #[serde(skip)]
    intervals_max: usize,
    /// An interval has 2 to that many nanoseconds, a place 2 to that many sectors.
    #[serde(skip)]
    interval_shift: u32,
    #[serde(skip)]
    place_shift: u32,
}

/// The default, unless finer maps are asked for.
pub const INTERVALS: usize = 1 << 10;
/// No finer maps: 12 MiB of counts.
pub const INTERVALS_MAX: usize = 1 << 14;
const FIRST_INTERVAL_SHIFT: u32 = 16;
const FIRST_PLACE_SHIFT: u32 = 11;
const LATENCIES: usize = 48;
const PLACES: usize = 128;
const PIDS: usize = 48;

impl Maps {
    /// Maps of at most this many intervals, an even number.
    pub(super) fn new(intervals_max: usize) -> Maps {
        Maps {
            intervals_max: intervals_max.clamp(2, INTERVALS_MAX) / 2 * 2,
            counted: KeyedValues::new(PIDS, 0),
            interval_shift: FIRST_INTERVAL_SHIFT,
            place_shift: FIRST_PLACE_SHIFT,
            ..Maps::default()
        }
    }

    /// An I/O arrives, this long after the trace began.
    #[inline]
    pub(super) fn arrived(&mut self, since_ns: u64, op: Op, pid: u32, sector: u64, sectors: u32) {
        let at = self.interval(since_ns);
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        match op {
            Op::Read => {
                *slot(&mut self.reads, at) += 1;
                *slot(&mut self.bytes_read, at) += bytes;
            }
            Op::Write => {
                *slot(&mut self.writes, at) += 1;
                *slot(&mut self.bytes_written, at) += bytes;
            }
            Op::Discard => {
                *slot(&mut self.discards, at) += 1;
                *slot(&mut self.bytes_discarded, at) += bytes;
            }
            _ => {}
        }
        if sectors > 0 {
            while sector >> self.place_shift >= PLACES as u64 {
                self.widen_places();
            }
            let place = (sector >> self.place_shift) as usize;
            let row = slot(&mut self.places, at);
            row.resize(PLACES, 0);
            row[place] += 1;
        }
        *slot(self.counted.of(pid), at) += 1;
    }

    /// One completed, this long after the trace began.
    #[inline]
    pub(super) fn completed(&mut self, since_ns: u64, io: &Io) {
        let [_, _, device, whole] = io.stages();
        let Some(latency_ns) = whole.or(device) else {
            return;
        };
        let at = self.interval(since_ns);
        let row = slot(&mut self.latency, at);
        row.resize(LATENCIES, 0);
        row[latency_row(latency_ns)] += 1;
    }

    /// The driver had this many requests from then to then.
    #[inline]
    pub(super) fn depth(&mut self, from_ns: u64, until_ns: u64, depth: u64) {
        if depth == 0 || until_ns <= from_ns {
            return;
        }
        self.interval(until_ns);
        let mut from_ns = from_ns;
        while from_ns < until_ns {
            let at = (from_ns >> self.interval_shift) as usize;
            let next_ns = (at as u64 + 1).saturating_mul(1 << self.interval_shift);
            let end_ns = until_ns.min(next_ns);
            *slot(&mut self.depth_ns, at) += depth * (end_ns - from_ns);
            let most = slot(&mut self.depth_max, at);
            *most = depth.max(*most);
            from_ns = end_ns;
        }
    }

    #[inline]
    fn interval(&mut self, since_ns: u64) -> usize {
        while since_ns >> self.interval_shift >= self.intervals_max as u64 {
            self.widen();
        }
        (since_ns >> self.interval_shift) as usize
    }

    /// Two intervals become one.
    fn widen(&mut self) {
        self.interval_shift += 1;
        let sums = [
            &mut self.reads,
            &mut self.writes,
            &mut self.discards,
            &mut self.bytes_read,
            &mut self.bytes_written,
            &mut self.bytes_discarded,
            &mut self.depth_ns,
        ];
        for sums in sums {
            *sums = sums.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        self.depth_max = pairs(&self.depth_max, |pair| pair.iter().copied().max().unwrap_or(0));
        for rows in [&mut self.latency, &mut self.places] {
            *rows = pairs(rows, added);
        }
        for counts in self.counted.values_mut() {
            *counts = pairs(counts, |pair| pair.iter().sum());
        }
    }

    /// Two parts of the device become one.
    fn widen_places(&mut self) {
        self.place_shift += 1;
        for row in &mut self.places {
            let mut halved: Vec<u32> = row.chunks(2).map(|pair| pair.iter().sum()).collect();
            halved.resize(row.len(), 0);
            *row = halved;
        }
    }

    /// All columns as long as the longest.
    pub(super) fn finish(&mut self) {
        self.interval_ns = 1 << self.interval_shift;
        self.place_sectors = 1 << self.place_shift;
        self.by_pid = std::mem::take(&mut self.counted).into_map();
        let lengths = [
            self.reads.len(),
            self.writes.len(),
            self.discards.len(),
            self.depth_ns.len(),
            self.latency.len(),
            self.places.len(),
        ];
        let by_pid = self.by_pid.values().map(Vec::len).max();
        let length = lengths.into_iter().chain(by_pid).max().unwrap_or(0);
        for column in [
            &mut self.reads,
            &mut self.writes,
            &mut self.discards,
            &mut self.bytes_read,
            &mut self.bytes_written,
            &mut self.bytes_discarded,
            &mut self.depth_ns,
            &mut self.depth_max,
        ] {
            column.resize(length, 0);
        }
        for (rows, width) in [(&mut self.latency, LATENCIES), (&mut self.places, PLACES)] {
            rows.resize(length, Vec::new());
            rows.iter_mut().for_each(|row| row.resize(width, 0));
        }
        for counts in self.by_pid.values_mut() {
            counts.resize(length, 0);
        }
    }
}

/// Row n is from 2^(n/2) us on.
fn latency_row(latency_ns: u64) -> usize {
    let us = (latency_ns / 1000).max(1);
    let whole = us.ilog2() as usize;
    // Above the root of two times the power, the next half.
    let half = usize::from(u128::from(us) * u128::from(us) >= 2u128 << (2 * whole));
    (2 * whole + half).min(LATENCIES - 1)
}

fn pairs<T, U>(values: &[T], of: impl Fn(&[T]) -> U) -> Vec<U> {
    values.chunks(2).map(of).collect()
}

fn added(pair: &[Vec<u32>]) -> Vec<u32> {
    let mut sum = pair[0].clone();
    if let Some(second) = pair.get(1) {
        sum.resize(sum.len().max(second.len()), 0);
        sum.iter_mut().zip(second).for_each(|(sum, more)| *sum += more);
    }
    sum
}

#[inline]
fn slot<T: Default + Clone>(values: &mut Vec<T>, at: usize) -> &mut T {
    if values.len() <= at {
        values.resize(at + 1, T::default());
    }
    &mut values[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_fall_into_halves_of_powers_of_two() {
        assert_eq!(latency_row(0), 0);
        assert_eq!(latency_row(1_999), 0);
        assert_eq!(latency_row(2_000), 2);
        assert_eq!(latency_row(3_000), 3);
        assert_eq!(latency_row(4_000), 4);
    }

    #[test]
    fn nothing_is_lost_when_intervals_and_places_widen() {
        for intervals in [INTERVALS, INTERVALS_MAX] {
            of_intervals(intervals);
        }
    }

    fn of_intervals(intervals: usize) {
        let mut maps = Maps::new(intervals);
        for step in 0..10_000u64 {
            maps.arrived(step * 1_000_000, Op::Read, (step % 100) as u32, step * 1000, 8);
        }
        maps.depth(0, 10_000_000_000, 3);
        maps.finish();
        assert!((intervals / 2..=intervals).contains(&maps.reads.len()));
        assert_eq!(maps.reads.iter().sum::<u64>(), 10_000);
        assert_eq!(maps.places.iter().flatten().sum::<u32>(), 10_000);
        assert_eq!(maps.by_pid.values().flatten().sum::<u32>(), 10_000);
        assert_eq!(maps.depth_ns.iter().sum::<u64>(), 30_000_000_000);
    }
}
