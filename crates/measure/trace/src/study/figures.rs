//! What a trace shows, as the command and the report take it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bursts::BurstFigures;
use super::group::{GroupFigures, Quantiles};
use super::maps::Maps;
use super::reuse::ReuseFigures;
use super::slowest_requests::SlowRequest;

/// A whole trace. docs/traces.md explains each figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TraceFigures {
    /// Which format it has.
    pub format: String,
    /// Records or lines that were read.
    pub records: u64,
    /// The records among them that are not about block I/O.
    pub records_skipped: u64,
    /// That could not be understood.
    pub malformed: u64,
    /// Why the first of them could not.
    pub first_malformed: Option<String>,
    /// From the first event to the last.
    pub elapsed_ns: u64,
    /// The first event, on the trace's own clock.
    pub began_ns: u64,
    /// Events of each kind.
    pub events: BTreeMap<&'static str, u64>,
    /// Events that found no room when the trace was recorded.
    pub events_lost: u64,
    /// How often events were lost.
    pub losses: u64,
    /// Events that came too late in the file to be put in order.
    pub events_late: u64,
    /// Further recordings in the same file.
    pub restarts: u64,
    /// Events about what is not known: it began before the trace, or its beginning was lost.
    pub events_unmatched: u64,
    /// Requests without times because another in flight looked alike.
    pub unknown_alike: u64,
    /// Requests without times because events were lost while they were in flight.
    pub unknown_lost: u64,
    /// Bios and requests without an end.
    pub unended: u64,
    /// Figures that this trace can't give, with the reason.
    pub absent: BTreeMap<&'static str, String>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
    /// All requests.
    pub all: GroupFigures,
    /// A group per operation.
    pub by_operation: Vec<GroupFigures>,
    /// A group per size.
    pub by_size: Vec<GroupFigures>,
    /// A group per name of a task, those of most bytes first.
    pub by_process: Vec<GroupFigures>,
    /// A group per CPU that submitted.
    pub by_cpu: Vec<GroupFigures>,
    /// A group per hardware queue, if the reader stated which CPUs submit to which.
    pub by_queue: Vec<GroupFigures>,
    /// Requests that failed, by operation and error.
    pub failed: Vec<FailedFigures>,
    /// Each device.
    pub devices: Vec<DeviceFigures>,
    /// How arrivals vary.
    pub bursts: Vec<BurstFigures>,
    /// What is touched, and how soon again.
    pub reuse: ReuseFigures,
    /// The slowest requests.
    pub slowest: Vec<SlowRequest>,
    /// Over time.
    pub maps: Maps,
    /// What the tasks are called that are named above.
    pub names: BTreeMap<u32, String>,
}

/// A device that sends bios on to others, such as device mapper or md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LayerFigures {
    /// The devices that it sent bios to.
    pub lower: Vec<String>,
    /// Of each bio, the time in which none of it was with a device below.
    pub own_ns: Option<Quantiles>,
    /// Of each bio, the time in which some of it was.
    pub below_ns: Option<Quantiles>,
    /// Bios that were sent on, and of which the trace does not determine both.
    pub unknown: u64,
}

/// Requests that failed alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FailedFigures {
    /// What was to be done.
    pub operation: &'static str,
    /// Negative errno.
    pub error: i16,
    /// How many.
    pub count: u64,
    /// When the first of them ended, since the trace began.
    pub first_ns: u64,
    /// Its device.
    pub first_device: String,
    /// Its first sector.
    pub first_sector: u64,
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DeviceFigures {
    /// `major:minor`
    pub device: String,
    /// Its name, of formats that have it.
    pub name: Option<String>,
    /// Its requests, with their times.
    pub requests: GroupFigures,
    /// Reads that completed, or arrived.
    pub reads: u64,
    /// Writes of data.
    pub writes: u64,
    /// Writes of zeroes, for which no data are carried.
    pub zeroes: u64,
    /// Discards.
    pub discards: u64,
    /// Flushes and commands.
    pub others: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes zeroed.
    pub bytes_zeroed: u64,
    /// Bytes discarded.
    pub bytes_discarded: u64,
    /// Flushes that were asked for, alone or before data; if the trace reports none of these, those that the driver
    /// got, which may be one for several.
    pub flushes: u64,
    /// Writes that were to be on the medium before they completed.
    pub fua: u64,
    /// Bios that joined a request.
    pub merges: u64,
    /// Times that the driver gave a request back.
    pub requeues: u64,
    /// Bios that were too large.
    pub splits: u64,
    /// Share of the requests that began where the one before ended; None without any.
    pub sequential_share: Option<f64>,
    /// Between the end of one request and the beginning of the next, in sectors, either way.
    pub seek_sectors: Option<Quantiles>,
    /// Requests in a row that each began where the one before ended.
    pub sequential_runs: Option<Quantiles>,
    /// Requests that the driver has, averaged over time.
    pub depth_mean: Option<f64>,
    /// The most at once.
    pub depth_max: Option<u64>,
    /// Nanoseconds at each depth from 0 on; the last counts all deeper.
    pub depth_ns: Vec<u64>,
    /// Share of the time in which the driver had nothing.
    pub idle_share: Option<f64>,
    /// How long it had nothing at a time.
    pub idle_ns: Option<Quantiles>,
    /// What it sent on to other devices; None if the trace reports nothing of that.
    pub layer: Option<LayerFigures>,
}
