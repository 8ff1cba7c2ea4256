//! What the cache knows of each drive that its files are on (the kernel's `backing_dev_info`).

use std::collections::{BTreeSet, VecDeque};

use crate::cache::FileId;
use crate::cache::dirty_rate::DirtyRate;
use crate::cache::flushers::{FLUSHER, JOURNAL, OLD_DATA_FLUSHER};
use crate::cache::inode_lock::FsyncHolds;
use crate::cache::journal::Journal;
use crate::cache::page_cache::PageCache;
use crate::cache::pdflush::THREADS_MAX;
use crate::cache::proportions::Share;
use crate::cache::spec::{CacheVariant, Rules};
use block_layer::TaskId;

/// A drive's number among the machine's.
pub(super) type DeviceId = usize;

#[derive(Clone, Debug)]
pub(super) struct Device {
    /// Dirty inodes, the one that has been so for longest first.
    pub(super) inodes: VecDeque<FileId>,
    /// By direction, as far as kernels look at it.
    pub(super) congested: [bool; 2],
    /// Pages, those that are being written too among both.
    pub(super) dirty: u64,
    pub(super) writing: u64,
    /// Writes under way by number, in the order in which they were submitted.
    pub(super) writes: BTreeSet<u64>,
    /// Of all pages that were written lately.
    pub(super) written: Share,
    /// More was dirty than its limit, or than that of all (of the first drive), when a writer looked last.
    pub(super) exceeded: bool,
    /// Of kernels whose writers do not write back themselves.
    pub(super) rate: Option<DirtyRate>,
    pub(super) journal: Option<Journal>,
    /// Its flushers are at work.
    pub(super) background: bool,
    pub(super) old_data: bool,
    pub(super) fsync_holds: FsyncHolds,
}

impl Device {
    pub(super) fn new(rules: &Rules) -> Device {
        Device {
            inodes: VecDeque::new(),
            congested: [false; 2],
            dirty: 0,
            writing: 0,
            writes: BTreeSet::new(),
            written: Share::default(),
            exceeded: false,
            rate: (rules.variant == CacheVariant::Linux3_2).then(DirtyRate::new),
            journal: rules.commit_interval.map(Journal::new),
            background: false,
            old_data: false,
            fsync_holds: FsyncHolds::default(),
        }
    }

    /// Dirty, or being written.
    pub(super) fn unwritten(&self) -> u64 {
        self.dirty + self.writing
    }
}

/// A kernel's task for the drive, of those of which each has one; of pdflush, the thread with that number.
pub(super) fn task_of(task: TaskId, device: DeviceId) -> TaskId {
    task + TASKS_PER_DEVICE * device as TaskId
}

/// Who commits the journal of the device.
pub fn journal_task(device: DeviceId) -> TaskId {
    task_of(JOURNAL, device)
}

/// Flusher, the one for old data, journal.
const TASKS_PER_DEVICE: TaskId = 4;

impl PageCache {
    /// For a machine with so many drives, which have all written as much until now. In 2.4 they count as one: one list of
    /// buffers, one limit, one flusher.
    pub fn with_drives(mut self, drives: usize) -> PageCache {
        let counted = match self.rules.variant {
            CacheVariant::Linux2_4 => 1,
            _ => drives.max(1),
        };
        self.devices = vec![Device::new(&self.rules); counted];
        if let Some(written) = &self.written {
            let equal = written.equal(self.devices.len() as u64);
            for device in &mut self.devices {
                device.written = equal;
            }
        }
        self
    }

    /// On which of the drives the file is; the first, unless said.
    pub fn place(&mut self, file: FileId, drive: usize) {
        self.file(file).device = self.counted(drive);
    }

    /// The number that it has here.
    pub(super) fn counted(&self, drive: usize) -> DeviceId {
        drive.min(self.devices.len() - 1)
    }

    /// Who commits the drive's journal.
    pub fn journal_task(&self, drive: usize) -> TaskId {
        journal_task(self.counted(drive))
    }

    /// Of the tasks that write back.
    pub fn task_names(&self) -> impl Iterator<Item = (TaskId, String)> {
        let devices = self.devices.len();
        let (flushers, old_data_flushers) = match self.rules.variant.has_pdflush() {
            true => (THREADS_MAX, 0),
            false => (devices, devices),
        };
        let names = [
            (FLUSHER, "flusher", flushers),
            (OLD_DATA_FLUSHER, "old_flusher", old_data_flushers),
            (JOURNAL, "journal", devices),
        ];
        names.into_iter().flat_map(|(task, name, count)| {
            (0..count).map(move |number| (task_of(task, number), name.to_owned()))
        })
    }

    pub(super) fn device_of(&self, file: FileId) -> DeviceId {
        let of = self.files.get(file as usize);
        of.map_or(0, |file| file.device)
    }
}
