//! What a thread and the process used: sampled at interval boundaries, so that a transient can be cut out afterwards.

use crate::time::Time;

/// Processor time, context switches and page faults, as getrusage(2) counts them, and waits for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, in nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub cpu_system_ns: u64,
    /// Context switches because the thread waited.
    pub context_switches_voluntary: u64,
    /// Context switches because the scheduler took the CPU away.
    pub context_switches_involuntary: u64,
    /// Page faults without I/O.
    pub faults_minor: u64,
    /// Page faults that needed I/O.
    pub faults_major: u64,
    /// Time for which the thread could run and waited for a CPU, in nanoseconds; None if nobody counts it.
    pub cpu_wait_ns: Option<u64>,
}

impl Usage {
    /// What was used between `earlier` and this reading.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            cpu_user_ns: self.cpu_user_ns.saturating_sub(earlier.cpu_user_ns),
            cpu_system_ns: self.cpu_system_ns.saturating_sub(earlier.cpu_system_ns),
            context_switches_voluntary: self.context_switches_voluntary - earlier.context_switches_voluntary,
            context_switches_involuntary: self.context_switches_involuntary - earlier.context_switches_involuntary,
            faults_minor: self.faults_minor - earlier.faults_minor,
            faults_major: self.faults_major - earlier.faults_major,
            cpu_wait_ns: self.cpu_wait_ns.zip(earlier.cpu_wait_ns).map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// What was used until `at`, since any one time before the phase.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Time of the reading, since the start of the phase.
    pub at: Time,
    /// The usage of the thread that runs the group.
    pub thread: Usage,
    /// The usage of the whole process, which includes kernel workers of its rings.
    pub process: Usage,
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
        Samples { samples: Vec::with_capacity(SAMPLES_MAX), spacing_ns: spacing_ns.max(1), due: from }
    }

    /// When the next sample is wanted.
    pub fn due(&self) -> Time {
        self.due
    }

    /// The next sample is wanted at `at`, if it is not wanted before.
    pub fn want(&mut self, at: Time) {
        self.due = self.due.min(at);
    }

    /// Keeps a sample; when there is no room left, drops every second one and doubles the spacing.
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
        self.samples.iter().min_by_key(|sample| sample.at.abs_diff(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: Time) -> Sample {
        Sample { at, thread: Usage::default(), process: Usage::default() }
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
    fn a_wait_is_known_if_both_readings_have_it() {
        let waited = |cpu_wait_ns| Usage { cpu_wait_ns, ..Usage::default() };
        assert_eq!(waited(Some(7)).since(waited(Some(2))).cpu_wait_ns, Some(5));
        assert_eq!(waited(Some(7)).since(waited(None)).cpu_wait_ns, None);
    }

    #[test]
    fn a_late_sample_does_not_cause_a_burst() {
        let mut samples = Samples::new(0, 10);
        samples.add(sample(57));
        assert_eq!(samples.due(), 60);
    }
}
