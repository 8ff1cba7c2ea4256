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

/// A task for each drive and number, reading at random from the whole drive.
struct Load {
    name: &'static str,
    device: &'static str,
    scheduler: &'static str,
    drives: u32,
    tasks_per_drive: u32,
    depth: u32,
    bytes: u32,
    /// How much of the drive.
    within_bytes: u64,
    simulated_s: u64,
}

const LOADS: &[Load] = &[
    Load {
        name: "array hits through CFQ, 8 tasks",
        device: "eva_raid5",
        scheduler: "cfq",
        drives: 1,
        tasks_per_drive: 8,
        depth: 1,
        bytes: 4096,
        within_bytes: 64 << 20,
        simulated_s: 60,
    },
    Load {
        name: "array reads through CFQ, 8 tasks",
        device: "eva_raid5",
        scheduler: "cfq",
        drives: 1,
        tasks_per_drive: 8,
        depth: 1,
        bytes: 4096,
        within_bytes: u64::MAX,
        simulated_s: 900,
    },
    Load {
        name: "144 disks at random through noop",
        device: "scsi_10k_2003",
        scheduler: "noop",
        drives: 144,
        tasks_per_drive: 1,
        depth: 128,
        bytes: 256 << 10,
        within_bytes: u64::MAX,
        simulated_s: 180,
    },
];

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
                cpus: None,
                path: if load.depth == 1 {
                    Path::Direct
                } else {
                    Path::DirectAsync
                },
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
    let results = machine.end_phase();
    let jobs = results.groups.iter().flat_map(|group| &group.jobs);
    let reads: u64 = jobs
        .map(|job| totals(&job.intervals, 0).read.latency.count())
        .sum();
    if load.drives > 1 {
        println!(
            "{}\t{wall_s:.2}\ts\t{reads} requests in {} s",
            load.name, load.simulated_s
        );
    } else {
        println!(
            "{}\t{:.3}\tM requests/s\t{:.0} IOPS",
            load.name,
            reads as f64 / wall_s / 1e6,
            reads as f64 / load.simulated_s as f64,
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
    if device["kind"] == "disk" {
        device["queue"]["depth"] = load.depth.into();
    }
    device
}

fn job(load: &Load, file: u32, device_bytes: u64, seed: u64) -> JobSpec {
    let bytes = u64::from(load.bytes);
    JobSpec {
        pattern: Pattern::Uniform,
        queue_depth: load.depth,
        seed,
        ..JobSpec::reads(
            file,
            load.bytes,
            device_bytes.min(load.within_bytes) / bytes * bytes,
            JobBounds::of_time(load.simulated_s * SECOND),
        )
    }
}
