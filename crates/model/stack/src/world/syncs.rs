//! What fsync and sync wait for: the cache of a drive, and all of the page cache between phases.

use std::collections::{BTreeMap, BTreeSet};

use super::{HOUSEKEEPER, World};
use block_layer::TaskId;
use events::time::Time;
use memory::cache::{FileId, FsyncHolds, Outcome, PageCache};

/// Calls that sync.
#[derive(Default)]
pub(super) struct Syncs {
    /// fsync asks whether the drive's cache forgets.
    looks_at_caches: bool,
    /// Tasks whose fsync has only to return: the drive's cache is on the medium.
    flushed: BTreeSet<TaskId>,
    /// Files of which something could not be written back for want of space: the next sync of each says so.
    full: BTreeSet<FileId>,
    /// Who syncs between phases has what it waited for.
    housekeeper_woken: bool,
    /// What of files is not committed, where a filesystem keeps that.
    changes: BTreeMap<FileId, Changes>,
    /// The clock that files take their times from goes on so often: a tick of the kernel's.
    tick_ns: Time,
}

/// What of a file is to be committed.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// The tick of its last write, from 1.
    written_in: u64,
    /// The times of its last write and change.
    times: bool,
    /// Its size, or where its blocks are.
    blocks: bool,
}

/// What an fsync has to have committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToCommit {
    /// Blocks of metadata: what describes the inode, and what describes blocks that it got.
    pub(super) metadata_blocks: u32,
    /// The file's times.
    pub(super) times: bool,
}

impl Syncs {
    pub(super) fn set_tick(&mut self, tick_ns: Time) {
        self.tick_ns = tick_ns;
    }

    pub(super) fn look_at_caches(&mut self) {
        self.looks_at_caches = true;
    }

    pub(super) fn looks_at_caches(&self) -> bool {
        self.looks_at_caches
    }

    /// Whether the task's fsync has only to return; it does.
    pub(super) fn take_flushed(&mut self, task: TaskId) -> bool {
        self.flushed.remove(&task)
    }

    /// Something of the file could not be written back for want of space.
    pub(super) fn found_no_room(&mut self, file: FileId) {
        self.full.insert(file);
    }

    /// Whether that is to be said of the file; it is.
    pub(super) fn take_full(&mut self, file: FileId) -> bool {
        self.full.remove(&file)
    }

    pub(super) fn wake_housekeeper(&mut self) {
        self.housekeeper_woken = true;
    }

    /// The file is written to. Its times change with the tick only (`file_update_time`, `current_time`).
    pub(super) fn written(&mut self, now: Time, file: FileId, gets_blocks: bool) {
        let tick = 1 + now / self.tick_ns.max(1);
        let changes = self.changes.entry(file).or_default();
        changes.times |= changes.written_in != tick;
        changes.written_in = tick;
        changes.blocks |= gets_blocks;
    }

    /// What a sync of the file commits; None: nothing. fdatasync leaves the times alone.
    pub(super) fn take_changes(&mut self, file: FileId, data_only: bool) -> Option<ToCommit> {
        let changes = self.changes.get_mut(&file)?;
        let found = ToCommit {
            metadata_blocks: if changes.blocks { 3 } else { 1 },
            times: changes.times,
        };
        let commits = changes.blocks || changes.times && !data_only;
        if commits {
            (changes.blocks, changes.times) = (false, false);
        }
        commits.then_some(found)
    }
}

impl World {
    /// What the task's fsync waited for is on the medium.
    pub(super) fn sync_goes_on(&mut self, now: Time, task: TaskId) {
        self.syncs.flushed.insert(task);
        self.unblock(now, task);
    }

    /// The same where an fsync of files on the drive holds off writers.
    pub fn with_fsync_holds(mut self, drive: usize, holds: FsyncHolds) -> World {
        if let Some(cache) = &mut self.cached.cache {
            cache.set_fsync_holds(drive, holds);
        }
        self
    }

    /// Writes back what is dirty: sync(2).
    pub fn sync(&mut self) {
        self.settle_files(|cache, now, file, _| cache.fsync(now, HOUSEKEEPER, file));
    }

    /// Writes back what is dirty and forgets all: `sync; echo 3 > /proc/sys/vm/drop_caches`.
    pub fn drop_caches(&mut self) {
        self.settle_files(|cache, now, file, bytes| cache.direct(now, HOUSEKEEPER, file, 0, bytes));
    }

    /// Makes the call for each file, with its size, until it is done; meanwhile time goes on.
    fn settle_files(&mut self, call: impl Fn(&mut PageCache, Time, FileId, u64) -> Outcome) {
        let files = match self.cached.cache {
            Some(_) => self.files.len() as FileId,
            None => 0,
        };
        self.clock.progressed(self.clock.now());
        for file in 0..files {
            let bytes = self.files[file as usize].size_bytes;
            let mut now = self.clock.now();
            while self.with_cache(now, |cache| call(cache, now, file, bytes)) == Outcome::Wait {
                while !std::mem::take(&mut self.syncs.housekeeper_woken) {
                    let (at, event) = self.next_event().expect("writes are under way");
                    self.handle(at, event);
                    now = at;
                }
            }
            self.sync_is_over(now, HOUSEKEEPER, file);
        }
    }
}
