//! The rate at which `io.cost` lets the virtual time of devices pass (vrate), over time.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Times;
use super::columns::{Columns, SampledSeries};
use super::series::{Interval, Level, Reading, Series};

/// By device (`major:minor`), the rate in percent of wall time; nothing of a device on which io.cost is off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IoCostReading(pub BTreeMap<String, Level>);

/// What docs/reference/probes.md describes as the observation of `io_cost`.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct IoCostObservation {
    /// When and how often it was read.
    pub times: Times,
    /// By device, and of `all`, the mean of the devices: `vrate_percent`, mean of the interval's readings.
    pub series: BTreeMap<String, SampledSeries>,
}

/// Most intervals to be kept.
pub const INTERVALS_MAX: usize = 256;

const COLUMN: &str = "vrate_percent";

impl Reading for IoCostReading {
    fn absorb(&mut self, later: IoCostReading) {
        for (device, level) in later.0 {
            self.0.entry(device).and_modify(|known| known.absorb(level)).or_insert(level);
        }
    }
}

/// By device and of `all`; None: io.cost was never on.
pub fn series(series: &Series<IoCostReading>) -> Option<BTreeMap<String, SampledSeries>> {
    let mut all = Columns::default();
    let mut by_device: BTreeMap<&str, Columns> = BTreeMap::new();
    for reading in series.readings() {
        for device in reading.0.keys() {
            by_device.entry(device).or_default();
        }
    }
    for interval in series.intervals() {
        let rates = &interval.after.0;
        let mean = |of: f64| of / rates.len() as f64;
        let sum = rates.values().map(Level::mean).sum();
        add(&mut all, &interval, (!rates.is_empty()).then(|| mean(sum)));
        for (device, columns) in &mut by_device {
            add(columns, &interval, rates.get(*device).map(Level::mean));
        }
    }
    if by_device.is_empty() {
        return None;
    }
    let devices = by_device.into_iter().map(|(device, columns)| (device.to_owned(), columns.finish()));
    Some(std::iter::once(("all".to_owned(), all.finish())).chain(devices).collect())
}

fn add(columns: &mut Columns, interval: &Interval<'_, IoCostReading>, percent: Option<f64>) {
    columns.begin(interval);
    columns.set(COLUMN, percent);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn reading(rates: &[(&str, f64)]) -> IoCostReading {
        let rates = rates.iter().map(|(device, percent)| ((*device).to_owned(), Level::of(*percent)));
        IoCostReading(rates.collect())
    }

    fn read(readings: impl IntoIterator<Item = IoCostReading>) -> Series<IoCostReading> {
        let mut readings = readings.into_iter();
        let first = readings.next().unwrap();
        let mut series = Series::new(0, first, Duration::from_secs(1), 4);
        for (number, reading) in readings.enumerate() {
            series.add((number as u64 + 1) * 1_000_000_000, reading);
        }
        series
    }

    #[test]
    fn all_is_the_mean_of_the_devices_that_have_a_rate() {
        let both = [("8:0", 100.0), ("8:16", 50.0)];
        let seen = read([reading(&[]), reading(&both), reading(&[("8:0", 80.0)])]);
        let found = series(&seen).unwrap();
        let column = |of: &str| found[of].columns[COLUMN].clone();
        assert_eq!(column("all"), [Some(75.0), Some(80.0)]);
        assert_eq!(column("8:0"), [Some(100.0), Some(80.0)]);
        assert_eq!(column("8:16"), [Some(50.0), None]);
    }

    #[test]
    fn pooled_readings_are_their_mean() {
        let readings = (0..10).map(|number| reading(&[("8:0", 10.0 * f64::from(number))]));
        let found = series(&read(readings)).unwrap();
        let rates = found["8:0"].columns[COLUMN].clone();
        assert_eq!(rates[0], Some(35.0), "of 10 to 60");
    }

    #[test]
    fn a_device_without_io_cost_has_no_series() {
        assert!(series(&read([reading(&[]), reading(&[])])).is_none());
    }
}
