//! The anticipatory scheduler's tunables and versions. Source: docs/model/sources/anticipatory.md#tunables.

use serde::Deserialize;

use crate::scheduler::deadline_timed;
use events::time::{MILLISECOND, Tick, Time};

/// Which anticipatory scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, schemars::JsonSchema)]
pub enum Version {
    /// Its first draft, in the -mm kernels from January 2003 on.
    #[serde(rename = "2.5.59-mm5")]
    Draft,
    /// As it was first merged, July 2003.
    #[serde(rename = "first")]
    First,
    /// With means of tasks that are not known yet.
    #[serde(rename = "2.6.2")]
    Linux2_6_2,
    /// With requests of others that continue where the target stopped.
    #[serde(rename = "2.6.15")]
    Linux2_6_15,
    /// Batches of writes begin with the oldest.
    #[serde(rename = "2.6.24")]
    Linux2_6_24,
    /// As it last was, before 2.6.33 removed it.
    #[serde(rename = "2.6.32")]
    Linux2_6_32,
}

impl Version {
    /// What is true of tasks is learned from their requests.
    pub(super) fn learns(self) -> bool {
        self >= Version::Linux2_6_2
    }

    /// A wait may end well although the target has exited: another task continues where it stopped (`exit_no_coop`).
    pub(super) fn knows_cooperation(self) -> bool {
        self >= Version::Linux2_6_15
    }

    /// A batch of writes begins with the oldest of them, not with the nearest (`as_dispatch_request`).
    pub(super) fn begins_with_oldest_write(self) -> bool {
        self >= Version::Linux2_6_24
    }

    /// The time of a batch that waited for the device to empty begins when that is so (`as_completed_request`). Before,
    /// it is over at once: the end of the batch before stands. The draft's value is not known.
    pub(super) fn times_late_batch(self) -> bool {
        matches!(self, Version::Draft | Version::Linux2_6_32)
    }
}

/// Times in nanoseconds; they take effect in whole ticks of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnticipatoryTunables {
    /// A read that has waited this long is served before those that are next by sector.
    #[serde(rename = "read_expire")]
    pub read_expire_ns: Time,
    /// The same of writes.
    #[serde(rename = "write_expire")]
    pub write_expire_ns: Time,
    /// Length of a batch of reads.
    #[serde(rename = "read_batch_expire")]
    pub read_batch_expire_ns: Time,
    /// Length of a batch of writes.
    #[serde(rename = "write_batch_expire")]
    pub write_batch_expire_ns: Time,
    /// 0: never anticipate.
    #[serde(rename = "antic_expire")]
    pub antic_expire_ns: Time,
}

impl AnticipatoryTunables {
    /// The defaults. `antic_expire` is a 150th of a second in whole ticks, in the draft a 25th, at least one. The draft
    /// has the expiry of the deadline scheduler that it is part of, and one length for all batches, which is an
    /// estimate.
    pub fn of(version: Version, hz: u32) -> AnticipatoryTunables {
        let part = if version == Version::Draft { 25 } else { 150 };
        let antic_expire_ns = Time::from((hz / part).max(1)) * Tick::of_hz(hz).length;
        match version {
            Version::Draft => {
                let deadline = deadline_timed::DeadlineTimedTunables::default();
                AnticipatoryTunables {
                    read_expire_ns: deadline.read_expire_ns,
                    write_expire_ns: deadline.write_expire_ns,
                    read_batch_expire_ns: deadline.batch_expire_ns,
                    write_batch_expire_ns: deadline.batch_expire_ns,
                    antic_expire_ns,
                }
            }
            Version::First => AnticipatoryTunables {
                read_expire_ns: 50 * MILLISECOND,
                write_expire_ns: 200 * MILLISECOND,
                read_batch_expire_ns: 200 * MILLISECOND,
                write_batch_expire_ns: 50 * MILLISECOND,
                antic_expire_ns,
            },
            _ => AnticipatoryTunables {
                read_expire_ns: 125 * MILLISECOND,
                write_expire_ns: 250 * MILLISECOND,
                read_batch_expire_ns: 500 * MILLISECOND,
                write_batch_expire_ns: 125 * MILLISECOND,
                antic_expire_ns,
            },
        }
    }
}
