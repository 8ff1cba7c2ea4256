//! What a call of the NFS/RDMA client costs in wall time, tasks and CPUs included: a million WRITEs of 1 KiB by twelve threads,
//! mapped and pulled up: `cargo run --release -p iolab-stack --example nfs_calls [NAME]`.
//!
//! Lines as those of the example `cost`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock or a file; its measurement has to.

use std::path::PathBuf;
use std::time::Instant;

use events::time::SECOND;
use serde_json::{Value, json};
use stack::machine::MachineSpec;
use stack::world::{FileLayout, FileSpec, GroupSpec, Path, PhaseSpec};
use workload::spec::{JobBounds, JobSpec};

const THREADS: u32 = 12;
const CALLS: u64 = 1_000_000;
const RECORD_BYTES: u32 = 1024;

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (name, kernel) in
        [("a million NFS/RDMA calls, mapped", "before"), ("a million NFS/RDMA calls, pulled up", "after")]
    {
        if name.contains(&wanted) {
            println!("{name}\t{:.2}\ts", wall_s(kernel));
        }
    }
}

fn wall_s(kernel: &str) -> f64 {
    let spec = MachineSpec::from_json(machine(kernel)).expect("a possible machine");
    let mut machine = spec.build().expect("it builds");
    let ops = CALLS.div_ceil(u64::from(THREADS));
    let files = (0..THREADS)
        .map(|thread| {
            machine.add_file(FileSpec {
                name: format!("thread.{thread}"),
                drive: 0,
                size_bytes: ops * u64::from(RECORD_BYTES),
                place: FileLayout::Mounted,
            })
        })
        .collect();
    let groups = (0..THREADS).map(|thread| GroupSpec {
        polls: false,
        batch: None,
        cpus: None,
        path: Path::Direct,
        cgroup: 0,
        priority: block_layer::Priority::default(),
        jobs: vec![writes(thread, ops)],
    });
    machine
        .begin_phase(&PhaseSpec {
            groups: groups.collect(),
            files,
            warm_up_ns: 0,
            interval_ns: SECOND,
            ends_with_first: false,
            stops_with: None,
            seed: 1,
        })
        .expect("a possible phase");
    let began = Instant::now();
    machine.run(|_| true);
    let wall_s = began.elapsed().as_secs_f64();
    machine.check().expect("the model's invariants hold");
    wall_s
}

fn machine(kernel: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../machines/mounts/nfs-rdma.toml");
    let text = std::fs::read_to_string(path).expect("a mount's file");
    let mut mount: Value = toml::from_str(&text).expect("TOML");
    mount["transport"]["kernel"] = kernel.into();
    json!({
        "kernel": "5.4",
        "cpus": {
            "count": THREADS,
            "time_slice_ns": 4_000_000,
            "call_ns": 0,
            "completion_ns": 0,
            "page_copy_ns": 0,
            "jitter": 0.0,
        },
        "mounts": [mount],
    })
}

fn writes(file: u32, ops: u64) -> JobSpec {
    JobSpec {
        read_share: 0.0,
        seed: u64::from(file),
        ..JobSpec::reads(file, RECORD_BYTES, ops * u64::from(RECORD_BYTES), JobBounds::of_ops(ops))
    }
}
