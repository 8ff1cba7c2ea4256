//! The rate of `io.cost` over time, as the `io.stat` of the root of control groups version 2 shows it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde_json::Value;
use trace::sample::io_cost::{INTERVALS_MAX, IoCostObservation, IoCostReading, series};
use trace::sample::series::Level;

use super::kernel_file::KernelFile;
use super::ticker::{Source, Ticker};
use crate::probe::spec::IoCostSpec;
use crate::probe::{ProbeStart, Reason, RunningProbe};

/// Reads the file at an interval.
pub fn start(spec: &IoCostSpec) -> ProbeStart {
    let begun = KernelFile::open(Path::new(&spec.io_stat)).and_then(|file| {
        let source = IoStat { file, devices: spec.devices.clone() };
        Ticker::start("iolab-io-cost", source, spec.interval())
    });
    match begun {
        Ok(ticker) => Ok(Box::new(ticker)),
        Err(error) => Err(format!("{}: {error}", spec.io_stat)),
    }
}

struct IoStat {
    file: KernelFile,
    devices: Vec<String>,
}

impl Source for IoStat {
    type Reading = IoCostReading;

    fn read(&mut self) -> io::Result<IoCostReading> {
        Ok(IoCostReading(rates(self.file.read()?, &self.devices)))
    }

    fn intervals_max(&self) -> usize {
        INTERVALS_MAX
    }
}

impl RunningProbe for Ticker<IoStat> {
    fn stop(self: Box<Self>) -> Result<Value, Reason> {
        let observed = Ticker::stop(*self).ok_or("its thread broke down")?;
        let series = series(&observed.series).ok_or_else(|| {
            format!(
                "the kernel shows no vrate of {}: io.cost is off (io_cost_qos switches it on), or this is the root of a \
                 container's control groups, not the machine's",
                observed.source.devices.join(", ")
            )
        })?;
        let observation = IoCostObservation { times: observed.times, series };
        serde_json::to_value(observation).map_err(|error| error.to_string())
    }
}

/// Lines of `MAJOR:MINOR key=value ...`; `cost.vrate` is in percent (`ioc_pd_stat` of `block/blk-iocost.c`, 6.1).
fn rates(io_stat: &str, devices: &[String]) -> BTreeMap<String, Level> {
    let rate = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let device = words.next().filter(|name| devices.iter().any(|wanted| wanted == name))?;
        let percent = words.find_map(|word| word.strip_prefix("cost.vrate="))?;
        Some((device.to_owned(), Level::of(percent.parse().ok()?)))
    };
    io_stat.lines().filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SHOWN: &str = "8:0 rbytes=1 wbytes=0 rios=1 wios=0 dbytes=0 dios=0 cost.vrate=87.50 cost.usage=12\n\
        259:0 rbytes=1 wbytes=0 rios=1 wios=0 dbytes=0 dios=0 cost.vrate=100.00 cost.usage=5\n\
        7:0 rbytes=1 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n";

    fn devices(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_the_wanted_devices_on_which_io_cost_is_on_have_a_rate() {
        let found = rates(SHOWN, &devices(&["8:0", "7:0"]));
        assert_eq!(found, BTreeMap::from([("8:0".to_owned(), Level::of(87.5))]));
    }

    #[test]
    fn a_file_is_read_over_time_and_one_without_a_rate_says_why() {
        let path = std::env::temp_dir().join(format!("iolab-io-stat-{}", std::process::id()));
        std::fs::write(&path, SHOWN).unwrap();
        let seen = |device: &str| {
            let spec = IoCostSpec {
                interval_ns: Duration::from_millis(1).as_nanos() as u64,
                devices: devices(&[device]),
                io_stat: path.display().to_string(),
            };
            start(&spec).unwrap_or_else(|reason| panic!("{reason}")).stop()
        };
        let (with, without) = (seen("259:0"), seen("7:0"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(with.unwrap()["series"]["all"]["columns"]["vrate_percent"][0], 100.0);
        assert!(without.unwrap_err().contains("io.cost is off"));
    }
}
