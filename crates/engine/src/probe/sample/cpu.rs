//! Where the CPUs' time goes, of each and of all: shares over time, with interrupts, switches and clock frequency.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::columns::Columns;
use super::frequency::Frequency;
use super::kernel_file::KernelFile;
use super::series::{Interval, Level, Reading, Series};
use super::stat::{self, STATES, Stat, Ticks};
use super::ticker::{Source, Ticker};
use crate::probe::{Reason, Running, Started};

/// Reads /proc/stat every `interval`.
pub fn start(interval: Duration) -> Started {
    let file = KernelFile::open(Path::new("/proc/stat"))
        .map_err(|error| format!("/proc/stat: {error}"))?;
    let source = Cpus {
        stat: file,
        frequency: Frequency::find(Path::new("/")),
        online: 1,
    };
    let ticker = Ticker::start("iolab-cpu", source, interval)
        .map_err(|error| format!("/proc/stat: {error}"))?;
    Ok(Box::new(ticker))
}

struct Cpus {
    stat: KernelFile,
    frequency: Frequency,
    /// As many as the last reading had.
    online: usize,
}

struct CpuReading {
    stat: Stat,
    frequency_hz: Option<Level>,
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

/// Values that all CPUs' series have together: a machine with many has fewer, longer intervals.
const POINTS_MAX: usize = 4096;
const INTERVALS_MIN: usize = 32;
const INTERVALS_MAX: usize = 256;

impl Source for Cpus {
    type Reading = CpuReading;

    fn read(&mut self) -> io::Result<CpuReading> {
        let stat = stat::parse(self.stat.read()?);
        if stat.cpus.is_empty() {
            return Err(io::Error::other("it names no CPU"));
        }
        self.online = stat.cpus.len();
        Ok(CpuReading {
            stat,
            frequency_hz: self.frequency.read().map(Level::of),
        })
    }

