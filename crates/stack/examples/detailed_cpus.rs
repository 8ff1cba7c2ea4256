//! Machines whose CPUs are modelled in detail, and what a run of theirs costs in wall time:
//! `cargo run --release -p iolab-stack --example detailed_cpus [NAME...]`.
//!
//! A line for each load: name, wall seconds, operations, simulated seconds, wall ns an operation, and of the machine MB/s.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock; its measurement has to.

use std::time::Instant;

use serde_json::{Value, json};
use stack::machine::MachineSpec;
use stack::smp::Context;
use stack::time::SECOND;
use stack::world::{FileSpec, GroupSpec, Path, PhaseSpec, Place, World};
use workload::spec::{Arrival, BlockSize, FileOrder, JobSpec, Pattern, Until};
use workload::timeline::totals;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut loads = vec![
        Load::cached("2.6.24", 0),
        Load::cached("2.6.24-remote-softirq", 0),
        Load::cached("2.6.24-remote-softirq", 1),
        Load::cached("2.6.24-kthread", 0),
        Load::cached("2.6.24-kthread", 1),
        Load::of_2008("16-way with 24 disks for 180 s", 4, 24, 180),
        Load::of_2008("32-way with 144 disks for 180 s", 8, 144, 180),
    ];
    loads.extend([1, 4, 16, 64, 256].map(Load::of_size));
    for load in loads {
        if wanted.is_empty() || wanted.iter().any(|part| load.name.contains(part.as_str())) {
            load.run();
        }
    }
}

/// Sequential reads past the page cache, a task for each drive.
struct Load {
    name: String,
    kernel: &'static str,
    cells: u16,
    drives: Vec<Value>,
    depth: u32,
    bytes: u32,
    within_bytes: u64,
    simulated_s: u64,
}

const CAPACITY_BYTES: u64 = 64 << 30;

impl Load {
    fn cached(kernel: &'static str, rq_affinity: u8) -> Load {
        let drive = |interrupt_cpu| {
            let queue = match rq_affinity {
                0 => json!({}),
                _ => json!({ "rq_affinity": rq_affinity }),
            };
            json!({
                "device": device(55_750, 1),
                "scheduler": "noop",
                "interrupt_cpu": interrupt_cpu,
                "affinity": { "application": "other" },
                "queue": queue,
            })
        };
        Load {
            name: format!("{kernel} rq={rq_affinity}"),
            kernel,
            cells: 1,
            drives: vec![drive(0), drive(2)],
            depth: 1,
            bytes: 4096,
            within_bytes: 2 << 20,
            simulated_s: 5,
        }
    }

    /// 128 reads of 256 KiB outstanding for each disk.
    fn of_2008(name: &str, cells: u16, disks: u16, simulated_s: u64) -> Load {
        let (near, far) = match cells {
            4 => (1575.5, 1856.5),
            _ => (3872.0, 3872.0),
        };
        let rate = |all: f64| (all * 1_048_576.0 / f64::from(disks)) as u64;
        let drive = |number: u16| {
            json!({
                "device": device(10_000, 32),
                "scheduler": "noop",
                "interrupt_cpu": number % (4 * cells),
                "affinity": { "application": "other", "queue": "other", "completion": "other" },
                "takes_one_ahead": true,
                "dma": { "near_bytes_per_s": rate(near), "far_bytes_per_s": rate(far) },
            })
        };
        Load {
            name: name.to_owned(),
            kernel: "2.6.24-kthread",
            cells,
            drives: (0..disks).map(drive).collect(),
            depth: 128,
            bytes: 256 << 10,
            within_bytes: CAPACITY_BYTES,
            simulated_s,
        }
    }

