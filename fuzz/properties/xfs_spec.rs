//! Any JSON is an XFS filesystem or an error that names a key; in one that is accepted files are made until all are or it is
//! full, whoever runs the allocator, and blocks, inodes and locks add up.

use filesystems::xfs::{Allocation, Platform, Xfs, XfsSpec};
use serde_json::{Value, json};
use stack::machine::MachineSpec;
use stack::world::PhaseSpec;
use trace::event::Device;

/// Building more groups, or making files in more simulated time, takes longer than a fuzzer has patience.
const AG_COUNT_MAX: u32 = 1000;
/// Of the drive: a terabyte.
const BLOCKS_MAX: u64 = 1 << 28;
const FILES: u64 = 150;

pub fn check(bytes: &[u8]) {
    let Ok(spec) = serde_json::from_slice::<XfsSpec>(bytes) else {
        return;
    };
    for allocation in [Allocation::Direct, Allocation::Workqueue] {
        let few = spec.ag_count <= AG_COUNT_MAX && spec.daemons.wakeups_per_s <= 10_000 && spec.blocks <= BLOCKS_MAX;
        if let Err(impossible) = spec.check() {
            assert!(!impossible.key.is_empty() && !impossible.what.is_empty());
        } else if few {
            make_files(&spec, allocation);
        }
    }
}

fn make_files(spec: &XfsSpec, allocation: Allocation) {
    let machine = MachineSpec::from_json(machine()).expect("a good machine");
    let below = Platform {
        cpus: 2,
        clock_hz: 2_000_000_000,
        drive: "sda",
        device: Device::new(8, 0),
        flushes: false,
        fua: false,
    };
    let mounted = Xfs::new(&below, spec, allocation).expect("what is checked can be mounted");
    let mut world = machine.build().expect("it can be built").with_xfs(0, mounted);
    let phase = serde_json::from_value(phase()).expect("a good phase");
    world.begin_phase(&PhaseSpec::without_loads(1)).expect("nothing in it can be wrong");
    world.begin_metadata(0, &phase, None).expect("a possible phase");
    let mut looks = 0;
    world.run(|_| {
        looks += 1;
        looks < 50
    });
    world.end_metadata(0);
    world.end_phase();
    world.check().expect("the model keeps its invariants");
}

fn machine() -> Value {
    json!({
        "kernel": "3.4",
        "cpus": {
            "topology": { "numa_nodes": 1, "sockets_per_node": 1, "cores_per_socket": 2, "threads_per_core": 1 },
            "clock_hz": 2_000_000_000u64, "transfer_cycles": [40, 80, 80, 200], "computing_stall_per_mille": 0,
            "submit_cycles": 5000, "user_cycles": 2000, "reap_cycles": 500, "page_copy_cycles": 2500, "jitter": 0.0,
            "interrupts": {
                "send_cycles": 700, "latency_ns": 1000, "latency_other_node_ns": 1000, "receive_cycles": 1000
            },
            "scheduling": {
                "time_slice_ns": 4_000_000, "preempt_after_ns": 1_000_000, "wake_cycles": 1000, "switch_cycles": 2000,
                "task_lines": 4, "run_queue_lines": 2, "migrates_within": "machine"
            },
            "idle_states": [{ "after_ns": 1000, "exit_ns": 2000 }]
        },
        "completion": {
            "interrupt_cycles": 3000, "interrupt_stalled_cycles": 1000, "softirq_cycles": 300,
            "complete_cycles": 3000, "enter_cycles": 1500, "hand_over_cycles": 200, "splice_cycles": 200,
            "shares_cache": "socket", "request_lines": 4, "bio_lines": 2, "control_block_lines": 7, "list_lines": 2
        },
        "drives": [{
            "device": { "kind": "null", "capacity_bytes": BLOCKS_MAX * 4096, "latency_ns": 20_000, "queue_depth": 32 },
            "scheduler": "noop"
        }]
    })
}

fn phase() -> Value {
    let thread = |number: u64| {
        json!({
            "directory": "d", "paths": "full", "cpus": null,
            "job": {
                "name": format!("thread.{number}"), "files": FILES, "file_bytes": 0, "write_bytes": 1, "sync": "none",
                "keep": number > 0, "until_full": false,
                "subdirectories": { "count": 2, "first": 0, "next_after": { "files": 100 } },
                "names": { "bytes": 40, "random_bytes": 24, "first": number, "step": 3 }, "seed": number
            }
        })
    };
    json!({ "name": "p", "threads": [thread(0), thread(1), thread(2)] })
}
