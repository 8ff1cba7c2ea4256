//! What a request through the whole stack costs in wall time, tasks and block layer included, past the page cache:
//! `cargo run --release -p iolab-stack --example whole_stack [NAME...]`.
//!
//! Lines as those of the example `cost`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock or a file; its measurement has to.

use std::path::PathBuf;
use std::time::Instant;

use events::time::SECOND;
use serde_json::{Value, json};
use stack::machine::MachineSpec;
use stack::world::{FileLayout, FileSpec, GroupSpec, Path, PhaseSpec};
use workload::spec::{JobBounds, JobSpec, Pattern};
use workload::timeline::totals;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for load in LOADS {
        if wanted.is_empty() || wanted.iter().any(|part| load.name.contains(part.as_str())) {
            run(load);
        }
    }
}

/// A task for each drive and number, at random over the whole drive.
struct Load {
    name: &'static str,
    device: &'static str,
    change: fn(&mut Value),
    writes: bool,
    scheduler: &'static str,
    drives: u32,
    tasks_per_drive: u32,
    depth: u32,
    bytes: u32,
    /// How much of the drive.
    within_bytes: u64,
    ends: End,
}

#[derive(Clone, Copy)]
enum End {
    Seconds(u64),
    /// The drive written once, as a day's writes are counted (DWPD).
    DriveWrite,
}

const LOADS: &[Load] = &[
    Load {
        name: "array hits through CFQ, 8 tasks",
        device: "eva_raid5",
        change: as_it_is,
        writes: false,
        scheduler: "cfq",
        drives: 1,
        tasks_per_drive: 8,
        depth: 1,
        bytes: 4096,
        within_bytes: 64 << 20,
        ends: End::Seconds(60),
    },
    Load {
        name: "array reads through CFQ, 8 tasks",
        device: "eva_raid5",
        change: as_it_is,
        writes: false,
        scheduler: "cfq",
        drives: 1,
        tasks_per_drive: 8,
        depth: 1,
        bytes: 4096,
        within_bytes: u64::MAX,
        ends: End::Seconds(900),
    },
    Load {
        name: "144 disks at random through noop",
        device: "scsi_10k_2003",
        change: as_it_is,
        writes: false,
        scheduler: "noop",
        drives: 144,
        tasks_per_drive: 1,
        depth: 128,
        bytes: 256 << 10,
        within_bytes: u64::MAX,
        ends: End::Seconds(180),
    },
    Load {
        name: "a day of writes to a terabyte drive",
        device: "nvme_mqsim",
        change: steady_terabyte,
        writes: true,
        scheduler: "noop",
        drives: 1,
        tasks_per_drive: 1,
        depth: 32,
        bytes: 128 << 10,
        within_bytes: u64::MAX,
        ends: End::DriveWrite,
    },
];

fn as_it_is(_: &mut Value) {}

/// 952 GiB in pages and units of 16 KiB, after a long run of random writes.
fn steady_terabyte(device: &mut Value) {
    device["geometry"]["page_bytes"] = (16 << 10).into();
    device["firmware"]["unit_bytes"] = (16 << 10).into();
    device["firmware"]["steady"] = "random".into();
}

fn run(load: &Load) {
    let spec = MachineSpec::from_json(machine(load)).expect("a possible machine");
    let device_bytes = spec.drive_sectors(0).expect("a drive") * 512;
    let mut machine = spec.build().expect("it builds");
    let mut files = Vec::new();
    let mut groups = Vec::new();
    for drive in 0..load.drives {
        files.push(machine.add_file(FileSpec {
            name: format!("drive{drive}"),
            drive: drive as usize,
            size_bytes: device_bytes,
            place: FileLayout::Contiguous(0),
        }));
        for _ in 0..load.tasks_per_drive {
            let seed = groups.len() as u64;
            groups.push(GroupSpec {
                polls: false,
                batch: None,
                cpus: None,
                path: if load.depth == 1 { Path::Direct } else { Path::DirectAsync },
                cgroup: 0,
                priority: block_layer::Priority::default(),
                jobs: vec![job(load, drive, device_bytes, seed)],
            });
        }
    }
    machine
        .begin_phase(&PhaseSpec {
            groups,
            files,
            warm_up_ns: 0,
            interval_ns: 10 * SECOND,
            ends_with_first: false,
            stops_with: None,
            seed: 1,
        })
        .expect("a possible phase");
    let began = Instant::now();
    machine.run(|_| true);
    let wall_s = began.elapsed().as_secs_f64();
    machine.check().expect("the model's invariants hold");
    let simulated_s = machine.elapsed_ns() as f64 / SECOND as f64;
    let results = machine.end_phase();
    let jobs = results.groups.iter().flat_map(|group| &group.jobs);
    let requests: u64 = jobs
        .map(|job| totals(&job.intervals, 0))
        .map(|done| done.read.latency.count() + done.write.latency.count())
        .sum();
    if load.drives > 1 || load.writes {
        println!("{}\t{wall_s:.2}\ts\t{requests} requests in {simulated_s:.0} s", load.name);
    } else {
        println!(
            "{}\t{:.3}\tM requests/s\t{:.0} IOPS",
            load.name,
            requests as f64 / wall_s / 1e6,
            requests as f64 / simulated_s,
        );
    }
}

fn machine(load: &Load) -> Value {
    let drive = json!({
        "device": device(load),
        "scheduler": { "name": load.scheduler },
        "queue": { "nr_requests": 128 },
    });
    json!({
        "kernel": "2.6.35",
        "cpus": {
            "count": 8,
            "time_slice_ns": 100_000_000,
            "call_ns": 2000,
            "completion_ns": 3000,
            "page_copy_ns": 1500,
            "jitter": 0.05,
        },
        "drives": vec![drive; load.drives as usize],
    })
}

fn device(load: &Load) -> Value {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../machines/devices");
    let path = folder.join(format!("{}.toml", load.device));
    let text = std::fs::read_to_string(path).expect("a device file");
    let mut device: Value = toml::from_str(&text).expect("TOML");
    (load.change)(&mut device);
    if device["kind"] == "disk" {
        device["queue"]["depth"] = load.depth.into();
    }
    device
}

fn job(load: &Load, file: u32, device_bytes: u64, seed: u64) -> JobSpec {
    let bytes = u64::from(load.bytes);
    let within = device_bytes.min(load.within_bytes) / bytes * bytes;
    let bounds = match load.ends {
        End::Seconds(seconds) => JobBounds::of_time(seconds * SECOND),
        End::DriveWrite => JobBounds::of_ops(within / bytes),
    };
    JobSpec {
        pattern: Pattern::Uniform,
        queue_depth: load.depth,
        seed,
        read_share: if load.writes { 0.0 } else { 1.0 },
        ..JobSpec::reads(file, load.bytes, within, bounds)
    }
}
