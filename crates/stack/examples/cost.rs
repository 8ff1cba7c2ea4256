//! What a request costs in wall time: `cargo run --release -p iolab-stack --example cost`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock or a file; its measurement has to.

use std::path::PathBuf;
use std::time::Instant;

use stack::agenda::Agenda;
use stack::block::{Direction, Sector};
use stack::device::disk::DiskSpec;
use stack::device::{Command, Device, DeviceSpec};
use stack::time::{SECOND, Time};

fn main() {
    for depth in [1, 32] {
        let deeper = |spec: &mut DeviceSpec| {
            if let DeviceSpec::Disk(disk) = spec {
                disk.queue.depth = 32;
                disk.queue.order = stack::device::disk::Order::ShortestPositioning;
            }
        };
        let mut disk = device("atlas_10k", deeper);
        random(
            "disk, random 4 KiB reads",
            &mut *disk,
            Direction::Read,
            Sector::MAX,
            depth,
        );
    }
    random(
        "lun, 4 KiB reads in 2 MiB",
        &mut *device("msa1000_lun", |_| ()),
        Direction::Read,
        4096,
        32,
    );
    random(
        "array, 4 KiB reads in 2 MiB",
        &mut *device("eva_raid5", |_| ()),
        Direction::Read,
        4096,
        32,
    );
    random(
        "array, random 4 KiB reads",
        &mut *device("eva_raid5", |_| ()),
        Direction::Read,
        Sector::MAX,
        32,
    );
    random(
        "array, random 4 KiB writes",
        &mut *device("eva_raid5", |_| ()),
        Direction::Write,
        Sector::MAX,
        32,
    );
    random(
        "flash, reads of what was never written",
        &mut *device("nvme_mqsim", unfilled),
        Direction::Read,
        4096,
        32,
    );
    random(
        "flash, random 4 KiB reads",
        &mut *device("nvme_mqsim", |_| ()),
        Direction::Read,
        Sector::MAX,
        32,
    );
    random(
        "flash, random 4 KiB writes",
        &mut *device("nvme_mqsim", |_| ()),
        Direction::Write,
        Sector::MAX,
        32,
    );
    for (name, random) in [("in sequence", false), ("at random", true)] {
        many_disks(name, random);
    }
}

const REQUESTS: u32 = 1_000_000;

fn unfilled(spec: &mut DeviceSpec) {
    if let DeviceSpec::Flash(flash) = spec {
        flash.firmware.filled = false;
    }
}

fn device(name: &str, change: impl FnOnce(&mut DeviceSpec)) -> Box<dyn Device> {
    let mut spec = spec(name);
    change(&mut spec);
    spec.build().expect("a possible device")
}

fn spec(name: &str) -> DeviceSpec {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../machines/devices");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("a device file");
    toml::from_str(&text).expect("a device")
}

fn random(what: &str, device: &mut dyn Device, direction: Direction, within: Sector, depth: u32) {
    let mut stream = workload::rng::stream(1, 0);
    let blocks = device.sectors().min(within) / 8;
    let (mut now, mut inside, mut left) = (0, 0, REQUESTS);
    let mut completed = Vec::new();
    let began = Instant::now();
    while left > 0 {
        while inside < depth && left > inside {
            let command = Command {
                tag: inside,
                direction,
                start: stream.below(blocks) * 8,
                sectors: 8,
                force_unit_access: false,
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
        "{what}, depth {depth}: {:.2} M requests/s of wall time ({:.0} IOPS simulated)",
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
    let disk = DiskSpec {
        queue: stack::device::disk::Queue {
            depth: OUTSTANDING,
            ..disk.queue
        },
        ..disk
    };
    let mut disks: Vec<_> = (0..DISKS)
        .map(|_| {
            DeviceSpec::Disk(disk.clone())
                .build()
                .expect("a possible disk")
        })
        .collect();
    let mut streams: Vec<_> = (0..DISKS)
        .map(|disk| workload::rng::stream(1, u64::from(disk)))
        .collect();
    let mut nexts = vec![0; DISKS as usize];
    let mut agenda: Agenda<u32> = Agenda::new();
    let (mut requests, mut completed) = (0u64, Vec::new());
    let began = Instant::now();
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
        };
        disks[number].submit(now, command);
    };
    for number in 0..DISKS as usize {
        for _ in 0..OUTSTANDING {
            submit(&mut disks, number, 0);
        }
        agenda.put(
            disks[number]
                .next_event()
                .expect("something is outstanding"),
            number as u32,
        );
    }
    while let Some((now, disk)) = agenda.take() {
        if now > SIMULATED {
            break;
        }
        let number = disk as usize;
        disks[number].advance(now, &mut completed);
        for _ in completed.drain(..) {
            requests += 1;
            submit(&mut disks, number, now);
        }
        agenda.put(
            disks[number]
                .next_event()
                .expect("something is outstanding"),
            disk,
        );
    }
    println!(
        "{DISKS} disks, {OUTSTANDING} reads of 256 KiB outstanding on each, {name}, 180 s: {:.2} s of wall time ({requests} requests)",
        began.elapsed().as_secs_f64(),
    );
}
