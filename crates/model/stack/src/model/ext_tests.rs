//! Files made on ext2, ext3 and ext4 of a machine: I/O in the queue of its drive, beside a load.

use serde_json::{Value, json};

use super::flush_tests::disk;
use super::together_tests::{creates, elapsed_ns, reads};
use super::*;

const SECOND: u64 = 1_000_000_000;

fn machine(kernel: &str, kind: &str, metadata: Value) -> MachineSpec {
    MachineSpec::from_json(json!({
        "kernel": kernel,
        "cpus": {
            "count": 2, "time_slice_ns": 3_000_000, "call_ns": 2000, "completion_ns": 2000,
            "page_copy_ns": 300, "jitter": 0.05
        },
        "memory": { "bytes": 256 << 20 },
        "drives": [{ "device": disk(), "filesystem": { "kind": kind }, "metadata": metadata }]
    }))
    .unwrap()
}

fn run(machine: &MachineSpec, phases: &[Value]) -> (Vec<Value>, Value) {
    let mut model = Model::new(machine).unwrap();
    let together = json!({
        "kind": "together", "phases": phases, "stops_with": 0,
        "probes": { "block": { "interval_ns": SECOND, "trace": null } }
    });
    model.begin(ObservedPhase::from_json(together).unwrap()).unwrap();
    model.run(|_| true);
    model.check().unwrap();
    let record = serde_json::to_value(model.end(0, "test")).unwrap();
    (record["phases"].as_array().unwrap().clone(), record["probes"]["block"].clone())
}

fn files_per_s(record: &Value) -> f64 {
    let count = record["groups"][0]["jobs"][0]["ops"]["create"]["count"].as_u64();
    count.unwrap() as f64 * 1e9 / elapsed_ns(record) as f64
}

/// A synced file on ext3 without barriers is its data, the journal's blocks and the record, into the disk's cache; on ext4
/// the record waits for the platter before and behind it.
#[test]
fn barriers_cost_revolutions() {
    let rate = |kind, metadata| files_per_s(&run(&machine("6.1", kind, metadata), &[creates(100)]).0[0]);
    let with = rate("ext4", json!({}));
    assert!((20.0..=120.0).contains(&with), "{with}");
    let without = rate("ext4", json!({ "barrier": false }));
    assert!(without > 4.0 * with, "{without} {with}");
    assert!(rate("ext3", json!({})) < 2.0 * with);
}

#[test]
fn files_are_made_on_old_kernels_too_and_repeatably() {
    for (kernel, kind) in [("2.4.20", "ext2"), ("2.4.20", "ext3"), ("2.6.35", "ext3_windows"), ("5.15", "ext4")] {
        let machine = machine(kernel, kind, json!({}));
        let (records, block) = run(&machine, &[creates(50)]);
        assert_eq!(records[0]["groups"][0]["jobs"][0]["ops"]["fsync"]["count"], 50, "{kernel} {kind}");
        assert_eq!((records, block), run(&machine, &[creates(50)]), "{kernel} {kind}");
    }
}

#[test]
fn a_load_on_the_same_drive_makes_it_slower() {
    let machine = machine("6.1", "ext4", json!({}));
    let alone = files_per_s(&run(&machine, &[creates(100)]).0[0]);
    let beside = files_per_s(&run(&machine, &[creates(100), reads(1000 * SECOND)]).0[0]);
    assert!(beside < 0.8 * alone, "{beside} {alone}");
}

#[test]
fn where_no_files_are_made_says_so() {
    let machine = machine("6.1", "contiguous", Value::Null);
    let mut model = Model::new(&machine).unwrap();
    let error = model.begin(ObservedPhase::from_json(creates(1)).unwrap()).unwrap_err();
    assert_eq!(error.key, "kind");
    let mut table = json!({ "device": disk(), "filesystem": { "kind": "contiguous" }, "metadata": {} });
    let wrong = |drive: &Value| {
        MachineSpec::from_json(json!({
            "kernel": "6.1",
            "cpus": { "count": 1, "time_slice_ns": 3_000_000, "call_ns": 1, "completion_ns": 1, "page_copy_ns": 1, "jitter": 0.0 },
            "drives": [drive]
        }))
    };
    assert_eq!(wrong(&table).unwrap_err().key, "drives.0.metadata");
    table["filesystem"]["kind"] = json!("ext3");
    table["metadata"] = json!({ "journal_blocks": 1 });
    assert_eq!(wrong(&table).unwrap_err().key, "drives.0.metadata.journal_blocks");
}
