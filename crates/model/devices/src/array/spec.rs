//! A disk array as its parts' data sheets, or a measurement, give it.

use serde::Deserialize;

use crate::array::layout::{Layout, LayoutSpec};
use crate::disk::DiskSpec;
use crate::limits::{QUEUE_DEPTH_MAX, WORK_NS_MAX, queue_depth, rate, whole_sectors};
use crate::watermarks::check_marks;
use block_layer::{SECTOR_BYTES, Sector};
use events::SpecError;
use events::spec_error::{RATE, within};

/// Everything about an array; a machine file's device of kind `array`.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// Commands that the array takes at once.
    #[schemars(range(min = 1, max = QUEUE_DEPTH_MAX))]
    pub queue_depth: u32,
    /// How data are spread over the disks.
    pub layout: LayoutSpec,
    /// What takes commands, and the port in front of it.
    pub controller: ControllerSpec,
    /// The controllers' cache.
    pub cache: ArrayCache,
    /// Each of the disks.
    pub disk: DiskSpec,
}

/// The front of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// Controllers, each with one command at a time.
    #[schemars(range(min = 1, max = 1024))]
    pub controllers: u32,
    /// What a command costs one of them.
    #[schemars(range(max = WORK_NS_MAX))]
    pub command_ns: u64,
    /// What a command waits besides, host adapter and link included, without keeping anything busy.
    #[schemars(range(max = WORK_NS_MAX))]
    pub latency_ns: u64,
    /// The rate of the front-end port, each way.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub port_bytes_per_s: u64,
}

/// The cache for reads, prefetching and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayCache {
    /// Data are kept, and fetched, in pieces of this size.
    #[schemars(range(min = SECTOR_BYTES))]
    pub line_bytes: u64,
    /// 0: no cache for reads, and no prefetching.
    #[schemars(range(max = 1_u64 << 44))]
    pub read_bytes: u64,
    /// Sequential streams that are recognised at once.
    #[schemars(range(max = 4096))]
    pub streams: u32,
    /// Commands in sequence that make a stream.
    #[schemars(range(min = 1, max = 1024))]
    pub stream_after_commands: u32,
    /// How far ahead of a stream's last command its data are fetched.
    pub prefetch_bytes: u64,
    /// What may wait for the disks; 0: writes go through.
    #[schemars(range(max = 1_u64 << 44))]
    pub write_bytes: u64,
    /// The shares of `write_bytes` at which destaging begins and ends.
    #[schemars(range(min = 1, max = 100))]
    pub high_percent: u32,
    /// Where destaging ends, in percent of `write_bytes`.
    #[schemars(range(max = 100))]
    pub low_percent: u32,
    /// A stripe below the marks is destaged when it has been dirty so long.
    #[schemars(range(max = WORK_NS_MAX))]
    pub dirty_ns_max: u64,
    /// Stripes that are destaged at once.
    #[schemars(range(min = 1, max = 65_536))]
    pub destages_max: u32,
    /// Writes are acknowledged when the other controller has them too.
    pub mirror: Option<MirrorSpec>,
}

/// The path to the other controller's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MirrorSpec {
    /// What a write waits beyond the transfer of its data.
    #[schemars(range(max = WORK_NS_MAX))]
    pub latency_ns: u64,
    /// Rate of the path; one write after the other.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub bytes_per_s: u64,
}

impl ArraySpec {
    /// Checks every value by itself and against the others. The error names the first key that is wrong.
    pub fn check(&self) -> Result<(), SpecError> {
        queue_depth("queue_depth", self.queue_depth)?;
        self.layout.check().map_err(|error| error.within("layout"))?;
        self.controller.check().map_err(|error| error.within("controller"))?;
        self.cache.check().map_err(|error| error.within("cache"))?;
        let line_bytes = self.cache.line_bytes;
        if !self.layout.chunk_bytes.is_multiple_of(line_bytes) {
            return Err(SpecError::of(
                "cache.line_bytes",
                format!("expected a divisor of layout.chunk_bytes, {}, found {line_bytes}", self.layout.chunk_bytes),
            ));
        }
        self.disk.check().map_err(|error| error.within("disk"))?;
        if self.sectors() == 0 {
            let what = "the disks are too small for one extent of stripes";
            return Err(SpecError::of("layout.extent_stripes", what));
        }
        Ok(())
    }

    /// The array's size.
    pub(crate) fn sectors(&self) -> Sector {
        Layout::new(&self.layout, self.disk.sectors()).sectors()
    }
}

impl ControllerSpec {
    fn check(&self) -> Result<(), SpecError> {
        within("controllers", u64::from(self.controllers), 1, 1024)?;
        within("command_ns", self.command_ns, 0, WORK_NS_MAX)?;
        within("latency_ns", self.latency_ns, 0, WORK_NS_MAX)?;
        rate("port_bytes_per_s", self.port_bytes_per_s)
    }
}

impl ArrayCache {
    fn check(&self) -> Result<(), SpecError> {
        whole_sectors("line_bytes", self.line_bytes)?;
        within("read_bytes", self.read_bytes, 0, 1 << 44)?;
        within("write_bytes", self.write_bytes, 0, 1 << 44)?;
        within("streams", u64::from(self.streams), 0, 4096)?;
        within("stream_after_commands", u64::from(self.stream_after_commands), 1, 1024)?;
        if u128::from(self.prefetch_bytes) * u128::from(self.streams) > u128::from(self.read_bytes) {
            let what = "read_bytes can't hold so much for each of the streams: it would be lost before it is read";
            return Err(SpecError::of("prefetch_bytes", what));
        }
        check_marks(self.high_percent, self.low_percent)?;
        within("dirty_ns_max", self.dirty_ns_max, 0, WORK_NS_MAX)?;
        within("destages_max", u64::from(self.destages_max), 1, 65_536)?;
        if let Some(mirror) = &self.mirror {
            within("mirror.latency_ns", mirror.latency_ns, 0, WORK_NS_MAX)?;
            rate("mirror.bytes_per_s", mirror.bytes_per_s)?;
        }
        Ok(())
    }
}
