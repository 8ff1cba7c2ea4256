//! What a request costs in wall time: `cargo run --release -p iolab-stack --example cost`.

#![allow(clippy::disallowed_types)] // The model must not look at a clock; its measurement has to.

use std::time::Instant;

use stack::block::Direction;
use stack::device::disk::{Cache, Disk, DiskSpec, Order, Queue, Seek, Zone};
use stack::device::{Command, Device};

const REQUESTS: u32 = 1_000_000;

fn main() {
    for depth in [1, 32] {
        let began = Instant::now();
        let simulated_ns = random_reads(depth);
        let wall_s = began.elapsed().as_secs_f64();
        println!(
            "disk, random 4 KiB reads, depth {depth}: {:.2} M requests/s of wall time ({} IOPS simulated)",
            f64::from(REQUESTS) / wall_s / 1e6,
            (f64::from(REQUESTS) / (simulated_ns as f64 / 1e9)).round(),
        );
    }
}

fn random_reads(depth: u32) -> u64 {
    let mut disk = Disk::new(&atlas_10k()).expect("a possible disk");
    let mut stream = workload::rng::stream(1, 0);
    let blocks = disk.sectors() / 8;
    let (mut now, mut submitted, mut left) = (0, 0, REQUESTS);
    let mut completed = Vec::new();
    while left > 0 {
        while submitted < depth && left > submitted {
            disk.submit(
                now,
                Command {
                    tag: submitted,
                    direction: Direction::Read,
                    start: stream.below(blocks) * 8,
                    sectors: 8,
                    force_unit_access: false,
                },
            );
            submitted += 1;
        }
        now = disk.next_event().expect("something is outstanding");
        disk.advance(now, &mut completed);
        submitted -= completed.len() as u32;
        left -= completed.len() as u32;
        completed.clear();
    }
    now
}

/// The 1999 Atlas 10K of the note on disk models.
fn atlas_10k() -> DiskSpec {
    let seeks = [
        (1, 1.25),
        (90, 1.97),
        (1000, 3.82),
        (4900, 6.82),
        (8200, 9.12),
        (10_041, 10.8),
    ];
    DiskSpec {
        revolutions_per_minute: 10_025,
        surfaces: 6,
        zones: (0..24u32)
            .map(|n| Zone {
                cylinders: 418,
                sectors_per_track: 334 - n * 105 / 23,
            })
            .collect(),
        seeks: seeks
            .map(|(cylinders, ms): (u32, f64)| Seek {
                cylinders,
                time_ns: (ms * 1e6) as u64,
            })
            .to_vec(),
        head_switch_ns: 176_000,
        write_settle_ns: 487_000,
        command_read_ns: 200_000,
        command_write_ns: 200_000,
        hit_read_ns: 180_000,
        hit_write_ns: 190_000,
        interface_bytes_per_s: 160_000_000,
        cache: Cache {
            segments: 10,
            segment_sectors: 374,
            read_ahead_sectors: 354,
            write_back: false,
            dirty_sectors_max: 374,
        },
        queue: Queue {
            depth: 32,
            order: Order::ShortestPositioning,
            age_limit_ns: 500_000_000,
        },
    }
}
