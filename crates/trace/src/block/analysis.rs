//! All devices' events.

use std::collections::BTreeMap;

use super::device::DeviceState;
use super::event::{BlockEvent, Device};
use super::measures::Measures;
use super::report::{BlockReport, DeviceReport};
use crate::page::Lost;

/// Takes block events in the order of time. Its memory is what is in flight, and the report.
#[derive(Clone, Debug)]
pub struct Analysis {
    started_ns: u64,
    interval_ns: u64,
    devices: Vec<(Device, DeviceState)>,
    /// Where in `devices`; of partitions, their disk.
    routes: BTreeMap<Device, usize>,
    /// The route taken last: mostly it is taken again.
    latest: Option<(Device, usize)>,
    events_lost: u64,
    losses_uncounted: u64,
    losses: Option<Losses>,
}

/// That nothing was given up for yet.
#[derive(Clone, Copy, Debug)]
struct Losses {
    first_ns: u64,
    last_ns: u64,
}

impl Analysis {
    /// `started_ns`: on the trace's clock; times in the report count from there. `interval_ns`: of the time series, which
    /// keep `intervals::INTERVALS_MAX` at most and widen otherwise.
    pub fn new(started_ns: u64, interval_ns: u64) -> Analysis {
        Analysis {
            started_ns,
            interval_ns,
            devices: Vec::new(),
            routes: BTreeMap::new(),
            latest: None,
            events_lost: 0,
            losses_uncounted: 0,
            losses: None,
        }
    }

    /// Bios of a partition carry its own number, with the whole disk's sectors; requests carry the disk's.
    pub fn partition(&mut self, partition: Device, disk: Device) {
        let route = self.route(disk);
        self.routes.insert(partition, route);
    }

    /// Takes in the next event, in the order of time.
    #[inline]
    pub fn add(&mut self, event: &BlockEvent) {
        self.give_up(event.at_ns);
        let route = match self.latest {
            Some((device, route)) if device == event.device => route,
            _ => self.route(event.device),
        };
        self.latest = Some((event.device, route));
        self.devices[route].1.add(event);
    }

    /// A CPU's events were lost before `at_ns`, after the event of that CPU before it.
    pub fn lost(&mut self, at_ns: u64, lost: Lost) {
        match lost {
            Lost::Events(count) => self.events_lost += count,
            Lost::Uncounted => self.losses_uncounted += 1,
        }
        let losses = self.losses.get_or_insert(Losses {
            first_ns: at_ns,
            last_ns: at_ns,
        });
        losses.last_ns = losses.last_ns.max(at_ns);
    }

    /// Ends the recording at `ended_ns` on the events' clock; what has not completed is in flight.
    pub fn finish(mut self, ended_ns: u64) -> BlockReport {
        let started_ns = self.started_ns;
        let mut report = BlockReport {
            elapsed_ns: ended_ns.saturating_sub(started_ns),
            events_lost: self.events_lost,
            losses_uncounted: self.losses_uncounted,
            ..BlockReport::default()
        };
        self.devices.retain(|(_, state)| state.has_events());
        self.devices.sort_by_key(|(device, _)| *device);
        for (device, state) in self.devices {
            let conservation = state.conservation();
            let (measured, series) = state.measures.finish(ended_ns);
            report.all.merge(&measured.activities);
            report.series.insert(device.to_string(), series);
            report.devices.push(DeviceReport {
                device: device.to_string(),
                conservation,
                ..measured
            });
        }
        report
    }

    fn route(&mut self, device: Device) -> usize {
        let (devices, interval) = (&mut self.devices, (self.started_ns, self.interval_ns));
        *self.routes.entry(device).or_insert_with(|| {
            let measures = Measures::new(interval.0, interval.1);
            devices.push((device, DeviceState::new(measures)));
            devices.len() - 1
        })
    }

    /// What had begun before the first loss and should long have ended. Later losses wait for their turn, so that constant
    /// losses don't put it off for ever.
    #[inline]
    fn give_up(&mut self, now_ns: u64) {
        let due = |losses: &Losses| now_ns.saturating_sub(losses.first_ns) > GIVE_UP_AFTER_NS;
        let Some(losses) = self.losses.filter(due) else {
            return;
        };
        for (_, device) in &mut self.devices {
            device.give_up(now_ns, losses.first_ns);
        }
        self.losses = (losses.last_ns > losses.first_ns).then_some(Losses {
            first_ns: losses.last_ns,
            ..losses
        });
    }
}

/// After a loss, what had begun before it and does not end within this time has probably ended in what was lost. Larger
/// than any healthy device's latency; a longer one counts as unmatched.
const GIVE_UP_AFTER_NS: u64 = 5_000_000_000;
