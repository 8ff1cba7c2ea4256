//! A cached LUN as a measurement from the host gives it.

use serde::Deserialize;

use crate::limits::{CAPACITY_BYTES_MAX, QUEUE_DEPTH_MAX, WORK_NS_MAX, capacity, queue_depth, rate, whole_sectors};
use crate::watermarks::check_marks;
use block_layer::SECTOR_BYTES;
use events::SpecError;
use events::spec_error::{RATE, within};
use events::time::SECOND;

/// Everything about a cached LUN; a machine file's device of kind `lun`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LunSpec {
    /// Size of the LUN; whole sectors.
    #[schemars(range(min = SECTOR_BYTES, max = CAPACITY_BYTES_MAX))]
    pub capacity_bytes: u64,
    /// Commands that it takes at once.
    #[schemars(range(min = 1, max = QUEUE_DEPTH_MAX))]
    pub queue_depth: u32,
    /// Host adapter, there and back together.
    #[schemars(range(max = WORK_NS_MAX))]
    pub adapter_ns: u64,
    /// Link and switches, there and back together.
    #[schemars(range(max = WORK_NS_MAX))]
    pub link_ns: u64,
    /// From the controller's taking a command to its answer, when the cache serves it.
    #[schemars(range(max = WORK_NS_MAX))]
    pub controller_ns: u64,
    /// Rate at which the controller begins commands, one after the other.
    #[schemars(range(min = 1, max = SECOND))]
    pub controller_commands_per_s: u64,
    /// Each way.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub link_bytes_per_s: u64,
    /// The controller's cache.
    pub cache: LunCache,
    /// What lies behind the cache.
    pub back_end: BackEnd,
    /// What a flush takes of a server of the back end: there is a cache that forgets. Absent: there is none, and no flush.
    #[schemars(range(max = WORK_NS_MAX))]
    pub flush_ns: Option<u64>,
}

/// The cache for reads and writes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LunCache {
    /// Data are kept in pieces of this size.
    #[schemars(range(min = 512, max = 1 << 24))]
    pub line_bytes: u64,
    /// 0: no cache for reads.
    #[schemars(range(max = 1_u64 << 44))]
    pub read_bytes: u64,
    /// What may wait for the back end; 0: writes go through.
    #[schemars(range(max = 1_u64 << 44))]
    pub write_bytes: u64,
    /// The shares of `write_bytes` at which writing to the back end begins and ends.
    #[schemars(range(min = 1, max = 100))]
    pub high_percent: u32,
    /// Where writing to the back end ends, in percent of `write_bytes`.
    #[schemars(range(max = 100))]
    pub low_percent: u32,
    /// What lies below the marks is written when nothing has been for this long.
    #[schemars(range(max = WORK_NS_MAX))]
    pub idle_flush_ns: u64,
}

/// The disks behind the controller, as no more than an access time and a rate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackEnd {
    /// Time of an access, whatever its place.
    #[schemars(range(max = WORK_NS_MAX))]
    pub access_ns: u64,
    /// Accesses that run at once: spindles.
    #[schemars(range(min = 1, max = 4096))]
    pub servers: u32,
    /// The rate of all of them together; with `holds_server`, of each.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub bytes_per_s: u64,
    /// An access keeps its server until its data have crossed. Absent: a server that has found the place is free for the
    /// next access.
    pub holds_server: Option<bool>,
    /// With `holds_server`, the time of an access that writes; absent: `access_ns`.
    #[schemars(range(max = WORK_NS_MAX))]
    pub write_access_ns: Option<u64>,
    /// With `holds_server`, the rate of a server that writes; absent: `bytes_per_s`.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub write_bytes_per_s: Option<u64>,
}

impl LunSpec {
    /// Checks that every value lies in its range. The error names the first key whose value does not.
    pub fn check(&self) -> Result<(), SpecError> {
        capacity("capacity_bytes", self.capacity_bytes)?;
        queue_depth("queue_depth", self.queue_depth)?;
        for (key, time_ns) in [
            ("adapter_ns", self.adapter_ns),
            ("link_ns", self.link_ns),
            ("controller_ns", self.controller_ns),
            ("cache.idle_flush_ns", self.cache.idle_flush_ns),
            ("back_end.access_ns", self.back_end.access_ns),
            ("back_end.write_access_ns", self.back_end.write_access_ns.unwrap_or_default()),
            ("flush_ns", self.flush_ns.unwrap_or_default()),
        ] {
            within(key, time_ns, 0, WORK_NS_MAX)?;
        }
        within("controller_commands_per_s", self.controller_commands_per_s, 1, SECOND)?;
        rate("link_bytes_per_s", self.link_bytes_per_s)?;
        self.back_end.check().map_err(|error| error.within("back_end"))?;
        self.cache.check().map_err(|error| error.within("cache"))
    }
}

impl BackEnd {
    fn check(&self) -> Result<(), SpecError> {
        rate("bytes_per_s", self.bytes_per_s)?;
        rate("write_bytes_per_s", self.write_bytes_per_s.unwrap_or(self.bytes_per_s))?;
        within("servers", u64::from(self.servers), 1, 4096)?;
        let of_writes = [
            ("write_access_ns", self.write_access_ns.is_some()),
            ("write_bytes_per_s", self.write_bytes_per_s.is_some()),
        ];
        match of_writes.into_iter().find(|&(_, is_given)| is_given) {
            Some((key, _)) if !self.holds_server.unwrap_or(false) => {
                Err(SpecError::of(key, "only with holds_server = true"))
            }
            _ => Ok(()),
        }
    }
}

impl LunCache {
    fn check(&self) -> Result<(), SpecError> {
        whole_sectors("line_bytes", self.line_bytes)?;
        within("line_bytes", self.line_bytes, 512, 1 << 24)?;
        for (key, bytes) in [("read_bytes", self.read_bytes), ("write_bytes", self.write_bytes)] {
            within(key, bytes, 0, 1 << 44)?;
            if !bytes.is_multiple_of(self.line_bytes) {
                return Err(SpecError::of(key, "expected whole lines of line_bytes"));
            }
        }
        check_marks(self.high_percent, self.low_percent)
    }
}
