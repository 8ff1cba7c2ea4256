//! A thread of a metadata load in XFS: what it has locked and taken, and where it is in its call.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut, Index, IndexMut};

use workload::metadata::{SyncMethod, ThreadMeasured, ThreadSpec};

use super::allocation::{CallStage, HeldGroups};
use super::directory::BlockUse;
use crate::program::{Program, Switches};
use events::SpecError;
use events::smp::TaskNumber;
use events::time::Time;

/// A phase's threads.
#[derive(Default)]
pub(super) struct Threads {
    began: Time,
    threads: Vec<Thread>,
    /// Those that still have something to do.
    active: usize,
}

pub(super) struct Thread {
    program: Program,
    /// The directory of its path.
    pub(super) directory: usize,
    /// By number, of the files that it has made and will unlink.
    inodes: BTreeMap<u64, u64>,
    /// Its files are neither unlinked nor synced again.
    forgets: bool,
    /// That it has begun and that is to go into the log's buffers.
    pub(super) checkpoint: Option<u64>,
    /// Of the file that is open.
    open: u64,
    pub(super) stage: Stage,
    pub(super) transaction: Transaction,
}

impl Deref for Thread {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

impl DerefMut for Thread {
    fn deref_mut(&mut self) -> &mut Program {
        &mut self.program
    }
}

/// What a thread does when it next gets to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The program's own work until the next call, and that call.
    Program,
    /// Log space is reserved; the directory is to be locked.
    Begun,
    DirectoryLocked,
    /// The inode header of the group is locked.
    InodesLocked,
    /// In the allocator.
    Calls(CallStage),
    Answered,
    /// The transaction with the new chunk is committed, and another reserved.
    Rolled,
    /// The inode is taken; the directory's entry is next.
    HasInode,
    Committed,
    /// The data are in the page cache.
    Written,
    /// A checkpoint goes into the log's buffers.
    Logs,
    /// A file's data are to be on the drive, then what the log has of it, then what the drive's cache has.
    Syncs,
    Forces,
    Flushes,
    Forced,
    /// All files' data are.
    SyncsAll,
    /// The call is over.
    Over,
    Finished,
}

/// What a transaction has and is about to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Transaction {
    pub(super) directory: usize,
    /// The group of the inode, its header locked.
    pub(super) group: Option<u32>,
    /// Groups that it has tried in vain, and calls for a chunk in the present one.
    pub(super) groups_tried: u32,
    pub(super) attempt: u32,
    pub(super) inode: Option<u64>,
    /// Blocks that the directory still has to get, last first; None: its entry has not been made yet.
    pub(super) wanted: Option<Vec<BlockUse>>,
    /// Of a block for the directory's map of its extents.
    pub(super) maps: bool,
    pub(super) held: HeldGroups,
    /// Ends without having done anything.
    pub(super) fails: bool,
}

impl Threads {
    /// A phase begins: its threads are to be added.
    pub(super) fn begin(&mut self, now: Time) {
        self.began = now;
        self.threads.clear();
    }

    pub(super) fn add(&mut self, thread: Thread) {
        self.threads.push(thread);
    }

    /// All have something to do. How many there are.
    pub(super) fn activate(&mut self) -> u32 {
        self.active = self.threads.len();
        self.active as u32
    }

    /// One has finished.
    pub(super) fn finish_one(&mut self) {
        self.active -= 1;
    }

    pub(super) fn are_active(&self) -> bool {
        self.active > 0
    }

    pub(super) fn began(&self) -> Time {
        self.began
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Thread> {
        self.threads.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Thread> {
        self.threads.iter_mut()
    }

    /// The phase is over.
    pub(super) fn take(&mut self) -> Vec<Thread> {
        std::mem::take(&mut self.threads)
    }
}

impl Index<u32> for Threads {
    type Output = Thread;

    fn index(&self, number: u32) -> &Thread {
        &self.threads[number as usize]
    }
}

impl IndexMut<u32> for Threads {
    fn index_mut(&mut self, number: u32) -> &mut Thread {
        &mut self.threads[number as usize]
    }
}

impl Thread {
    pub(super) fn new(spec: &ThreadSpec, task: TaskNumber, directory: usize, now: Time) -> Result<Thread, SpecError> {
        Ok(Thread {
            program: Program::new(spec, task, now)?,
            directory,
            inodes: BTreeMap::new(),
            forgets: spec.job.keep && matches!(spec.job.sync, SyncMethod::None | SyncMethod::BeforeClose),
            checkpoint: None,
            open: 0,
            stage: Stage::Program,
            transaction: Transaction::default(),
        })
    }

    /// It has made the file, which is open now.
    pub(super) fn remember(&mut self, file: u64, inode: u64) {
        self.open = inode;
        if !self.forgets {
            self.inodes.insert(file, inode);
        }
    }

    /// One of its own.
    pub(super) fn opens_again(&mut self, file: u64) {
        self.open = self.inode_of(file);
    }

    pub(super) fn open_inode(&self) -> u64 {
        self.open
    }

    pub(super) fn forget(&mut self, file: u64) -> u64 {
        self.inodes.remove(&file).expect("it made the file")
    }

    pub(super) fn inode_of(&self, file: u64) -> u64 {
        self.inodes[&file]
    }

    pub(super) fn into_measured(self, began: Time, switches: Switches, process_ns: (Time, Time)) -> ThreadMeasured {
        self.program.into_measured(began, switches, process_ns)
    }
}
