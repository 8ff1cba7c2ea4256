//! Follows the bios and requests of all devices from event to event.

use std::collections::BTreeMap;

use super::change::{Change, JoinedBio, State};
use super::device_items::Items;
use super::device_step::DeviceStep;
use super::io::Io;
use super::losses::Losses;
use super::unknown::Unknown;
use crate::event::{Device, Op, Step, TraceEvent};
use crate::recent::RecentPlaces;

/// Takes events in the order of time and yields the requests that ended. Its memory is what is in flight.
#[derive(Clone, Debug, Default)]
pub struct RequestTracker {
    devices: Vec<(Device, Disk)>,
    /// The place in `devices`; for a partition, that of its disk.
    routes: BTreeMap<Device, usize>,
    recent: RecentPlaces,
    latest: Option<(Device, usize)>,
    losses: Losses,
    /// What was not determined.
    pub unknown: Unknown,
}

#[derive(Clone, Debug)]
struct Disk {
    items: Items,
    /// How many of them the driver has.
    issued: u64,
    merges_told: bool,
}

impl Disk {
    fn recount(&mut self) {
        let issued = self.items.iter().filter(|entry| entry.what.state == State::Issued);
        self.issued = issued.count() as u64;
    }
}

impl RequestTracker {
    /// Bios of a partition carry its own number, with the whole disk's sectors; requests carry the disk's.
    pub fn partition(&mut self, partition: Device, disk: Device) {
        let route = self.route(disk);
        self.routes.insert(partition, route);
        self.recent.remember(partition.0, route);
    }

