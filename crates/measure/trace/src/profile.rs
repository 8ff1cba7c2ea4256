//! Which functions ran, interval by interval: a burst is not averaged away.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::intervals::{Absorb, Intervals};

/// Takes stack samples. Its memory is the number of distinct stacks per interval.
#[derive(Clone, Debug)]
pub struct Profile {
    started_ns: u64,
    samples_lost: u64,
    intervals: Intervals<StackCounts>,
}

/// Samples by stack.
#[derive(Clone, Debug, Default)]
struct StackCounts(BTreeMap<u32, u64>);

/// A whole recording. docs/reference/probes.md explains each field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ProfileReport {
    /// Length of the recording in nanoseconds.
    pub elapsed_ns: u64,
    /// The last interval may be shorter.
    pub interval_ns: u64,
    /// Samples of all CPUs.
    pub samples: u64,
    /// Samples that the kernel had no room for.
    pub samples_lost: u64,
    /// The series of `all` CPUs.
    pub series: BTreeMap<&'static str, Series>,
    /// By the interval where each ran most itself, as many as `FUNCTIONS_MAX`, less those that never have `SHARE_MIN` of an
    /// interval's samples.
    pub functions: Vec<FunctionReport>,
}

/// Samples over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ProfileSeries")]
pub struct Series {
    /// Begin of each interval, since the start of the recording.
    pub at_ns: Vec<u64>,
    /// A value per interval and column.
    pub columns: Columns,
}

/// What happened in each interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ProfileColumns")]
pub struct Columns {
    /// The length of the interval; the last may be shorter.
    pub length_s: Vec<f64>,
    /// Samples of the interval.
    pub samples: Vec<u64>,
}

/// Shares are of all samples of the interval, or of the whole recording: 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FunctionReport {
    /// The function's name.
    pub function: String,
    /// Samples in which it ran itself.
    pub own: u64,
    /// Samples in which it ran itself or had called what ran.
    pub total: u64,
    /// `own` as a share of all samples.
    pub own_share: f64,
    /// `total` as a share of all samples.
    pub total_share: f64,
    /// The share in the interval that has most of the samples, among those with at least half of the mean number of
    /// samples.
    pub own_share_max: f64,
    /// The same of `total`.
    pub total_share_max: f64,
    /// The share in each interval; null if it has no sample.
    pub own_shares: Vec<Option<f64>>,
    /// The same of `total`.
    pub total_shares: Vec<Option<f64>>,
}

impl Profile {
    /// `started_ns`: on the samples' clock; times in the report count from there.
    pub fn new(started_ns: u64, interval_ns: u64) -> Profile {
        Profile { started_ns, samples_lost: 0, intervals: Intervals::new(started_ns, interval_ns) }
    }

    /// A stack that was seen; `stack_id` is the caller's name for it.
    pub fn add(&mut self, at_ns: u64, stack_id: u32) {
        *self.intervals.at(at_ns).0.entry(stack_id).or_default() += 1;
    }

    /// Counts samples that the kernel had no room for.
    pub fn lost(&mut self, samples: u64) {
        self.samples_lost += samples;
    }

    /// `frames_of`: a stack's functions, innermost first, by the name that `add` got.
    pub fn finish(self, ended_ns: u64, frames_of: impl Fn(u32) -> Vec<String>) -> ProfileReport {
        let items = self.intervals.items();
        let samples: Vec<u64> = items.iter().map(|item| item.0.values().sum()).collect();
        let stacks: BTreeSet<u32> = items.iter().flat_map(|item| item.0.keys().copied()).collect();
        let frames: BTreeMap<u32, Vec<String>> = stacks.iter().map(|&id| (id, frames_of(id))).collect();
        let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            for (stack_id, &count) in &item.0 {
                let functions = &frames[stack_id];
                // A function that calls itself is in the sample once.
                let distinct: BTreeSet<&str> = functions.iter().map(String::as_str).collect();
                for function in distinct {
                    counts.entry(function).or_insert_with(|| Counts::new(items.len())).total[index] += count;
                }
                if let Some(innermost) = functions.first().and_then(|function| counts.get_mut(function.as_str())) {
                    innermost.own[index] += count;
                }
            }
        }
        let reports = counts.into_iter().map(|(function, counts)| counts.report(function, &samples));
        let mut functions: Vec<FunctionReport> = reports.filter(|report| report.total_share_max >= SHARE_MIN).collect();
        functions.sort_by(|a, b| {
            let by_own = b.own_share_max.total_cmp(&a.own_share_max);
            by_own.then(b.total.cmp(&a.total))
        });
        functions.truncate(FUNCTIONS_MAX);
        let elapsed_ns = ended_ns.saturating_sub(self.started_ns);
        let (at_ns, width_ns) = (self.intervals.starts_ns(), self.intervals.width_ns());
        let length_s = |start_ns: &u64| elapsed_ns.saturating_sub(*start_ns).clamp(1, width_ns) as f64 / 1e9;
        let series = Series {
            columns: Columns { length_s: at_ns.iter().map(length_s).collect(), samples: samples.clone() },
            at_ns,
        };
        ProfileReport {
            elapsed_ns,
            interval_ns: width_ns,
            samples: samples.iter().sum(),
            samples_lost: self.samples_lost,
            series: [("all", series)].into(),
            functions,
        }
    }
}

