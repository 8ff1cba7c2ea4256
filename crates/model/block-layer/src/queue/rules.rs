//! What a kernel and a device let a queue do.

use crate::plug::PlugRules;
use crate::pool::PoolRules;

/// What a kernel and a device allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRules {
    /// The largest request that merging may make, in sectors of 512 bytes.
    pub request_sectors_max: u32,
    /// Segments of memory that a request may have.
    pub request_segments_max: u16,
    /// Which merges are tried.
    pub merges: Merges,
    /// How requests are shared out among tasks.
    pub pool: PoolRules,
    /// Whether the pool's classes are sync and async I/O; otherwise reads and writes, as until 2.6.
    pub pool_by_sync: bool,
    /// When the queue holds requests back to let them merge.
    pub plug: PlugRules,
}

/// The `nomerges` tunable: 0, 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merges {
    /// 0: with any queued request.
    All,
    /// Only with the request that was merged into or inserted last.
    LastOnly,
    /// 2: none.
    Never,
}
