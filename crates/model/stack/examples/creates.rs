//! What making files in a simulated XFS costs in wall time:
//! `cargo run --release -p iolab-stack --example creates [NAME...]`.
//!
//! A line for each load: name, wall seconds, files, simulated seconds, wall ns a file.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock or a file; its measurement has to.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use stack::machine::MachineSpec;
use stack::model::{AnyPhase, Model, ObservedPhase, Probes};

const FILES: u64 = 1_000_000;
const LOADS: [(&str, &str, u64); 3] = [
    ("a million creates, one thread", "3.3", 1),
    ("a million creates, one thread, workqueue", "3.4", 1),
    ("a million creates, eight threads, workqueue", "3.4", 8),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for (name, kernel, threads) in LOADS {
        if wanted.is_empty() || wanted.iter().any(|part| name == part) {
            run(name, kernel, threads);
        }
    }
}

fn run(name: &str, kernel: &str, threads: u64) {
    let machine = MachineSpec::from_json(machine(kernel)).expect("a machine of the project");
    let mut model = Model::new(&machine).expect("it can be built");
    let phase = serde_json::from_value(phase(threads)).expect("a good phase");
    let began = Instant::now();
    model
        .begin(ObservedPhase { phase: AnyPhase::Metadata(phase), probes: Probes::default() })
        .expect("a possible phase");
    model.run(|_| true);
    let simulated_s = model.end(0, "release").phase.elapsed_ns() as f64 / 1e9;
    let wall_s = began.elapsed().as_secs_f64();
    model.check().expect("the model keeps its invariants");
    let each_ns = wall_s * 1e9 / FILES as f64;
    println!("{name}\t{wall_s:.3}\t{FILES}\t{simulated_s:.1}\t{each_ns:.0}");
}

fn machine(kernel: &str) -> Value {
    let read = |name: &str| -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines").join(name);
        let text = std::fs::read_to_string(path).expect("a file of the project");
        toml::from_str(&text).expect("TOML")
    };
    let mut machine = read("xfs-8p.toml");
    machine["kernel"] = kernel.into();
    let device = machine["drives"][0]["device"].as_str().expect("a name").to_owned();
    machine["drives"][0]["device"] = read(&format!("devices/{device}.toml"));
    machine
}

fn phase(threads: u64) -> Value {
    let thread = |number: u64| {
        json!({
            "directory": format!("directory.{number}"), "paths": "full", "cpus": null,
            "job": {
                "name": format!("thread.{number}"), "files": FILES / threads, "file_bytes": 0, "write_bytes": 1,
                "sync": "none", "keep": true, "until_full": false,
                "subdirectories": { "count": 225, "first": 3, "next_after": { "files": 22_500 } },
                "names": { "bytes": 40, "random_bytes": 24, "first": number, "step": threads }, "seed": number + 1
            }
        })
    };
    json!({ "name": "creates", "threads": (0..threads).map(thread).collect::<Vec<_>>() })
}
