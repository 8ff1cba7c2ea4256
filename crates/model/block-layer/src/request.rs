//! Bios and requests.

use crate::qos_ticket::QosTicket;
use events::slab::{Id, Slab};
use events::time::Time;
use serde::Deserialize;

/// A position on a device in units of 512 bytes.
pub type Sector = u64;

/// Names a bio within its queue.
pub type BioId = Id<Bio>;
/// Names a request within its queue, until it has completed.
pub type RequestId = Id<Request>;
/// A queue's requests by their names.
pub type Requests = Slab<Request>;

/// A simulated task: a thread that does I/O.
pub type TaskId = u32;
/// Tasks of the machine itself, such as flushers, have numbers from here on.
pub const KERNEL_TASKS: TaskId = 1 << 30;

/// Which way data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the device to memory.
    Read,
    /// From memory to the device.
    Write,
}

/// The I/O scheduling classes of ioprio_set(2), the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoClass {
    /// `IOPRIO_CLASS_RT`: before all others.
    RealTime,
    /// `IOPRIO_CLASS_BE`: the default.
    BestEffort,
    /// `IOPRIO_CLASS_IDLE`: only when nothing else wants the device.
    Idle,
}

/// I/O priority: within a class, level 0 comes before 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Decides before the level does.
    pub class: IoClass,
    /// 0 (first) to 7 (last); 4 by default.
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

/// What becomes of the priority class of a control group's I/O (`io.prio.class`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PriorityPolicy {
    /// Nothing.
    #[default]
    NoChange,
    /// It is at least of the real-time class.
    PromoteToRt,
    /// It is at most of the best-effort class.
    RestrictToBe,
    /// It is of the idle class.
    Idle,
}

impl PriorityPolicy {
    /// Of I/O with that priority (`blkcg_set_ioprio`): but for promotion, the lower one of two.
    pub fn of(self, own: Priority) -> Priority {
        let first_of = |class| Priority { class, level: 0 };
        match self {
            PriorityPolicy::RestrictToBe if own.class < IoClass::BestEffort => first_of(IoClass::BestEffort),
            PriorityPolicy::Idle if own.class < IoClass::Idle => first_of(IoClass::Idle),
            PriorityPolicy::PromoteToRt if own.class > IoClass::RealTime => {
                Priority { class: IoClass::RealTime, level: 4 }
            }
            _ => own,
        }
    }
}

impl Default for Priority {
    fn default() -> Priority {
        Priority { class: IoClass::BestEffort, level: 4 }
    }
}

/// A contiguous piece of I/O as a filesystem or a direct I/O submits it.
#[derive(Clone, Debug)]
pub struct Bio {
    /// Read or write.
    pub direction: Direction,
    /// A task waits for it: reads, and writes on behalf of fsync, O_SYNC or direct I/O.
    pub sync: bool,
    /// It is for filesystem metadata (`REQ_META`).
    pub metadata: bool,
    /// Nobody has asked for it yet.
    pub read_ahead: bool,
    /// The submitter announces that nothing follows soon (REQ_NOIDLE).
    pub no_idle: bool,
    /// It comes from the page cache, which may wait: `wbt` throttles it.
    pub writeback: bool,
    /// It follows a flush of the drive's cache as part of one write (`REQ_PREFLUSH`, from 2.6.37 on): it merges with
    /// nothing and goes before all that the scheduler has.
    pub behind_flush: bool,
    /// It is on the medium when it completes, by a device that has such writes (`REQ_FUA`).
    pub force_unit_access: bool,
    /// Workers of the task's ring that may wait for requests at once; 0: the task waits itself.
    pub workers: u16,
    /// Its task looks for its completion by itself; the device does not interrupt (`REQ_POLLED`).
    pub polled: bool,
    /// What the drive is told of how long its data will live (`bi_write_stream`, before it `bi_write_hint`); 0: nothing.
    pub write_stream: u8,
    /// First sector on the device.
    pub start: Sector,
    /// Length in sectors of 512 bytes.
    pub sectors: u32,
    /// Physically contiguous pieces of memory.
    pub segments: u16,
    /// What the policies of its queue know of it.
    pub qos: QosTicket,
    /// The tag of the request that it has got already, in its task's plug.
    pub allocated: Option<u32>,
    /// Who submitted it: schedulers keep their per-task state by it.
    pub task: TaskId,
    /// The cgroup that is charged for it; 0 is the root.
    pub group: u16,
    /// The submitter's I/O priority.
    pub priority: Priority,
    /// The CPU that submitted it.
    pub cpu: u16,
    /// When it was submitted, in simulated nanoseconds.
    pub submitted_at: Time,
    /// Comes back with its completion: what it is for.
    pub tag: u32,
    /// The bio after this one in its request.
    pub next: Option<BioId>,
}

