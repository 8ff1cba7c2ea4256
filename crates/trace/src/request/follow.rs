//! Follows the bios and requests of all devices from event to event.

use std::collections::BTreeMap;

use super::io::Io;
use super::turn::Turn;
use super::under_way::{Item, Items, State};
use crate::block::Device;
use crate::event::{Step, TraceEvent};

/// Takes events in the order of time and yields the requests that ended. Its memory is what is under way.
#[derive(Clone, Debug, Default)]
pub struct Follow {
    devices: Vec<(Device, Disk)>,
    /// Where in `devices`; of partitions, their disk.
    routes: BTreeMap<Device, usize>,
    latest: Option<(Device, usize)>,
    /// No time of an I/O is trusted that was issued before: what was lost may hold the events that were its own.
    doubt_until_ns: u64,
    /// What began before is given up when the doubt is over.
    stale_before_ns: Option<u64>,
    /// The longest time that a driver had a request so far.
    longest_ns: u64,
    /// What was not determined.
    pub unknown: Unknown,
}

/// Why times are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Events about what is not known: it began before the trace, or its beginning was lost.
    pub unmatched: u64,
    /// Requests that look like another under way at the same time.
    pub alike: u64,
    /// Requests under way where events were lost.
    pub lost: u64,
    /// Bios and requests without an end: under way at the end, or their end was lost.
    pub unended: u64,
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
        let issued = self
            .items
            .iter()
            .filter(|entry| entry.what.state == State::Issued);
        self.issued = issued.count() as u64;
    }
}

/// Of a loss, how much longer than the longest time seen an unseen request may still be under way.
const LONGER: u64 = 2;
/// The least of it: of a trace that has only begun, little has been seen.
const DOUBT_NS_MIN: u64 = 100_000_000;

impl Follow {
    /// Bios of a partition carry its own number, with the whole disk's sectors; requests carry the disk's.
    pub fn partition(&mut self, partition: Device, disk: Device) {
        let route = self.route(disk);
        self.routes.insert(partition, route);
    }

    /// Takes in the next event; `each` gets the request that it ends.
    #[inline]
    pub fn add(&mut self, event: &TraceEvent, mut each: impl FnMut(&Io, &[Option<u64>])) {
        if let Some(before_ns) = self
            .stale_before_ns
            .filter(|_| event.at_ns >= self.doubt_until_ns)
        {
            self.give_up(before_ns);
        }
        match event.step {
            Step::Plug | Step::Unplug | Step::Sleep => return,
            Step::Lost => return self.lost(event),
            Step::Restart => return self.restart(),
            _ => {}
        }
        let route = match self.latest {
            Some((device, route)) if device == event.device => route,
            _ => self.route(event.device),
        };
        self.latest = Some((event.device, route));
        if event.step == Step::Remap {
            return;
        }
        let device = self.devices[route].0;
        let disk = &mut self.devices[route].1;
        let mut turn = Turn {
            items: &mut disk.items,
            issued: &mut disk.issued,
            unknown: &mut self.unknown,
            device,
            merges_told: &mut disk.merges_told,
        };
        if let Some(item) = turn.add(event) {
            self.ended(&item, &mut each);
        }
    }

    fn ended(&mut self, item: &Item, each: &mut impl FnMut(&Io, &[Option<u64>])) {
        let mut io = item.io;
        // Whoever was under way when events were missing, or came soon after, may have got another's events.
        if io.seen_ns < self.doubt_until_ns && !item.doubtful {
            let trusted = |at_ns: &u64| *at_ns >= self.doubt_until_ns;
            io.queued_ns = None;
            io.inserted_ns = io.inserted_ns.filter(trusted);
            io.issued_ns = io.issued_ns.filter(trusted);
            if io.issued_ns.is_none() {
                self.unknown.lost += 1;
                return each(&io, &[]);
            }
        }
        if item.doubtful {
            self.unknown.alike += 1;
        }
        if let (Some(from), Some(to)) = (io.issued_ns, io.completed_ns) {
            self.longest_ns = self.longest_ns.max(to.saturating_sub(from));
        }
        each(&io, &item.joined);
    }

    /// What is under way.
    pub fn len(&self) -> usize {
        self.devices.iter().map(|(_, disk)| disk.items.len()).sum()
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The trace ended: what is still under way has no end.
    pub fn finish(&mut self) {
        self.unknown.unended += self.len() as u64;
    }

    /// What the driver of a device has, for whoever asks what stands before a request.
    pub fn issued(&self, device: Device) -> impl Iterator<Item = &Io> {
        let disk = self.devices.iter().find(|(known, _)| *known == device);
        let items = disk.into_iter().flat_map(|(_, disk)| disk.items.iter());
        items
            .filter(|entry| entry.what.state == State::Issued)
            .map(|entry| &entry.what.io)
    }

    /// What the drivers of all devices have.
    pub fn all_issued(&self) -> Vec<Io> {
        let devices: Vec<Device> = self.devices.iter().map(|(device, _)| *device).collect();
        devices
            .into_iter()
            .flat_map(|device| self.issued(device))
            .copied()
            .collect()
    }

    fn lost(&mut self, event: &TraceEvent) {
        let until_ns = event.argument.max(event.at_ns);
        let longest_ns = self.longest_ns.saturating_mul(LONGER).max(DOUBT_NS_MIN);
        let doubt_ns = until_ns.saturating_add(longest_ns);
        self.doubt_until_ns = self.doubt_until_ns.max(doubt_ns.saturating_add(1));
        self.stale_before_ns = Some(until_ns);
    }

    /// What was under way at a loss and has not ended by now has ended in it: were it kept, it would be taken for what comes
    /// after at the same sectors.
    #[cold]
    fn give_up(&mut self, before_ns: u64) {
        self.stale_before_ns = None;
        for (_, disk) in &mut self.devices {
            let before = disk.items.len();
            disk.items.retain(|item| item.io.seen_ns >= before_ns);
            self.unknown.unended += (before - disk.items.len()) as u64;
            disk.recount();
        }
    }

    fn restart(&mut self) {
        self.give_up(u64::MAX);
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

    /// Whether what is under way now is known.
    #[inline]
    pub fn in_doubt(&self, now_ns: u64) -> bool {
        now_ns < self.doubt_until_ns
    }

    fn route(&mut self, device: Device) -> usize {
        let devices = &mut self.devices;
        *self.routes.entry(device).or_insert_with(|| {
            devices.push((
                device,
                Disk {
                    items: Items::new(),
                    issued: 0,
                    merges_told: false,
                },
            ));
            devices.len() - 1
        })
    }
}
