//! The CPUs' clock frequency: what the governor reports, else /proc/cpuinfo, else the rate of the time-stamp counter.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the frequency is read, no more than once a second: on some drivers each reading interrupts every CPU.
pub struct Frequency {
    source: Source,
    read: Option<Instant>,
}

enum Source {
    /// scaling_cur_freq of each CPU, in kHz.
    Scaling(Vec<PathBuf>),
    /// The field `cpu MHz`: on x86 the recent count, or the nominal frequency if nothing counts.
    CpuInfo(PathBuf),
    /// Its constant rate, which is the nominal frequency, measured against the clock from the first reading on.
    TimeStamps(TimeStamps),
    None,
}

const SPACING: Duration = Duration::from_secs(1);

impl Frequency {
    /// `root` is that of the filesystem.
    pub fn find(root: &Path) -> Frequency {
        let (scaling, cpu_info) = (scaling_files(root), root.join("proc/cpuinfo"));
        let source = if !scaling.is_empty() {
            Source::Scaling(scaling)
        } else if mean_of_cpu_info(&cpu_info).is_some() {
            Source::CpuInfo(cpu_info)
        } else {
            TimeStamps::now().map_or(Source::None, Source::TimeStamps)
        };
        Frequency { source, read: None }
    }

    pub fn name(&self) -> &'static str {
        match self.source {
            Source::Scaling(_) => "scaling_cur_freq",
            Source::CpuInfo(_) => "/proc/cpuinfo",
            Source::TimeStamps(_) => "time-stamp counter",
            Source::None => "none",
        }
    }

    /// Mean of the CPUs that are online, in Hz. None if it is not known, or not due yet.
    pub fn read(&mut self) -> Option<f64> {
        if self.read.is_some_and(|read| read.elapsed() < SPACING) {
            return None;
        }
        let found = match &self.source {
            Source::Scaling(files) => mean(files.iter().filter_map(|file| {
                let khz: f64 = read_to_string(file).ok()?.trim().parse().ok()?;
                Some(khz * 1e3)
            })),
            Source::CpuInfo(file) => mean_of_cpu_info(file),
            Source::TimeStamps(first) => first.rate_hz(),
            Source::None => None,
        };
        if found.is_some() {
            self.read = Some(Instant::now());
        }
        found
    }
}

fn scaling_files(root: &Path) -> Vec<PathBuf> {
    let cpus = read_dir(root.join("sys/devices/system/cpu"));
    let mut files: Vec<PathBuf> = cpus
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("cpufreq/scaling_cur_freq")))
        .filter(|file| read_to_string(file).is_ok())
        .collect();
    files.sort();
    files
}

fn mean_of_cpu_info(file: &Path) -> Option<f64> {
    let text = read_to_string(file).ok()?;
    mean(text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let mhz: f64 = value.trim().parse().ok()?;
        (name.trim_end() == "cpu MHz" && mhz > 0.0).then_some(mhz * 1e6)
    }))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

struct TimeStamps {
    count: u64,
    at: Instant,
}

impl TimeStamps {
    #[cfg(target_arch = "x86_64")]
    fn now() -> Option<TimeStamps> {
        // SAFETY: every x86_64 CPU has the counter.
        let count = unsafe { std::arch::x86_64::_rdtsc() };
        Some(TimeStamps { count, at: Instant::now() })
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn now() -> Option<TimeStamps> {
        None
    }

    /// None until enough time has passed to determine it.
    fn rate_hz(&self) -> Option<f64> {
        const ENOUGH: Duration = Duration::from_millis(1);
        let now = TimeStamps::now()?;
        let passed = now.at.saturating_duration_since(self.at);
        let counted = now.count.checked_sub(self.count)?;
        (passed >= ENOUGH).then(|| counted as f64 / passed.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;

    /// A directory that takes the place of `/`, gone at the end.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Root {
            let path = std::env::temp_dir().join(format!("iolab-{name}-{}", std::process::id()));
            create_dir_all(path.join("proc")).unwrap();
            Root(path)
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_governors_word_comes_first() {
        let root = Root::new("frequency-scaling");
        root.file("proc/cpuinfo", "cpu MHz\t\t: 900.0\n");
        for (cpu, khz) in [(0, "1600000\n"), (1, "2400000\n")] {
            root.file(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"), khz);
        }
        let mut frequency = Frequency::find(&root.0);
        assert_eq!(frequency.name(), "scaling_cur_freq");
        assert_eq!(frequency.read(), Some(2e9));
        assert_eq!(frequency.read(), None, "not due yet");
    }

    #[test]
    fn else_cpuinfo_tells_it() {
        let root = Root::new("frequency-cpuinfo");
        root.file("proc/cpuinfo", "processor : 0\ncpu MHz\t\t: 2000.5\n\nprocessor : 1\ncpu MHz : 1000.5\n");
        let mut frequency = Frequency::find(&root.0);
        assert_eq!((frequency.name(), frequency.read()), ("/proc/cpuinfo", Some(1500.5e6)));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn else_the_time_stamp_counter_is_measured() {
        let root = Root::new("frequency-none");
        let mut frequency = Frequency::find(&root.0);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(frequency.name(), "time-stamp counter");
        assert!(frequency.read().unwrap() > 1e8);
    }
}
