//! CFQ's tunables and versions. Source: `block/cfq-iosched.c` of 2.6.35.3 and 2.6.37 (docs/model/sources/cfq.md).

use serde::Deserialize;

use events::time::{MILLISECOND, Time};

/// Which CFQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
pub enum Version {
    /// 2.6.35: group scheduling, no group_idle.
    #[serde(rename = "2.6.35")]
    Linux2_6_35,
    /// 2.6.35 with the three patches of July 2010 ("group idle V2").
    #[serde(rename = "2.6.35-group-idle-v2")]
    GroupIdleV2,
    /// 2.6.37, where group_idle was merged in another form.
    #[serde(rename = "2.6.37")]
    Linux2_6_37,
}

impl Version {
    /// Whether the group as a whole is idled for (`group_idle`).
    pub fn has_group_idle(self) -> bool {
        self != Version::Linux2_6_35
    }
}

/// Times in nanoseconds; they take effect in whole ticks of the kernel, as `jiffies` do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CfqTunables {
    /// Requests of one queue at the device at a time; half of it in ordinary circumstances.
    pub quantum: u32,
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
    /// Length of a sync queue's slice at the middle priority.
    #[serde(rename = "slice_sync")]
    pub slice_sync_ns: Time,
    /// Length of an async queue's slice at the middle priority.
    #[serde(rename = "slice_async")]
    pub slice_async_ns: Time,
    /// Requests of an async queue's slice, scaled by its priority.
    pub slice_async_rq: u32,
    /// How long to idle for a queue's next request; 0: never.
    #[serde(rename = "slice_idle")]
    pub slice_idle_ns: Time,
    /// Only if the version has it.
    #[serde(rename = "group_idle")]
    pub group_idle_ns: Time,
    /// Shorten slices so that a turn of all sync queues takes about 300 ms, and hold back async requests.
    pub low_latency: bool,
    /// Keep queues that are not idled upon in their groups.
    pub group_isolation: bool,
}

impl Default for CfqTunables {
    fn default() -> CfqTunables {
        CfqTunables {
            quantum: 8,
            fifo_expire_sync_ns: 125 * MILLISECOND,
            fifo_expire_async_ns: 250 * MILLISECOND,
            back_seek_max_kib: 16 * 1024,
            back_seek_penalty: 2,
            slice_sync_ns: 100 * MILLISECOND,
            slice_async_ns: 40 * MILLISECOND,
            slice_async_rq: 2,
            slice_idle_ns: 8 * MILLISECOND,
            group_idle_ns: 8 * MILLISECOND,
            low_latency: true,
            group_isolation: false,
        }
    }
}

/// The scheduler's inputs about its device and kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The kernel's ticks per second.
    pub hz: u32,
    /// The device seeks.
    pub rotational: bool,
}

/// The same in ticks, as the kernel keeps them.
#[derive(Clone, Copy, Debug)]
pub(super) struct TunableTicks {
    pub(super) fifo_expire: [u64; 2],
    pub(super) slice: [u64; 2],
    pub(super) slice_idle: u64,
    pub(super) group_idle: u64,
    /// The target for a turn of every queue with low_latency.
    pub(super) target_latency: u64,
    /// A fifth of a second: an idle-class queue joins this far behind the last. A group does so by as much in the unit
    /// of service, which is a 4096th of a tick: the kernel adds the same number to both.
    pub(super) join_delay: u64,
    pub(super) second: u64,
}

impl TunableTicks {
    pub(super) fn of(tunables: &CfqTunables, version: Version, hz: u32) -> TunableTicks {
        // Less than a tick is a tick, as the kernel's conversion has it; nothing stays nothing.
        let ticks = |ns: Time| (ns * u64::from(hz)).div_ceil(1_000_000_000);
        TunableTicks {
            fifo_expire: [ticks(tunables.fifo_expire_async_ns), ticks(tunables.fifo_expire_sync_ns)],
            slice: [ticks(tunables.slice_async_ns), ticks(tunables.slice_sync_ns)],
            slice_idle: ticks(tunables.slice_idle_ns),
            group_idle: if version.has_group_idle() { ticks(tunables.group_idle_ns) } else { 0 },
            target_latency: u64::from(hz) * 3 / 10,
            join_delay: u64::from(hz) / 5,
            second: u64::from(hz),
        }
    }
}
