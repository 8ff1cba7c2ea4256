//! Where the CPUs' time goes, of each and of all: shares over time, with interrupts, switches and clock frequency.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Times;
use super::columns::{Columns, SampledSeries};
use super::series::{Interval, Level, Reading, Series};

/// Where a CPU's time goes, as mpstat divides it. The kernel counts guests' time under user and nice too; here it is
/// taken out of them, so that the states add up.
pub const STATES: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];

/// In the order of [`STATES`], in ticks or another unit of time.
pub type Ticks = [u64; STATES.len()];

const USER: usize = 0;
const NICE: usize = 1;
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const STEAL: usize = 7;
const GUEST: usize = 8;
const GUEST_NICE: usize = 9;

/// What /proc/stat counts since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// By number; those offline are not shown.
    pub cpus: BTreeMap<u32, Ticks>,
    /// Interrupts served, on all CPUs.
    pub interrupts: u64,
    /// Context switches, on all CPUs.
    pub context_switches: u64,
}

/// The CPUs at a point in time.
#[derive(Clone, Debug)]
pub struct CpuReading {
    /// The counters since boot.
    pub stat: Stat,
    /// Mean clock frequency of the CPUs; None if the kernel does not report it.
    pub frequency_hz: Option<Level>,
}

/// What docs/reference/probes.md describes as the observation of `cpu`.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct CpuObservation {
    /// When and how often it was read.
    pub times: Times,
    /// At the last reading.
    pub cpus_online: usize,
    /// The unit in which the kernel counts.
    pub ticks_per_s: u64,
    /// The frequency of the clock; null if nothing reports it.
    pub frequency: Option<Frequency>,
    /// Shares of the whole time, by CPU (`cpu0`, ...) and of `all`.
    pub means: BTreeMap<String, Shares>,
    /// The same over time, of `all` with `busy_cpus`, `interrupts_per_s` and `switches_per_s`.
    pub series: BTreeMap<String, SampledSeries>,
}

/// By state (`user_percent`, ...), percent of the time; null if no tick passed.
pub type Shares = BTreeMap<String, Option<f64>>;

/// The clock frequency of the CPUs, a mean over them.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Frequency {
    /// Mean over time.
    pub hz_mean: f64,
    /// The highest reading.
    pub hz_max: f64,
    /// The source of the frequency.
    pub source: String,
}

/// Values that all CPUs' series have together: a machine with many has fewer, longer intervals.
const POINTS_MAX: usize = 4096;
const INTERVALS_MIN: usize = 32;
const INTERVALS_MAX: usize = 256;

/// Most intervals to be kept of this many CPUs.
pub fn intervals_max(cpus: usize) -> usize {
    (POINTS_MAX / (cpus + 1)).clamp(INTERVALS_MIN, INTERVALS_MAX)
}

impl Reading for CpuReading {
    fn absorb(&mut self, later: CpuReading) {
        self.stat = later.stat;
        match (&mut self.frequency_hz, later.frequency_hz) {
            (Some(known), Some(later)) => known.absorb(later),
            (known, later) => *known = known.or(later),
        }
    }
}

/// By CPU and of `all`, over the whole time: percent by state, and how many CPUs were busy.
pub fn means(series: &Series<CpuReading>) -> BTreeMap<String, Shares> {
    let mut sums: BTreeMap<u32, Ticks> = BTreeMap::new();
    for interval in series.intervals() {
        for (cpu, passed) in passed(&interval) {
            let sum = sums.entry(cpu).or_default();
            sum.iter_mut().zip(passed).for_each(|(sum, more)| *sum += more);
        }
    }
    let each = sums.iter().map(|(cpu, sum)| (name(*cpu), shares(sum)));
    std::iter::once(("all".to_owned(), shares(&together(&sums)))).chain(each).collect()
}

fn shares(passed: &Ticks) -> Shares {
    let share = |(state, percent): (&&str, _)| (percent_column(state), percent);
    STATES.iter().zip(percents(passed)).map(share).collect()
}

