//! How faithful a replay was.

use serde::Serialize;

use crate::traced::ScheduledIo;
use base::histogram::LatencyHistogram;
use base::time::Time;

/// An arrival is late that comes this long after it was due.
pub const LATE_NS: Time = 100_000;
/// The share of the I/Os whose end has to be known to determine the trace's own depth.
const ENDED_SHARE_MIN: f64 = 0.95;

/// How faithful the replay of a job was.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ReplayRecord {
    /// I/Os that were offered.
    pub arrivals: u64,
    /// The discards and writes of zeroes among them that the target does not take.
    pub refused: u64,
    /// The I/Os among them that came more than 100 us after they were due.
    pub arrivals_late: u64,
    /// The late ones that were due while all of the queue depth was in flight: the target was too slow, or the depth
    /// too small. The others came late because the thread did.
    pub arrivals_late_queue_full: u64,
    /// How long after they were due they were offered: the median in nanoseconds; absent without any.
    pub lateness_ns_p50: Option<u64>,
    /// The 99th percentile of the same.
    pub lateness_ns_p99: Option<u64>,
    /// The maximum of the same.
    pub lateness_ns_max: Option<u64>,
    /// Arrivals per second of the trace, its times scaled; absent of fewer than two.
    pub recorded_rate_per_s: Option<f64>,
    /// Arrivals per second of the replay; absent of fewer than two.
    pub replayed_rate_per_s: Option<f64>,
    /// I/Os in flight in the trace, averaged over time; absent if the trace does not report when they ended.
    pub recorded_depth_mean: Option<f64>,
    /// I/Os in flight in the replay, averaged over time.
    pub replayed_depth_mean: Option<f64>,
    /// By how many I/Os the depth differs on average, quantile by quantile of the time; absent where the trace's is.
    pub depth_distance: Option<f64>,
}

/// The results of a replay until now.
#[derive(Clone, Debug)]
pub(super) struct Fidelity {
    lateness: LatencyHistogram,
    late: u64,
    late_queue_full: u64,
    refused: u64,
    offered: Option<(Time, Time)>,
    planned: Option<(Time, Time)>,
    depth: Depth,
    recorded_depth: Option<Depth>,
}

/// Nanoseconds at each depth.
#[derive(Clone, Debug, Default)]
struct Depth {
    ns: Vec<u64>,
    now: usize,
    since: Option<Time>,
}

