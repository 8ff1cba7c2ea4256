//! Which I/Os of which trace a job offers, and how.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::schedule::Schedule;
use base::time::Time;

/// What a job that replays offers, instead of what it would draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaySpec {
    /// The trace, and which of its I/Os.
    pub trace: TraceChoice,
    /// Their required `Schedule::digest`: a trace that has changed is refused.
    pub digest: String,
    /// When each is offered.
    pub timing: Timing,
    /// Every time of the trace is multiplied by this.
    #[schemars(range(min = 0.0))]
    pub time_scale: f64,
    /// Where each goes.
    pub mapping: Mapping,
    /// The piece of the traced device that stays whole, in bytes, where the mapping takes it apart.
    #[schemars(range(min = 4096))]
    pub region_bytes: u64,
    /// Which of the threads this job is, from 0: the processes of most I/Os have one each, the last has all others.
    pub thread: u32,
    /// How many threads replay the trace together.
    #[schemars(range(min = 1))]
    pub threads: u32,
    /// Whether this job has flushes to do.
    pub flushes: bool,
    /// Whether it has discards to do, or zeroes to write without data.
    pub discards: bool,
    /// The I/Os themselves, read by the caller.
    #[serde(skip)]
    pub schedule: Option<Arc<Schedule>>,
}

/// Files of one trace, and which of its I/Os are meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceChoice {
    /// The files.
    pub paths: Vec<String>,
    /// How the columns of a table are to be read, if it is none that is known.
    pub table: Option<TraceTable>,
    /// Which of a request's beginnings counts.
    pub side: Side,
    /// Only this device: `major:minor`, or its name in the trace; null: all.
    pub device: Option<String>,
    /// Only what arrived this long after the trace began.
    pub from_ns: Time,
    /// Only for this long; null: to the end.
    pub length_ns: Option<Time>,
}

/// The columns of a table of I/Os.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceTable {
    /// Between the columns.
    pub separator: char,
    /// What each holds, and how many nanoseconds or bytes one of it is.
    pub columns: Vec<(String, u64)>,
    /// Times are of completions.
    #[serde(default)]
    pub ended: bool,
    /// 1 is a read and 0 a write.
    #[serde(default)]
    pub one_reads: bool,
}

/// Which of a request's beginnings counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Its issue to the driver (D): what the device saw, merged and sorted.
    Issued,
    /// Its bios' entry into the block layer (Q): what was asked for.
    Queued,
}

/// When I/Os are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// When they arrived in the trace, whatever has completed.
    Recorded,
    /// When what their process had waited for is done, and its pause is over.
    Dependent,
}

/// Where I/Os go on a device of another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mapping {
    /// Where they were, modulo the size.
    Wrap,
    /// Regions keep their order and are spread, or overlaid, in proportion.
    Scale,
    /// Regions that are touched, one after the other: what is never touched takes no room.
    Regions,
}
