//! The probe `io_cost`: how fast io.cost lets each drive's virtual time pass, read at intervals.

use std::time::Duration;

use serde::Deserialize;
use trace::sample::Times;
use trace::sample::io_cost::{INTERVALS_MAX, IoCostObservation, IoCostReading, series};
use trace::sample::series::{Level, Series};

use crate::drive_name::DriveName;
use events::SpecError;
use events::spec_error::within;
use events::time::{SECOND, Time};

/// The options of the probe `io_cost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoCostOptions {
    /// Between two points of the series.
    pub interval_ns: u64,
}

/// A phase under observation.
#[derive(Debug)]
pub struct IoCostProbe {
    began: Time,
    drives: Vec<String>,
    series: Series<IoCostReading>,
    due: Time,
    readings: u64,
}

impl IoCostOptions {
    /// The interval lies between 1 us and 1000 s. The error names the key.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        within("interval_ns", self.interval_ns, 1_000, 1_000 * SECOND)
    }
}

/// By drive, in percent of wall time.
pub(crate) type Rates = Vec<Option<f64>>;

impl IoCostProbe {
    /// At the phase's beginning.
    pub(crate) fn new(
        options: &IoCostOptions,
        now: Time,
        drives: &[DriveName],
        rates: Rates,
    ) -> IoCostProbe {
        let drives: Vec<String> = drives
            .iter()
            .map(|drive| drive.device.to_string())
            .collect();
        let interval = Duration::from_nanos(options.interval_ns);
        let first = reading(&drives, rates);
        IoCostProbe {
            began: now,
            due: now + options.interval_ns,
            series: Series::new(0, first, interval, INTERVALS_MAX),
            readings: 1,
            drives,
        }
    }

    /// To be called once in an interval; more calls do nothing.
    pub(crate) fn look(&mut self, now: Time, rates: impl FnOnce() -> Rates) {
        if now >= self.due {
            self.read(now, rates());
            self.due = now + self.series.interval().as_nanos() as Time;
        }
    }

    fn read(&mut self, now: Time, rates: Rates) {
        self.series
            .add(now - self.began, reading(&self.drives, rates));
        self.readings += 1;
    }

    /// What docs/reference/probes.md describes as the observation of `io_cost`; None: no drive's io.cost is on.
    /// `started_unix_ns`: when the phase was run.
    pub(crate) fn finish(
        mut self,
        now: Time,
        started_unix_ns: u64,
        rates: Rates,
    ) -> Option<IoCostObservation> {
        self.read(now, rates);
        Some(IoCostObservation {
            times: Times {
                started_unix_ns,
                elapsed_ns: now - self.began,
                interval_ns: self.series.interval().as_nanos() as u64,
                readings: self.readings,
                readings_failed: 0,
                cost_cpu_ns: None,
            },
            series: series(&self.series)?,
        })
    }
}

fn reading(drives: &[String], rates: Rates) -> IoCostReading {
    let known = drives.iter().cloned().zip(rates);
    IoCostReading(
        known
            .filter_map(|(drive, percent)| Some((drive, Level::of(percent?))))
            .collect(),
    )
}
