//! The probe `io_cost`: how fast io.cost lets each drive's virtual time pass, read at intervals.

use trace::sample::io_cost::{INTERVALS_MAX, IoCostObservation, IoCostReading, series};
use trace::sample::series::Level;

use super::sampled::{SampleOptions, Sampled};
use crate::drive_name::DriveName;
use crate::world::World;
use events::time::Time;

/// A phase under observation.
#[derive(Debug)]
pub struct IoCostProbe {
    drives: Vec<String>,
    sampled: Sampled<IoCostReading>,
}

impl IoCostProbe {
    /// At the phase's beginning.
    pub(crate) fn new(options: &SampleOptions, drives: &[DriveName], world: &World) -> IoCostProbe {
        let drives: Vec<String> = drives.iter().map(|drive| drive.device.to_string()).collect();
        let first = reading(&drives, world);
        IoCostProbe { drives, sampled: Sampled::new(options, world.now(), first, INTERVALS_MAX) }
    }

    /// To be called once in an interval; more calls do nothing.
    pub(crate) fn look(&mut self, now: Time, world: &World) {
        self.sampled.look(now, || reading(&self.drives, world));
    }

    /// What docs/reference/probes.md describes as the observation of `io_cost`; None: no drive's io.cost is on.
    /// `started_unix_ns`: when the phase was run.
    pub(crate) fn finish(mut self, started_unix_ns: u64, world: &World) -> Option<IoCostObservation> {
        let last = reading(&self.drives, world);
        let times = self.sampled.finish(world.now(), started_unix_ns, last);
        let series = series(&self.sampled.series)?;
        Some(IoCostObservation { times, series })
    }
}

fn reading(drives: &[String], world: &World) -> IoCostReading {
    let known = drives.iter().cloned().zip(world.vrates_percent());
    IoCostReading(known.filter_map(|(drive, percent)| Some((drive, Level::of(percent?)))).collect())
}
