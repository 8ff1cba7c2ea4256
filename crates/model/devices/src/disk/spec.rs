//! A disk as its data sheet, or a measurement, gives it.

use serde::Deserialize;

use crate::limits::{QUEUE_DEPTH_MAX, queue_depth, rate};
use block_layer::Sector;
use events::SpecError;
use events::spec_error::{RATE, within};

/// Everything about a disk; a machine file's `[[devices]]` of kind `disk`. Times in nanoseconds, sectors of 512 bytes.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Rotational speed, in 1/min.
    #[schemars(range(min = 60, max = 100_000))]
    pub revolutions_per_minute: u32,
    /// Tracks of a cylinder, one head each.
    #[schemars(range(min = 1, max = 64))]
    pub surfaces: u32,
    /// From the outer edge inwards.
    pub zones: Vec<Zone>,
    /// Points of the seek curve in rising order of distance; between them it is interpolated in the logarithm of the
    /// distance (docs/model/sources/disks.md#disks), beyond the last it stays level.
    pub seeks: Vec<Seek>,
    /// To another surface of the same cylinder.
    #[schemars(range(max = MOVE_NS_MAX))]
    pub head_switch_ns: u64,
    /// What a write needs to settle on its track, beyond a read, after the arm or the head has changed.
    #[schemars(range(max = MOVE_NS_MAX))]
    pub write_settle_ns: u64,
    /// From taking a command to moving the arm.
    #[schemars(range(max = MOVE_NS_MAX))]
    pub command_read_ns: u64,
    /// The same of writes.
    #[schemars(range(max = MOVE_NS_MAX))]
    pub command_write_ns: u64,
    /// Between two transfers of which the second does not continue the first, at least this long passes, commands
    /// waiting or not.
    #[serde(default)]
    #[schemars(range(max = MOVE_NS_MAX))]
    pub turnaround_ns: u64,
    /// The time of a command that the cache serves.
    #[schemars(range(max = MOVE_NS_MAX))]
    pub hit_read_ns: u64,
    /// The same of a write that the cache takes.
    #[schemars(range(max = MOVE_NS_MAX))]
    pub hit_write_ns: u64,
    /// Rate at which data cross the interface, one command after the other.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub interface_bytes_per_s: u64,
    /// The disk's own memory.
    pub cache: Cache,
    /// How commands wait for the mechanism.
    pub queue: Queue,
}

/// Neighbouring cylinders with tracks of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// How many there are.
    #[schemars(range(min = 1, max = CYLINDERS_MAX))]
    pub cylinders: u32,
    /// Sectors of 512 bytes on each of its tracks.
    #[schemars(range(min = 1, max = 100_000))]
    pub sectors_per_track: u32,
}

/// A point of the seek curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seek {
    /// Distance, at least 1.
    #[schemars(range(min = 1, max = CYLINDERS_MAX))]
    pub cylinders: u32,
    /// Time of the seek, settling included.
    #[schemars(range(max = MOVE_NS_MAX))]
    pub time_ns: u64,
}

/// Segments for reads and read-ahead, and the write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// 0: no cache for reads.
    #[schemars(range(max = 65_536))]
    pub segments: u32,
    /// Size of a segment, in sectors of 512 bytes.
    #[schemars(range(max = 1 << 24))]
    pub segment_sectors: u32,
    /// How far it reads on after a read, while nothing else wants the arm; at most a segment.
    pub read_ahead_sectors: u32,
    /// How far it reads on whatever else waits for the arm: the minimum pre-fetch of SCSI's caching page (08h). Left out: 0,
    /// reading ahead stops at once.
    #[serde(default)]
    pub read_ahead_min_sectors: u32,
    /// Acknowledge writes from the cache.
    pub write_back: bool,
    /// Data that may wait for the medium.
    pub dirty_sectors_max: u32,
}

/// The command queue (tagged queueing or NCQ).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Commands that it takes at once.
    #[schemars(range(min = 1, max = QUEUE_DEPTH_MAX))]
    pub depth: u32,
    /// Which waiting command is next.
    pub order: Order,
    /// A command that has waited so much longer than another comes before it, however near that one is; only with
    /// `shortest_positioning`.
    #[schemars(range(max = 1_000_000_000_000_u64))]
    pub age_limit_ns: u64,
}

/// Orders in which a disk serves waiting commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// By arrival.
    FirstCome,
    /// The least time for seek and rotation together, less what waiting is worth.
    ShortestPositioning,
}