/// By CPU and of `all`: columns over time. A CPU has no value for an interval at whose ends it was not online.
pub fn series(series: &Series<CpuReading>) -> BTreeMap<String, SampledSeries> {
    let mut all = Columns::default();
    let mut by_cpu: BTreeMap<u32, Columns> = BTreeMap::new();
    for interval in series.intervals() {
        let (passed, seconds) = (passed(&interval), interval.seconds());
        all.begin(&interval);
        add_shares(&mut all, &together(&passed));
        all.set("busy_cpus", Some(busy_cpus(&passed)));
        let (before, after) = (&interval.before.stat, &interval.after.stat);
        let per_s = |before: u64, after: u64| Some(after.saturating_sub(before) as f64 / seconds);
        all.set("interrupts_per_s", per_s(before.interrupts, after.interrupts));
        all.set("switches_per_s", per_s(before.context_switches, after.context_switches));
        for cpu in passed.keys() {
            by_cpu.entry(*cpu).or_default();
        }
    }
    for interval in series.intervals() {
        let passed = passed(&interval);
        for (cpu, columns) in &mut by_cpu {
            columns.begin(&interval);
            if let Some(passed) = passed.get(cpu) {
                add_shares(columns, passed);
            }
        }
    }
    let each = by_cpu.into_iter().map(|(cpu, columns)| (name(cpu), columns));
    let together = std::iter::once(("all".to_owned(), all)).chain(each);
    together.map(|(name, columns)| (name, columns.finish())).collect()
}

fn add_shares(columns: &mut Columns, passed: &Ticks) {
    for (state, percent) in STATES.iter().zip(percents(passed)) {
        columns.set(&percent_column(state), percent);
    }
}

/// None if no tick passed.
fn percents(passed: &Ticks) -> [Option<f64>; STATES.len()] {
    let total: u64 = passed.iter().sum();
    passed.map(|ticks| (total > 0).then(|| 100.0 * ticks as f64 / total as f64))
}

/// Each CPU by its own ticks: without ticks, or if they are late, seconds would not add up.
fn busy_cpus(passed: &BTreeMap<u32, Ticks>) -> f64 {
    let share = |ticks: &Ticks| match ticks.iter().sum::<u64>() {
        0 => 0.0,
        total => busy(ticks) as f64 / total as f64,
    };
    passed.values().map(share).sum()
}

/// The ticks that passed on CPUs that are online at both ends.
fn passed(interval: &Interval<'_, CpuReading>) -> BTreeMap<u32, Ticks> {
    let before = &interval.before.stat.cpus;
    let after = interval.after.stat.cpus.iter();
    after.filter_map(|(cpu, after)| Some((*cpu, between(before.get(cpu)?, after)))).collect()
}

fn together(by_cpu: &BTreeMap<u32, Ticks>) -> Ticks {
    std::array::from_fn(|state| by_cpu.values().map(|ticks| ticks[state]).sum())
}

/// Mean over time of the CPUs' mean; None without a source.
pub fn frequency(source: &str, series: &Series<CpuReading>) -> Option<Frequency> {
    let pooled = series.readings().filter_map(|reading| reading.frequency_hz).reduce(|mut sum, level| {
        sum.absorb(level);
        sum
    });
    pooled.map(|level| Frequency { hz_mean: level.mean(), hz_max: level.max, source: source.to_owned() })
}

fn name(cpu: u32) -> String {
    format!("cpu{cpu}")
}

fn percent_column(state: &str) -> String {
    format!("{state}_percent")
}

/// What passed between two readings of a CPU. Counters of idle time are known to go back now and then (proc(5)), and
/// when a CPU comes online again: that counts as nothing.
pub fn between(before: &Ticks, after: &Ticks) -> Ticks {
    let mut passed: Ticks = std::array::from_fn(|state| after[state].saturating_sub(before[state]));
    passed[USER] = passed[USER].saturating_sub(passed[GUEST]);
    passed[NICE] = passed[NICE].saturating_sub(passed[GUEST_NICE]);
    passed
}

