//! A thread that makes files: what it has open, and where it is in its call.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use workload::metadata::ThreadSpec;

use crate::program::Program;
use events::SpecError;
use events::smp::TaskNumber;
use events::time::Time;

pub(super) struct Thread {
    pub(super) program: Program,
    /// The directory of its path.
    pub(super) directory: usize,
    /// By number, of the files that it has made.
    pub(super) inodes: BTreeMap<u64, u64>,
    /// Of the file that is open.
    pub(super) open: u64,
    /// The directory that its call is about.
    pub(super) at: usize,
    pub(super) fails: bool,
    /// Its call changes a directory and is synchronous: it keeps the directory's lock until it is over.
    pub(super) keeps_lock: bool,
    /// The one that has what that call has changed.
    pub(super) transaction: u64,
    pub(super) stage: Stage,
}

/// What a thread does when it next gets to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The next call.
    Program,
    /// The directory is to be locked, and then looked through.
    Locks,
    /// It is looked through; the journal has to have room.
    Changes,
    /// Data are copied.
    Copied,
    /// A file's data are to be on the drive, then what describes it, then what the drive's cache has.
    Syncs,
    /// Others may join the transaction, which then commits.
    Joins,
    Commits,
    Flushes,
    /// The same of all files.
    SyncsAll,
    CommitsAll,
    /// The call is over.
    Over,
    Finished,
}

impl Thread {
    pub(super) fn new(spec: &ThreadSpec, task: TaskNumber, directory: usize, now: Time) -> Result<Thread, SpecError> {
        Ok(Thread {
            program: Program::new(spec, task, now)?,
            directory,
            inodes: BTreeMap::new(),
            open: 0,
            at: directory,
            fails: false,
            keeps_lock: false,
            transaction: 0,
            stage: Stage::Program,
        })
    }
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
