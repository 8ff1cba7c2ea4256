//! What a request to a device costs in wall time: `cargo run --release -p iolab-devices --example device_cost [NAME...]`.
//!
//! A line for each load, or for those whose names contain one of the arguments: name, value, unit and what was simulated,
//! with tabs between.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock or a file; its measurement has to.

use std::path::PathBuf;
use std::time::Instant;

use block_layer::{Direction, Sector};
use devices::disk::{DiskSpec, Order, Queue};
use devices::{Command, Device, DeviceSpec};
use events::event_queue::EventQueue;
use events::time::{SECOND, Time};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
    for load in LOADS.iter().filter(|load| is_wanted(load.name)) {
        one_device(load);
    }
    for (name, random) in [("144 disks in sequence", false), ("144 disks at random", true)] {
        if is_wanted(name) {
            many_disks(name, random);
        }
    }
}

/// A million commands of 4 KiB at random places.
struct Load {
    name: &'static str,
    device: &'static str,
    change: fn(&mut DeviceSpec),
    direction: Direction,
    /// How much of the device.
    within: Sector,
    depth: u32,
}

const LOADS: &[Load] = &[
    Load {
        name: "disk reads at depth 1",
        device: "atlas_10k",
        change: queueing,
        direction: Direction::Read,
        within: Sector::MAX,
        depth: 1,
    },
    Load {
        name: "disk reads at depth 32",
        device: "atlas_10k",
        change: queueing,
        direction: Direction::Read,
        within: Sector::MAX,
        depth: 32,
    },
    Load {
        name: "disk writes with write cache at depth 32",
        device: "ide_7200_2003",
        change: writing_back,
        direction: Direction::Write,
        within: Sector::MAX,
        depth: 32,
    },
    Load {
        name: "lun hits at depth 32",
        device: "msa1000_lun",
        change: as_it_is,
        direction: Direction::Read,
        within: 4096,
        depth: 32,
    },
    Load {
        name: "array hits at depth 32",
        device: "eva_raid5",
        change: as_it_is,
        direction: Direction::Read,
        within: 4096,
        depth: 32,
    },
    Load {
        name: "array reads at depth 32",
        device: "eva_raid5",
        change: as_it_is,
        direction: Direction::Read,
        within: Sector::MAX,
        depth: 32,
    },
    Load {
        name: "array writes at depth 32",
        device: "eva_raid5",
        change: as_it_is,
        direction: Direction::Write,
        within: Sector::MAX,
        depth: 32,
    },
    Load {
        name: "flash reads of nothing at depth 32",
        device: "nvme_mqsim",
        change: unfilled,
        direction: Direction::Read,
        within: 4096,
        depth: 32,
    },
    Load {
        name: "flash reads at depth 32",
        device: "nvme_mqsim",
        change: as_it_is,
        direction: Direction::Read,
        within: Sector::MAX,
        depth: 32,
    },
    Load {
        name: "flash writes at depth 32",
        device: "nvme_mqsim",
        change: as_it_is,
        direction: Direction::Write,
        within: Sector::MAX,
        depth: 32,
    },
    Load {
        name: "flash writes that collect at depth 32",
        device: "nvme_mqsim",
        change: small,
        direction: Direction::Write,
        within: Sector::MAX,
        depth: 32,
    },
];

const REQUESTS: u32 = 1_000_000;

fn as_it_is(_: &mut DeviceSpec) {}

/// The disk's own queue of 1 would hide the cost of choosing.
fn queueing(spec: &mut DeviceSpec) {
    if let DeviceSpec::Disk(disk) = spec {
        disk.queue.depth = 32;
        disk.queue.order = Order::ShortestPositioning;
    }
}

fn writing_back(spec: &mut DeviceSpec) {
    queueing(spec);
    if let DeviceSpec::Disk(disk) = spec {
        disk.cache.write_back = true;
    }
}

fn unfilled(spec: &mut DeviceSpec) {
    if let DeviceSpec::Flash(flash) = spec {
        flash.firmware.filled = false;
    }
}

