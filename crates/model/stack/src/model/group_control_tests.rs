//! Latencies (`io.latency`), costs (`io.cost`) and priorities (`io.prio.class`) of control groups before a drive.

use serde_json::{Value, json};

use super::limit_tests::{before, reads_per_s};
use super::tests::{load, run_observed, unobserved};
use super::*;

const SECONDS: u64 = 4;

/// Its drive serves eight operations at once, each in a millisecond.
fn machine() -> Value {
    let device = json!({ "kind": "null", "capacity_bytes": 1u64 << 30, "latency_ns": 1_000_000, "queue_depth": 8 });
    let mut machine = before(device, "none");
    machine["cgroups"] = json!([{ "name": "first", "weight": 100 }, { "name": "other", "weight": 300 }]);
    machine
}

/// Random reads of 4 KiB per second of both groups, by their depths.
fn rates(machine: Value, engine: &str, [first, other]: [u64; 2]) -> [f64; 2] {
    let groups = [(Some("first"), first), (Some("other"), other)];
    reads_per_s(machine, engine, groups, SECONDS)
}

/// The target is missed whatever the others do: the other group's depth is halved twice a second.
#[test]
fn a_promised_latency_holds_the_other_group_back() {
    for engine in ["libaio", "io_uring"] {
        let [alone, beside] = rates(machine(), engine, [1, 32]);
        let mut promised = machine();
        promised["cgroups"][0]["io_latency_ns"] = json!(1_000_000);
        let [first, other] = rates(promised, engine, [1, 32]);
        assert!(first > alone && other < 0.5 * beside, "{engine}: {first} and {other}, {alone} and {beside}");
    }
}

#[test]
fn a_latency_that_is_kept_changes_nothing() {
    let mut promised = machine();
    promised["cgroups"][0]["io_latency_ns"] = json!(100_000_000);
    assert_eq!(rates(promised, "libaio", [1, 32]), rates(machine(), "libaio", [1, 32]));
}

#[test]
fn groups_share_by_cost_in_proportion_to_their_weights() {
    let mut costed = machine();
    costed["io_cost"] = json!({
        "model": { "rbps": 1_u64 << 30, "rseqiops": 4000, "rrandiops": 4000 },
        "qos": { "min": 100, "max": 100 }
    });
    for engine in ["libaio", "io_uring"] {
        let [first, other] = rates(costed.clone(), engine, [16, 16]);
        assert!((2.8..3.2).contains(&(other / first)), "{engine}: {first} and {other}");
        assert!((3900.0..4200.0).contains(&(first + other)), "{engine}: {first} and {other}");
    }
    // Who does an operation at a time has its 800 per second, and the other what is left.
    let [first, other] = rates(costed, "libaio", [1, 32]);
    assert!(first > 700.0 && first + other > 3600.0, "{first} and {other}");
}

/// Every read misses its target, so the rate falls to its lowest; what no read misses leaves it.
#[test]
fn the_probe_sees_the_rate_fall() {
    let rates = |latency_us: u64, depth: u64| {
        let mut costed = machine();
        costed["io_cost"] = json!({
            "model": { "rbps": 1_u64 << 30, "rseqiops": 8000, "rrandiops": 8000 },
            "qos": { "rpct": 90, "rlat": latency_us, "min": 40, "max": 100 }
        });
        let mut model = Model::new(&MachineSpec::from_json(costed).unwrap()).unwrap();
        let mut phase = load();
        phase["groups"][0]["cgroup"] = json!("first");
        let job = &mut phase["groups"][0]["jobs"][0];
        job["read_share"] = json!(1.0);
        job["queue_depth"] = json!(depth);
        job["until"] = json!({ "ops": null, "bytes": null, "duration_ns": SECONDS * 1_000_000_000 });
        let mut observed = unobserved(serde_json::from_value(phase).unwrap());
        observed.probes = serde_json::from_value(json!({ "io_cost": { "interval_ns": 100_000_000 } })).unwrap();
        let record = serde_json::to_value(run_observed(&mut model, observed)).unwrap();
        let series = &record["probes"]["io_cost"]["series"];
        assert_eq!(series["all"], series["252:0"], "the one drive");
        let rates = &series["all"]["columns"]["vrate_percent"];
        let rates = rates.as_array().unwrap().iter();
        rates.map(|rate| rate.as_f64().unwrap()).collect::<Vec<_>>()
    };
    let falling = rates(100, 32);
    assert!(falling.len() >= 10 * SECONDS as usize);
    assert!(falling[0] > 90.0, "{falling:?}");
    assert!(falling.is_sorted_by(|earlier, later| earlier >= later), "{falling:?}");
    let lowest = falling.last().unwrap();
    assert!((40.0..40.01).contains(lowest), "{falling:?}");
    let kept = rates(100_000, 4);
    assert!(kept.iter().all(|rate| (99.99..100.01).contains(rate)), "{kept:?}");
}

