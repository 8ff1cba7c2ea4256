//! A time series of constant memory: what completed in each interval.

use std::collections::BTreeMap;
use std::mem::take;

use crate::job::OpKind;
use base::histogram::{LatencyHistogram, SparseHistogram};
use base::time::Time;

/// Fixed number of intervals at most; their width doubles when there would be more.
#[derive(Clone, Debug)]
pub struct Timeline {
    finished: Vec<Interval>,
    width_ns: Time,
    /// The interval being recorded.
    start_ns: Time,
    end_ns: Time,
    current: [Recorder; KINDS],
    /// Before the measured time: what is recorded is thrown away.
    warming_up: bool,
}

/// What completed from `start_ns` to before `start_ns + length_ns`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// The interval's start, since the start of the phase.
    pub start_ns: Time,
    /// Its length in nanoseconds.
    pub length_ns: Time,
    /// Reads that completed in it.
    pub read: Activity,
    /// Writes that completed in it.
    pub write: Activity,
    /// fsync and fdatasync.
    pub sync: Activity,
    /// Discards, and zeroes that were written without data.
    pub discard: Activity,
    /// Null operations, whatever they stand for.
    pub null: Activity,
    /// Records of a log that became durable.
    pub commit: Activity,
}

/// The completed operations of one kind in one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Bytes transferred.
    pub bytes: u64,
    /// A latency per operation.
    pub latency: SparseHistogram,
}

/// The sum over intervals.
#[derive(Clone, Debug, Default)]
pub struct Total {
    /// Bytes transferred.
    pub bytes: u64,
    /// A latency per operation.
    pub latency: LatencyHistogram,
}

/// The sums over all intervals, by kind of operation.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Reads.
    pub read: Total,
    /// Writes.
    pub write: Total,
    /// fsync and fdatasync.
    pub sync: Total,
    /// Discards, and zeroes that were written without data.
    pub discard: Total,
    /// Null operations.
    pub null: Total,
    /// Records of a log that became durable.
    pub commit: Total,
}

/// Most intervals that a timeline keeps. Even, so that pairs fit.
pub const INTERVALS_MAX: usize = 256;

const KINDS: usize = 6;
const NULL_ROW: usize = 4;
const COMMIT_ROW: usize = 5;

impl Timeline {
    /// Measures from `start_ns` on; completions before are forgotten. `width_ns` of 0 is taken as 1.
    pub fn new(start_ns: Time, width_ns: Time) -> Timeline {
        let width_ns = width_ns.max(1);
        let warming_up = start_ns > 0;
        Timeline {
            finished: Vec::new(),
            width_ns,
            start_ns: if warming_up { 0 } else { start_ns },
            end_ns: if warming_up { start_ns } else { width_ns },
            current: Default::default(),
            warming_up,
        }
    }

    /// An operation completed at `now`, successfully. `now` should not go back; what comes late counts in the interval
    /// that is open.
    #[inline]
    pub fn record(&mut self, now: Time, kind: OpKind, bytes: u32, latency_ns: u64) {
        self.record_row(now, row(kind), bytes, latency_ns);
    }

    /// A null operation completed; `bytes` are those that it names, as it moves none.
    #[inline]
    pub fn record_null(&mut self, now: Time, bytes: u32, latency_ns: u64) {
        self.record_row(now, NULL_ROW, bytes, latency_ns);
    }

    /// A record of a log became durable; `bytes` are its own.
    #[inline]
    pub fn record_commit(&mut self, now: Time, bytes: u32, latency_ns: u64) {
        self.record_row(now, COMMIT_ROW, bytes, latency_ns);
    }

    #[inline(always)]
    fn record_row(&mut self, now: Time, row: usize, bytes: u32, latency_ns: u64) {
        if now >= self.end_ns {
            self.roll(now);
        }
        let current = &mut self.current[row];
        current.latency.record(latency_ns);
        current.bytes += u64::from(bytes);
    }

    /// The whole series; the last interval ends at `now`.
    pub fn finish(mut self, now: Time) -> Vec<Interval> {
        if now >= self.end_ns {
            self.roll(now);
        }
        if !self.warming_up {
            self.end_ns = now.max(self.start_ns);
            let last = self.close();
            if last.length_ns > 0 || last.ops() > 0 {
                self.finished.push(last);
            }
        }
        self.finished
    }

