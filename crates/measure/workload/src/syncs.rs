//! Which files are to be synced, and when: after every n writes, and at the end.

use crate::op::OpKind;
use crate::spec::{JobSpec, SyncKind};

#[derive(Clone, Debug)]
pub(crate) struct Syncs {
    periodic: Option<Periodic>,
    at_end: bool,
    is_wanted: bool,
    writes_in_flight: u32,
    syncs_in_flight: u32,
    written: FileSet,
    /// What is being handed out: the files that still need their sync, and which kind.
    pending: Vec<u32>,
    pending_kind: OpKind,
}

#[derive(Clone, Debug)]
struct Periodic {
    kind: OpKind,
    every_writes: u64,
    when_idle: bool,
    writes_left: u64,
    unsynced: FileSet,
}

impl Syncs {
    pub fn new(spec: &JobSpec, files: usize) -> Syncs {
        let periodic = spec.sync.map(|sync| Periodic {
            kind: match sync.kind {
                SyncKind::Fsync => OpKind::Fsync,
                SyncKind::Fdatasync => OpKind::Fdatasync,
                SyncKind::SyncFileRange => OpKind::SyncFileRange,
            },
            every_writes: sync.every_writes,
            when_idle: sync.when_idle,
            writes_left: sync.every_writes,
            unsynced: FileSet::new(files),
        });
        Syncs {
            periodic,
            at_end: spec.sync_at_end,
            is_wanted: spec.sync.is_some() || spec.sync_at_end,
            writes_in_flight: 0,
            syncs_in_flight: 0,
            written: FileSet::new(files),
            pending: Vec::new(),
            pending_kind: OpKind::Fsync,
        }
    }

    /// Whether there is any sync, so that writes and syncs matter.
    #[inline]
    pub fn are_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Returns whether this write is the last one before a sync.
    #[inline]
    pub fn write_started(&mut self) -> bool {
        self.writes_in_flight += 1;
        let Some(periodic) = &mut self.periodic else {
            return false;
        };
        periodic.writes_left -= 1;
        if periodic.writes_left > 0 {
            return false;
        }
        periodic.writes_left = periodic.every_writes;
        true
    }

    /// A write that failed counts as a write, but leaves nothing to sync.
    #[inline]
    pub fn write_completed(&mut self, file: u32, succeeded: bool) {
        self.writes_in_flight -= 1;
        if succeeded {
            if let Some(periodic) = &mut self.periodic {
                periodic.unsynced.insert(file);
            }
            if self.at_end {
                self.written.insert(file);
            }
        }
    }

    pub fn sync_completed(&mut self) {
        self.syncs_in_flight -= 1;
    }

    pub fn writes_in_flight(&self) -> bool {
        self.writes_in_flight > 0
    }

    pub fn syncs_in_flight(&self) -> bool {
        self.syncs_in_flight > 0
    }

    pub fn begin_periodic(&mut self) {
        if let Some(periodic) = &mut self.periodic {
            self.pending_kind = periodic.kind;
            self.pending = periodic.unsynced.take();
            periodic.writes_left = periodic.every_writes;
        }
    }

    pub fn begin_final(&mut self) {
        if self.is_due_when_idle() && !self.at_end {
            return self.begin_periodic();
        }
        self.pending_kind = OpKind::Fsync;
        self.pending = self.written.take();
    }

    /// Whether writes wait for a sync that is due as soon as nothing else is.
    pub fn is_due_when_idle(&self) -> bool {
        self.periodic.as_ref().is_some_and(|periodic| periodic.when_idle && !periodic.unsynced.is_empty())
    }

    /// The files that a sync at the end would be for by now. What is written later still gets its own.
    pub fn take_written(&mut self) -> Vec<u32> {
        self.written.take()
    }

    /// Nothing more will be synced.
    pub fn cancel(&mut self) {
        self.at_end = false;
        self.written.take();
        if let Some(periodic) = &mut self.periodic {
            periodic.unsynced.take();
        }
        self.pending.clear();
    }

    /// The next file to sync, if any is left.
    pub fn start(&mut self) -> Option<u32> {
        let file = self.pending.pop()?;
        self.syncs_in_flight += 1;
        Some(file)
    }

    pub fn kind(&self) -> OpKind {
        self.pending_kind
    }
}

/// A set of file indices: constant time to insert, and to take in the order of insertion.
#[derive(Clone, Debug)]
struct FileSet {
    contains: Vec<bool>,
    members: Vec<u32>,
}

impl FileSet {
    fn new(files: usize) -> FileSet {
        FileSet { contains: vec![false; files], members: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn insert(&mut self, file: u32) {
        if !std::mem::replace(&mut self.contains[file as usize], true) {
            self.members.push(file);
        }
    }

    fn take(&mut self) -> Vec<u32> {
        for &file in &self.members {
            self.contains[file as usize] = false;
        }
        std::mem::take(&mut self.members)
    }
}