impl Fidelity {
    /// The fidelity of a replay of these I/Os of the trace, in the order of arrival.
    pub(super) fn new<'a>(ios: impl Iterator<Item = &'a ScheduledIo> + Clone) -> Fidelity {
        let count = ios.clone().count();
        let mut ends: Vec<Time> = ios.clone().filter_map(ScheduledIo::ended_ns).collect();
        ends.sort_unstable();
        let is_known = count > 0 && ends.len() as f64 >= ENDED_SHARE_MIN * count as f64;
        let recorded_depth = is_known.then(|| {
            let mut depth = Depth::default();
            let mut ends = ends.iter().copied().peekable();
            for io in ios.filter(|io| io.ended_ns().is_some()) {
                while let Some(end) = ends.next_if(|&end| end <= io.at_ns) {
                    depth.ended(end);
                }
                depth.began(io.at_ns);
            }
            ends.for_each(|end| depth.ended(end));
            depth
        });
        Fidelity {
            lateness: LatencyHistogram::new(),
            late: 0,
            late_queue_full: 0,
            refused: 0,
            offered: None,
            planned: None,
            depth: Depth::default(),
            recorded_depth,
        }
    }

    /// An I/O that was `due` is offered; `planned`: its scaled time in the trace; `full_until`: when the queue was full
    /// last.
    #[inline]
    pub(super) fn began(&mut self, now: Time, due: Time, planned: Time, full_until: Option<Time>) {
        let late = now.saturating_sub(due);
        self.lateness.record(late);
        if late > LATE_NS {
            self.late += 1;
            self.late_queue_full += u64::from(full_until.is_some_and(|until| due < until));
        }
        self.offered = Some((self.offered.map_or(now, |(first, _)| first), now));
        let (first, last) = self.planned.unwrap_or((planned, planned));
        self.planned = Some((first.min(planned), last.max(planned)));
        self.depth.began(now);
    }

    /// One is done.
    #[inline]
    pub(super) fn ended(&mut self, now: Time) {
        self.depth.ended(now);
    }

    /// One of those that are offered is nothing that the target does.
    pub(super) fn refused(&mut self) {
        self.refused += 1;
    }

    /// All until now.
    pub(super) fn record(&self) -> ReplayRecord {
        let arrivals = self.lateness.count();
        let rate = |span: Option<(Time, Time)>| {
            let (first, last) = span?;
            (last > first && arrivals > 1).then(|| (arrivals - 1) as f64 * 1e9 / (last - first) as f64)
        };
        let recorded = self.recorded_depth.as_ref();
        ReplayRecord {
            arrivals,
            refused: self.refused,
            arrivals_late: self.late,
            arrivals_late_queue_full: self.late_queue_full,
            lateness_ns_p50: self.lateness.quantile_ns(0.5),
            lateness_ns_p99: self.lateness.quantile_ns(0.99),
            lateness_ns_max: self.lateness.max_ns(),
            recorded_rate_per_s: rate(self.planned),
            replayed_rate_per_s: rate(self.offered),
            recorded_depth_mean: recorded.and_then(Depth::mean),
            replayed_depth_mean: self.depth.mean(),
            depth_distance: recorded.and_then(|recorded| recorded.distance(&self.depth)),
        }
    }
}

impl Depth {
    fn began(&mut self, now: Time) {
        self.pass(now);
        self.now += 1;
    }

    fn ended(&mut self, now: Time) {
        self.pass(now);
        self.now = self.now.saturating_sub(1);
    }

    #[inline]
    fn pass(&mut self, now: Time) {
        let passed = now.saturating_sub(self.since.unwrap_or(now));
        if self.ns.len() <= self.now {
            self.ns.resize(self.now + 1, 0);
        }
        self.ns[self.now] += passed;
        self.since = Some(self.since.map_or(now, |since| since.max(now)));
    }

    fn total_ns(&self) -> u64 {
        self.ns.iter().sum()
    }

    fn mean(&self) -> Option<f64> {
        let total = self.total_ns();
        let weighted: f64 = (0..).zip(&self.ns).map(|(d, &ns)| d as f64 * ns as f64).sum();
        (total > 0).then(|| weighted / total as f64)
    }

    /// Between the two distributions over time, by as much as it takes to turn one into the other (Wasserstein).
    fn distance(&self, other: &Depth) -> Option<f64> {
        let (mine, theirs) = (self.total_ns() as f64, other.total_ns() as f64);
        if mine == 0.0 || theirs == 0.0 {
            return None;
        }
        let (mut below, mut theirs_below, mut sum) = (0.0, 0.0, 0.0);
        for depth in 0..self.ns.len().max(other.ns.len()) {
            below += self.ns.get(depth).copied().unwrap_or(0) as f64 / mine;
            theirs_below += other.ns.get(depth).copied().unwrap_or(0) as f64 / theirs;
            sum += f64::abs(below - theirs_below);
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_two_depths_is_how_far_apart_they_are_on_average() {
        let steady = |depth: usize| Depth {
            ns: (0..=depth).map(|d| if d == depth { 1000 } else { 0 }).collect(),
            ..Depth::default()
        };
        assert_eq!(steady(4).distance(&steady(4)), Some(0.0));
        assert!((steady(4).distance(&steady(7)).unwrap() - 3.0).abs() < 1e-12);
        let half = Depth { ns: vec![500, 0, 500], ..Depth::default() };
        assert!((half.distance(&steady(2)).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(steady(1).distance(&Depth::default()), None);
    }
}