#[test]
fn without_io_cost_the_probe_sees_nothing() {
    let mut model = Model::new(&MachineSpec::from_json(machine()).unwrap()).unwrap();
    let mut observed = unobserved(serde_json::from_value(load()).unwrap());
    observed.probes = serde_json::from_value(json!({ "io_cost": { "interval_ns": 100_000_000 } })).unwrap();
    let record = serde_json::to_value(run_observed(&mut model, observed)).unwrap();
    assert!(record["probes"].get("io_cost").is_none());
}

/// Two bios of one task may be held back: one that found no request, and one of its plug that was to be merged and could not
/// be. They may go on at the same moment, when the task is about to try again for the first.
#[test]
fn who_is_woken_for_two_bios_tries_once() {
    let mut costed = machine();
    costed["drives"][0]["device"]["latency_ns"] = json!(20_000);
    costed["drives"][0]["device"]["queue_depth"] = json!(64);
    costed["io_cost"] = json!({ "qos": { "min": 50, "max": 50 } });
    for depth in [16, 32, 64] {
        let [first, other] = rates(costed.clone(), "io_uring", [1, depth]);
        assert!(first > 0.0 && other > 0.0, "{first} and {other}");
    }
}

/// Before mq-deadline it waits while others have anything to do, which 16 reads at a time before a drive of eight always
/// have, unless it takes the scheduler's 16 tags; BFQ and no scheduler don't look.
#[test]
fn an_idle_group_waits_before_mq_deadline_alone() {
    for scheduler in ["mq-deadline", "bfq", "none"] {
        let mut plain = machine();
        plain["drives"][0]["scheduler"]["name"] = json!(scheduler);
        let mut idle = plain.clone();
        idle["cgroups"][1]["io_prio_class"] = json!("idle");
        let [before, after] = [plain, idle].map(|machine| rates(machine, "libaio", [16, 4]));
        match scheduler {
            "mq-deadline" => assert!(after[1] < 0.1 * before[1], "{before:?} {after:?}"),
            _ => assert_eq!(before, after, "{scheduler}"),
        }
    }
}

#[test]
fn older_kernels_have_none() {
    let mut promised = machine();
    promised["kernel"] = json!("4.18");
    promised["cgroups"][0]["io_latency_ns"] = json!(1000);
    let error = MachineSpec::from_json(promised).unwrap_err();
    assert_eq!(error.key, "cgroups.0.io_latency_ns");
    for (kernel, policy) in [("6.0", "idle"), ("6.4", "promote-to-rt")] {
        let mut idle = machine();
        idle["kernel"] = json!(kernel);
        idle["cgroups"][0]["io_prio_class"] = json!(policy);
        let error = MachineSpec::from_json(idle).unwrap_err();
        assert_eq!(error.key, "cgroups.0.io_prio_class");
    }
    let mut costed = machine();
    costed["kernel"] = json!("5.3");
    costed["io_cost"] = json!({});
    assert_eq!(MachineSpec::from_json(costed.clone()).unwrap_err().key, "io_cost");
    costed["kernel"] = json!("5.4");
    MachineSpec::from_json(costed.clone()).unwrap();
    costed["io_cost"]["qos"] = json!({ "min": 150, "max": 100 });
    assert_eq!(MachineSpec::from_json(costed).unwrap_err().key, "io_cost.qos.min");
}
