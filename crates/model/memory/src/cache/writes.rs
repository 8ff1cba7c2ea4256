//! Writes in flight, by number in the order in which they were submitted, and what happens when some are done.

use std::collections::BTreeSet;

use crate::cache::FileId;
use crate::cache::device::DeviceId;
use block_layer::TaskId;
use events::station::Violation;

#[derive(Clone, Debug)]
pub(super) struct Writes {
    last: u64,
    of_files: Vec<BTreeSet<u64>>,
    of_devices: Vec<BTreeSet<u64>>,
    waits: Vec<Wait>,
}

/// Until no write with this number or a lower one is in flight.
#[derive(Clone, Copy, Debug)]
struct Wait {
    until: u64,
    of: AwaitedWrites,
    then: WriteFollowUp,
}

/// Writes that are waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum AwaitedWrites {
    File(FileId),
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
        Writes {
            last: 0,
            of_files: Vec::new(),
            of_devices: vec![BTreeSet::new(); devices],
            waits: Vec::new(),
        }
    }

    /// Its number.
    pub(super) fn start(&mut self, file: FileId, device: DeviceId) -> u64 {
        self.last += 1;
        let file = file as usize;
        if self.of_files.len() <= file {
            self.of_files.resize_with(file + 1, BTreeSet::new);
        }
        self.of_files[file].insert(self.last);
        self.of_devices[device].insert(self.last);
        self.last
    }

    pub(super) fn end(&mut self, file: FileId, device: DeviceId, number: u64) {
        self.of_files[file as usize].remove(&number);
        self.of_devices[device].remove(&number);
    }

    /// `pop_over` reports when those that are in flight now are done.
    pub(super) fn wait(&mut self, of: AwaitedWrites, then: WriteFollowUp) {
        let until = match of {
            AwaitedWrites::Oldest => self.oldest().unwrap_or(0),
            AwaitedWrites::File(_) | AwaitedWrites::Device(_) => self.last,
        };
        self.waits.push(Wait { until, of, then });
    }

    /// What is to happen because those that were waited for are done.
    pub(super) fn pop_over(&mut self) -> Option<WriteFollowUp> {
        let over = self.waits.iter().position(|wait| self.is_over(wait))?;
        Some(self.waits.swap_remove(over).then)
    }

    fn is_over(&self, wait: &Wait) -> bool {
        let first = match wait.of {
            AwaitedWrites::File(file) => {
                let writes = self.of_files.get(file as usize);
                writes.and_then(|writes| writes.first().copied())
            }
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
        let count = |of: &[BTreeSet<u64>]| of.iter().map(BTreeSet::len).sum::<usize>();
        let (of_files, of_devices) = (count(&self.of_files), count(&self.of_devices));
        Violation::unless(of_files == of_devices, "writes", || {
            format!("{of_files} of files are under way, {of_devices} of drives")
        })?;
        let over = self.waits.iter().find(|wait| self.is_over(wait));
        Violation::unless(over.is_none(), "writes", || {
            format!("{over:?} is over and nobody was told")
        })
    }
}