    #[cold]
    fn roll(&mut self, now: Time) {
        while now >= self.end_ns {
            let interval = self.close();
            if !take(&mut self.warming_up) {
                self.finished.push(interval);
                if self.finished.len() == INTERVALS_MAX {
                    self.double();
                }
            }
            self.start_ns = self.end_ns;
            self.end_ns = self.start_ns.saturating_add(self.width_ns);
        }
    }

    fn close(&mut self) -> Interval {
        let [read, write, sync, discard, null, commit] = self.current.each_mut().map(Recorder::take);
        Interval {
            start_ns: self.start_ns,
            length_ns: self.end_ns - self.start_ns,
            read,
            write,
            sync,
            discard,
            null,
            commit,
        }
    }

    fn double(&mut self) {
        self.finished = self.finished.chunks_exact(2).map(|pair| pair[0].merged(&pair[1])).collect();
        self.width_ns = self.width_ns.saturating_mul(2);
    }
}

#[derive(Clone, Debug, Default)]
struct Recorder {
    bytes: u64,
    latency: LatencyHistogram,
}

impl Recorder {
    fn take(&mut self) -> Activity {
        let activity = Activity { bytes: take(&mut self.bytes), latency: self.latency.to_sparse() };
        self.latency.reset();
        activity
    }
}

#[inline]
fn row(kind: OpKind) -> usize {
    match kind {
        OpKind::Read => 0,
        OpKind::Write | OpKind::DurableWrite | OpKind::OsyncWrite => 1,
        OpKind::Fsync | OpKind::Fdatasync | OpKind::SyncFileRange => 2,
        OpKind::Discard | OpKind::WriteZeroes => 3,
    }
}

impl Interval {
    /// The first nanosecond after the interval.
    pub fn end_ns(&self) -> Time {
        self.start_ns + self.length_ns
    }

    /// Operations of all kinds that completed in it. A commit is none: it is what writes and a sync came to.
    pub fn ops(&self) -> u64 {
        [&self.read, &self.write, &self.sync, &self.discard, &self.null]
            .map(|activity| activity.latency.count())
            .iter()
            .sum()
    }

    /// What either did, over the time from the start of the earlier to the end of the later.
    pub fn merged(&self, other: &Interval) -> Interval {
        let start_ns = self.start_ns.min(other.start_ns);
        Interval {
            start_ns,
            length_ns: self.end_ns().max(other.end_ns()) - start_ns,
            read: self.read.merged(&other.read),
            write: self.write.merged(&other.write),
            sync: self.sync.merged(&other.sync),
            discard: self.discard.merged(&other.discard),
            null: self.null.merged(&other.null),
            commit: self.commit.merged(&other.commit),
        }
    }
}

impl Activity {
    fn merged(&self, other: &Activity) -> Activity {
        Activity { bytes: self.bytes + other.bytes, latency: self.latency.merged(&other.latency) }
    }
}

impl Total {
    /// Adds what one interval saw.
    pub fn add(&mut self, activity: &Activity) {
        self.bytes += activity.bytes;
        self.latency.merge_sparse(&activity.latency);
    }
}

/// What completed in those intervals that begin at `from_ns` or later.
pub fn totals<'a>(intervals: impl IntoIterator<Item = &'a Interval>, from_ns: Time) -> Totals {
    let mut totals = Totals::default();
    for interval in intervals.into_iter().filter(|interval| interval.start_ns >= from_ns) {
        totals.read.add(&interval.read);
        totals.write.add(&interval.write);
        totals.sync.add(&interval.sync);
        totals.discard.add(&interval.discard);
        totals.null.add(&interval.null);
        totals.commit.add(&interval.commit);
    }
    totals
}