impl DiskSpec {
    /// Checks that every value lies in its range. The error names the first key whose value does not.
    pub fn check(&self) -> Result<(), SpecError> {
        within("revolutions_per_minute", u64::from(self.revolutions_per_minute), 60, 100_000)?;
        within("surfaces", u64::from(self.surfaces), 1, 64)?;
        self.check_zones()?;
        self.check_seeks()?;
        for (key, time_ns) in [
            ("head_switch_ns", self.head_switch_ns),
            ("write_settle_ns", self.write_settle_ns),
            ("command_read_ns", self.command_read_ns),
            ("command_write_ns", self.command_write_ns),
            ("turnaround_ns", self.turnaround_ns),
            ("hit_read_ns", self.hit_read_ns),
            ("hit_write_ns", self.hit_write_ns),
        ] {
            within(key, time_ns, 0, MOVE_NS_MAX)?;
        }
        rate("interface_bytes_per_s", self.interface_bytes_per_s)?;
        self.cache.check().map_err(|error| error.within("cache"))?;
        self.queue.check().map_err(|error| error.within("queue"))
    }

    fn check_zones(&self) -> Result<(), SpecError> {
        within("zones", self.zones.len() as u64, 1, 256)?;
        for (number, zone) in self.zones.iter().enumerate() {
            let key = |name: &str| format!("zones.{number}.{name}");
            within(&key("cylinders"), u64::from(zone.cylinders), 1, CYLINDERS_MAX)?;
            within(&key("sectors_per_track"), u64::from(zone.sectors_per_track), 1, 100_000)?;
        }
        if self.cylinders() > CYLINDERS_MAX {
            let what = format!("expected at most {CYLINDERS_MAX} cylinders together");
            return Err(SpecError::of("zones", what));
        }
        Ok(())
    }

    fn check_seeks(&self) -> Result<(), SpecError> {
        if self.seeks.is_empty() && self.cylinders() > 1 {
            let what = "no point; a disk of more than one cylinder needs its seek curve";
            return Err(SpecError::of("seeks", what));
        }
        for (number, seek) in self.seeks.iter().enumerate() {
            let key = |name: &str| format!("seeks.{number}.{name}");
            let cylinders = u64::from(seek.cylinders);
            within(&key("cylinders"), cylinders, 1, CYLINDERS_MAX)?;
            within(&key("time_ns"), seek.time_ns, 0, MOVE_NS_MAX)?;
        }
        for (number, pair) in self.seeks.windows(2).enumerate() {
            if pair[0].cylinders >= pair[1].cylinders || pair[0].time_ns > pair[1].time_ns {
                return Err(SpecError::of(
                    &format!("seeks.{}", number + 1),
                    "expected a longer distance, and no shorter time, than in the point before",
                ));
            }
        }
        Ok(())
    }

    /// The disk's size.
    pub(crate) fn sectors(&self) -> Sector {
        self.zones.iter().map(|zone| zone.sectors(self.surfaces)).sum()
    }

    fn cylinders(&self) -> u64 {
        self.zones.iter().map(|zone| u64::from(zone.cylinders)).sum()
    }
}

impl Zone {
    pub(super) fn sectors(&self, surfaces: u32) -> Sector {
        u64::from(self.cylinders) * u64::from(surfaces) * u64::from(self.sectors_per_track)
    }
}

const CYLINDERS_MAX: u64 = 10_000_000;

/// No arm, head or firmware takes a second.
const MOVE_NS_MAX: u64 = 1_000_000_000;

impl Cache {
    fn check(&self) -> Result<(), SpecError> {
        within("segments", u64::from(self.segments), 0, 65_536)?;
        if self.segments > 0 {
            within("segment_sectors", u64::from(self.segment_sectors), 1, 1 << 24)?;
        }
        let segment = u64::from(self.segment_sectors);
        within("read_ahead_sectors", u64::from(self.read_ahead_sectors), 0, segment)?;
        within(
            "read_ahead_min_sectors",
            u64::from(self.read_ahead_min_sectors),
            0,
            u64::from(self.read_ahead_sectors),
        )?;
        if self.write_back && self.dirty_sectors_max == 0 {
            let what = "expected at least 1 with write_back";
            return Err(SpecError::of("dirty_sectors_max", what));
        }
        Ok(())
    }
}

impl Queue {
    fn check(&self) -> Result<(), SpecError> {
        queue_depth("depth", self.depth)?;
        if self.order == Order::ShortestPositioning {
            // With no age a far command starves; with a tiny one, the order is of arrival.
            within("age_limit_ns", self.age_limit_ns, 1_000_000, 1_000_000_000_000)?;
        }
        Ok(())
    }
}