/// A million writes use up the spare blocks.
fn small(spec: &mut DeviceSpec) {
    if let DeviceSpec::Flash(flash) = spec {
        flash.geometry.pages_per_block = 4;
        flash.geometry.over_provision_per_mille = 200;
    }
}

fn spec(name: &str) -> DeviceSpec {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../machines/devices");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("a device file");
    toml::from_str(&text).expect("a device")
}

fn one_device(load: &Load) {
    let mut spec = spec(load.device);
    (load.change)(&mut spec);
    let mut device = spec.build().expect("a possible device");
    let mut stream = base::rng::stream(1, 0);
    let blocks = device.sectors().min(load.within) / 8;
    let (mut now, mut inside, mut left) = (0, 0, REQUESTS);
    let mut completed = Vec::new();
    let began = Instant::now();
    while left > 0 {
        while inside < load.depth && left > inside {
            let command = Command {
                tag: inside,
                direction: load.direction,
                start: stream.below(blocks) * 8,
                sectors: 8,
                force_unit_access: false,
                write_stream: 0,
            };
            device.submit(now, command);
            inside += 1;
        }
        now = device.next_event().expect("something is outstanding");
        device.advance(now, &mut completed);
        inside -= completed.len() as u32;
        left -= completed.len() as u32;
        completed.clear();
    }
    println!(
        "{}\t{:.3}\tM requests/s\t{:.0} IOPS",
        load.name,
        f64::from(REQUESTS) / began.elapsed().as_secs_f64() / 1e6,
        f64::from(REQUESTS) * SECOND as f64 / now as f64,
    );
}

const DISKS: u32 = 144;
const OUTSTANDING: u32 = 128;
const SIMULATED: Time = 180 * SECOND;

/// The load of the reports on completion affinity: reads of 256 KiB, 128 outstanding on each of 144 disks.
fn many_disks(name: &str, random: bool) {
    let DeviceSpec::Disk(disk) = spec("scsi_10k_2003") else {
        panic!("a disk's file");
    };
    let disk = DiskSpec { queue: Queue { depth: OUTSTANDING, ..disk.queue }, ..disk };
    let began = Instant::now();
    let mut disks: Vec<_> =
        (0..DISKS).map(|_| DeviceSpec::Disk(disk.clone()).build().expect("a possible disk")).collect();
    let mut streams: Vec<_> = (0..DISKS).map(|disk| base::rng::stream(1, u64::from(disk))).collect();
    let mut nexts = vec![0; DISKS as usize];
    let mut events: EventQueue<u32> = EventQueue::new();
    let (mut requests, mut completed) = (0u64, Vec::new());
    let mut submit = |disks: &mut Vec<Box<dyn Device>>, number: usize, now: Time| {
        let places = disks[number].sectors() / 512;
        let place = if random {
            streams[number].below(places)
        } else {
            nexts[number] += 1;
            nexts[number] % places
        };
        let command = Command {
            tag: 0,
            direction: Direction::Read,
            start: place * 512,
            sectors: 512,
            force_unit_access: false,
            write_stream: 0,
        };
        disks[number].submit(now, command);
    };
    let next_event =
        |disks: &[Box<dyn Device>], number: usize| disks[number].next_event().expect("something is outstanding");
    for number in 0..DISKS as usize {
        for _ in 0..OUTSTANDING {
            submit(&mut disks, number, 0);
        }
        events.put(next_event(&disks, number), number as u32);
    }
    while let Some((now, disk)) = events.take() {
        if now > SIMULATED {
            break;
        }
        let number = disk as usize;
        disks[number].advance(now, &mut completed);
        for _ in completed.drain(..) {
            requests += 1;
            submit(&mut disks, number, now);
        }
        events.put(next_event(&disks, number), disk);
    }
    println!("{name}\t{:.2}\ts\t{requests} requests of 256 KiB in 180 s", began.elapsed().as_secs_f64(),);
}
