//! What a phase yielded, on a host or on the modelled machine. Serialized as JSON; the columns that readers see are made from it in `python/iolab/store/`.
//! Times are nanoseconds since the start of the phase unless a name says otherwise.

use serde::Serialize;

use crate::histogram::LatencyHistogram;
use crate::measure::Usage;

#[derive(Clone, Debug, Serialize)]
pub struct PhaseRecord<J = JobRecord> {
    pub phase: String,
    pub started_unix_ns: u64,
    /// Wall time from the common start to the last completion, on the monotonic clock.
    pub elapsed_ns: u64,
    /// The wall clock moved against the monotonic clock by this much during the phase (a clock that jumps).
    pub wall_clock_shift_ns: i64,
    /// Where the measured part begins and ends: after warm-up and transient.
    pub measured_from_ns: u64,
    pub measured_to_ns: u64,
    pub transient: Option<Transient>,
    /// Someone called stop().
    pub stopped: bool,
    pub build_profile: &'static str,
    pub clock: ClockKind,
    pub groups: Vec<GroupRecord<J>>,
    /// Whole process, measured part: includes kernel workers of the rings.
    pub process_cpu_user_ns: u64,
    pub process_cpu_system_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    Tsc,
    Monotonic,
    /// The modelled machine's: times are simulated.
    Model,
}

/// What the steady-state search found.
#[derive(Clone, Debug, Serialize)]
pub struct Transient {
    pub cut_ns: u64,
    /// False: the rate was still moving at the end; the metrics cover everything after warm-up.
    pub steady: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct GroupRecord<J = JobRecord> {
    pub name: String,
    /// One line each: what was asked for and not done (polling refused, pinning failed, memory not registered, ...).
    pub notes: Vec<String>,
    /// Thread usage over the measured part (on a host, getrusage RUSAGE_THREAD).
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub context_switches_voluntary: u64,
    pub context_switches_involuntary: u64,
    pub faults_minor: u64,
    pub faults_major: u64,
    pub jobs: Vec<J>,
}

impl<J> GroupRecord<J> {
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
            jobs,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct JobRecord {
    pub name: String,
    /// When this job's own last operation completed.
    pub finished_ns: u64,
    pub read: OpRecord,
    pub write: OpRecord,
    pub sync: OpRecord,
    pub errors: Vec<ErrorRecord>,
    pub mismatches_count: u64,
    /// The first few wrong blocks.
    pub mismatches: Vec<MismatchRecord>,
    pub intervals: Vec<IntervalRecord>,
}

/// Successful operations of one kind in the measured part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OpRecord {
    pub count: u64,
    pub bytes: u64,
    /// Absent when count is 0.
    pub latency: Option<LatencyRecord>,
}

impl OpRecord {
    pub fn new(bytes: u64, latency: &LatencyHistogram) -> OpRecord {
        OpRecord {
            count: latency.count(),
            bytes,
            latency: LatencyRecord::new(latency),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct LatencyRecord {
    pub min_ns: u64,
    pub max_ns: u64,
    pub mean_ns: f64,
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
            histogram: latency
                .buckets()
                .map(|bucket| (bucket.low_ns, bucket.high_ns, bucket.count))
                .collect(),
        })
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct ErrorRecord {
    /// Positive errno; 0 for a short transfer.
    pub errno: i32,
    pub name: String,
    pub op: &'static str,
    pub count: u64,
    pub first_path: String,
    pub first_offset: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct MismatchRecord {
    pub path: String,
    pub offset: u64,
    pub expected: String,
    pub found: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct IntervalRecord {
    pub start_ns: u64,
    pub length_ns: u64,
    pub read_ops: u64,
    pub read_bytes: u64,
    pub write_ops: u64,
    pub write_bytes: u64,
    /// Of reads and writes together; absent in an interval without any.
    pub latency_ns_p50: Option<u64>,
    pub latency_ns_p99: Option<u64>,
    pub latency_ns_max: Option<u64>,
}

/// What a poll of the handle shows while the phase runs.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    pub elapsed_ns: u64,
    pub ops: u64,
    pub bytes: u64,
    pub errors: u64,
    /// 0 to 1, the furthest-behind job's; null when no bound tells.
    pub fraction: Option<f64>,
    pub warming_up: bool,
    pub done: bool,
}
