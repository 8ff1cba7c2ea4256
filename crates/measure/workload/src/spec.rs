//! A job's specification: the wire format between the description of a workload and its runner.
//!
//! Every field is required, but for the few that are absent from most jobs, and unknown fields are refused: defaults,
//! help and ranges have one home, the options of the workload kinds (`python/iolab/domain/workload/`), and must not
//! grow a second one here.

use serde::{Deserialize, Serialize};

use crate::traced::ReplaySpec;
use base::time::Time;

/// What one job does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// The job's name in the record.
    pub name: String,
    /// Indices into the phase's files; each file offers the same range to the pattern.
    pub files: Vec<u32>,
    /// Which of the files an operation goes to.
    pub file_order: FileOrder,
    /// Which offset within the file it goes to.
    pub pattern: Pattern,
    /// Share of operations that read, 0.0 to 1.0; the rest write.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub read_share: f64,
    /// Sizes of one operation, drawn by weight; one entry means a fixed size.
    pub blocks: Vec<BlockSize>,
    /// Every offset is a multiple of this.
    #[schemars(range(min = 1))]
    pub align_bytes: u64,
    /// Sizes of writes if they differ from those of reads: `blocks` and `align_bytes` are then those of reads, and
    /// each direction goes through the files for itself. Absent: reads and writes have the same.
    pub writes: Option<WriteBlocks>,
    /// The range of each file that the job touches.
    pub offset_bytes: u64,
    /// The range's length in bytes.
    pub length_bytes: u64,
    /// Operations in flight at once, at most.
    #[schemars(range(min = 1, max = crate::limits::OPERATIONS_IN_FLIGHT_MAX))]
    pub queue_depth: u32,
    /// When operations are offered.
    pub arrival: Arrival,
    /// Nothing is offered before this time, and a rate's operations are due from it on; absent: 0.
    pub start_ns: Option<Time>,
    /// When the job is done.
    pub until: JobBounds,
    /// The job looks for the queue depth that keeps a latency, up to `queue_depth`; absent: `queue_depth` is its depth.
    pub depth_search: Option<DepthSearch>,
    /// The job ends when its rate is steady, or at its bounds; absent: at its bounds alone.
    pub steady_state: Option<SteadyState>,
    /// Syncs between the writes; null: none.
    pub sync: Option<Sync>,
    /// One fsync per written file after the last operation, inside the measured time.
    pub sync_at_end: bool,
    /// Of this many writes the last is on the medium before it completes (RWF_DSYNC); null: none.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub dsync_every: Option<u64>,
    /// The same with all of the file's metadata (RWF_SYNC); null: none. Not beside `dsync_every`.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub osync_every: Option<u64>,
    /// Each write is a record of a log. Its commit is measured: from when it was due until it is durable.
    #[serde(default)]
    pub commits: bool,
    /// Seeds the job's random streams.
    pub seed: u64,
    /// Scatters the ranks of a skewed pattern over the range, and orders the passes of a permutation, so that jobs of
    /// different seeds have the same hot blocks, or orders; null: `seed` does.
    #[serde(default)]
    pub scatter_seed: Option<u64>,
    /// The job offers a trace's I/Os; its draws then only determine which sizes and directions there are. Absent: it
    /// draws.
    pub replay: Option<ReplaySpec>,
}

impl JobSpec {
    /// A file's first `length_bytes` read from end to end, `bytes` at a time and one read after the other: what tests
    /// and benchmarks vary.
    pub fn reads(file: u32, bytes: u32, length_bytes: u64, until: JobBounds) -> JobSpec {
        JobSpec {
            name: "job".to_owned(),
            files: vec![file],
            file_order: FileOrder::Sequential,
            pattern: Pattern::Sequential,
            read_share: 1.0,
            blocks: vec![BlockSize { bytes, weight: 1.0 }],
            align_bytes: u64::from(bytes),
            writes: None,
            offset_bytes: 0,
            length_bytes,
            queue_depth: 1,
            arrival: Arrival::Closed { think_ns: 0, think_every: 1 },
            start_ns: None,
            until,
            depth_search: None,
            steady_state: None,
            sync: None,
            sync_at_end: false,
            dsync_every: None,
            osync_every: None,
            commits: false,
            seed: 1,
            scatter_seed: None,
            replay: None,
        }
    }

