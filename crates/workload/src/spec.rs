//! A job's specification: the wire format between whoever describes a workload and whoever runs it.
//!
//! Every field is required and unknown fields are refused: defaults, help and ranges have one home, the options of the
//! workload kinds (`python/iolab/workload/`), and must not grow a second one here.

use serde::{Deserialize, Serialize};

/// Simulated or real time since the start of the phase, in nanoseconds.
pub type Time = u64;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    pub name: String,
    /// Indices into the phase's files; each file offers the same range to the pattern.
    pub files: Vec<u32>,
    pub file_order: FileOrder,
    pub pattern: Pattern,
    /// Share of operations that read, 0.0 to 1.0; the rest write.
    pub read_share: f64,
    /// Sizes of one operation, drawn by weight; one entry means a fixed size.
    pub blocks: Vec<BlockSize>,
    /// Every offset is a multiple of this.
    pub align_bytes: u64,
    /// The range of each file that the job touches.
    pub offset_bytes: u64,
    pub length_bytes: u64,
    pub queue_depth: u32,
    pub arrival: Arrival,
    pub until: Until,
    pub sync: Option<Sync>,
    /// One fsync per written file after the last operation, inside the measured time.
    pub sync_at_end: bool,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOrder {
    /// Finish a file's range, then take the next.
    Sequential,
    /// A file per operation, in turn.
    RoundRobin,
    /// A file per operation, drawn uniformly.
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    Sequential,
    /// From the end of the range to its start.
    Backward,
    /// Each offset is the last one plus `stride_bytes`; at the end of the range it starts again one block further on.
    Strided {
        stride_bytes: u64,
    },
    Uniform,
    /// Block ranks drawn with probability proportional to 1/rank^theta, ranks scattered over the range.
    Zipf {
        theta: f64,
    },
    /// Each block exactly once a pass, in an order drawn anew each pass, in constant memory.
    Permutation,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSize {
    pub bytes: u32,
    pub weight: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrival {
    /// A new operation is offered when one completes; after every `think_every` completions the job pauses `think_ns`.
    Closed { think_ns: u64, think_every: u64 },
    /// Operations are due at times that do not depend on completions. Latency counts from the due time, so that a stall
    /// is not forgotten (coordinated omission).
    Open { rate_per_s: f64, spacing: Spacing },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    Constant,
    Poisson,
}

/// The job is done at the first bound it reaches; at least one is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    pub ops: Option<u64>,
    pub bytes: Option<u64>,
    pub duration_ns: Option<u64>,
}

/// After every `every_writes` completed writes, and before the next operation, each file written since is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sync {
    pub kind: SyncKind,
    pub every_writes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncKind {
    Fsync,
    Fdatasync,
}
