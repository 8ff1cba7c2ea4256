//! Memory and writeback over time: /proc/meminfo, /proc/vmstat, pressure stall information, and what this process had
//! read from devices.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use trace::sample::Times;
use trace::sample::columns::{Columns, SampledSeries};

use super::kernel_file::KernelFile;
use super::pairs::{pairs, pressure_us};
use super::series::{Interval, Level, Reading, Series};
use super::ticker::{Source, Ticker};
use super::vm::{counters, levels};
use crate::probe::{ProbeStart, Reason, RunningProbe};

/// Reads the files every `interval`.
pub fn start(interval: Duration) -> ProbeStart {
    let source = Memory::open(Path::new("/proc"))?;
    let ticker = Ticker::start("iolab-memory", source, interval).map_err(|error| format!("/proc/meminfo: {error}"))?;
    Ok(Box::new(ticker))
}

/// The column of /proc/self/io's read_bytes: what reads of this process, its ended children included, took from
/// devices.
const PROCESS_READ: &str = "process_read_bytes_per_s";

const PRESSURE_OF: [&str; 3] = ["cpu", "memory", "io"];

/// What docs/reference/probes.md describes as the observation of `memory`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::probe) struct MemoryObservation {
    /// When and how often it was read.
    times: Times,
    /// By what is not shown here: why.
    absent: BTreeMap<String, Reason>,
    /// The series of `all` the machine: levels as mean and maximum, counters per second, stalls as a share of the
    /// interval.
    series: BTreeMap<&'static str, SampledSeries>,
}

struct Memory {
    meminfo: KernelFile,
    vmstat: KernelFile,
    process: Result<KernelFile, Reason>,
    pressure: Vec<(&'static str, Result<KernelFile, Reason>)>,
}

impl Memory {
    fn open(proc: &Path) -> Result<Memory, Reason> {
        let open = |name: &str| {
            let path = proc.join(name);
            KernelFile::open(&path)
                .and_then(|mut file| file.read().map(drop).map(|()| file))
                .map_err(|error| format!("{}: {error}", path.display()))
        };
        let pressure = |what: &'static str| {
            let remedy = "; the kernel needs CONFIG_PSI, and psi=1 on its command line where it is off by default";
            let file = open(&format!("pressure/{what}"));
            (what, file.map_err(|reason| reason + remedy))
        };
        Ok(Memory {
            meminfo: open("meminfo")?,
            vmstat: open("vmstat")?,
            process: open("self/io").map_err(|why| why + "; the kernel needs CONFIG_TASK_IO_ACCOUNTING"),
            pressure: PRESSURE_OF.map(pressure).into(),
        })
    }

    /// By what is not shown here: why.
    fn absent(&self) -> BTreeMap<String, Reason> {
        let pressure = self
            .pressure
            .iter()
            .filter_map(|(what, file)| Some((format!("pressure_{what}"), file.as_ref().err()?.clone())));
        let process = self.process.as_ref().err();
        pressure.chain(process.map(|why| (PROCESS_READ.to_owned(), why.clone()))).collect()
    }
}

#[derive(Debug, Default)]
struct MemoryReading {
    levels: BTreeMap<&'static str, Level>,
    /// Counts since boot or since the process began, in the column's unit less the `per_s`.
    counters: BTreeMap<&'static str, f64>,
    /// Stalled time since boot, by column.
    stalled_us: BTreeMap<String, u64>,
}

impl Reading for MemoryReading {
    fn absorb(&mut self, later: MemoryReading) {
        for (name, level) in later.levels {
            self.levels.entry(name).and_modify(|known| known.absorb(level)).or_insert(level);
        }
        self.counters = later.counters;
        self.stalled_us = later.stalled_us;
    }
}

impl Source for Memory {
    type Reading = MemoryReading;

    fn read(&mut self) -> io::Result<MemoryReading> {
        let mut reading = MemoryReading::default();
        levels(self.meminfo.read()?, &mut reading.levels);
        counters(self.vmstat.read()?, &mut reading.counters);
        if let Ok(file) = &mut self.process {
            let found: BTreeMap<&str, u64> = pairs(file.read()?).collect();
            if let Some(bytes) = found.get("read_bytes") {
                reading.counters.insert(PROCESS_READ, *bytes as f64);
            }
        }
        for (what, file) in &mut self.pressure {
            let Ok(file) = file else { continue };
            for (kind, total_us) in pressure_us(file.read()?) {
                let column = format!("pressure_{what}_{kind}_share");
                reading.stalled_us.insert(column, total_us);
            }
        }
        Ok(reading)
    }

    fn intervals_max(&self) -> usize {
        256
    }
}