    /// As many drives as CPUs; the fewer there are, the longer it runs.
    fn of_size(cells: u16) -> Load {
        let simulated_s = (256 / u64::from(cells)).max(1);
        let cpus = 4 * cells;
        let drive = |number: u16| {
            json!({
                "device": device(1_000_000, 4),
                "scheduler": "noop",
                "interrupt_cpu": number,
                "affinity": { "application": (number + 4) % cpus },
                "queue": { "rq_affinity": 1 },
            })
        };
        Load {
            name: format!("{cpus} CPUs with {cpus} devices"),
            kernel: "2.6.24-kthread",
            cells,
            drives: (0..cpus).map(drive).collect(),
            depth: 4,
            bytes: 4096,
            within_bytes: CAPACITY_BYTES,
            simulated_s,
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
        world.check().expect("laws hold");
        self.print(&mut world, wall.as_secs_f64());
    }

    fn machine(&self) -> Value {
        json!({
            "kernel": self.kernel,
            "cpus": {
                "topology": {
                    "cells": self.cells, "sockets_per_cell": 4, "cores_per_socket": 1, "threads_per_core": 1
                },
                "clock_hz": 1_600_000_000u64,
                "transfer_cycles": [30, 100, 240, 700],
                "computing_stall_per_mille": 500,
                "interrupts": {
                    "send_cycles": 700, "latency_ns": 1_500, "latency_other_cell_ns": 2_500, "receive_cycles": 1_500
                },
                "scheduling": {
                    "time_slice_ns": 100_000_000, "preempt_after_ns": 100_000_000, "wake_cycles": 900,
                    "switch_cycles": 1_600, "task_lines": 3, "run_queue_lines": 2, "migrates_within": "machine"
                },
                "submit_cycles": if self.depth == 1 { 10_200 } else { 20_000 },
                "user_cycles": if self.depth == 1 { 345 } else { 0 },
                "reap_cycles": 0, "page_copy_cycles": 0, "jitter": 0.0
            },
            "completion": {
                "interrupt_cycles": 7_500, "interrupt_stalled_cycles": 5_300, "softirq_cycles": 300,
                "complete_cycles": 4_050, "enter_cycles": 2_000, "hand_over_cycles": 200, "splice_cycles": 200,
                "local_cycles": 4_500, "call_ns": 8_900, "shares_cache": "socket",
                "request_lines": 4, "bio_lines": 2, "control_block_lines": 7, "list_lines": 2
            },
            "drives": self.drives,
        })
    }

    fn phase(&self, world: &mut World) -> PhaseSpec {
        let files: Vec<u32> = (0..self.drives.len())
            .map(|drive| {
                world.add_file(FileSpec {
                    name: String::new(),
                    drive,
                    size_bytes: CAPACITY_BYTES,
                    place: Place::Contiguous(0),
                })
            })
            .collect();
        let group = |&file: &u32| GroupSpec {
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
            seed: 1,
        }
    }

    fn job(&self, file: u32) -> JobSpec {
        JobSpec {
            name: String::new(),
            files: vec![file],
            file_order: FileOrder::Sequential,
            pattern: Pattern::Sequential,
            read_share: 1.0,
            blocks: vec![BlockSize {
                bytes: self.bytes,
                weight: 1.0,
            }],
            align_bytes: u64::from(self.bytes),
            offset_bytes: 0,
            length_bytes: self.within_bytes,
            queue_depth: self.depth,
            arrival: Arrival::Closed {
                think_ns: 0,
                think_every: 1,
            },
            until: Until {
                ops: None,
                bytes: None,
                duration_ns: Some(self.simulated_s * SECOND),
            },
            sync: None,
            sync_at_end: false,
            seed: u64::from(file),
        }
    }

    fn print(&self, world: &mut World, wall_s: f64) {
        let now = world.now();
        let counters = world.completion_counters();
        let drives = self.drives.len() as f64;
        let (mut usage, mut stalled) = (stack::smp::Usage::default(), 0);
        let smp = world.processors().expect("detailed CPUs");
        let mut busiest = 0.0f64;
        for cpu in 0..smp.cpus() {
            usage += smp.usage(cpu);
            stalled += smp.stalls(cpu).cycles();
            let one = smp.usage(cpu);
            let idle = one.ns(Context::Idle) + one.ns(Context::IoWait);
            busiest = busiest.max(100.0 - 100.0 * idle as f64 / one.total_ns() as f64);
        }
        let share = |context| 100.0 * usage.sampled_ns(context) as f64 / usage.total_ns() as f64;
        let cycles = usage.total_ns() as f64 * 1.6;
        let results = world.end_phase();
        let (mut ops, mut latency_ns) = (0, 0.0);
        for job in results.groups.iter().flat_map(|group| &group.jobs) {
            let total = totals(&job.intervals, 0);
            ops += total.read.latency.count();
            latency_ns +=
                total.read.latency.mean_ns().unwrap_or(0.0) * total.read.latency.count() as f64;
        }
        let requests: u64 = results.requests.iter().map(|counts| counts.completed).sum();
        let (mut queued, mut completed) = ([0, 0], [0, 0]);
        for counters in &counters {
            queued[0] += counters.queued_local;
            queued[1] += counters.queued_remote;
            completed[0] += counters.completed_local;
            completed[1] += counters.completed_remote;
        }
        let simulated_s = now as f64 / SECOND as f64;
        println!(
            "{}: {wall_s:.2} s, {ops} operations in {simulated_s:.3} s, {:.0} ns each; {:.2} MB/s {:.2} MiB/s, latency {:.4} s, bios {:.1}, requests {:.1}, Q {queued:?} C {completed:?}, user {:.3} sys {:.3} iowait {:.3} idle {:.3} %, bubbles {:.2} %, busiest {busiest:.1} %",
            self.name,
            wall_s * 1e9 / ops as f64,
            ops as f64 * f64::from(self.bytes) / 1e6 / simulated_s,
            ops as f64 * f64::from(self.bytes) / 1_048_576.0 / simulated_s,
            latency_ns / ops as f64 / 1e9,
            ops as f64 / drives,
            requests as f64 / drives,
            share(Context::User),
            share(Context::System) + share(Context::SoftInterrupt) + share(Context::KernelThread),
            share(Context::IoWait),
            share(Context::Idle),
            100.0 * stalled as f64 / cycles,
        );
    }
}

fn device(latency_ns: u64, queue_depth: u32) -> Value {
    json!({
        "kind": "null", "capacity_bytes": CAPACITY_BYTES, "latency_ns": latency_ns, "queue_depth": queue_depth
    })
}