    fn intervals_max(&self) -> usize {
        (POINTS_MAX / (self.online + 1)).clamp(INTERVALS_MIN, INTERVALS_MAX)
    }
}

impl Running for Ticker<Cpus> {
    fn stop(self: Box<Self>) -> Result<Value, Reason> {
        let observed = Ticker::stop(*self).ok_or("its thread broke down")?;
        let mut found = json!({
            "times": observed.times,
            "cpus_online": observed.source.online,
            "ticks_per_s": ticks_per_s(),
            "frequency": frequency(&observed.source.frequency, &observed.series),
        });
        found["means"] = means(&observed.series);
        found["series"] = series(&observed.series);
        Ok(found)
    }
}

/// By CPU and of `all`, over the whole time: percent by state, and how many CPUs were busy.
fn means(series: &Series<CpuReading>) -> Value {
    let mut sums: BTreeMap<u32, Ticks> = BTreeMap::new();
    for interval in series.intervals() {
        for (cpu, passed) in passed(&interval) {
            let sum = sums.entry(cpu).or_default();
            sum.iter_mut()
                .zip(passed)
                .for_each(|(sum, more)| *sum += more);
        }
    }
    let mut means = Map::new();
    means.insert("all".into(), shares(&together(&sums)));
    for (cpu, sum) in &sums {
        means.insert(name(*cpu), shares(sum));
    }
    Value::Object(means)
}

fn shares(passed: &Ticks) -> Value {
    let share = |(state, percent): (&&str, _)| (percent_column(state), json!(percent));
    Value::Object(STATES.iter().zip(percents(passed)).map(share).collect())
}

/// By CPU and of `all`: columns over time. A CPU has no value for an interval at whose ends it was not online.
fn series(series: &Series<CpuReading>) -> Value {
    let mut all = Columns::default();
    let mut by_cpu: BTreeMap<u32, Columns> = BTreeMap::new();
    for interval in series.intervals() {
        let (passed, seconds) = (passed(&interval), interval.seconds());
        all.begin(&interval);
        add_shares(&mut all, &together(&passed));
        all.set("busy_cpus", Some(busy_cpus(&passed)));
        let (before, after) = (&interval.before.stat, &interval.after.stat);
        let per_s = |before: u64, after: u64| Some(after.saturating_sub(before) as f64 / seconds);
        all.set(
            "interrupts_per_s",
            per_s(before.interrupts, after.interrupts),
        );
        all.set(
            "switches_per_s",
            per_s(before.context_switches, after.context_switches),
        );
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
    let each = by_cpu
        .into_iter()
        .map(|(cpu, columns)| (name(cpu), columns));
    let together = std::iter::once(("all".to_owned(), all)).chain(each);
    Value::Object(
        together
            .map(|(name, columns)| (name, columns.finish()))
            .collect(),
    )
}

fn add_shares(columns: &mut Columns, passed: &Ticks) {
    for (state, percent) in STATES.iter().zip(percents(passed)) {
        columns.set(&percent_column(state), percent);
    }
}

/// None where no tick passed.
fn percents(passed: &Ticks) -> [Option<f64>; STATES.len()] {
    let total: u64 = passed.iter().sum();
    passed.map(|ticks| (total > 0).then(|| 100.0 * ticks as f64 / total as f64))
}

/// Each CPU by its own ticks: without ticks, or where they are late, seconds would not add up.
fn busy_cpus(passed: &BTreeMap<u32, Ticks>) -> f64 {
    let share = |ticks: &Ticks| match ticks.iter().sum::<u64>() {
        0 => 0.0,
        total => stat::busy(ticks) as f64 / total as f64,
    };
    passed.values().map(share).sum()
}

/// Of the CPUs that are online at both ends.
fn passed(interval: &Interval<'_, CpuReading>) -> BTreeMap<u32, Ticks> {
    let before = &interval.before.stat.cpus;
    let after = interval.after.stat.cpus.iter();
    after
        .filter_map(|(cpu, after)| Some((*cpu, stat::between(before.get(cpu)?, after))))
        .collect()
}

fn together(by_cpu: &BTreeMap<u32, Ticks>) -> Ticks {
    std::array::from_fn(|state| by_cpu.values().map(|ticks| ticks[state]).sum())
}

/// Mean over time of the CPUs' mean; null where nothing tells it.
fn frequency(source: &Frequency, series: &Series<CpuReading>) -> Value {
    let pooled = series
        .readings()
        .filter_map(|reading| reading.frequency_hz)
        .reduce(|mut sum, level| {
            sum.absorb(level);
            sum
        });
    pooled.map_or(
        Value::Null,
        |level| json!({"hz_mean": level.mean(), "hz_max": level.max, "source": source.name()}),
    )
}

fn name(cpu: u32) -> String {
    format!("cpu{cpu}")
}

fn percent_column(state: &str) -> String {
    format!("{state}_percent")
}

fn ticks_per_s() -> i64 {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> CpuReading {
        CpuReading {
            stat: stat::parse(text),
            frequency_hz: None,
        }
    }

    fn observed(texts: &[&str]) -> Series<CpuReading> {
        let mut series = Series::new(0, reading(texts[0]), Duration::from_secs(1), 8);
        for (second, text) in texts.iter().enumerate().skip(1) {
            series.add(second as u64 * 1_000_000_000, reading(text));
        }
        series
    }

    #[test]
    fn shares_add_up_and_the_busy_are_counted() {
        let found = observed(&[
            "cpu0 0 0 0 0\ncpu1 0 0 0 0\nintr 10\nctxt 5",
            "cpu0 50 0 25 25\ncpu1 0 0 0 90 10\nintr 110\nctxt 1005",
        ]);
        let (series, means) = (series(&found), means(&found));
        let all = &series["all"]["columns"];
        assert_eq!(all["user_percent"], json!([25.0]));
        assert_eq!(all["iowait_percent"], json!([5.0]));
        assert_eq!(all["busy_cpus"], json!([0.75]));
        assert_eq!(all["interrupts_per_s"], json!([100.0]));
        assert_eq!(all["switches_per_s"], json!([1000.0]));
        assert_eq!(series["cpu1"]["columns"]["idle_percent"], json!([90.0]));
        assert_eq!(means["cpu0"]["system_percent"], json!(25.0));
        assert_eq!(means["all"]["idle_percent"], json!(57.5));
    }

    #[test]
    fn a_cpu_that_goes_offline_and_comes_back_has_gaps() {
        let found = observed(&[
            "cpu0 0 0 0 0\ncpu1 0 0 0 0",
            "cpu0 10 0 0 90\ncpu1 100 0 0 0",
            "cpu0 20 0 0 180",
            "cpu0 30 0 0 270\ncpu1 100 0 0 5",
            "cpu0 40 0 0 360\ncpu1 150 0 0 55",
        ]);
        let series = series(&found);
        assert_eq!(
            series["cpu1"]["columns"]["user_percent"],
            json!([100.0, null, null, 50.0])
        );
        assert_eq!(
            series["all"]["columns"]["user_percent"],
            json!([55.0, 10.0, 10.0, 30.0])
        );
        assert_eq!(series["cpu1"]["at_ns"], series["all"]["at_ns"]);
    }

    #[test]
    fn an_interval_without_a_tick_has_no_share() {
        let found = observed(&["cpu0 1 0 0 1", "cpu0 1 0 0 1"]);
        assert_eq!(
            series(&found)["all"]["columns"]["user_percent"],
            json!([null])
        );
        assert_eq!(means(&found)["all"]["user_percent"], Value::Null);
    }

    #[test]
    fn this_machine_is_read() {
        let running = start(Duration::from_millis(5)).unwrap_or_else(|reason| panic!("{reason}"));
        std::thread::sleep(Duration::from_millis(60));
        let found = running.stop().unwrap();
        let rows = found["series"]["all"]["at_ns"].as_array().unwrap().len();
        assert!(rows > 1);
        assert_eq!(
            found["series"]["all"]["columns"]["interrupts_per_s"]
                .as_array()
                .unwrap()
                .len(),
            rows
        );
        assert!(found["times"]["cost_cpu_ns"].as_u64().unwrap() > 0);
        let sum: f64 = STATES
            .iter()
            .map(|state| {
                found["means"]["all"][percent_column(state)]
                    .as_f64()
                    .unwrap()
            })
            .sum();
        assert!((sum - 100.0).abs() < 1e-6);
    }
}
