//! All devices' events.

use super::measures::Measures;
use super::report::{BlockReport, Conservation, DeviceReport};
use crate::event::{Device, TraceEvent};
use crate::page::LostEvents;
use crate::request::{Change, RequestTracker};

/// Takes block events in the order of time. Its memory is what is in flight, and the report.
#[derive(Clone, Debug)]
pub struct Analysis {
    started_ns: u64,
    interval_ns: u64,
    follow: RequestTracker,
    /// By the number of the disk.
    disks: Vec<Disk>,
    events_lost: u64,
    losses_uncounted: u64,
}

#[derive(Clone, Debug)]
struct Disk {
    measures: Measures,
    conservation: Conservation,
}

impl Analysis {
    /// `started_ns`: on the trace's clock; times in the report count from there. `interval_ns`: of the time series, which
    /// keep `intervals::INTERVALS_MAX` at most and widen otherwise.
    pub fn new(started_ns: u64, interval_ns: u64) -> Analysis {
        Analysis {
            started_ns,
            interval_ns,
            follow: RequestTracker::default(),
            disks: Vec::new(),
            events_lost: 0,
            losses_uncounted: 0,
        }
    }

    /// Bios of a partition carry its own number, with the whole disk's sectors; requests carry the disk's.
    pub fn partition(&mut self, partition: Device, disk: Device) {
        self.follow.partition(partition, disk);
    }

    /// Takes in the next event, in the order of time; what is about no bio and no request is passed over.
    #[inline]
    pub fn add(&mut self, event: &TraceEvent) {
        let Some(kind) = Measures::kind(event.step) else {
            return;
        };
        let (disks, began) = (&mut self.disks, (self.started_ns, self.interval_ns));
        self.follow.add(event, |disk, change| {
            known(disks, disk, began).change(event, &change);
        });
        if let Some(disk) = self.follow.latest_disk() {
            known(disks, disk, began).measures.count(kind);
        }
    }

    /// A CPU's events were lost before `at_ns`, after the event of that CPU before it.
    pub fn lost(&mut self, at_ns: u64, lost: LostEvents) {
        match lost {
            LostEvents::Events(count) => self.events_lost += count,
            LostEvents::Uncounted => self.losses_uncounted += 1,
        }
        let event = TraceEvent::lost(at_ns, at_ns, 0, 0);
        let (disks, began) = (&mut self.disks, (self.started_ns, self.interval_ns));
        self.follow.add(&event, |disk, change| {
            known(disks, disk, began).change(&event, &change);
        });
    }

    /// Ends the recording at `ended_ns` on the events' clock; what has not completed is in flight.
    pub fn finish(self, ended_ns: u64) -> BlockReport {
        let mut report = BlockReport {
            elapsed_ns: ended_ns.saturating_sub(self.started_ns),
            events_lost: self.events_lost,
            losses_uncounted: self.losses_uncounted,
            ..BlockReport::default()
        };
        let numbered = self.follow.disks().zip(self.disks).enumerate();
        let mut disks: Vec<(usize, (Device, Disk))> =
            numbered.filter(|(_, (_, disk))| disk.measures.has_events()).collect();
        disks.sort_by_key(|(_, (device, _))| *device);
        for (number, (device, disk)) in disks {
            let (measured, series) = disk.measures.finish(ended_ns);
            report.all.merge(&measured.activities);
            report.series.insert(device.to_string(), series);
            report.devices.push(DeviceReport {
                device: device.to_string(),
                conservation: Conservation { in_flight: self.follow.in_flight(number) as u64, ..disk.conservation },
                ..measured
            });
        }
        report
    }
}

#[inline]
fn known(disks: &mut Vec<Disk>, number: usize, (started_ns, interval_ns): (u64, u64)) -> &mut Disk {
    while disks.len() <= number {
        disks.push(Disk { measures: Measures::new(started_ns, interval_ns), conservation: Conservation::default() });
    }
    &mut disks[number]
}

impl Disk {
    #[inline]
    fn change(&mut self, event: &TraceEvent, change: &Change<'_>) {
        let conserved = &mut self.conservation;
        match change {
            Change::Queued => conserved.queued += 1,
            Change::Split => conserved.split += 1,
            Change::Unqueued => conserved.unqueued += 1,
            Change::Merged { seen } => {
                conserved.merged += 1;
                conserved.unqueued += u64::from(!seen);
            }
            Change::Ended { .. } => conserved.completed += 1,
            Change::GivenUp { .. } => conserved.unmatched += 1,
            Change::Issued { .. } | Change::Requeued | Change::Part | Change::Flushed | Change::Unmatched => {}
        }
        self.measures.change(event, change);
    }
}