impl Bio {
    /// The sector behind its last.
    #[inline]
    pub fn end(&self) -> Sector {
        self.start + Sector::from(self.sectors)
    }
}

/// Bios that are contiguous on the device and go there as one command.
#[derive(Clone, Debug)]
pub struct Request {
    /// The direction of all its bios.
    pub direction: Direction,
    /// Whether a task waits for its bios, all of which are alike in this.
    pub sync: bool,
    /// The bio that it was made for is filesystem metadata.
    pub metadata: bool,
    /// All of it is.
    pub read_ahead: bool,
    /// The submitter of its first bio announces that nothing follows soon.
    pub no_idle: bool,
    /// The bio that it was made for is writeback.
    pub writeback: bool,
    /// The bio that it was made for follows a flush: the request passes no scheduler.
    pub behind_flush: bool,
    /// The bio that it was made for is to be on the medium when it completes.
    pub force_unit_access: bool,
    /// The bio that it was made for is polled for.
    pub polled: bool,
    /// That of all its bios.
    pub write_stream: u8,
    /// First sector on the device.
    pub start: Sector,
    /// Length of all its bios, in sectors of 512 bytes.
    pub sectors: u32,
    /// Physically contiguous pieces of memory, of all its bios.
    pub segments: u16,
    /// The task of the bio that it was made for, as are group, priority and CPU.
    pub task: TaskId,
    /// The cgroup that is charged; 0 is the root.
    pub group: u16,
    /// The I/O priority of that bio's submitter.
    pub priority: Priority,
    /// The CPU that submitted that bio.
    pub cpu: u16,
    /// When its first bio came to the queue.
    pub queued_at: Time,
    /// When it was handed to the device.
    pub issued_at: Option<Time>,
    /// Its tag in the pool that it was taken from, if that has tags.
    pub pool_tag: u32,
    /// It failed a size test once and is not merged into any more.
    pub no_merge: bool,
    /// Its bios in ascending order; None: made for its own sake, as tests do.
    pub bios: Option<(BioId, BioId)>,
}

impl Request {
    /// The sector behind its last.
    #[inline]
    pub fn end(&self) -> Sector {
        self.start + Sector::from(self.sectors)
    }

    /// At which side the bio could join it, so that both have no more than `sectors_max`; None: at none.
    pub fn touched_by(&self, bio: &Bio, sectors_max: u32) -> Option<Side> {
        let is_alike = self.direction == bio.direction && self.write_stream == bio.write_stream;
        if !is_alike || self.sectors + bio.sectors > sectors_max {
            None
        } else if self.end() == bio.start {
            Some(Side::Back)
        } else if bio.end() == self.start {
            Some(Side::Front)
        } else {
            None
        }
    }

    /// A request for one bio.
    pub fn of(id: BioId, bio: &Bio) -> Request {
        Request { bios: Some((id, id)), ..Request::like(bio) }
    }

    /// A request as for the bio, without it.
    pub fn like(bio: &Bio) -> Request {
        Request {
            direction: bio.direction,
            sync: bio.sync,
            metadata: bio.metadata,
            read_ahead: bio.read_ahead,
            no_idle: bio.no_idle,
            writeback: bio.writeback,
            behind_flush: bio.behind_flush,
            force_unit_access: bio.force_unit_access,
            polled: bio.polled,
            write_stream: bio.write_stream,
            start: bio.start,
            sectors: bio.sectors,
            segments: bio.segments,
            task: bio.task,
            group: bio.group,
            priority: bio.priority,
            cpu: bio.cpu,
            queued_at: bio.submitted_at,
            issued_at: None,
            pool_tag: 0,
            no_merge: false,
            bios: None,
        }
    }
}

/// Which end of a request grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The lower end: what joins comes before the first sector.
    Front,
    /// The upper end: what joins comes behind the last sector.
    Back,
}
