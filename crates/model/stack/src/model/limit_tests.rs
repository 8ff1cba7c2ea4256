//! Limits of control groups (`io.max`) before a drive.

use serde_json::{Value, json};

use super::tests::{load, run};
use super::*;

fn machine(scheduler: &str, limits: Value) -> Value {
    let device = json!({ "kind": "null", "capacity_bytes": 1u64 << 30, "latency_ns": 100_000, "queue_depth": 32 });
    let mut machine = before(device, scheduler);
    machine["cgroups"] = json!([{ "name": "limited", "weight": 100, "io_max": limits }]);
    machine
}

/// A machine with two CPUs and that drive.
pub(super) fn before(device: Value, scheduler: &str) -> Value {
    json!({
        "kernel": "6.1",
        "cpus": {
            "count": 2, "time_slice_ns": 3_000_000, "call_ns": 2000, "completion_ns": 2000, "page_copy_ns": 300,
            "jitter": 0.05
        },
        "memory": { "bytes": 256 << 20 },
        "drives": [{ "device": device, "scheduler": { "name": scheduler } }]
    })
}

/// Random reads of 4 KiB per second in the group, 16 deep, and of a task beside it that is in none.
fn rates(engine: &str, scheduler: &str, limits: Value, seconds: u64) -> [f64; 2] {
    let groups = [(Some("limited"), 16), (None, 1)];
    reads_per_s(machine(scheduler, limits), engine, groups, seconds)
}

/// Random reads of 4 KiB per second of two loads by their control groups and depths.
pub(super) fn reads_per_s(machine: Value, engine: &str, loads: [(Option<&str>, u64); 2], seconds: u64) -> [f64; 2] {
    let machine = MachineSpec::from_json(machine).unwrap();
    let mut model = Model::new(&machine).unwrap();
    let mut phase = load();
    let of_one = phase["groups"][0].clone();
    phase["groups"] = json!([]);
    for (cgroup, depth) in loads {
        let mut group = of_one.clone();
        group["name"] = json!(cgroup.unwrap_or("free"));
        group["cgroup"] = json!(cgroup);
        group["engine"] = json!(if depth == 1 { "psync" } else { engine });
        let job = &mut group["jobs"][0];
        job["read_share"] = json!(1.0);
        job["queue_depth"] = json!(if engine == "psync" { 1 } else { depth });
        job["until"] = json!({ "ops": null, "bytes": null, "duration_ns": seconds * 1_000_000_000 });
        phase["groups"].as_array_mut().unwrap().push(group);
    }
    let record = run(&mut model, serde_json::from_value(phase).unwrap());
    let record = serde_json::to_value(record).unwrap();
    [0, 1].map(|group: usize| {
        let count = record["groups"][group]["jobs"][0]["read"]["count"].as_f64();
        count.unwrap() / seconds as f64
    })
}

/// A slice's worth at the beginning comes on top: a tenth of a second in two. One reader under BFQ waits for the other's
/// turns, too, and so may lose part of a slice.
#[test]
#[ignore = "long: `make test-all` runs it"]
fn a_group_has_its_rate_and_who_is_in_none_has_the_rest() {
    for scheduler in ["none", "mq-deadline", "bfq"] {
        for engine in ["io_uring", "libaio", "psync"] {
            let turns = engine == "psync" && scheduler == "bfq";
            let (least, seconds) = if turns { (800.0, 4) } else { (1000.0, 2) };
            let [bytes, beside] = rates(engine, scheduler, json!({ "read": 4 << 20 }), seconds);
            assert!((least..1060.0).contains(&bytes), "{bytes} by {engine} under {scheduler}");
            let [operations, _] = rates(engine, scheduler, json!({ "read_iops": 500 }), seconds);
            assert!((0.485 * least..530.0).contains(&operations), "{operations} by {engine} under {scheduler}");
            assert!(beside > 2000.0, "{beside} beside {engine} under {scheduler}");
        }
    }
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    for scheduler in ["none", "bfq"] {
        let without = rates("io_uring", scheduler, json!({}), 1);
        assert_eq!(rates("io_uring", scheduler, json!({ "read": 1_u64 << 40 }), 1), without);
        assert_eq!(rates("io_uring", scheduler, json!({ "write": 4096 }), 1), without);
    }
}

#[test]
fn kernels_before_2_6_37_have_no_limits() {
    let mut machine = machine("noop", json!({ "read": 1 }));
    machine["kernel"] = json!("2.6.36");
    let error = MachineSpec::from_json(machine.clone()).unwrap_err();
    assert_eq!(error.key, "cgroups.0.io_max");
    machine["kernel"] = json!("2.6.37");
    MachineSpec::from_json(machine.clone()).unwrap();
    machine["cgroups"][0]["io_max"]["read"] = json!(0);
    let error = MachineSpec::from_json(machine).unwrap_err();
    assert_eq!(error.key, "cgroups.0.io_max.read");
}
