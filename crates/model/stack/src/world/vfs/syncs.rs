//! What fsync and sync wait for, and what of files is not committed.

use std::collections::{BTreeMap, BTreeSet};

use block_layer::TaskId;
use events::time::Time;
use memory::cache::FileId;

/// Calls that sync, and what they find. Those who write, sync or fail to write back report to it (`impl World`).
#[derive(Default)]
pub(in crate::world) struct Syncs {
    /// fsync asks whether the drive's cache forgets.
    looks_at_caches: bool,
    /// Tasks whose fsync has only to return: the drive's cache is on the medium.
    flushed: BTreeSet<TaskId>,
    /// Files of which something could not be written back for want of space: the next sync of each reports it.
    full: BTreeSet<FileId>,
    /// Who syncs between phases has what it waited for.
    housekeeper_woken: bool,
    /// What of files is not committed, if a filesystem keeps that.
    changes: BTreeMap<FileId, Changes>,
    /// Tasks that have written beyond the blocks of a file since they last synced it.
    owe_blocks: BTreeSet<(TaskId, FileId)>,
    /// Interval at which the clock of file times advances: a tick of the kernel.
    tick_ns: Time,
}

/// What of a file is to be committed.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// The tick of its last write, from 1.
    written_in: u64,
    /// The tick that its time of access is of.
    read_in: u64,
    /// The times of its last write and change.
    times: bool,
    /// The journal's transaction in which those changed (`i_sync_tid`); 0: none.
    times_transaction: u64,
    /// Its size, or where its blocks are, since the last sync that has these committed.
    blocks: bool,
    /// The transaction in which the last of these changed (`i_datasync_tid`).
    blocks_transaction: u64,
}

/// What an fsync has to have committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) struct SyncDemand {
    /// Blocks of metadata: what describes the inode, and what describes blocks that it got; 0: another sync has them
    /// committed.
    pub(in crate::world) metadata_blocks: u32,
    /// The file's times.
    pub(in crate::world) times: bool,
    /// The journal's transaction that has the last of it.
    pub(in crate::world) transaction: u64,
}

impl Syncs {
    pub(in crate::world) fn set_tick(&mut self, tick_ns: Time) {
        self.tick_ns = tick_ns;
    }

    pub(in crate::world) fn look_at_caches(&mut self) {
        self.looks_at_caches = true;
    }

    pub(in crate::world) fn looks_at_caches(&self) -> bool {
        self.looks_at_caches
    }

    /// Whether the task's fsync has only to return; it does.
    pub(in crate::world) fn take_flushed(&mut self, task: TaskId) -> bool {
        self.flushed.remove(&task)
    }

    /// Something of the file could not be written back for want of space.
    pub(in crate::world) fn found_no_room(&mut self, file: FileId) {
        self.full.insert(file);
    }

    /// Whether the file's next sync has to report that; it counts as reported.
    pub(in crate::world) fn take_full(&mut self, file: FileId) -> bool {
        self.full.remove(&file)
    }

    /// What the task's fsync waited for is on the medium.
    pub(in crate::world) fn has_flushed(&mut self, task: TaskId) {
        self.flushed.insert(task);
    }

    pub(in crate::world) fn wake_housekeeper(&mut self) {
        self.housekeeper_woken = true;
    }

    /// Whether who syncs between phases has what it waited for; then it continues.
    pub(in crate::world) fn take_housekeeper_woken(&mut self) -> bool {
        std::mem::take(&mut self.housekeeper_woken)
    }

    /// Whether a write now changes the file's times: they change with the tick only (`file_update_time`, `current_time`).
    pub(in crate::world) fn would_change(&self, now: Time, file: FileId) -> bool {
        let written_in = self.changes.get(&file).map(|changes| changes.written_in);
        written_in != Some(self.tick(now))
    }

    /// The file is written to, while that transaction of its journal runs. True: that changes its times.
    pub(in crate::world) fn written(&mut self, now: Time, file: FileId, running: u64) -> bool {
        let tick = self.tick(now);
        let changes = self.changes.entry(file).or_default();
        let is_changed = changes.written_in != tick;
        if is_changed {
            (changes.times, changes.times_transaction) = (true, running);
        }
        changes.written_in = tick;
        is_changed
    }

    /// The same of a read: the time of access follows that of the last write (`relatime_need_update` in fs/inode.c, 6.1).
    pub(in crate::world) fn read(&mut self, now: Time, file: FileId, running: u64) -> bool {
        let is_changed = self.read_would_change(now, file);
        if is_changed {
            let tick = self.tick(now);
            let changes = self.changes.entry(file).or_default();
            (changes.times, changes.times_transaction) = (true, running);
            changes.read_in = tick;
        }
        is_changed
    }

    /// Whether a read now changes the file's time of access.
    pub(in crate::world) fn read_would_change(&self, now: Time, file: FileId) -> bool {
        let (written_in, read_in) =
            self.changes.get(&file).map_or((0, 0), |changes| (changes.written_in, changes.read_in));
        written_in >= read_in && read_in != self.tick(now)
    }