impl RunningProbe for Ticker<Memory> {
    fn stop(self: Box<Self>) -> Result<Value, Reason> {
        let observed = Ticker::stop(*self).ok_or("its thread broke down")?;
        let observation = MemoryObservation {
            times: observed.times,
            absent: observed.source.absent(),
            series: BTreeMap::from([("all", columns(&observed.series))]),
        };
        serde_json::to_value(observation).map_err(|error| error.to_string())
    }
}

/// Levels as the interval's mean and maximum, counters per second, stalls as a share of the interval.
fn columns(series: &Series<MemoryReading>) -> SampledSeries {
    let mut columns = Columns::default();
    for interval in series.intervals() {
        columns.begin(&interval);
        let Interval { before, after, .. } = interval;
        for (name, level) in &after.levels {
            columns.set(name, Some(level.mean()));
            columns.set(&format!("{name}_max"), Some(level.max));
        }
        for (name, count) in &after.counters {
            let passed = before.counters.get(name).map(|before| count - before);
            columns.set(name, passed.map(|passed| passed.max(0.0) / interval.seconds()));
        }
        for (name, total_us) in &after.stalled_us {
            let passed = before.stalled_us.get(name).map(|before| total_us.saturating_sub(*before));
            columns.set(name, passed.map(|passed| passed as f64 / 1e6 / interval.seconds()));
        }
    }
    columns.finish()
}

#[cfg(test)]
mod tests {
    use super::super::vm::CounterUnit;
    use super::*;

    fn reading(meminfo: &str, vmstat: &str) -> MemoryReading {
        let mut reading = MemoryReading::default();
        levels(meminfo, &mut reading.levels);
        counters(vmstat, &mut reading.counters);
        reading
    }

    #[test]
    fn levels_are_bytes_and_counters_are_rates() {
        let first = reading("Dirty: 8 kB\n", "pgpgin 100\npgscan_kswapd 1\npgscan_direct 2\n");
        let mut series = Series::new(0, first, Duration::from_secs(1), 8);
        let vmstat = "pgpgin 300\npgscan_kswapd 11\npgscan_direct 2\n";
        let meminfo = "Dirty: 16 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n";
        series.add(2_000_000_000, reading(meminfo, vmstat));
        let found = columns(&series);
        let column = |name: &str| found.columns.get(name).cloned();
        assert_eq!(column("dirty_bytes"), Some(vec![Some(16384.0)]));
        assert_eq!(column("swap_used_bytes"), Some(vec![Some(40960.0)]));
        assert_eq!(column("page_in_bytes_per_s"), Some(vec![Some(102400.0)]));
        assert_eq!(column("pages_scanned_per_s"), Some(vec![Some(5.0)]));
        assert_eq!(column("refaults_per_s"), None, "this kernel has none");
    }

    #[test]
    fn a_pooled_interval_has_the_highest_level_and_the_whole_count() {
        let text = |pages: u64| format!("pswpin {pages}\n");
        let mut first = reading("Dirty: 4 kB\n", &text(10));
        first.absorb(reading("Dirty: 12 kB\n", &text(30)));
        assert_eq!(first.levels["dirty_bytes"].mean(), 8.0 * 1024.0);
        assert_eq!(first.levels["dirty_bytes"].max, 12.0 * 1024.0);
        assert_eq!(first.counters["swap_in_bytes_per_s"], 30.0 * CounterUnit::Page.bytes());
    }

    #[test]
    fn this_machine_is_read() {
        let running = start(Duration::from_millis(5)).unwrap_or_else(|reason| panic!("{reason}"));
        std::thread::sleep(Duration::from_millis(40));
        let found = running.stop().unwrap();
        let columns = &found["series"]["all"]["columns"];
        for name in ["dirty_bytes", "cached_bytes_max", "faults_per_s"] {
            assert!(columns[name][0].is_number(), "{name}");
        }
        let absent = found["absent"].as_object().unwrap();
        assert!(absent.contains_key("pressure_io") != columns["pressure_io_some_share"][0].is_number());
    }

    #[test]
    fn what_the_kernel_does_not_show_is_named() {
        let root = std::env::temp_dir().join(format!("iolab-memory-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("meminfo"), "Dirty: 8 kB\n").unwrap();
        std::fs::write(root.join("vmstat"), "pgfault 3\n").unwrap();
        let mut memory = Memory::open(&root).unwrap();
        let reading = memory.read();
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(reading.unwrap().counters.len(), 1);
        let absent = memory.absent();
        assert_eq!(absent.keys().collect::<Vec<_>>(), ["pressure_cpu", "pressure_io", "pressure_memory", PROCESS_READ]);
        assert!(absent["pressure_io"].contains("CONFIG_PSI"));
    }
}
