//! One event as block traces tell it: more than the analysis needs.

use std::fmt;

use super::event::{BlockEvent, Device, Kind, Op};

/// An event of a block trace, in whichever form it is written: blktrace's records or ftrace's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    pub at_ns: u64,
    pub cpu: u32,
    pub device: Device,
    pub pid: u32,
    /// In sectors of 512 bytes; 0 and 0 of what is not about sectors.
    pub sector: u64,
    pub sectors: u32,
    pub op: Op,
    pub flags: Flags,
    /// Of completions: negative errno, 0 of success.
    pub error: i16,
    pub what: What,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Marked as sync by its submitter, which reads mostly are not although somebody waits for them.
    pub sync: bool,
    pub read_ahead: bool,
    pub metadata: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Queue,
    GetRequest,
    /// There was no request for a bio: its task sleeps until there is one.
    Sleep,
    BackMerge,
    FrontMerge,
    /// A request joined the one before it.
    RequestMerge,
    Insert,
    Issue,
    Requeue,
    Complete,
    /// The queue holds back what it has.
    Plug,
    /// It lets go, with so many requests; by its timer, or because somebody wants it to.
    Unplug {
        requests: u64,
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
