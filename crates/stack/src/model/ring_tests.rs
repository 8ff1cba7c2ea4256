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
    assert!(
        (40_000_000..52_000_000).contains(&with_workers),
        "{with_workers}"
    );
    let (without, alone) = beside_a_ring("5.0");
    assert!((14_000_000..20_000_000).contains(&without), "{without}");
    // Eight workers wait for the ring, and one task for itself.
    assert!(beside < alone, "{beside} and {alone}");
}
