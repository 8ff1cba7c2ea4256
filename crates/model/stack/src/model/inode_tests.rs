//! Buffered writers of one inode write one at a time, on however many CPUs they run.

use serde_json::{Value, json};

use super::tests::{load, run};
use super::*;

const WRITERS: u32 = 4;

/// What all writers do in 100 ms of copying: they share a file, or each has its own.
fn writes(kernel: &str, filesystem: Value, shared: bool) -> u64 {
    writes_at(kernel, filesystem, shared, json!({}))
}

/// The same where calls that write have costs of their own.
fn writes_at(kernel: &str, filesystem: Value, shared: bool, costs: Value) -> u64 {
    let mut cpus = json!({
        "count": WRITERS, "time_slice_ns": 3_000_000, "call_ns": 2000, "completion_ns": 2000,
        "page_copy_ns": 8000, "jitter": 0.0
    });
    let costs = costs.as_object().unwrap().clone();
    cpus.as_object_mut().unwrap().extend(costs);
    let machine = MachineSpec::from_json(json!({
        "kernel": kernel,
        "cpus": cpus,
        "memory": { "bytes": 1u64 << 30 },
        "drives": [{
            "scheduler": "none", "filesystem": filesystem,
            "device": { "kind": "null", "capacity_bytes": 1u64 << 32, "latency_ns": 100_000, "queue_depth": 8 }
        }]
    }));
    let mut model = Model::new(&machine.unwrap()).unwrap();
    let mut phase = load();
    let file = phase["files"][0].clone();
    let group = phase["groups"][0].clone();
    let number = |writer: u32| if shared { 0 } else { writer };
    phase["files"] = (0..=number(WRITERS - 1))
        .map(|n| {
            let mut file = file.clone();
            file["path"] = json!(format!("f{n}"));
            file
        })
        .collect();
    phase["groups"] = (0..WRITERS)
        .map(|n| {
            let mut group = group.clone();
            group["name"] = json!(format!("g{n}"));
            group["engine"] = json!("psync");
            group["direct"] = json!(false);
            let job = &mut group["jobs"][0];
            job["files"] = json!([number(n)]);
            job["read_share"] = json!(0.0);
            job["queue_depth"] = json!(1);
            job["until"] = json!({ "ops": null, "bytes": null, "duration_ns": 100_000_000 });
            group
        })
        .collect();
    let record = run(&mut model, serde_json::from_value(phase).unwrap());
    let record = serde_json::to_value(record).unwrap();
    let groups = record["groups"].as_array().unwrap();
    let count = |group: &Value| group["jobs"][0]["write"]["count"].as_u64().unwrap();
    groups.iter().map(count).sum()
}

#[test]
fn an_inode_of_a_filesystem_has_one_writer_at_a_time() {
    // 10 us a write: 10,000 in the time by one, four times as many by four that have a file each.
    for filesystem in [json!({ "kind": "ext4" }), json!({ "kind": "ext2" })] {
        let (one, each) = (writes("6.1", filesystem.clone(), true), writes("6.1", filesystem, false));
        assert!((9_900..=10_004).contains(&one), "{one}");
        assert!((39_600..=40_004).contains(&each), "{each}");
    }
}

#[test]
fn a_drives_own_blocks_have_no_such_lock() {
    let shared = writes("6.1", Value::Null, true);
    assert!((39_600..=40_004).contains(&shared), "{shared}");
}

#[test]
fn a_write_to_the_cache_has_a_cost_of_its_own() {
    let written = |costs| writes_at("6.1", Value::Null, true, costs);
    let all = written(json!({ "write_call_ns": 5000, "page_write_ns": 15_000 }));
    assert!((19_800..=20_004).contains(&all), "20 us a write: {all}");
    assert_eq!(written(json!({ "copy_call_ns": 12_000 })), all, "that of any copy");
}
