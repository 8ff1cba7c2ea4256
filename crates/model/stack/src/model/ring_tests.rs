//! Rings of io_uring where the device has no tag for another request.

use serde_json::json;

use super::tests::{load, run};
use super::writeback_tests::machine;
use super::*;

/// A ring that keeps 96 random reads at once at a device that takes 32 and serves 2,000 a second, and another task that
/// reads one by one: the ring's mean latency in ns, and the reads of the other in a second.
fn beside_a_ring(kernel: &str) -> (u64, u64) {
    let queue = json!({ "rotational": 0 });
    let mut model = Model::new(&machine(kernel, queue, "none")).unwrap();
    let mut phase = load();
    let until = json!({ "ops": null, "bytes": null, "duration_ns": 1_000_000_000 });
    for (name, depth) in [("ring", 96), ("one", 1)] {
        let mut group = phase["groups"][0].clone();
        group["name"] = json!(name);
        let job = &mut group["jobs"][0];
        job["read_share"] = json!(1.0);
        job["queue_depth"] = json!(depth);
        job["until"] = until.clone();
        phase["groups"].as_array_mut().unwrap().push(group);
    }
    phase["groups"].as_array_mut().unwrap().remove(0);
    let record = run(&mut model, serde_json::from_value(phase).unwrap());
    let record = serde_json::to_value(record).unwrap();
    let reads = |group: usize| record["groups"][group]["jobs"][0]["read"].clone();
    let mean = reads(0)["latency"]["mean_ns"].as_f64().unwrap();
    (mean as u64, reads(1)["count"].as_u64().unwrap())
}

#[test]
fn what_finds_no_tag_waits_with_a_worker_while_the_task_goes_on() {
    // 97 requests of 2,000 a second take 48 ms; of 32 at the device one takes 16.
    let (with_workers, beside) = beside_a_ring("6.1");
    assert!((40_000_000..52_000_000).contains(&with_workers), "{with_workers}");
    // The task waits in its submission, and the operation too, which was offered before.
    let (without, alone) = beside_a_ring("5.0");
    assert!((40_000_000..52_000_000).contains(&without), "{without}");
    // Eight workers wait for the ring, and one task for itself. Workers are woken when several tags are free (sbitmap's
    // wake batch), so that who asks before may find one.
    assert!(beside <= alone, "{beside} and {alone}");
}

/// Sixteen random reads at once of a device that needs 5 us, by a CPU that needs 2 us for each call and 2 us for each
/// completion: reads in the phase, and their mean latency in ns.
fn more_than_the_cpu_can(engine: &str) -> (f64, f64) {
    let machine = MachineSpec::from_json(json!({
        "kernel": "6.1",
        "cpus": {
            "count": 1, "time_slice_ns": 3_000_000, "call_ns": 2000, "completion_ns": 2000, "page_copy_ns": 300,
            "jitter": 0.05
        },
        "memory": { "bytes": 256 << 20 },
        "drives": [{
            "device": { "kind": "null", "capacity_bytes": 1u64 << 30, "latency_ns": 5000, "queue_depth": 128 }
        }]
    }));
    let mut model = Model::new(&machine.unwrap()).unwrap();
    let mut phase = load();
    phase["groups"][0]["engine"] = json!(engine);
    let job = &mut phase["groups"][0]["jobs"][0];
    job["read_share"] = json!(1.0);
    job["queue_depth"] = json!(16);
    job["until"] = json!({ "ops": 20_000, "bytes": null, "duration_ns": null });
    let record = run(&mut model, serde_json::from_value(phase).unwrap());
    let record = serde_json::to_value(record).unwrap();
    let seconds = record["elapsed_ns"].as_f64().unwrap() / 1e9;
    let job = &record["groups"][0]["jobs"][0];
    let mean = job["read"]["latency"]["mean_ns"].as_f64().unwrap();
    (20_000.0 / seconds, mean)
}

#[test]
fn a_completion_that_waits_for_a_busy_task_is_not_there_yet() {
    for engine in ["io_uring", "libaio"] {
        let (rate, mean_ns) = more_than_the_cpu_can(engine);
        assert!((180e3..250e3).contains(&rate), "{engine}: {rate}");
        // Little's law: sixteen are under way all the time, as the engine counts on a real machine.
        let in_flight = rate * mean_ns / 1e9;
        assert!((15.5..=16.0).contains(&in_flight), "{engine}: {in_flight}");
    }
}

/// On one CPU, a reader of one request at a time beside a task with eight at once, at a device that serves four, each in
/// 2 ms: reads of either in a second.
fn beside_eight(kernel: &str) -> (u64, u64) {
    let machine = MachineSpec::from_json(json!({
        "kernel": kernel,
        "cpus": {
            "count": 1, "time_slice_ns": 3_000_000, "call_ns": 7000, "completion_ns": 5000, "page_copy_ns": 300,
            "jitter": 0.0
        },
        "drives": [{
            "device": { "kind": "null", "capacity_bytes": 1u64 << 30, "latency_ns": 2_000_000, "queue_depth": 4 },
            "scheduler": "none"
        }]
    }));
    let mut model = Model::new(&machine.unwrap()).unwrap();
    let mut phase = load();
    for (name, engine, depth) in [("one", "psync", 1), ("eight", "libaio", 8)] {
        let mut group = phase["groups"][0].clone();
        group["name"] = json!(name);
        group["engine"] = json!(engine);
        let job = &mut group["jobs"][0];
        job["name"] = json!(name);
        job["read_share"] = json!(1.0);
        job["queue_depth"] = json!(depth);
        job["until"] = json!({ "ops": null, "bytes": null, "duration_ns": 1_000_000_000 });
        phase["groups"].as_array_mut().unwrap().push(group);
    }
    phase["groups"].as_array_mut().unwrap().remove(0);
    let record = run(&mut model, serde_json::from_value(phase).unwrap());
    let record = serde_json::to_value(record).unwrap();
    let reads = |group: usize| {
        let read = &record["groups"][group]["jobs"][0]["read"];
        read["count"].as_u64().unwrap()
    };
    (reads(0), reads(1))
}

#[test]
fn who_has_the_cpu_takes_the_tag_that_its_own_read_gave_back() {
    for kernel in ["4.9", "4.14", "5.10", "6.1", "6.12"] {
        let (one, eight) = beside_eight(kernel);
        // 497 reads of 2.01 ms: it never waits for a tag, but at first, being made first (`START_DEBIT`).
        assert!((440..=500).contains(&one), "{kernel}: {one}");
        assert!((1_480..1_560).contains(&eight), "{kernel}: {eight}");
    }
}
