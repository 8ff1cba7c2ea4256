//! What a phase yielded, on a host or on the simulated machine. Serialized as JSON; the columns that readers see are
//! made from it in `python/iolab/files/store/`. Times are nanoseconds since the start of the phase unless a name has
//! another unit.

use serde::Serialize;

use crate::depth_search::DepthSearchResult;
use crate::replay::ReplayRecord;
use crate::until_steady::Steadiness;
use base::histogram::LatencyHistogram;
use base::usage::Usage;

/// A phase's record; `J` is the record of a job.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "PhaseRecordOf{J}")]
pub struct PhaseRecord<J = JobRecord> {
    /// The name from the phase's specification.
    pub phase: String,
    /// Wall-clock time of the start, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Wall time from the common start to the last completion, on the monotonic clock.
    pub elapsed_ns: u64,
    /// The wall clock moved against the monotonic clock by this much during the phase (a clock that jumps).
    pub wall_clock_shift_ns: i64,
    /// Where the measured part begins and ends: after warm-up and transient.
    pub measured_from_ns: u64,
    /// The end of the measured part.
    pub measured_to_ns: u64,
    /// What the search for a transient found; null when it was not asked for.
    pub transient: Option<Transient>,
    /// Someone called stop().
    pub stopped: bool,
    /// How the engine was compiled: `release` or `debug`.
    pub build_profile: &'static str,
    /// The clock that all times come from.
    pub clock: ClockKind,
    /// A record per group, in the order of the phase.
    pub groups: Vec<GroupRecord<J>>,
    /// Whole process, measured part: includes kernel workers of the rings.
    pub process_cpu_user_ns: u64,
    /// CPU time of the whole process in the kernel, measured part, in nanoseconds.
    pub process_cpu_system_ns: u64,
}

/// The clock that operations are timed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// The processor's time-stamp counter, calibrated against the monotonic clock.
    Tsc,
    /// CLOCK_MONOTONIC, by clock_gettime(2).
    Monotonic,
    /// The simulated machine's: times are simulated.
    Model,
}

/// What the steady-state search found.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Transient {
    /// How much was cut after the warm-up; 0 without a transient.
    pub cut_ns: u64,
    /// False: the rate was still moving at the end; the metrics cover everything after warm-up.
    pub steady: bool,
}

/// The record of a group: a thread and its jobs.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "GroupRecordOf{J}")]
pub struct GroupRecord<J = JobRecord> {
    /// The name from the group's specification.
    pub name: String,
    /// One line each: what was asked for and not done (polling refused, pinning failed, memory not registered, ...).
    pub notes: Vec<String>,
    /// Thread usage over the measured part (on a host, getrusage RUSAGE_THREAD).
    pub cpu_user_ns: u64,
    /// CPU time of the thread in the kernel, measured part, in nanoseconds.
    pub cpu_system_ns: u64,
    /// Context switches because the thread waited, measured part.
    pub context_switches_voluntary: u64,
    /// Context switches because the scheduler took the CPU away, measured part.
    pub context_switches_involuntary: u64,
    /// Page faults without I/O, measured part.
    pub faults_minor: u64,
    /// Page faults that needed I/O, measured part.
    pub faults_major: u64,
    /// Time for which the thread could run and waited for a CPU, measured part, in nanoseconds (on a host, schedstat);
    /// absent if it is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_wait_ns: Option<u64>,
    /// A record per job, in the order of the group.
    pub jobs: Vec<J>,
}

impl<J> GroupRecord<J> {
    /// The record of a group whose thread used `used` in the measured part.
    pub fn new(name: String, notes: Vec<String>, used: Usage, jobs: Vec<J>) -> GroupRecord<J> {
        GroupRecord {
            name,
            notes,
            cpu_user_ns: used.cpu_user_ns,
            cpu_system_ns: used.cpu_system_ns,
            context_switches_voluntary: used.context_switches_voluntary,
            context_switches_involuntary: used.context_switches_involuntary,
            faults_minor: used.faults_minor,
            faults_major: used.faults_major,
            cpu_wait_ns: used.cpu_wait_ns,
            jobs,
        }
    }
}

