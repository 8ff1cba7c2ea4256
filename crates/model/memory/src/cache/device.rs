//! The cache's state of each drive that its files are on (the kernel's `backing_dev_info`).

use crate::cache::pages::Pages;
use block_layer::{Direction, KERNEL_TASKS, TaskId};
use events::station::Violation;

/// A drive's number among the machine's.
pub(super) type DeviceId = usize;

/// The task on whose account background writeback is: bdflush, pdflush or the device's flusher.
pub(super) const FLUSHER: TaskId = KERNEL_TASKS;
/// The task that writes back what has been dirty for too long: kupdate.
pub(super) const OLD_DATA_FLUSHER: TaskId = KERNEL_TASKS + 1;
/// The task that commits the journal: kjournald.
pub(super) const JOURNAL: TaskId = KERNEL_TASKS + 2;
/// Flusher, the one for old data, journal.
const TASKS_PER_DEVICE: TaskId = 4;

/// A kernel's task for the drive, of those of which each has one; of pdflush, the thread with that number.
pub(super) fn task_of(task: TaskId, device: DeviceId) -> TaskId {
    task + TASKS_PER_DEVICE * device as TaskId
}

/// Who commits the journal of the device.
pub fn journal_task(device: DeviceId) -> TaskId {
    task_of(JOURNAL, device)
}

/// How much is dirty on each, and whose queue has too much.
#[derive(Clone, Debug)]
pub(super) struct Devices(Vec<Device>);

#[derive(Clone, Copy, Debug, Default)]
struct Device {
    /// By direction, as far as kernels look at it.
    congested: [bool; 2],
    /// Pages, those that are being written too among both.
    dirty: u64,
    writing: u64,
    /// Its journal is told which pages are written to.
    journals_data: bool,
    /// What is written back of a file in a row ends as a whole.
    has_ioends: bool,
}

impl Devices {
    pub(super) fn new(count: usize) -> Devices {
        Devices(vec![Device::default(); count])
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The number that the machine's drive has here.
    pub(super) fn counted(&self, drive: usize) -> DeviceId {
        drive.min(self.0.len() - 1)
    }

    pub(super) fn set_congested(&mut self, device: DeviceId, direction: Direction, is: bool) {
        self.0[device].congested[direction as usize] = is;
    }

    pub(super) fn set_journals_data(&mut self, device: DeviceId) {
        self.0[device].journals_data = true;
    }

    pub(super) fn journals_data(&self, device: DeviceId) -> bool {
        self.0[device].journals_data
    }

    pub(super) fn set_ioends(&mut self, device: DeviceId) {
        self.0[device].has_ioends = true;
    }

    pub(super) fn has_ioends(&self, device: DeviceId) -> bool {
        self.0[device].has_ioends
    }

    pub(super) fn is_congested(&self, device: DeviceId, direction: Direction) -> bool {
        self.0[device].congested[direction as usize]
    }

    pub(super) fn dirty(&self, device: DeviceId) -> u64 {
        self.0[device].dirty
    }

    pub(super) fn is_writing(&self, device: DeviceId) -> bool {
        self.0[device].writing > 0
    }

    /// Dirty, or being written.
    pub(super) fn unwritten(&self, device: DeviceId) -> u64 {
        self.0[device].dirty + self.0[device].writing
    }

    pub(super) fn dirtied(&mut self, device: DeviceId, pages: u64) {
        self.0[device].dirty += pages;
    }

    pub(super) fn start_writing(&mut self, device: DeviceId, pages: u64) {
        self.0[device].dirty -= pages;
        self.0[device].writing += pages;
    }

    pub(super) fn written(&mut self, device: DeviceId, pages: u64) {
        self.0[device].writing -= pages;
    }

    /// What is dirty and being written in memory is on some drive.
    pub(super) fn check(&self, pages: &Pages) -> Result<(), Violation> {
        let sum = |count: fn(&Device) -> u64| self.0.iter().map(count).sum::<u64>();
        let on_drives = (sum(|one| one.dirty), sum(|one| one.writing));
        let in_memory = (pages.dirty(), pages.writing());
        Violation::unless(on_drives == in_memory, "page cache", || {
            format!("{on_drives:?} pages of drives are dirty and being written, {in_memory:?} in memory")
        })
    }
}
