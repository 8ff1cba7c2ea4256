//! What an I/O on a machine with detailed CPUs costs in wall time, its submission, interrupt and completion included:
//! `cargo run --release -p iolab-stack --example detailed_cpus [NAME...]`.
//!
//! Lines as those of the example `cost`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock; its measurement has to.

use std::time::Instant;

use events::time::{SECOND, Time};
use serde_json::{Value, json};
use stack::machine::MachineSpec;
use stack::world::{FileLayout, FileSpec, GroupSpec, Path, PhaseSpec, World};
use workload::spec::{JobBounds, JobSpec};
use workload::timeline::totals;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut loads = vec![Load::of_2008()];
    for nodes in [4, 16, 64, 256] {
        let many = 4 * nodes;
        loads.push(Load::of_size(nodes, many));
        if many > FEW {
            loads.push(Load::of_size(nodes, FEW));
            loads.push(Load::of_size(FEW / 4, many));
        }
    }
    for load in loads {
        if wanted.is_empty() || wanted.contains(&load.name) {
            load.run();
        }
    }
}

/// Sequential reads past the page cache, a task for each drive.
struct Load {
    name: String,
    nodes: u16,
    drives: Vec<Value>,
    depth: u32,
    bytes: u32,
    simulated_ns: Time,
    /// Wall time of one I/O, not of all.
    shows_each: bool,
}

const CAPACITY_BYTES: u64 = 64 << 30;
const FEW: u16 = 16;

impl Load {
    /// The 32-way of February 2008 with 144 disks, 128 reads of 256 KiB outstanding for each: nothing where the application
    /// is.
    fn of_2008() -> Load {
        let (nodes, disks) = (8, 144);
        let rate = (3872.0 * 1_048_576.0 / f64::from(disks)) as u64;
        let drive = |number: u16| {
            json!({
                "device": device(10_000, 32),
                "scheduler": "noop",
                "interrupt_cpu": number % (4 * nodes),
                "affinity": { "application": "other", "queue": "other", "completion": "other" },
                "peek": true,
                "dma": { "near_bytes_per_s": rate, "far_bytes_per_s": rate },
            })
        };
        Load {
            name: "32-way with 144 disks for 180 s".to_owned(),
            nodes,
            drives: (0..disks).map(drive).collect(),
            depth: 128,
            bytes: 256 << 10,
            simulated_ns: 180 * SECOND,
            shows_each: false,
        }
    }

    /// About a million I/Os, each completed by a thread in another NUMA node than its interrupt.
    fn of_size(nodes: u16, drives: u16) -> Load {
        let cpus = 4 * nodes;
        let drive = |number: u16| {
            json!({
                "device": device(1_000_000, 4),
                "scheduler": "noop",
                "interrupt_cpu": number % cpus,
                "affinity": { "application": (number + 4) % cpus },
                "queue": { "rq_affinity": 1 },
            })
        };
        Load {
            name: format!("{cpus} CPUs and {drives} drives"),
            nodes,
            drives: (0..drives).map(drive).collect(),
            depth: 4,
            bytes: 4096,
            simulated_ns: 256 * SECOND / u64::from(drives),
            shows_each: true,
        }
    }

    fn run(&self) {
        let machine = MachineSpec::from_json(self.machine()).expect("possible");
        let mut world = machine.build().expect("possible");
        let phase = self.phase(&mut world);
        let began = Instant::now();
        world.begin_phase(&phase).expect("possible");
        world.run(|_| true);
        let wall = began.elapsed();
        world.check().expect("the invariants hold");
        self.print(&mut world, wall.as_secs_f64());
    }

    fn machine(&self) -> Value {
        let mut machine: Value = serde_json::from_str(include_str!("../tests/cpus_of_2008.json")).expect("JSON");
        let cpus = &mut machine["cpus"];
        cpus["topology"] = json!({
            "numa_nodes": self.nodes, "sockets_per_node": 4, "cores_per_socket": 1, "threads_per_core": 1
        });
        cpus["reap_cycles"] = json!(0);
        cpus["page_copy_cycles"] = json!(0);
        machine["kernel"] = json!("2.6.24-kthread");
        machine["drives"] = json!(self.drives);
        machine
    }

    fn phase(&self, world: &mut World) -> PhaseSpec {
        let files: Vec<u32> = (0..self.drives.len())
            .map(|drive| {
                world.add_file(FileSpec {
                    name: String::new(),
                    drive,
                    size_bytes: CAPACITY_BYTES,
                    place: FileLayout::Contiguous(0),
                })
            })
            .collect();
        let group = |&file: &u32| GroupSpec {
            polls: false,
            batch: None,
            path: Path::DirectAsync,
            cgroup: 0,
            priority: Default::default(),
            cpus: None,
            jobs: vec![self.job(file)],
        };
        PhaseSpec {
            groups: files.iter().map(group).collect(),
            files,
            warm_up_ns: 0,
            interval_ns: SECOND,
            ends_with_first: false,
            stops_with: None,
            seed: 1,
        }
    }

    fn job(&self, file: u32) -> JobSpec {
        JobSpec {
            queue_depth: self.depth,
            seed: u64::from(file),
            ..JobSpec::reads(file, self.bytes, CAPACITY_BYTES, JobBounds::of_time(self.simulated_ns))
        }
    }

    fn print(&self, world: &mut World, wall_s: f64) {
        let simulated_s = world.now() as f64 / SECOND as f64;
        let results = world.end_phase();
        let jobs = results.groups.iter().flat_map(|group| &group.jobs);
        let reads: u64 = jobs.map(|job| totals(&job.intervals, 0).read.latency.count()).sum();
        if self.shows_each {
            let ns = wall_s * 1e9 / reads as f64;
            println!("{}\t{ns:.0}\tns an I/O\t{reads} in {simulated_s:.3} s", self.name);
        } else {
            println!("{}\t{wall_s:.2}\ts\t{reads} in {simulated_s:.1} s", self.name);
        }
    }
}

fn device(latency_ns: u64, queue_depth: u32) -> Value {
    json!({
        "kind": "null", "capacity_bytes": CAPACITY_BYTES, "latency_ns": latency_ns, "queue_depth": queue_depth
    })
}
