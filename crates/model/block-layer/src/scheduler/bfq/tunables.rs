//! BFQ's tunables. Source: `block/bfq-iosched.c` of 5.10 (docs/model/sources/bfq.md).

use serde::Deserialize;

use events::time::{MILLISECOND, Time};

/// The attributes of BFQ in sysfs that the model has; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BfqTunables {
    /// How long to idle for a queue's next request; 0: never.
    #[serde(rename = "slice_idle")]
    pub slice_idle_ns: Time,
    /// A sync request that has waited this long is served before its queue's others.
    #[serde(rename = "fifo_expire_sync")]
    pub fifo_expire_sync_ns: Time,
    /// The same of async requests.
    #[serde(rename = "fifo_expire_async")]
    pub fifo_expire_async_ns: Time,
    /// The longest step backwards that counts as near, in KiB.
    #[serde(rename = "back_seek_max")]
    pub back_seek_max_kib: u64,
    /// How many times as far a step backwards counts.
    pub back_seek_penalty: u64,
    /// How long a queue may take for its budget.
    #[serde(rename = "timeout_sync")]
    pub timeout_ns: Time,
    /// In sectors; 0: what the device does in `timeout_sync` at its peak rate, as far as is known.
    pub max_budget: u64,
    /// Idle for every sync queue, whatever it costs.
    pub strict_guarantees: bool,
    /// Raise the weights of tasks that may be interactive.
    pub low_latency: bool,
}

impl Default for BfqTunables {
    fn default() -> BfqTunables {
        BfqTunables {
            slice_idle_ns: 8 * MILLISECOND,
            fifo_expire_sync_ns: 125 * MILLISECOND,
            fifo_expire_async_ns: 250 * MILLISECOND,
            back_seek_max_kib: 16 * 1024,
            back_seek_penalty: 2,
            timeout_ns: 125 * MILLISECOND,
            max_budget: 0,
            strict_guarantees: false,
            low_latency: true,
        }
    }
}