/// A function's samples in each interval.
struct Counts {
    own: Vec<u64>,
    total: Vec<u64>,
}

impl Counts {
    fn new(intervals: usize) -> Counts {
        Counts { own: vec![0; intervals], total: vec![0; intervals] }
    }

    fn report(&self, function: &str, samples: &[u64]) -> FunctionReport {
        let all: u64 = samples.iter().sum();
        let share = |count: u64, of: u64| (of > 0).then(|| count as f64 / of as f64);
        let shares = |counts: &[u64]| -> Vec<Option<f64>> {
            counts.iter().zip(samples).map(|(&count, &of)| share(count, of)).collect()
        };
        let (own, total) = (self.own.iter().sum(), self.total.iter().sum());
        // Of few samples, as in a short last interval, every share is large.
        let many = |of: u64| 2 * of * samples.len() as u64 >= all;
        let peak = |counts: &[u64]| {
            let sampled = counts.iter().zip(samples).filter(|&(_, &of)| many(of));
            let shares = sampled.filter_map(|(&count, &of)| share(count, of));
            shares.fold(0.0, f64::max)
        };
        let (own_shares, total_shares) = (shares(&self.own), shares(&self.total));
        FunctionReport {
            function: function.to_owned(),
            own,
            total,
            own_share: share(own, all).unwrap_or(0.0),
            total_share: share(total, all).unwrap_or(0.0),
            own_share_max: peak(&self.own),
            total_share_max: peak(&self.total),
            own_shares,
            total_shares,
        }
    }
}

impl Absorb for StackCounts {
    fn absorb(&mut self, later: StackCounts) {
        for (stack_id, count) in later.0 {
            *self.0.entry(stack_id).or_default() += count;
        }
    }
}

/// Functions that never have as much of an interval are noise.
const SHARE_MIN: f64 = 0.01;
const FUNCTIONS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(stack_id: u32) -> Vec<String> {
        let functions: &[&str] = match stack_id {
            1 => &["copy", "write", "syscall"],
            2 => &["log_force", "sync", "syscall"],
            _ => &["walk", "walk", "syscall"],
        };
        functions.iter().map(|&function| function.to_owned()).collect()
    }

    /// Ten seconds of `copy`, of which one is `log_force` instead.
    fn burst() -> ProfileReport {
        let mut profile = Profile::new(1_000, 1_000_000_000);
        for sample in 0..1000u64 {
            let second = sample / 100;
            profile.add(1_000 + sample * 10_000_000, if second == 7 { 2 } else { 1 });
        }
        profile.finish(10_000_001_000, frames)
    }

    #[test]
    fn a_burst_shows_in_its_interval() {
        let report = burst();
        let found = report.functions.iter().find(|row| row.function == "log_force");
        let found = found.expect("a function that had a whole second");
        assert_eq!((found.own, found.own_share, found.total_share_max), (100, 0.1, 1.0));
        assert_eq!(found.own_shares[7], Some(1.0));
        assert_eq!(found.own_shares[6], Some(0.0));
        assert_eq!(report.series["all"].columns.samples, vec![100; 10]);
    }

    #[test]
    fn callers_have_the_samples_of_what_they_call() {
        let report = burst();
        let found = report.functions.iter().find(|row| row.function == "syscall");
        let syscall = found.expect("a function that was always on the stack");
        assert_eq!((syscall.function.as_str(), syscall.own, syscall.total), ("syscall", 0, 1000));
    }

    #[test]
    fn a_recursive_function_is_in_a_sample_once() {
        let mut profile = Profile::new(0, 10);
        profile.add(0, 3);
        let report = profile.finish(10, frames);
        assert!(report.functions.iter().all(|row| row.total == 1));
    }

    #[test]
    fn a_short_interval_is_no_burst() {
        let mut profile = Profile::new(0, 100);
        (0..200).for_each(|at_ns| profile.add(at_ns, 1));
        profile.add(201, 2);
        let report = profile.finish(202, frames);
        assert!(report.functions.iter().all(|row| row.function != "log_force"));
    }

    #[test]
    fn an_interval_without_samples_has_no_shares() {
        let mut profile = Profile::new(0, 10);
        profile.add(25, 1);
        let report = profile.finish(30, frames);
        assert_eq!(report.functions[0].total_shares, vec![None, None, Some(1.0)]);
    }
}
