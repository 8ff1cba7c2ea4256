//! What a thread of a metadata load measures.

use super::Call;
use crate::histogram::LatencyHistogram;
use crate::measure::{Failures, Sample};
use crate::spec::Time;

#[derive(Debug)]
pub struct ThreadMeasured {
    /// By operation, in the order of `OP_NAMES`.
    pub ops: [OpMeasured; OPS],
    pub failures: Failures,
    pub notes: Vec<String>,
    pub first_sample: Sample,
    pub last_sample: Sample,
    pub began_at: Time,
    /// The last file was written, closed and, where asked for, synced again. Unlinking comes after.
    pub written_at: Time,
    pub finished_at: Time,
}

#[derive(Debug, Default)]
pub struct OpMeasured {
    pub bytes: u64,
    pub latency: LatencyHistogram,
}

pub const OP_NAMES: [&str; OPS] = [
    "mkdir",
    "create",
    "write",
    "fsync",
    "system_sync",
    "close",
    "unlink",
];
pub const OPS: usize = 7;
pub const CREATE: usize = 1;
pub const WRITE: usize = 2;

impl Call {
    /// The place of its operation in `OP_NAMES`.
    #[inline(always)]
    pub fn op(self) -> usize {
        match self {
            Call::MakeDirectory { .. } => 0,
            Call::Create(_) => CREATE,
            Call::Write { .. } => WRITE,
            Call::Fsync | Call::FsyncAgain(_) => 3,
            Call::SystemSync | Call::Done => 4,
            Call::Close => 5,
            Call::Unlink(_) => 6,
        }
    }

    /// Whether it takes space.
    pub fn grows(self) -> bool {
        matches!(
            self,
            Call::MakeDirectory { .. } | Call::Create(_) | Call::Write { .. } | Call::Fsync
        )
    }
}
