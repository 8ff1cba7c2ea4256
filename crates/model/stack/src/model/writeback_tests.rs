//! Readers beside buffered writers on modern kernels: throttling of writeback, and that flushers sleep each by itself.

use serde_json::{Value, json};

use super::tests::{load, run};
use super::*;

/// Four servers of 2 ms without a cache, that a kernel of today takes for a device without seeks.
pub(super) fn machine(kernel: &str, queue: Value, scheduler: &str) -> MachineSpec {
    MachineSpec::from_json(json!({
        "kernel": kernel,
        "cpus": {
            "count": 2, "time_slice_ns": 3_000_000, "call_ns": 2000, "completion_ns": 2000,
            "page_copy_ns": 20_000, "jitter": 0.05
        },
        "memory": { "bytes": 256 << 20 },
        "drives": [{
            "scheduler": scheduler,
            "queue": queue,
            "device": {
                "kind": "lun", "capacity_bytes": 1u64 << 32, "queue_depth": 32, "adapter_ns": 0, "link_ns": 0,
                "controller_ns": 0, "controller_commands_per_s": 1_000_000_000, "link_bytes_per_s": 100_000_000_000u64,
                "cache": {
                    "line_bytes": 4096, "read_bytes": 0, "write_bytes": 0, "high_percent": 80, "low_percent": 40,
                    "idle_flush_ns": 1_000_000_000
                },
                "back_end": { "access_ns": 2_000_000, "servers": 4, "bytes_per_s": 100_000_000_000u64 }
            }
        }]
    }))
    .unwrap()
}

/// Of a reader past the page cache and a buffered writer of 4 KiB blocks in random order: what each does in 2 s.
fn reads_and_writes(queue: Value, scheduler: &str) -> (u64, u64) {
    let mut model = Model::new(&machine("6.1", queue, scheduler)).unwrap();
    let load = load();
    let group = |name: &str, file: u32, direct: bool, read_share: f64| {
        let mut group = load["groups"][0].clone();
        group["name"] = json!(name);
        group["direct"] = json!(direct);
        group["engine"] = json!("psync");
        let job = &mut group["jobs"][0];
        job["name"] = json!(name);
        job["files"] = json!([file]);
        job["read_share"] = json!(read_share);
        job["queue_depth"] = json!(1);
        job["length_bytes"] = json!(128 << 20);
        job["until"] = json!({ "ops": null, "bytes": null, "duration_ns": 2_000_000_000u64 });
        group
    };
    let mut files = vec![load["files"][0].clone(); 2];
    for (file, name) in files.iter_mut().zip(["a", "b"]) {
        file["path"] = json!(name);
        file["size_bytes"] = json!(128 << 20);
    }
    let mut beside = load.clone();
    beside["files"] = json!(files);
    beside["groups"] = json!([group("reader", 0, true, 1.0), group("writer", 1, false, 0.0)]);
    let record = run(&mut model, serde_json::from_value(beside).unwrap());
    let record = serde_json::to_value(record).unwrap();
    let ops = |group: usize, what: &str| {
        let job = &record["groups"][group]["jobs"][0];
        job[what]["count"].as_u64().unwrap()
    };
    (ops(0, "read"), ops(1, "write"))
}

#[test]
fn throttling_of_writeback_lets_a_reader_read() {
    let queue = |usec: u64| json!({ "rotational": 0, "wbt_lat_usec": usec });
    let (throttled, written) = reads_and_writes(queue(2000), "none");
    let (crowded, _) = reads_and_writes(queue(0), "none");
    // Alone it reads 500 a second; among 32 commands at the device an eighth of that.
    assert!(throttled > 2 * crowded, "{throttled} and {crowded}");
    assert!(written > 0);
}

#[test]
fn it_is_on_from_4_10_on_except_with_bfq() {
    let without = json!({ "rotational": 0, "wbt_lat_usec": 0 });
    let default = json!({ "rotational": 0 });
    let reads = |queue: &Value, scheduler| reads_and_writes(queue.clone(), scheduler).0;
    assert!(reads(&default, "none") > 2 * reads(&without, "none"));
    assert_eq!(reads(&default, "bfq"), reads(&without, "bfq"));
}
