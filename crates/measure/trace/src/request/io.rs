//! One request that ended: a row of every table of a trace.

use crate::event::Marks;
use crate::event::{Device, Op, Step, TraceEvent};
use base::SECTOR_BYTES;

/// When a request was in each stage. A time that the trace does not determine is None.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The disk.
    pub device: Device,
    /// What was done.
    pub op: Op,
    /// How it was marked.
    pub marks: Marks,
    /// Who submitted its first bio; 0 if unknown.
    pub pid: u32,
    /// Where it was submitted or issued.
    pub cpu: u16,
    /// Negative errno, 0 of success.
    pub error: i16,
    /// First sector, of 512 bytes, as issued.
    pub sector: u64,
    /// Length in the same.
    pub sectors: u32,
    /// Bios that joined it.
    pub merged: u32,
    /// Times that the driver gave it back.
    pub requeues: u16,
    /// Whether its bio is a part of a larger one.
    pub split: bool,
    /// When it was first seen.
    pub seen_ns: u64,
    /// When its first bio was queued.
    pub queued_ns: Option<u64>,
    /// When the I/O scheduler got it.
    pub inserted_ns: Option<u64>,
    /// When the driver first got it.
    pub issued_ns: Option<u64>,
    /// When it completed.
    pub completed_ns: Option<u64>,
}

/// The ways through the block layer that have a time of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// From the queue event of the first bio until it was inserted, or issued if it never was.
    Queue,
    /// From the scheduler's getting it until the driver's.
    Scheduler,
    /// From the driver's first getting it until it completed.
    Device,
    /// From the queue event of the first bio until it completed.
    Whole,
}

/// Nanoseconds in each stage, in their order.
pub type Stages = [Option<u64>; 4];

impl Io {
    /// An I/O of which only the operation is known.
    pub(super) fn of(device: Device, op: Op, marks: Marks, seen_ns: u64) -> Io {
        Io {
            device,
            op,
            marks,
            pid: 0,
            cpu: 0,
            error: 0,
            sector: 0,
            sectors: 0,
            merged: 0,
            requeues: 0,
            split: false,
            seen_ns,
            queued_ns: None,
            inserted_ns: None,
            issued_ns: None,
            completed_ns: None,
        }
    }

    /// From its first event, without times.
    #[inline]
    pub(super) fn first_seen(device: Device, event: &TraceEvent) -> Io {
        Io {
            pid: event.pid,
            cpu: event.cpu,
            sector: event.sector,
            sectors: event.sectors,
            error: event.error,
            ..Io::of(device, event.op, event.marks, event.at_ns)
        }
    }

    /// From the only event that there is.
    #[inline]
    pub(super) fn whole(device: Device, event: &TraceEvent) -> Io {
        let began_ns = event.at_ns.saturating_sub(match event.step {
            Step::Arrival => 0,
            _ => event.argument,
        });
        let ended_ns = (event.step != Step::Arrival).then_some(event.at_ns);
        let with_driver = event.step == Step::DeviceDone;
        Io {
            sector: if event.sectors == 0 { 0 } else { event.sector },
            seen_ns: began_ns,
            queued_ns: match event.waited_us() {
                None => (!with_driver).then_some(began_ns),
                Some(waited_us) => Some(began_ns.saturating_sub(u64::from(waited_us) * 1000)),
            },
            issued_ns: with_driver.then_some(began_ns),
            completed_ns: ended_ns,
            ..Io::first_seen(device, event)
        }
    }

    /// How long it was in each stage.
    #[inline]
    pub fn stages(&self) -> Stages {
        let between = |from: Option<u64>, to: Option<u64>| Some(to?.saturating_sub(from?));
        [
            between(self.queued_ns, self.inserted_ns.or(self.issued_ns)),
            between(self.inserted_ns, self.issued_ns),
            between(self.issued_ns, self.completed_ns),
            between(self.queued_ns, self.completed_ns),
        ]
    }

    /// When it arrived, as early as is known.
    pub fn arrived_ns(&self) -> u64 {
        self.queued_ns.or(self.inserted_ns).or(self.issued_ns).unwrap_or(self.seen_ns)
    }

    /// What it is counted as: the kernel marks a requested flush as an empty write.
    #[inline]
    pub fn kind(&self) -> Op {
        match (self.op, self.sectors) {
            (Op::Write, 0) => Op::Flush,
            (op, _) => op,
        }
    }

    /// Bytes that it moves.
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}
