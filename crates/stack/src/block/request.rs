//! Bios and requests.

use crate::slab::{Id, Slab};
use crate::time::Time;

/// A position on a device in units of 512 bytes.
pub type Sector = u64;

pub const SECTOR_BYTES: u64 = 512;

pub type BioId = Id<Bio>;
pub type RequestId = Id<Request>;
pub type Requests = Slab<Request>;

/// A modelled task: a thread that does I/O.
pub type TaskId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    Read,
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoClass {
    RealTime,
    BestEffort,
    Idle,
}

/// I/O priority: within a class, level 0 comes before 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    pub class: IoClass,
    pub level: u8,
}

impl Priority {
    /// As ionice(1)'s words are put: `rt/0`, `be/7`, `idle`.
    pub fn named(words: &str) -> Option<Priority> {
        let (class, level) = match words.split_once('/') {
            Some(("rt", level)) => (IoClass::RealTime, level),
            Some(("be", level)) => (IoClass::BestEffort, level),
            None if words == "idle" => (IoClass::Idle, "7"),
            _ => return None,
        };
        let level = level.parse().ok().filter(|&level| level < 8)?;
        Some(Priority { class, level })
    }
}

impl Default for Priority {
    fn default() -> Priority {
        Priority {
            class: IoClass::BestEffort,
            level: 4,
        }
    }
}

/// A contiguous piece of I/O as a filesystem or a direct I/O submits it.
#[derive(Clone, Debug)]
pub struct Bio {
    pub direction: Direction,
    /// Somebody waits for it: reads, and writes on behalf of fsync, O_SYNC or direct I/O.
    pub sync: bool,
    pub metadata: bool,
    /// Nobody has asked for it yet.
    pub read_ahead: bool,
    /// The submitter says that nothing follows soon (REQ_NOIDLE).
    pub no_idle: bool,
    pub start: Sector,
    pub sectors: u32,
    /// Physically contiguous pieces of memory.
    pub segments: u16,
    pub task: TaskId,
    /// The cgroup of whoever is charged for it; 0 is the root.
    pub group: u16,
    pub priority: Priority,
    /// The CPU that submitted it.
    pub cpu: u16,
    pub submitted_at: Time,
    /// Comes back with its completion: what it is for.
    pub tag: u32,
    /// The bio after this one in its request.
    pub next: Option<BioId>,
}

impl Bio {
    #[inline]
    pub fn end(&self) -> Sector {
        self.start + Sector::from(self.sectors)
    }
}

/// Bios that are contiguous on the device and go there as one command.
#[derive(Clone, Debug)]
pub struct Request {
    pub direction: Direction,
    pub sync: bool,
    pub metadata: bool,
    /// All of it is.
    pub read_ahead: bool,
    pub no_idle: bool,
    pub start: Sector,
    pub sectors: u32,
    pub segments: u16,
    /// Of the bio that it was made for, as are group, priority and CPU.
    pub task: TaskId,
    pub group: u16,
    pub priority: Priority,
    pub cpu: u16,
    /// When its first bio came to the queue.
    pub queued_at: Time,
    /// When it was handed to the device.
    pub issued_at: Option<Time>,
    /// It failed a size test once and is not merged into any more.
    pub no_merge: bool,
    /// Its bios in ascending order; None: made for its own sake, as tests do.
    pub bios: Option<(BioId, BioId)>,
}

impl Request {
    #[inline]
    pub fn end(&self) -> Sector {
        self.start + Sector::from(self.sectors)
    }

    /// A request for one bio.
    pub fn of(id: BioId, bio: &Bio) -> Request {
        Request {
            bios: Some((id, id)),
            ..Request::like(bio)
        }
    }

    /// A request as for the bio, without it.
    pub fn like(bio: &Bio) -> Request {
        Request {
            direction: bio.direction,
            sync: bio.sync,
            metadata: bio.metadata,
            read_ahead: bio.read_ahead,
            no_idle: bio.no_idle,
            start: bio.start,
            sectors: bio.sectors,
            segments: bio.segments,
            task: bio.task,
            group: bio.group,
            priority: bio.priority,
            cpu: bio.cpu,
            queued_at: bio.submitted_at,
            issued_at: None,
            no_merge: false,
            bios: None,
        }
    }
}

/// Which end of a request grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Front,
    Back,
}
