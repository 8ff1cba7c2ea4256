//! A small disk for tests, whose times can be reckoned by hand.

use super::{Cache, DiskSpec, Order, Queue, Seek, Zone};

/// 100 cylinders of two surfaces and 200 of two, 10 ms a revolution.
pub fn test_disk() -> DiskSpec {
    DiskSpec {
        revolutions_per_minute: 6000,
        surfaces: 2,
        zones: vec![Zone { cylinders: 100, sectors_per_track: 100 }, Zone { cylinders: 200, sectors_per_track: 80 }],
        seeks: vec![Seek { cylinders: 1, time_ns: 1_000_000 }, Seek { cylinders: 100, time_ns: 5_000_000 }],
        head_switch_ns: 1_000_000,
        write_settle_ns: 500_000,
        command_read_ns: 100_000,
        command_write_ns: 100_000,
        turnaround_ns: 0,
        hit_read_ns: 50_000,
        hit_write_ns: 50_000,
        interface_bytes_per_s: 100_000_000,
        cache: Cache {
            segments: 4,
            segment_sectors: 200,
            read_ahead_sectors: 200,
            read_ahead_min_sectors: 0,
            write_back: false,
            dirty_sectors_max: 400,
        },
        queue: Queue { depth: 32, order: Order::ShortestPositioning, age_limit_ns: 1_000_000_000 },
    }
}