    /// The file has other blocks than before, or another size, in that transaction.
    pub(in crate::world) fn got_blocks(&mut self, file: FileId, running: u64) {
        let changes = self.changes.entry(file).or_default();
        changes.blocks = true;
        (changes.blocks_transaction, changes.times_transaction) = (running, running);
    }

    /// Data of the file are in that transaction, which a sync waits for.
    pub(in crate::world) fn data_changes(&mut self, file: FileId, running: u64) {
        let changes = self.changes.entry(file).or_default();
        changes.blocks_transaction = running;
    }

    fn tick(&self, now: Time) -> u64 {
        1 + now / self.tick_ns.max(1)
    }

    /// Whether the file has got blocks, or another size, that no sync has committed.
    pub(in crate::world) fn has_new_blocks(&self, file: FileId) -> bool {
        self.changes.get(&file).is_some_and(|changes| changes.blocks)
    }

    /// The task's next sync of the file has to give blocks to what it has written. Each who extends a file does that for its
    /// own data (counted in a guest: an allocation for each record of eight writers of one log).
    pub(in crate::world) fn owes_blocks(&mut self, task: TaskId, file: FileId) {
        self.owe_blocks.insert((task, file));
    }

    /// Whether the task's sync of the file has to.
    pub(in crate::world) fn has_owed_blocks(&self, task: TaskId, file: FileId) -> bool {
        self.owe_blocks.contains(&(task, file))
    }

    /// It does.
    pub(in crate::world) fn gives_owed_blocks(&mut self, task: TaskId, file: FileId) {
        self.owe_blocks.remove(&(task, file));
    }

    /// What a sync of the file commits; None: nothing. fdatasync leaves the times alone. What another sync has committed is
    /// waited for as well (`ext4_fsync_journal` of fs/ext4/fsync.c, 6.1).
    pub(in crate::world) fn take_changes(&mut self, file: FileId, data_only: bool) -> Option<SyncDemand> {
        let found = self.changes(file, data_only)?;
        if found.metadata_blocks > 0 {
            self.are_committed(file);
        }
        Some(found)
    }

    /// All of the file that has changed is committed.
    pub(in crate::world) fn are_committed(&mut self, file: FileId) {
        let changes = self.changes.entry(file).or_default();
        (changes.blocks, changes.times) = (false, false);
    }

    /// Whether a sync of the file has metadata to commit.
    pub(in crate::world) fn has_changes(&self, file: FileId, data_only: bool) -> bool {
        let found = self.changes(file, data_only);
        found.is_some_and(|found| found.metadata_blocks > 0)
    }

    /// What `take_changes` would take.
    pub(in crate::world) fn changes(&self, file: FileId, data_only: bool) -> Option<SyncDemand> {
        let changes = self.changes.get(&file)?;
        let times = changes.times;
        let metadata_blocks = match (changes.blocks, times && !data_only) {
            (true, _) => 3,
            (false, true) => 1,
            (false, false) => 0,
        };
        let transaction = match data_only {
            true => changes.blocks_transaction,
            false => changes.blocks_transaction.max(changes.times_transaction),
        };
        (metadata_blocks > 0 || transaction > 0).then_some(SyncDemand { metadata_blocks, times, transaction })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = 3;

    #[test]
    fn who_syncs_what_another_sync_commits_waits_for_the_same_transaction() {
        let mut syncs = Syncs::default();
        assert_eq!(syncs.take_changes(FILE, true), None);
        syncs.got_blocks(FILE, 7);
        let demand = |metadata_blocks, transaction| Some(SyncDemand { metadata_blocks, times: false, transaction });
        assert_eq!(syncs.take_changes(FILE, true), demand(3, 7));
        assert_eq!(syncs.take_changes(FILE, true), demand(0, 7));
        // Data of another writer have come to the drive after the commit has begun.
        syncs.got_blocks(FILE, 8);
        assert_eq!(syncs.take_changes(FILE, true), demand(3, 8));
    }

    #[test]
    fn fdatasync_leaves_the_times_to_fsync() {
        let mut syncs = Syncs::default();
        syncs.written(0, FILE, 5);
        assert_eq!(syncs.take_changes(FILE, true), None);
        let all = SyncDemand { metadata_blocks: 1, times: true, transaction: 5 };
        assert_eq!(syncs.take_changes(FILE, false), Some(all));
        let again = SyncDemand { metadata_blocks: 0, times: false, ..all };
        assert_eq!(syncs.take_changes(FILE, false), Some(again));
    }

    #[test]
    fn times_change_with_the_tick_and_the_time_of_access_once_after_a_write() {
        let mut syncs = Syncs::default();
        syncs.set_tick(4);
        assert!(syncs.written(0, 7, 1));
        assert!(!syncs.written(3, 7, 1));
        assert!(syncs.read(3, 7, 1));
        assert!(syncs.read(9, 7, 1), "it was no later than the write");
        assert!(!syncs.read(13, 7, 1), "nothing was written since");
        assert!(syncs.written(17, 7, 2));
        assert!(syncs.read(21, 7, 3));
        let demand = syncs.take_changes(7, false).expect("its times");
        assert_eq!(demand.transaction, 3);
        let again = syncs.take_changes(7, false).expect("the transaction");
        assert_eq!((again.metadata_blocks, again.transaction), (0, 3));
    }
}
