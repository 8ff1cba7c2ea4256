//! What the probes that read at intervals have alike.

use std::time::Duration;

use serde::Deserialize;
use trace::sample::Times;
use trace::sample::series::{Reading, Series};

use events::SpecError;
use events::spec_error::within;
use events::time::{SECOND, Time};

/// The options of such a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ModelSampleOptions")]
pub struct SampleOptions {
    /// Between two points of the series.
    pub interval_ns: u64,
}

impl SampleOptions {
    /// The interval lies between 1 us and 1000 s. The error names the key.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        within("interval_ns", self.interval_ns, 1_000, 1_000 * SECOND)
    }
}

/// What was read of a phase until now.
#[derive(Debug)]
pub(super) struct Sampled<R> {
    began: Time,
    due: Time,
    readings: u64,
    pub(super) series: Series<R>,
}

impl<R: Reading> Sampled<R> {
    /// At the phase's beginning.
    pub(super) fn new(options: &SampleOptions, now: Time, first: R, intervals_max: usize) -> Self {
        let interval = Duration::from_nanos(options.interval_ns);
        Sampled {
            began: now,
            due: now + options.interval_ns,
            readings: 1,
            series: Series::new(0, first, interval, intervals_max),
        }
    }

    /// To be called once in an interval; more calls do nothing.
    pub(super) fn look(&mut self, now: Time, read: impl FnOnce() -> R) {
        if now >= self.due {
            self.add(now, read());
            self.due = now + self.series.interval().as_nanos() as Time;
        }
    }

    fn add(&mut self, now: Time, reading: R) {
        self.series.add(now - self.began, reading);
        self.readings += 1;
    }

    /// The phase is over. `started_unix_ns`: when it was run.
    pub(super) fn finish(&mut self, now: Time, started_unix_ns: u64, last: R) -> Times {
        self.add(now, last);
        Times {
            started_unix_ns,
            elapsed_ns: now - self.began,
            interval_ns: self.series.interval().as_nanos() as u64,
            readings: self.readings,
            readings_failed: 0,
            cost_cpu_ns: None,
        }
    }
}
