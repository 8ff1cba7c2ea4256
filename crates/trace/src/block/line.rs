//! One event as block traces tell it: more than the analysis needs.

use std::fmt;

use super::event::{BlockEvent, Device, Kind, Op};

/// An event of a block trace, in whichever form it is written: blktrace's records or ftrace's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// On the trace's clock, in nanoseconds.
    pub at_ns: u64,
    /// The CPU where it happened.
    pub cpu: u32,
    /// The device it happened to.
    pub device: Device,
    /// The task that ran on the CPU.
    pub pid: u32,
    /// In sectors of 512 bytes; 0 and 0 of what is not about sectors.
    pub sector: u64,
    /// Length in the same sectors.
    pub sectors: u32,
    /// What is done with the sectors.
    pub op: Op,
    /// How the submitter marked it.
    pub flags: Flags,
    /// Of completions: negative errno, 0 of success.
    pub error: i16,
    /// What happened.
    pub what: What,
}

/// Marks of a bio or request that traces show as letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Marked as sync by its submitter, which reads mostly are not although somebody waits for them.
    pub sync: bool,
    /// A: read-ahead.
    pub read_ahead: bool,
    /// M: metadata of a filesystem.
    pub metadata: bool,
}

/// The events of a block trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A bio entered the block layer.
    Queue,
    /// A bio became a request.
    GetRequest,
    /// There was no request for a bio: its task sleeps until there is one.
    Sleep,
    /// A bio joined a request at its end.
    BackMerge,
    /// A bio joined a request at its beginning.
    FrontMerge,
    /// A request joined the one before it.
    RequestMerge,
    /// A request was handed to the I/O scheduler.
    Insert,
    /// A request was handed to the driver.
    Issue,
    /// The driver gave a request back untried.
    Requeue,
    /// A request, or the first sectors of one, completed.
    Complete,
    /// The queue holds back what it has.
    Plug,
    /// It lets go, with so many requests; by its timer, or because somebody wants it to.
    Unplug {
        /// Requests that it held back.
        requests: u64,
        /// Whether its timer ended the plug.
        by_timer: bool,
    },
    /// What a scheduler says of itself.
    Message(String),
}

impl TraceLine {
    /// As the analysis takes it; None of what it does not look at.
    pub fn event(&self) -> Option<BlockEvent> {
        let kind = match self.what {
            What::Queue => Kind::Queue,
            What::GetRequest => Kind::GetRequest,
            What::BackMerge => Kind::BackMerge,
            What::FrontMerge => Kind::FrontMerge,
            What::RequestMerge => Kind::RequestMerge,
            What::Insert => Kind::Insert,
            What::Issue => Kind::Issue,
            What::Requeue => Kind::Requeue,
            What::Complete => Kind::Complete,
            What::Sleep | What::Plug | What::Unplug { .. } | What::Message(_) => return None,
        };
        Some(BlockEvent {
            at_ns: self.at_ns,
            cpu: self.cpu,
            kind,
            device: self.device,
            sector: self.sector,
            sectors: u64::from(self.sectors),
            op: self.op,
            pid: self.pid,
            error: i64::from(self.error),
        })
    }

    /// The operation and its flags in the kernel's letters.
    pub fn rwbs(&self) -> Rwbs {
        Rwbs(self.op, self.flags)
    }
}

/// Shows as the kernel's `rwbs`: the operation, then A (read-ahead), S (sync), M (metadata).
#[derive(Clone, Copy, Debug)]
pub struct Rwbs(Op, Flags);

impl fmt::Display for Rwbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rwbs(op, flags) = self;
        f.write_str(match op {
            Op::Read => "R",
            Op::Write => "W",
            Op::Discard => "D",
            Op::Flush => "F",
            Op::Other => "N",
        })?;
        for (set, letter) in [
            (flags.read_ahead, "A"),
            (flags.sync, "S"),
            (flags.metadata, "M"),
        ] {
            if set {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}