/// The record of one job of a load.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct JobRecord {
    /// The name from the job's specification.
    pub name: String,
    /// When this job's own last operation completed.
    pub finished_ns: u64,
    /// Reads that succeeded.
    pub read: OpRecord,
    /// Writes that succeeded.
    pub write: OpRecord,
    /// fsync and fdatasync.
    pub sync: OpRecord,
    /// Discards, and zeroes written without data, that succeeded, and the bytes that they cleared; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<OpRecord>,
    /// Operations of an engine that does nothing, which are no reads, writes or syncs, and the bytes that they name;
    /// absent with any other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null: Option<OpRecord>,
    /// Records of a log that became durable, each from when it was due, and their bytes; absent if the job's writes are
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<OpRecord>,
    /// What the search for a queue depth came to; absent if the job had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth_search: Option<DepthSearchResult>,
    /// Whether the steady state that the job ran for was reached; absent if it ran for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady_state: Option<Steadiness>,
    /// How faithful the replay of a trace was; absent if the job replayed none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayRecord>,
    /// A record per operation and errno that failed; counts the warm-up too.
    pub errors: Vec<ErrorRecord>,
    /// How many blocks did not hold what was written there.
    pub mismatches_count: u64,
    /// The first few wrong blocks.
    pub mismatches: Vec<MismatchRecord>,
    /// The time series, in order, without the warm-up.
    pub intervals: Vec<IntervalRecord>,
}

/// Successful operations of one kind in the measured part.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct OpRecord {
    /// Operations.
    pub count: u64,
    /// Bytes transferred; 0 for syncs.
    pub bytes: u64,
    /// Absent when count is 0.
    pub latency: Option<LatencyRecord>,
}

impl OpRecord {
    /// The record of operations that transferred `bytes` with these latencies.
    pub fn new(bytes: u64, latency: &LatencyHistogram) -> OpRecord {
        OpRecord { count: latency.count(), bytes, latency: LatencyRecord::new(latency) }
    }
}

/// Latencies of operations, each from its due time to its completion.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct LatencyRecord {
    /// The exact minimum in nanoseconds.
    pub min_ns: u64,
    /// The exact maximum in nanoseconds.
    pub max_ns: u64,
    /// The exact mean in nanoseconds.
    pub mean_ns: f64,
    /// The exact standard deviation of the population in nanoseconds.
    pub stddev_ns: f64,
    /// Non-empty buckets in rising order: lowest and highest value counted in the bucket, and the count.
    pub histogram: Vec<(u64, u64, u64)>,
}

impl LatencyRecord {
    fn new(latency: &LatencyHistogram) -> Option<LatencyRecord> {
        Some(LatencyRecord {
            min_ns: latency.min_ns()?,
            max_ns: latency.max_ns()?,
            mean_ns: latency.mean_ns()?,
            stddev_ns: latency.stddev_ns()?,
            histogram: latency.buckets().map(|bucket| (bucket.low_ns, bucket.high_ns, bucket.count)).collect(),
        })
    }
}

/// Failures of one operation with one errno.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ErrorRecord {
    /// Positive errno; 0 for a short transfer.
    pub errno: i32,
    /// The symbol of the errno, such as `ENOSPC`.
    pub name: String,
    /// The operation, such as `write` or `fsync`.
    pub op: &'static str,
    /// How often it failed so.
    pub count: u64,
    /// The file of the first failure.
    pub first_path: String,
    /// The offset of the first failure, in bytes.
    pub first_offset: u64,
}

/// A block that did not hold what was written there.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct MismatchRecord {
    /// The file's path.
    pub path: String,
    /// The block's offset in the file, in bytes.
    pub offset: u64,
    /// What the block has to hold: file, offset, generation.
    pub expected: String,
    /// What it holds.
    pub found: String,
}

/// What completed in one interval of the time series.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct IntervalRecord {
    /// The interval's start.
    pub start_ns: u64,
    /// Its length in nanoseconds.
    pub length_ns: u64,
    /// Reads that completed in it.
    pub read_ops: u64,
    /// Bytes that they transferred.
    pub read_bytes: u64,
    /// Writes that completed in it.
    pub write_ops: u64,
    /// Bytes that they transferred.
    pub write_bytes: u64,
    /// Null operations that completed in it; absent where the engine does something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_ops: Option<u64>,
    /// Bytes that they name; none was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_bytes: Option<u64>,
    /// The median of reads and writes together, or of null operations; absent in an interval without any.
    pub latency_ns_p50: Option<u64>,
    /// 99th percentile of the same latencies, in nanoseconds.
    pub latency_ns_p99: Option<u64>,
    /// Their maximum in nanoseconds.
    pub latency_ns_max: Option<u64>,
    /// The same latencies in classes of half a power of two: highest value counted in the class, and the count.
    pub latency_counts: Vec<(u64, u64)>,
}

/// What a poll of the handle shows while the phase runs.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Snapshot {
    /// Nanoseconds since the start of the phase.
    pub elapsed_ns: u64,
    /// Operations that have succeeded, warm-up included.
    pub ops: u64,
    /// Bytes that they transferred.
    pub bytes: u64,
    /// Operations that have failed.
    pub errors: u64,
    /// 0 to 1, the furthest-behind job's; null without a bound.
    pub fraction: Option<f64>,
    /// Whether the warm-up still lasts.
    pub warming_up: bool,
    /// Whether every job is done.
    pub done: bool,
}
