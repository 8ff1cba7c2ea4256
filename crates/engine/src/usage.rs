//! What a thread and the process used: sampled at interval boundaries, so that a transient can be cut out afterwards.

use workload::spec::Time;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub context_switches_voluntary: u64,
    pub context_switches_involuntary: u64,
    pub faults_minor: u64,
    pub faults_major: u64,
}

impl Usage {
    pub fn of_thread() -> Usage {
        // getrusage(2) takes a thread's time as of its last tick or switch, up to 10 ms ago; whoever reads the thread's
        // clock makes the kernel bring it up to date.
        thread_clock_ns();
        Usage::of(libc::RUSAGE_THREAD)
    }

    pub fn of_process() -> Usage {
        Usage::of(libc::RUSAGE_SELF)
    }

    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            cpu_user_ns: self.cpu_user_ns.saturating_sub(earlier.cpu_user_ns),
            cpu_system_ns: self.cpu_system_ns.saturating_sub(earlier.cpu_system_ns),
            context_switches_voluntary: self.context_switches_voluntary
                - earlier.context_switches_voluntary,
            context_switches_involuntary: self.context_switches_involuntary
                - earlier.context_switches_involuntary,
            faults_minor: self.faults_minor - earlier.faults_minor,
            faults_major: self.faults_major - earlier.faults_major,
        }
    }

    fn of(who: libc::c_int) -> Usage {
        // SAFETY: all-zero is a valid rusage, and the call only fills it.
        let raw = unsafe {
            let mut raw: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &mut raw);
            raw
        };
        Usage {
            cpu_user_ns: timeval_ns(raw.ru_utime),
            cpu_system_ns: timeval_ns(raw.ru_stime),
            context_switches_voluntary: raw.ru_nvcsw as u64,
            context_switches_involuntary: raw.ru_nivcsw as u64,
            faults_minor: raw.ru_minflt as u64,
            faults_major: raw.ru_majflt as u64,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub at: Time,
    pub thread: Usage,
    pub process: Usage,
}

impl Sample {
    /// To be called on the thread that is meant.
    pub fn now(at: Time) -> Sample {
        Sample {
            at,
            thread: Usage::of_thread(),
            process: Usage::of_process(),
        }
    }
}

/// Samples in bounded memory: when full, every second one goes and the wanted spacing doubles.
#[derive(Debug)]
pub struct Samples {
    samples: Vec<Sample>,
    spacing_ns: Time,
    due: Time,
}

const SAMPLES_MAX: usize = 512;

impl Samples {
    /// The first sample is due at `from`, later ones every `spacing_ns`.
    pub fn new(from: Time, spacing_ns: Time) -> Samples {
        Samples {
            samples: Vec::with_capacity(SAMPLES_MAX),
            spacing_ns: spacing_ns.max(1),
            due: from,
        }
    }

    pub fn due(&self) -> Time {
        self.due
    }

    pub fn add(&mut self, sample: Sample) {
        if self.samples.len() == SAMPLES_MAX {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.spacing_ns *= 2;
        }
        let missed = (sample.at.saturating_sub(self.due)) / self.spacing_ns;
        self.due += (missed + 1) * self.spacing_ns;
        self.samples.push(sample);
    }

    /// The sample nearest to `at`; None before the first.
    pub fn nearest(&self, at: Time) -> Option<&Sample> {
        self.samples
            .iter()
            .min_by_key(|sample| sample.at.abs_diff(at))
    }
}

pub(crate) fn thread_clock_ns() -> u64 {
    // SAFETY: all-zero is a valid timespec, and the call only fills it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn timeval_ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn sample(at: Time) -> Sample {
        Sample {
            at,
            thread: Usage::default(),
            process: Usage::default(),
        }
    }

    #[test]
    fn memory_is_bounded_and_the_nearest_sample_stays_near() {
        let mut samples = Samples::new(50, 10);
        let mut now = 50;
        for _ in 0..100_000 {
            if now >= samples.due() {
                samples.add(sample(now));
            }
            now += 10;
        }
        assert!(samples.samples.len() <= SAMPLES_MAX);
        for at in (50..now).step_by(997) {
            assert!(samples.nearest(at).unwrap().at.abs_diff(at) <= 2 * samples.spacing_ns);
        }
    }

    #[test]
    fn a_late_sample_does_not_cause_a_burst() {
        let mut samples = Samples::new(0, 10);
        samples.add(sample(57));
        assert_eq!(samples.due(), 60);
    }

    #[test]
    fn time_since_the_last_tick_counts() {
        for _ in 0..20 {
            let (before, clock_before) = (Usage::of_thread(), thread_clock_ns());
            let started = Instant::now();
            while started.elapsed() < Duration::from_micros(300) {}
            let used = Usage::of_thread().since(before);
            let burnt_ns = thread_clock_ns() - clock_before;
            assert!(2 * (used.cpu_user_ns + used.cpu_system_ns) >= burnt_ns);
        }
    }

    #[test]
    fn this_thread_has_used_something() {
        let before = Usage::of_thread();
        let mut x = 1u64;
        while Usage::of_thread().since(before).cpu_user_ns
            + Usage::of_thread().since(before).cpu_system_ns
            < 1_000_000
        {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(
            Usage::of_process().since(before).cpu_user_ns + Usage::of_process().cpu_system_ns > 0
        );
    }
}