/// One series of several jobs that were recorded side by side. Widths may differ by powers of two, because a series
/// doubles its own when it is full; the widest one decides.
pub fn merge(series: &[Vec<Interval>]) -> Vec<Interval> {
    let firsts = || series.iter().filter_map(|intervals| intervals.first());
    let origin_ns = firsts().map(|first| first.start_ns).min().unwrap_or(0);
    let width_ns = firsts().map(|first| first.length_ns).max().unwrap_or(0).max(1);
    let mut together: BTreeMap<Time, Interval> = BTreeMap::new();
    for interval in series.iter().flatten() {
        let place = (interval.start_ns - origin_ns) / width_ns;
        together
            .entry(place)
            .and_modify(|others| *others = others.merged(interval))
            .or_insert_with(|| interval.clone());
    }
    together.into_values().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDTH_NS: u64 = 100;

    fn kinds() -> impl Strategy<Value = OpKind> {
        prop::sample::select(vec![OpKind::Read, OpKind::Write, OpKind::Fsync, OpKind::Fdatasync, OpKind::Discard])
    }

    /// Gaps from dense to far beyond the memory of the series.
    fn completions() -> impl Strategy<Value = Vec<(u64, OpKind, u32, u64)>> {
        let gap = prop_oneof![0..30u64, 0..3_000u64, Just(100_000)];
        prop::collection::vec((gap, kinds(), 0..100_000u32, 0..1_000_000u64), 0..400).prop_map(|mut list| {
            let mut now = 0;
            for completion in &mut list {
                now += completion.0;
                completion.0 = now;
            }
            list
        })
    }

    fn record(completions: &[(u64, OpKind, u32, u64)], start_ns: u64) -> Vec<Interval> {
        let mut timeline = Timeline::new(start_ns, WIDTH_NS);
        for &(now, kind, bytes, latency_ns) in completions {
            timeline.record(now, kind, bytes, latency_ns);
        }
        timeline.finish(completions.last().map_or(0, |last| last.0))
    }

    fn total_of(completions: &[(u64, OpKind, u32, u64)], row_wanted: usize) -> Total {
        let mut total = Total::default();
        for &(_, kind, bytes, latency_ns) in completions {
            if row(kind) == row_wanted {
                total.bytes += u64::from(bytes);
                total.latency.record(latency_ns);
            }
        }
        total
    }

    proptest! {
        #[test]
        fn nothing_is_lost_when_the_width_doubles(completions in completions()) {
            let totals = totals(&record(&completions, 0), 0);
            for (row, found) in [totals.read, totals.write, totals.sync, totals.discard].into_iter().enumerate() {
                let expected = total_of(&completions, row);
                prop_assert_eq!(found.bytes, expected.bytes);
                prop_assert_eq!(found.latency, expected.latency);
            }
        }

        #[test]
        fn intervals_are_contiguous_few_and_equally_wide(completions in completions()) {
            let intervals = record(&completions, 0);
            prop_assert!(intervals.len() <= INTERVALS_MAX);
            for pair in intervals.windows(2) {
                prop_assert_eq!(pair[0].end_ns(), pair[1].start_ns);
                prop_assert_eq!(pair[0].length_ns, intervals[0].length_ns);
                prop_assert!((pair[0].length_ns / WIDTH_NS).is_power_of_two());
            }
        }

        #[test]
        fn each_completion_is_in_its_interval(completions in completions()) {
            for interval in record(&completions, 0) {
                let inside = |now: u64| now >= interval.start_ns && now < interval.end_ns().max(interval.start_ns + 1);
                let expected = completions.iter().filter(|completion| inside(completion.0)).count() as u64;
                // The very last completion is where the last interval ends.
                let at_the_end = completions.iter().filter(|completion| completion.0 == interval.end_ns()).count();
                prop_assert!((expected..=expected + at_the_end as u64).contains(&interval.ops()));
            }
        }

        #[test]
        fn warm_up_is_forgotten(completions in completions(), start_ns in 1..5_000u64) {
            let measured: Vec<_> = completions.iter().copied().filter(|completion| completion.0 >= start_ns).collect();
            let intervals = record(&completions, start_ns);
            prop_assert!(intervals.iter().all(|interval| interval.start_ns >= start_ns));
            prop_assert_eq!(intervals.iter().map(Interval::ops).sum::<u64>(), measured.len() as u64);
        }

        #[test]
        fn merged_series_keep_everything(a in completions(), b in completions()) {
            let merged = merge(&[record(&a, 0), record(&b, 0)]);
            prop_assert!(merged.len() <= INTERVALS_MAX + 1);
            prop_assert!(merged.is_sorted_by_key(|interval| interval.start_ns));
            prop_assert_eq!(merged.iter().map(Interval::ops).sum::<u64>(), (a.len() + b.len()) as u64);
        }
    }

    #[test]
    fn a_stall_is_an_interval_with_nothing_in_it() {
        let read = |now| (now, OpKind::Read, 1000, 5);
        let intervals = record(&[read(50), read(350), read(360), read(450)], 0);
        assert_eq!(intervals.iter().map(Interval::ops).collect::<Vec<_>>(), [1, 0, 0, 2, 1]);
    }
}