    /// Takes in the next event; `each` gets what it changes, and the number of the disk: from 0 in the order in which
    /// they were first seen.
    #[inline]
    pub fn add(&mut self, event: &TraceEvent, mut each: impl FnMut(usize, Change<'_>)) {
        if let Some(before_ns) = self.losses.due(event.at_ns) {
            self.give_up(before_ns, &mut each);
        }
        match event.step {
            Step::Lost => return self.losses.add(event.argument.max(event.at_ns)),
            Step::Restart => {
                self.losses.restart();
                return self.give_up(u64::MAX, &mut each);
            }
            step if !step.is_of_bios() => return,
            _ => {}
        }
        let route = match self.recent.place(event.device.0) {
            Some(route) => route,
            None => self.route(event.device),
        };
        self.latest = Some((event.device, route));
        if event.step == Step::Remap {
            return;
        }
        let device = self.devices[route].0;
        if matches!(event.step, Step::Arrival | Step::DeviceDone | Step::WholeDone) {
            each(route, Change::Unqueued);
            let io = Io::whole(device, event);
            return self.ended(io, false, &[], State::Waiting, |change| each(route, change));
        }
        let disk = &mut self.devices[route].1;
        let mut turn = DeviceStep {
            items: &mut disk.items,
            issued: &mut disk.issued,
            unknown: &mut self.unknown,
            device,
            merges_told: &mut disk.merges_told,
            each: |change: Change<'_>| each(route, change),
        };
        if let Some(item) = turn.add(event) {
            self.ended(item.io, item.doubtful, &item.joined, item.state, |change| {
                each(route, change);
            });
        }
    }

    fn ended(
        &mut self,
        mut io: Io,
        doubtful: bool,
        joined: &[JoinedBio],
        from: State,
        mut each: impl FnMut(Change<'_>),
    ) {
        // A request that was in flight when events were missing, or came soon after, may have got the events of
        // another.
        if self.losses.in_doubt(io.seen_ns) && !doubtful {
            let trusted = |at_ns: &u64| !self.losses.in_doubt(*at_ns);
            io.queued_ns = None;
            io.inserted_ns = io.inserted_ns.filter(trusted);
            io.issued_ns = io.issued_ns.filter(trusted);
            if io.issued_ns.is_none() {
                self.unknown.lost += 1;
                return each(Change::Ended { io: &io, joined: &[], from });
            }
        }
        if doubtful {
            self.unknown.alike += 1;
        }
        if let (Some(from), Some(to)) = (io.issued_ns, io.completed_ns) {
            self.losses.took(to.saturating_sub(from));
        }
        each(Change::Ended { io: &io, joined, from });
    }

    /// The disks, in the order of their numbers.
    pub fn disks(&self) -> impl Iterator<Item = Device> {
        self.devices.iter().map(|(device, _)| *device)
    }

    /// What is in flight on the disk of that number.
    pub fn in_flight(&self, disk: usize) -> usize {
        self.devices.get(disk).map_or(0, |(_, disk)| disk.items.len())
    }

    /// What is in flight.
    pub fn len(&self) -> usize {
        self.devices.iter().map(|(_, disk)| disk.items.len()).sum()
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The trace ended: what is still in flight has no end.
    pub fn finish(&mut self) {
        self.unknown.unended += self.len() as u64;
    }

    /// The only bio of a device that may have these sectors; None if there is none, or another.
    pub fn bio_with(&self, device: Device, sector: u64, sectors: u64, op: Op) -> Option<Io> {
        let disk = &self.devices[*self.routes.get(&device)?].1;
        let end = sector.saturating_add(sectors);
        let mut having = disk
            .items
            .iter()
            .filter(|item| item.what.is_bio(op) && (item.start <= sector && end <= item.end() || item.what.vague));
        let one = having.next()?;
        (having.next().is_none() && !one.what.vague).then_some(one.what.io)
    }

    /// What the driver of a device has, for whoever asks what stands before a request.
    pub fn issued(&self, device: Device) -> impl Iterator<Item = &Io> {
        let disk = self.devices.iter().find(|(known, _)| *known == device);
        let items = disk.into_iter().flat_map(|(_, disk)| disk.items.iter());
        items.filter(|entry| entry.what.state == State::Issued).map(|entry| &entry.what.io)
    }

    /// What the drivers of all devices have.
    pub fn all_issued(&self) -> Vec<Io> {
        let devices: Vec<Device> = self.devices.iter().map(|(device, _)| *device).collect();
        devices.into_iter().flat_map(|device| self.issued(device)).copied().collect()
    }

    /// What was in flight at a loss and has not ended by now has ended in it: were it kept, it would be taken for what
    /// comes after at the same sectors.
    #[cold]
    fn give_up(&mut self, before_ns: u64, each: &mut impl FnMut(usize, Change<'_>)) {
        for (route, (_, disk)) in self.devices.iter_mut().enumerate() {
            let unended = &mut self.unknown.unended;
            disk.items.retain(|item| {
                let kept = item.io.seen_ns >= before_ns;
                if !kept {
                    *unended += 1;
                    each(route, Change::GivenUp { from: item.state });
                }
                kept
            });
            disk.recount();
        }
    }

    /// Requests that the driver of a device has.
    #[inline]
    pub fn depth(&self, device: Device) -> Option<u64> {
        match self.latest {
            Some((latest, route)) if latest == device => Some(self.devices[route].1.issued),
            _ => None,
        }
    }

    /// The disk of the event that came last, and how many requests its driver has.
    #[inline]
    pub fn latest(&self) -> Option<(Device, u64)> {
        let (device, disk) = &self.devices[self.latest?.1];
        Some((*device, disk.issued))
    }

    /// The number of the disk of the event that came last.
    #[inline]
    pub fn latest_disk(&self) -> Option<usize> {
        self.latest.map(|(_, number)| number)
    }

    /// Whether what is in flight now is known.
    #[inline]
    pub fn in_doubt(&self, now_ns: u64) -> bool {
        self.losses.in_doubt(now_ns)
    }

    fn route(&mut self, device: Device) -> usize {
        let devices = &mut self.devices;
        let route = *self.routes.entry(device).or_insert_with(|| {
            devices.push((device, Disk { items: Items::new(), issued: 0, merges_told: false }));
            devices.len() - 1
        });
        self.recent.remember(device.0, route);
        route
    }
}
