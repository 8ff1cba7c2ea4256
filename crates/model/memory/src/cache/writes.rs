//! Writes in flight, by number in the order in which they were submitted, and what happens when some are done.

use std::collections::BTreeSet;

use crate::cache::FileId;
use crate::cache::device::DeviceId;
use block_layer::TaskId;
use events::station::Violation;

#[derive(Clone, Debug)]
pub(super) struct Writes {
    last: u64,
    /// First page and number of each.
    of_files: Vec<BTreeSet<(u64, u64)>>,
    of_devices: Vec<BTreeSet<u64>>,
    waits: Vec<Wait>,
}

/// Until no write with this number or a lower one is in flight, or not that one.
#[derive(Clone, Copy, Debug)]
struct Wait {
    until: u64,
    of: AwaitedWrites,
    then: WriteFollowUp,
}

/// Writes that are waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum AwaitedWrites {
    /// One of the device.
    One(DeviceId),
    Device(DeviceId),
    /// The oldest of all that are in flight.
    Oldest,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum WriteFollowUp {
    Release(TaskId),
    Synced(TaskId),
    Committed(DeviceId),
}

impl Writes {
    pub(super) fn new(devices: usize) -> Writes {
        Writes { last: 0, of_files: Vec::new(), of_devices: vec![BTreeSet::new(); devices], waits: Vec::new() }
    }

    /// Its number.
    pub(super) fn start(&mut self, file: FileId, page: u64, device: DeviceId) -> u64 {
        self.last += 1;
        let file = file as usize;
        if self.of_files.len() <= file {
            self.of_files.resize_with(file + 1, BTreeSet::new);
        }
        self.of_files[file].insert((page, self.last));
        self.of_devices[device].insert(self.last);
        self.last
    }

    pub(super) fn end(&mut self, file: FileId, page: u64, device: DeviceId, number: u64) {
        self.of_files[file as usize].remove(&(page, number));
        self.of_devices[device].remove(&number);
    }

    /// `pop_over` reports when those that are in flight now are done.
    pub(super) fn wait(&mut self, of: AwaitedWrites, then: WriteFollowUp) {
        let until = match of {
            AwaitedWrites::Oldest => self.oldest().unwrap_or(0),
            AwaitedWrites::One(_) | AwaitedWrites::Device(_) => self.last,
        };
        self.waits.push(Wait { until, of, then });
    }

    /// The first of the file that are in flight, in the order of their pages from that one on; and the page behind which there may
    /// be more, if there are as many.
    pub(super) fn first_of(&self, file: FileId, from: u64, most: usize) -> (Vec<u64>, Option<u64>) {
        let Some(of_file) = self.of_files.get(file as usize) else {
            return (Vec::new(), None);
        };
        let found: Vec<_> = of_file.range((from, 0)..).take(most).collect();
        let behind = found.get(most - 1).map(|(page, _)| page + 1);
        (found.iter().map(|(_, number)| *number).collect(), behind)
    }

    /// The task is woken when that write is over. False: it is.
    pub(super) fn wait_for(&mut self, task: TaskId, device: DeviceId, number: u64) -> bool {
        let is_in_flight = self.of_devices[device].contains(&number);
        if is_in_flight {
            self.waits.push(Wait { until: number, of: AwaitedWrites::One(device), then: WriteFollowUp::Synced(task) });
        }
        is_in_flight
    }

    /// What is to happen because those that were waited for are done.
    pub(super) fn pop_over(&mut self) -> Option<WriteFollowUp> {
        let over = self.waits.iter().position(|wait| self.is_over(wait))?;
        Some(self.waits.swap_remove(over).then)
    }

    fn is_over(&self, wait: &Wait) -> bool {
        let first = match wait.of {
            AwaitedWrites::One(device) => self.of_devices[device].get(&wait.until).copied(),
            AwaitedWrites::Device(device) => self.of_devices[device].first().copied(),
            AwaitedWrites::Oldest => self.oldest(),
        };
        first.is_none_or(|first| first > wait.until)
    }

    fn oldest(&self) -> Option<u64> {
        let devices = self.of_devices.iter();
        devices.filter_map(|writes| writes.first().copied()).min()
    }

    /// Each is of one file and one drive, and nothing is waited for that is over.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let of_files: usize = self.of_files.iter().map(BTreeSet::len).sum();
        let of_devices: usize = self.of_devices.iter().map(BTreeSet::len).sum();
        Violation::unless(of_files == of_devices, "writes", || {
            format!("{of_files} of files are under way, {of_devices} of drives")
        })?;
        let over = self.waits.iter().find(|wait| self.is_over(wait));
        Violation::unless(over.is_none(), "writes", || format!("{over:?} is over and nobody was told"))
    }
}