    /// Every size that an operation may have, of reads and of writes.
    pub fn all_blocks(&self) -> impl Iterator<Item = &BlockSize> {
        let writes = self.writes.iter().flat_map(|writes| &writes.blocks);
        self.blocks.iter().chain(writes)
    }

    /// What offsets are multiples of: of reads, and of writes where those have their own.
    pub fn alignments(&self) -> impl Iterator<Item = u64> {
        let writes = self.writes.iter().map(|writes| writes.align_bytes);
        std::iter::once(self.align_bytes).chain(writes)
    }
}

/// How a job with several files takes turns between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileOrder {
    /// Finish a file's range, then take the next.
    Sequential,
    /// A file per operation, in turn.
    RoundRobin,
    /// A file per operation, drawn uniformly.
    Random,
}

/// In which order a job visits the blocks of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// From the start of the range to its end, then again.
    Sequential,
    /// From the end of the range to its start.
    Backward,
    /// Each offset is the last one plus `stride_bytes`; at the end of the range it starts again one block further on.
    Strided {
        /// Distance between two offsets in bytes.
        #[schemars(range(min = 1))]
        stride_bytes: u64,
        /// The range is finished after the first lap: the blocks between belong to others.
        #[serde(default)]
        one_lap: bool,
        /// Blocks of a pass that are done before the first operation.
        #[serde(default)]
        blocks_done: u64,
    },
    /// Every block with the same probability, independent of those before.
    Uniform,
    /// Block ranks drawn with probability proportional to 1/rank^theta, ranks scattered over the range.
    Zipf {
        /// The exponent; 0 is uniform.
        #[schemars(range(min = 0.0))]
        theta: f64,
    },
    /// A share `h` of the blocks gets the share 1 - h of the operations, and so on within it: self-similar (Gray et
    /// al., Quickly generating billion-record synthetic databases, SIGMOD 1994). Ranks are scattered over the range.
    Pareto {
        /// Above 0 and below 1; 0.5 is uniform.
        h: f64,
    },
    /// The mean of twelve uniform ranks and one more within a width, as gauss.c of fio 3 draws it; ranks are
    /// scattered over the range.
    Normal {
        /// The width in percent of the range; above 50, it is half of the range.
        #[schemars(range(min = 0.0, max = 100.0))]
        deviation_percent: f64,
    },
    /// Uniform within zones, which follow one another from the start of the range; what is behind the last is left out.
    Zoned {
        /// In the order of the range.
        zones: Vec<Zone>,
    },
    /// Each block exactly once a pass, in an order drawn anew each pass, in constant memory.
    Permutation {
        /// So many blocks of the passes were visited before, by jobs with the same `scatter_seed`.
        #[serde(default)]
        blocks_done: u64,
    },
}

/// A part of the range, and how often it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Its share of the operations is this over the sum of all weights.
    pub weight: f64,
    /// An operation begins in the zone; it may end behind it.
    #[schemars(range(min = 1))]
    pub length_bytes: u64,
}

/// A size of operations and how often it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockSize {
    /// Length of the operation in bytes.
    #[schemars(range(min = 1, max = crate::limits::TRANSFER_BYTES_MAX))]
    pub bytes: u32,
    /// Its share is this over the sum of all weights.
    pub weight: f64,
}

/// What writes of a job transfer, if it is not what its reads do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteBlocks {
    /// Sizes of one write, drawn by weight.
    pub blocks: Vec<BlockSize>,
    /// Every offset of a write is a multiple of this.
    #[schemars(range(min = 1))]
    pub align_bytes: u64,
}

