//! What a thread of a metadata load measures.

use super::call::OPS;
use crate::measure::Failures;
use base::histogram::LatencyHistogram;
use base::time::Time;
use base::usage::Sample;

/// The measurements of one thread when it is done.
#[derive(Debug)]
pub struct ThreadMeasured {
    /// By operation, in the order of `OP_NAMES`.
    pub ops: [OpMeasured; OPS],
    /// Calls that failed, by operation and errno.
    pub failures: Failures,
    /// One line each: what was asked for and not done, why the thread gave up.
    pub notes: Vec<String>,
    /// What thread and process had used at the start.
    pub first_sample: Sample,
    /// What they had used at the end.
    pub last_sample: Sample,
    /// When the thread made its first call, since the start of the phase.
    pub began_at: Time,
    /// The last file was written, closed and, where asked for, synced again. Unlinking comes after.
    pub written_at: Time,
    /// When the thread made its last call.
    pub finished_at: Time,
}

/// The successful calls of one operation.
#[derive(Debug, Default)]
pub struct OpMeasured {
    /// Bytes written; 0 for operations other than `write`.
    pub bytes: u64,
    /// A latency per call.
    pub latency: LatencyHistogram,
}
