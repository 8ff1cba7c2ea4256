//! A disk as its data sheet, or a measurement, gives it.

use serde::Deserialize;

/// Everything about a disk; a machine file's `[[devices]]` of kind `disk`. Times in nanoseconds, sectors of 512 bytes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    pub revolutions_per_minute: u32,
    pub surfaces: u32,
    /// From the outer edge inwards.
    pub zones: Vec<Zone>,
    /// Points of the seek curve in rising order of distance; between them it is interpolated in the logarithm of the
    /// distance (note on disk models), beyond the last it stays level.
    pub seeks: Vec<Seek>,
    /// To another surface of the same cylinder.
    pub head_switch_ns: u64,
    /// What a write needs to settle on its track, beyond a read, after the arm or the head has changed.
    pub write_settle_ns: u64,
    /// From taking a command to moving the arm.
    pub command_read_ns: u64,
    pub command_write_ns: u64,
    /// Of a command that the cache serves.
    pub hit_read_ns: u64,
    pub hit_write_ns: u64,
    pub interface_bytes_per_s: u64,
    pub cache: Cache,
    pub queue: Queue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    pub cylinders: u32,
    pub sectors_per_track: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seek {
    pub cylinders: u32,
    pub time_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// 0: no cache for reads.
    pub segments: u32,
    pub segment_sectors: u32,
    /// How far it reads on after a sequential read, while nothing else wants the arm; at most a segment.
    pub read_ahead_sectors: u32,
    /// Acknowledge writes from the cache.
    pub write_back: bool,
    /// Data that may wait for the medium.
    pub dirty_sectors_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Commands that it takes at once.
    pub depth: u32,
    pub order: Order,
    /// A command that has waited this long comes before shorter ways; only with `shortest_positioning`.
    pub age_limit_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    FirstCome,
    ShortestPositioning,
}

/// What makes a disk impossible: the key, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct Impossible {
    pub key: String,
    pub what: String,
}

impl DiskSpec {
    pub fn check(&self) -> Result<(), Impossible> {
        let wrong = |key: &str, what: &str| {
            Err(Impossible {
                key: key.to_owned(),
                what: what.to_owned(),
            })
        };
        if !(60..=100_000).contains(&self.revolutions_per_minute) {
            return wrong("revolutions_per_minute", "expected 60 to 100000");
        }
        if !(1..=64).contains(&self.surfaces) {
            return wrong("surfaces", "expected 1 to 64");
        }
        if self.zones.is_empty() || self.zones.len() > 256 {
            return wrong("zones", "expected 1 to 256 zones");
        }
        for (number, zone) in self.zones.iter().enumerate() {
            if !(1..=10_000_000).contains(&zone.cylinders) {
                return wrong(
                    &format!("zones[{number}].cylinders"),
                    "expected 1 to 10000000",
                );
            }
            if !(1..=100_000).contains(&zone.sectors_per_track) {
                return wrong(
                    &format!("zones[{number}].sectors_per_track"),
                    "expected 1 to 100000",
                );
            }
        }
        let cylinders: u64 = self
            .zones
            .iter()
            .map(|zone| u64::from(zone.cylinders))
            .sum();
        if cylinders > 10_000_000 {
            return wrong("zones", "expected at most 10000000 cylinders together");
        }
        if self.seeks.is_empty() && cylinders > 1 {
            return wrong(
                "seeks",
                "no point; a disk of more than one cylinder needs its seek curve",
            );
        }
        for (number, pair) in self.seeks.windows(2).enumerate() {
            if pair[0].cylinders >= pair[1].cylinders || pair[0].time_ns > pair[1].time_ns {
                let key = format!("seeks[{}]", number + 1);
                return wrong(
                    &key,
                    "expected a longer distance, and no shorter time, than in the point before",
                );
            }
        }
        if self.seeks.first().is_some_and(|first| first.cylinders == 0) {
            return wrong(
                "seeks[0].cylinders",
                "expected at least 1: no distance is no seek",
            );
        }
        for (key, time_ns) in [
            ("seeks", self.seeks.last().map_or(0, |last| last.time_ns)),
            ("head_switch_ns", self.head_switch_ns),
            ("write_settle_ns", self.write_settle_ns),
            ("command_read_ns", self.command_read_ns),
            ("command_write_ns", self.command_write_ns),
            ("hit_read_ns", self.hit_read_ns),
            ("hit_write_ns", self.hit_write_ns),
        ] {
            if time_ns >= 10_000_000_000 {
                return wrong(key, "expected less than 10 s");
            }
        }
        if !(1_000_000..=1_000_000_000_000).contains(&self.interface_bytes_per_s) {
            return wrong("interface_bytes_per_s", "expected 1 MB/s to 1 TB/s");
        }
        if self.cache.segments > 65_536 {
            return wrong("cache.segments", "expected at most 65536");
        }
        if self.cache.segments > 0 && !(1..=1 << 24).contains(&self.cache.segment_sectors) {
            return wrong("cache.segment_sectors", "expected 1 to 16777216");
        }
        if self.cache.read_ahead_sectors > self.cache.segment_sectors {
            return wrong(
                "cache.read_ahead_sectors",
                "expected at most segment_sectors",
            );
        }
        if self.cache.write_back && self.cache.dirty_sectors_max == 0 {
            return wrong(
                "cache.dirty_sectors_max",
                "expected at least 1 with write_back",
            );
        }
        if !(1..=65_536).contains(&self.queue.depth) {
            return wrong("queue.depth", "expected 1 to 65536");
        }
        Ok(())
    }
}
