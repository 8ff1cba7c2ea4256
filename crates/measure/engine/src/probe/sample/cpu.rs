//! Where the CPUs' time goes, of each and of all: shares over time, with interrupts, switches and clock frequency.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use trace::sample::cpu::{CpuObservation, CpuReading, frequency, intervals_max, means, series};
use trace::sample::series::Level;

use super::frequency::Frequency;
use super::kernel_file::KernelFile;
use super::stat;
use super::ticker::{Source, Ticker};
use crate::probe::{ProbeStart, Reason, RunningProbe};

/// Reads /proc/stat every `interval`.
pub fn start(interval: Duration) -> ProbeStart {
    let file = KernelFile::open(Path::new("/proc/stat")).map_err(|error| format!("/proc/stat: {error}"))?;
    let source = Cpus { stat: file, frequency: Frequency::find(Path::new("/")), online: 1 };
    let ticker = Ticker::start("iolab-cpu", source, interval).map_err(|error| format!("/proc/stat: {error}"))?;
    Ok(Box::new(ticker))
}

struct Cpus {
    stat: KernelFile,
    frequency: Frequency,
    /// As many as the last reading had.
    online: usize,
}

impl Source for Cpus {
    type Reading = CpuReading;

    fn read(&mut self) -> io::Result<CpuReading> {
        let stat = stat::parse(self.stat.read()?);
        if stat.cpus.is_empty() {
            return Err(io::Error::other("it names no CPU"));
        }
        self.online = stat.cpus.len();
        Ok(CpuReading { stat, frequency_hz: self.frequency.read().map(Level::of) })
    }

    fn intervals_max(&self) -> usize {
        intervals_max(self.online)
    }
}

impl RunningProbe for Ticker<Cpus> {
    fn stop(self: Box<Self>) -> Result<Value, Reason> {
        let observed = Ticker::stop(*self).ok_or("its thread broke down")?;
        let observation = CpuObservation {
            times: observed.times,
            cpus_online: observed.source.online,
            ticks_per_s: ticks_per_s(),
            frequency: frequency(observed.source.frequency.name(), &observed.series),
            means: means(&observed.series),
            series: series(&observed.series),
        };
        serde_json::to_value(observation).map_err(|error| error.to_string())
    }
}

fn ticks_per_s() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    ticks.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_read() {
        let running = start(Duration::from_millis(5)).unwrap_or_else(|reason| panic!("{reason}"));
        std::thread::sleep(Duration::from_millis(60));
        let found = running.stop().unwrap();
        let rows = found["series"]["all"]["at_ns"].as_array().unwrap().len();
        // The last reading makes one, even if the machine is so busy that the thread has not run before.
        assert!(rows >= 1);
        assert_eq!(found["series"]["all"]["columns"]["interrupts_per_s"].as_array().unwrap().len(), rows);
        assert!(found["times"]["cost_cpu_ns"].as_u64().unwrap() > 0);
        let shares = found["means"]["all"].as_object().unwrap();
        let sum: f64 = shares.values().map(|share| share.as_f64().unwrap()).sum();
        assert!((sum - 100.0).abs() < 1e-6);
    }
}