/// A search for the largest queue depth at which enough operations are fast enough. The measured part begins where the
/// depth has been found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DepthSearch {
    /// The latency that an operation may have, in nanoseconds.
    #[schemars(range(min = 1))]
    pub target_ns: u64,
    /// How long each depth is tried, in nanoseconds.
    #[schemars(range(min = 1))]
    pub window_ns: u64,
    /// The share of a window's operations that have to meet the target, above 0.0 and up to 1.0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
    /// Go on at the depth that was found until the job's own end; else the job ends after one window at it.
    pub goes_on: bool,
}

/// A rate that has to be steady. It is looked at in each interval's end, over a window of the last intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyState {
    /// Which rate.
    pub of: RateKind,
    /// By which criterion.
    pub by: SteadyCriterion,
    /// The criterion has to be below this: operations or bytes per second, or percent of the window's mean.
    #[schemars(range(min = 0.0))]
    pub limit: f64,
    /// The highest less the lowest rate of the window has to be below this besides; absent: it may be anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub spread_limit: Option<f64>,
    /// The limits are in percent of the window's mean.
    pub in_percent: bool,
    /// Length of the window in nanoseconds: two intervals or more.
    #[schemars(range(min = 1))]
    pub window_ns: u64,
    /// Length of an interval in nanoseconds.
    #[schemars(range(min = 1))]
    pub interval_ns: u64,
    /// The first interval begins this long after the job, in nanoseconds.
    pub ramp_ns: u64,
}

/// The rate that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateKind {
    /// Reads and writes per second.
    Operations,
    /// Their bytes per second.
    Bytes,
}

/// When a window is steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyCriterion {
    /// By the largest distance of a value from the mean.
    Deviation,
    /// By the change from one interval to the next, of the line through the values by least squares.
    Slope,
    /// By the change of that line from the window's first interval to its last.
    Excursion,
}

/// When operations are offered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrival {
    /// A new operation is offered when one completes; after every `think_every` completions the job pauses `think_ns`.
    Closed {
        /// Length of the pause in nanoseconds; 0: none.
        think_ns: u64,
        /// Completions between two pauses.
        think_every: u64,
    },
    /// Operations are due at times that do not depend on completions. Latency counts from the due time, so that a stall
    /// is not forgotten (coordinated omission).
    Open {
        /// Mean rate in operations per second.
        #[schemars(range(min = 1e-6, max = 1e9))]
        rate_per_s: f64,
        /// How the due times are spaced.
        spacing: Spacing,
    },
}

/// The distances between due times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// All equal.
    Constant,
    /// Exponentially distributed: a Poisson process.
    Poisson,
    /// Equal between the reads of a mix, and equal between its writes: each direction has its share of the rate for itself.
    ConstantEach,
}

/// The job is done at the first bound it reaches; at least one is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobBounds {
    /// Operations, syncs not counted.
    #[schemars(range(min = 1))]
    pub ops: Option<u64>,
    /// Bytes offered.
    #[schemars(range(min = 1))]
    pub bytes: Option<u64>,
    /// Nanoseconds since the start of the phase.
    #[schemars(range(min = 1))]
    pub duration_ns: Option<u64>,
}

impl JobBounds {
    /// So many operations, and no other bound.
    pub fn of_ops(ops: u64) -> JobBounds {
        JobBounds { ops: Some(ops), bytes: None, duration_ns: None }
    }

    /// So long, and no other bound.
    pub fn of_time(duration_ns: u64) -> JobBounds {
        JobBounds { ops: None, bytes: None, duration_ns: Some(duration_ns) }
    }
}

/// After every `every_writes` completed writes, and before the next operation, each file written since is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sync {
    /// The call that syncs.
    pub kind: SyncKind,
    /// Completed writes between two syncs.
    #[schemars(range(min = 1))]
    pub every_writes: u64,
    /// Sync earlier if nothing is due, and before the job ends: no write waits for others that may not come.
    #[serde(default)]
    pub when_idle: bool,
}

/// The system call that syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncKind {
    /// fsync(2): data and metadata of the file.
    Fsync,
    /// fdatasync(2): data, and the metadata that reading it back needs.
    Fdatasync,
    /// sync_file_range(2) of the whole file, which waits until all of it that is dirty has been sent to the device. It
    /// makes nothing durable.
    SyncFileRange,
}
