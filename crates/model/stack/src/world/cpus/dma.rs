//! An adapter's transfers between a device and memory, one after the other.

use std::collections::VecDeque;

use serde::Deserialize;

use block_layer::SECTOR_BYTES;
use events::SpecError;
use events::spec_error::{RATE, within};
use events::station::{Station, Violation};
use events::time::{SECOND, Time};

/// How fast it moves data to or from the memory of the NUMA node that it interrupts, and of any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DmaSpec {
    /// Rate to or from the memory of that NUMA node.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub near_bytes_per_s: u64,
    /// Rate to or from the memory of any other.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub far_bytes_per_s: u64,
}

/// Commands that their device has done, while their data move.
#[derive(Clone, Debug)]
pub(super) struct Dma {
    spec: DmaSpec,
    free_at: Time,
    /// By when they came, with their tags.
    moving: VecDeque<(Time, u32)>,
    station: Station,
}

impl DmaSpec {
    /// Refuses rates outside their limits; the error names the key.
    pub fn check(&self) -> Result<(), SpecError> {
        for (key, rate) in [("near_bytes_per_s", self.near_bytes_per_s), ("far_bytes_per_s", self.far_bytes_per_s)] {
            within(key, rate, RATE.0, RATE.1)?;
        }
        Ok(())
    }
}

impl Dma {
    pub(super) fn new(spec: DmaSpec) -> Dma {
        Dma { spec, free_at: 0, moving: VecDeque::new(), station: Station::default() }
    }

    /// The device is done with a command: when its data will have been moved.
    pub(super) fn begin(&mut self, now: Time, tag: u32, sectors: u32, near: bool) -> Time {
        let rate = match near {
            true => self.spec.near_bytes_per_s,
            false => self.spec.far_bytes_per_s,
        };
        let bytes = u128::from(sectors) * u128::from(SECTOR_BYTES);
        let takes = (bytes * u128::from(SECOND)).div_ceil(u128::from(rate)) as Time;
        self.free_at = self.free_at.max(now) + takes;
        self.moving.push_back((now, tag));
        self.station.enter(now);
        self.free_at
    }

    /// The command whose data have been moved.
    pub(super) fn end(&mut self, now: Time) -> u32 {
        let (since, tag) = self.moving.pop_front().expect("something was moving");
        self.station.leave(now, since);
        tag
    }

    pub(super) fn check(&self, name: &str, now: Time) -> Result<(), Violation> {
        let still = self.moving.iter().map(|&(since, _)| since);
        self.station.check(name, now, still)
    }
}