/// The ticks in which the CPU worked: neither idle nor taken away by the hypervisor.
pub fn busy(passed: &Ticks) -> u64 {
    let working = |&(state, _): &(usize, &u64)| ![IDLE, IOWAIT, STEAL].contains(&state);
    let states = passed.iter().enumerate().filter(working);
    states.fold(0, |sum, (_, &ticks)| sum.saturating_add(ticks))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// Interrupts, switches, and of each CPU its number and the states that it has used.
    type Read<'a> = (u64, u64, &'a [(u32, &'a [u64])]);

    fn reading(&(interrupts, context_switches, cpus): &Read) -> CpuReading {
        let cpus = cpus.iter().map(|&(cpu, used)| {
            let mut ticks = Ticks::default();
            ticks[..used.len()].copy_from_slice(used);
            (cpu, ticks)
        });
        CpuReading { stat: Stat { cpus: cpus.collect(), interrupts, context_switches }, frequency_hz: None }
    }

    fn observed(readings: &[Read]) -> Series<CpuReading> {
        let mut series = Series::new(0, reading(&readings[0]), Duration::from_secs(1), 8);
        for (second, read) in readings.iter().enumerate().skip(1) {
            series.add(second as u64 * 1_000_000_000, reading(read));
        }
        series
    }

    #[test]
    fn shares_add_up_and_the_busy_are_counted() {
        let found = observed(&[
            (10, 5, &[(0, &[0, 0, 0, 0]), (1, &[0, 0, 0, 0])]),
            (110, 1005, &[(0, &[50, 0, 25, 25]), (1, &[0, 0, 0, 90, 10])]),
        ]);
        let (series, means) = (series(&found), means(&found));
        let all = &series["all"].columns;
        assert_eq!(all["user_percent"], [Some(25.0)]);
        assert_eq!(all["iowait_percent"], [Some(5.0)]);
        assert_eq!(all["busy_cpus"], [Some(0.75)]);
        assert_eq!(all["interrupts_per_s"], [Some(100.0)]);
        assert_eq!(all["switches_per_s"], [Some(1000.0)]);
        assert_eq!(series["cpu1"].columns["idle_percent"], [Some(90.0)]);
        assert_eq!(means["cpu0"]["system_percent"], Some(25.0));
        assert_eq!(means["all"]["idle_percent"], Some(57.5));
    }

    #[test]
    fn a_cpu_that_goes_offline_and_comes_back_has_gaps() {
        let found = observed(&[
            (0, 0, &[(0, &[0, 0, 0, 0]), (1, &[0, 0, 0, 0])]),
            (0, 0, &[(0, &[10, 0, 0, 90]), (1, &[100, 0, 0, 0])]),
            (0, 0, &[(0, &[20, 0, 0, 180])]),
            (0, 0, &[(0, &[30, 0, 0, 270]), (1, &[100, 0, 0, 5])]),
            (0, 0, &[(0, &[40, 0, 0, 360]), (1, &[150, 0, 0, 55])]),
        ]);
        let series = series(&found);
        assert_eq!(series["cpu1"].columns["user_percent"], [Some(100.0), None, None, Some(50.0)]);
        assert_eq!(series["all"].columns["user_percent"], [Some(55.0), Some(10.0), Some(10.0), Some(30.0)]);
        assert_eq!(series["cpu1"].at_ns, series["all"].at_ns);
    }

    #[test]
    fn an_interval_without_a_tick_has_no_share() {
        let found = observed(&[(0, 0, &[(0, &[1, 0, 0, 1])]), (0, 0, &[(0, &[1, 0, 0, 1])])]);
        assert_eq!(series(&found)["all"].columns["user_percent"], [None]);
        assert_eq!(means(&found)["all"]["user_percent"], None);
    }

    #[test]
    fn a_guests_time_is_not_counted_twice() {
        let passed = between(&[0; 10], &[30, 9, 5, 40, 1, 0, 0, 2, 20, 4]);
        assert_eq!(passed, [10, 5, 5, 40, 1, 0, 0, 2, 20, 4]);
        assert_eq!(busy(&passed), 10 + 5 + 5 + 20 + 4);
    }

    #[test]
    fn counters_that_go_back_count_as_nothing() {
        let passed = between(&[5, 0, 0, 900, 7, 0, 0, 0, 0, 0], &[6, 0, 0, 10, 6, 0, 0, 0, 0, 0]);
        assert_eq!(passed, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn no_more_is_busy_than_passed(before: Ticks, after: Ticks) {
            let [before, after] = [before, after].map(|ticks| ticks.map(|state| state >> 8));
            let all: u64 = after.iter().sum();
            prop_assert!(busy(&between(&before, &after)) <= all);
        }
    }
}
