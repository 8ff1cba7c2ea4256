//! The results of the analysis of block events.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::distribution::Distribution;

/// A whole recording. docs/reference/probes.md explains each field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct BlockReport {
    /// Length of the recording in nanoseconds.
    pub elapsed_ns: u64,
    /// Events that the kernel had no room for. What they were about is unmatched or in flight below.
    pub events_lost: u64,
    /// How often events were lost and the kernel could not report how many.
    pub losses_uncounted: u64,
    /// All devices together.
    pub all: Activities,
    /// A report per device, by number.
    pub devices: Vec<DeviceReport>,
    /// By device.
    pub series: BTreeMap<String, Series>,
}

/// What one device did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DeviceReport {
    /// `major:minor`
    pub device: String,
    /// How many events of each kind.
    pub events: BTreeMap<&'static str, u64>,
    /// Events about bios or requests that are not known: their beginning was before the recording, or lost.
    pub events_unmatched: u64,
    /// Writes with FUA on a device without: a flush followed them, which their times leave out.
    pub writes_flushed: u64,
    /// Requests without times: another in flight looked alike, or events were lost.
    pub times_unknown: u64,
    /// What became of its bios.
    pub conservation: Conservation,
    /// The figures by direction.
    #[serde(flatten)]
    pub activities: Activities,
    /// Requests that the driver has, averaged over time.
    pub queue_depth_mean: f64,
    /// The most requests that the driver had at once.
    pub queue_depth_max: u64,
    /// Bios queued on CPU 0, 1, ..., as far as any was; likewise requests completed.
    pub queued_by_cpu: Vec<u64>,
    /// Requests that completed on CPU 0, 1, ....
    pub completed_by_cpu: Vec<u64>,
}

/// What became of every bio. queued + split + unqueued = merged + completed + in_flight + unmatched, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Conservation {
    /// Queue events.
    pub queued: u64,
    /// Further parts of bios that were too large.
    pub split: u64,
    /// First seen after their queue event: the block layer's own flush commands, a driver's commands, and what was
    /// in flight when the recording began or lost events.
    pub unqueued: u64,
    /// Bios and requests that became part of another request.
    pub merged: u64,
    /// Bios that completed, alone or with their request.
    pub completed: u64,
    /// Not complete at the end.
    pub in_flight: u64,
    /// Given up after a loss of events: their end was probably among what was lost.
    pub unmatched: u64,
}

/// The figures by direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Activities {
    /// Reads, writes and others together.
    pub total: Activity,
    /// Reads.
    pub read: Activity,
    /// Writes.
    pub write: Activity,
    /// Discards, flushes, commands.
    pub other: Activity,
}

/// What was done in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Activity {
    /// Bios that entered the block layer.
    pub bios_queued: u64,
    /// Requests handed to the driver, each time counted.
    pub requests_issued: u64,
    /// Requests that completed.
    pub requests_completed: u64,
    /// Bytes that they transferred.
    pub bytes_completed: u64,
    /// Completions with an error.
    pub errors: u64,
    /// Requests that the driver gave back untried.
    pub requeues: u64,
    /// Bios that joined a request at its end.
    pub back_merges: u64,
    /// Bios that joined a request at its beginning.
    pub front_merges: u64,
    /// Requests that joined another request.
    pub request_merges: u64,
    /// Bios whose request was issued to the driver on the CPU on which the bio was queued, that is, where its submitter
    /// ran; and elsewhere.
    pub queue_local: u64,
    /// Bios whose request was issued on another CPU.
    pub queue_remote: u64,
    /// Requests that completed on the CPU on which their first bio was queued; and elsewhere.
    pub completions_local: u64,
    /// Requests that completed on another CPU.
    pub completions_remote: u64,
    /// The time of requests from the queue event of the first bio until the request was inserted, or issued if it never
    /// was.
    pub time_in_queue_ns: Distribution,
    /// The time of inserted requests until they were first issued.
    pub time_in_scheduler_ns: Distribution,
    /// The time of requests from the first issue to completion.
    pub time_in_device_ns: Distribution,
    /// The time of bios from queue to the completion of the request that they became part of.
    pub time_total_ns: Distribution,
    /// The size of issued requests that move data.
    pub request_bytes: Distribution,
    /// Between the end of the request issued before and the beginning of this one, in sectors of 512 bytes, either way.
    pub seek_sectors: Distribution,
    /// Requests that began where the one before ended.
    pub requests_sequential: u64,
}

/// Columns over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "BlockSeries")]
pub struct Series {
    /// Begin of each interval, since the start of the recording.
    pub at_ns: Vec<u64>,
    /// A value per interval and column.
    pub columns: Columns,
}

/// What happened in each interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "BlockColumns")]
pub struct Columns {
    /// The length of the interval; the last may be shorter.
    pub length_s: Vec<f64>,
    /// Requests that the driver has, averaged over the interval.
    pub queue_depth: Vec<f64>,
    /// The most requests that the driver had at once in the interval.
    pub queue_depth_max: Vec<u64>,
    /// Requests that wait to be issued, averaged over the interval.
    pub requests_waiting: Vec<f64>,
    /// Rate of completed requests.
    pub requests_completed_per_s: Vec<f64>,
    /// Rate of completed bytes.
    pub bytes_completed_per_s: Vec<f64>,
    /// Rate of bios and requests that joined another request.
    pub merges_per_s: Vec<f64>,
}

impl Activity {
    /// Share of requests that began where the one before ended.
    pub fn sequential_share(&self) -> Option<f64> {
        let count = self.seek_sectors.count();
        (count > 0).then(|| self.requests_sequential as f64 / count as f64)
    }

    pub(super) fn merge(&mut self, other: &Activity) {
        self.bios_queued += other.bios_queued;
        self.requests_issued += other.requests_issued;
        self.requests_completed += other.requests_completed;
        self.bytes_completed += other.bytes_completed;
        self.errors += other.errors;
        self.requeues += other.requeues;
        self.back_merges += other.back_merges;
        self.front_merges += other.front_merges;
        self.request_merges += other.request_merges;
        self.queue_local += other.queue_local;
        self.queue_remote += other.queue_remote;
        self.completions_local += other.completions_local;
        self.completions_remote += other.completions_remote;
        self.time_in_queue_ns.merge(&other.time_in_queue_ns);
        self.time_in_scheduler_ns.merge(&other.time_in_scheduler_ns);
        self.time_in_device_ns.merge(&other.time_in_device_ns);
        self.time_total_ns.merge(&other.time_total_ns);
        self.request_bytes.merge(&other.request_bytes);
        self.seek_sectors.merge(&other.seek_sectors);
        self.requests_sequential += other.requests_sequential;
    }
}

impl Activities {
    pub(super) fn merge(&mut self, other: &Activities) {
        self.total.merge(&other.total);
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.other.merge(&other.other);
    }
}

impl Conservation {
    /// Whether the equation holds.
    pub fn holds(&self) -> bool {
        self.queued + self.split + self.unqueued == self.merged + self.completed + self.in_flight + self.unmatched
    }
}
