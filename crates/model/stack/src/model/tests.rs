use serde_json::json;

use super::*;
use crate::machine::tests::detailed;

fn machine(filesystem: bool) -> MachineSpec {
    let mut drive = json!({
        "device": { "kind": "null", "capacity_bytes": 1u64 << 30, "latency_ns": 100_000, "queue_depth": 32 }
    });
    if filesystem {
        drive["filesystem"] = json!({ "kind": "ext4" });
    }
    MachineSpec::from_json(json!({
        "kernel": "6.1",
        "cpus": {
            "count": 2, "time_slice_ns": 100_000_000, "call_ns": 2000, "completion_ns": 2000,
            "page_copy_ns": 1000, "jitter": 0.05
        },
        "memory": { "bytes": 64 << 20 },
        "drives": [drive],
        "cgroups": [{ "name": "gold", "weight": 800 }]
    }))
    .unwrap()
}

/// Random reads and writes of 4 KiB past the page cache, four at a time, as JSON.
pub(super) fn load() -> serde_json::Value {
    json!({
        "name": "load",
        "files": [{
            "path": "a", "base_bytes": 0, "size_bytes": 32 << 20, "create": true, "extend": true, "place": null
        }],
        "groups": [{
            "name": "g", "engine": "io_uring", "direct": true, "cpus": null, "batch": null, "fixed_buffers": true,
            "registered_files": true, "poll": false, "sqpoll": false, "sqpoll_cpu": null, "fresh_data": false,
            "close_in_time": false, "cgroup": null,
            "jobs": [{
                "name": "j", "files": [0], "file_order": "sequential", "pattern": { "kind": "uniform" },
                "read_share": 0.5, "blocks": [{ "bytes": 4096, "weight": 1.0 }], "align_bytes": 4096,
                "offset_bytes": 0, "length_bytes": 32 << 20, "queue_depth": 4,
                "arrival": { "kind": "closed", "think_ns": 0, "think_every": 1 },
                "until": { "ops": 1000, "bytes": null, "duration_ns": null }, "sync": null,
                "sync_at_end": false, "seed": 7
            }]
        }],
        "warm_up_ns": 0, "interval_ns": 10_000_000, "cut_transient": false, "verify": false,
        "drop_caches": false, "ends_with_first": false, "seed": 3
    })
}

pub(super) fn phase(changes: serde_json::Value) -> Phase {
    let mut phase = load();
    for (pointer, value) in changes.as_object().unwrap() {
        *phase.pointer_mut(pointer).unwrap() = value.clone();
    }
    serde_json::from_value(phase).unwrap()
}

pub(super) fn unobserved(phase: Phase) -> ObservedPhase {
    ObservedPhase { phase: AnyPhase::Load(phase), probes: Probes::default() }
}

pub(super) fn run(model: &mut Model, phase: Phase) -> Record {
    run_observed(model, unobserved(phase))
}

pub(super) fn run_observed(model: &mut Model, phase: ObservedPhase) -> Record {
    model.begin(phase).unwrap();
    model.run(|_| true);
    model.check().unwrap();
    model.end(0, "test")
}

#[test]
fn the_block_probe_sees_every_request_of_a_phase() {
    let mut model = Model::new(&machine(false)).unwrap();
    for (n, trace) in [(1, json!(null)), (2, json!("blktrace"))] {
        let mut observed = unobserved(phase(json!({})));
        observed.probes = serde_json::from_value(json!({
            "block": { "interval_ns": 1_000_000, "trace": trace }
        }))
        .unwrap();
        let record = serde_json::to_value(run_observed(&mut model, observed)).unwrap();
        let seen = &record["probes"]["block"];
        assert_eq!(seen["trace_events_lost"], 0, "{seen}");
        assert!(seen.to_string().contains("1000"), "{seen}");
        assert_eq!(model.take_traces().is_empty(), n == 1);
    }
}

#[test]
fn a_phase_becomes_a_record_and_the_same_one_from_the_same_seed() {
    let record = |filesystem| {
        let mut model = Model::new(&machine(filesystem)).unwrap();
        serde_json::to_value(run(&mut model, phase(json!({})))).unwrap()
    };
    let found = record(false);
    let job = &found["groups"][0]["jobs"][0];
    let count = |op: &str| job[op]["count"].as_u64().unwrap();
    assert_eq!(count("read") + count("write"), 1000);
    assert_eq!(found["clock"], "model");
    assert!(found["process_cpu_system_ns"].as_u64().unwrap() > 0);
    assert!(job["read"]["latency"]["min_ns"].as_u64().unwrap() >= 100_000);
    assert_eq!(found, record(false));
}

#[test]
fn what_there_is_no_mechanism_for_is_refused_with_its_key() {
    for (pointer, value, key) in [
        ("/verify", json!(true), "verify"),
        ("/groups/0/engine", json!("mmap"), "groups.0.engine"),
        ("/groups/0/engine", json!("null"), "groups.0.engine"),
        ("/groups/0/direct", json!(false), "groups.0.direct"),
        ("/groups/0/sqpoll", json!(true), "groups.0.sqpoll"),
        ("/groups/0/cpus", json!([0]), "groups.0.cpus"),
        ("/groups/0/cgroup", json!("lead"), "groups.0.cgroup"),
        ("/files/0/place", json!(1), "files.0.place"),
        ("/files/0/size_bytes", json!(2u64 << 30), "files.0.size_bytes"),
        ("/warm_up_ns", json!(u64::MAX), "warm_up_ns"),
        ("/groups/0/jobs/0/until/duration_ns", json!(u64::MAX), "groups.0.jobs.0.until.duration_ns"),
        ("/groups/0/jobs/0/length_bytes", json!(0), "groups"),
    ] {
        let mut model = Model::new(&machine(false)).unwrap();
        let error = model.begin(unobserved(phase(json!({ pointer: value })))).unwrap_err();
        assert_eq!(error.key, key, "{error}");
    }
}

#[test]
fn files_are_found_again_in_the_next_phase_and_caches_can_be_dropped_before_it() {
    let mut model = Model::new(&machine(true)).unwrap();
    let buffered = |read_share: f64, drop_caches: bool| {
        phase(json!({
            "/groups/0/engine": "psync",
            "/groups/0/direct": false,
            "/groups/0/jobs/0/pattern": { "kind": "sequential" },
            "/groups/0/jobs/0/read_share": read_share,
            "/groups/0/cgroup": "gold",
            "/drop_caches": drop_caches,
        }))
    };
    let elapsed_ns = |model: &mut Model, phase: Phase| run(model, phase).phase.elapsed_ns();
    elapsed_ns(&mut model, buffered(0.0, false));
    let cached = elapsed_ns(&mut model, buffered(1.0, false));
    let dropped = elapsed_ns(&mut model, buffered(1.0, true));
    assert!(dropped > cached + 100_000, "{dropped} after {cached}");
    let bounds = serde_json::from_value(json!({ "extents_max": 1000, "listed_max": 9, "method": null }));
    let paths = ["a", "b"].map(str::to_owned).to_vec();
    let examined = serde_json::to_value(model.examine(paths, bounds.unwrap())).unwrap();
    assert_eq!(examined["files"][0]["mapped_bytes"], 1000 * 4096);
    assert_eq!(examined["files"][1]["absent"], "no phase has made this file");
}

#[test]
fn a_phase_can_be_stopped() {
    let mut model = Model::new(&machine(false)).unwrap();
    let long = phase(json!({
        "/groups/0/jobs/0/until": { "ops": null, "bytes": null, "duration_ns": 1_000_000_000_000u64 }
    }));
    model.begin(unobserved(long)).unwrap();
    model.run(|_| false);
    assert!(model.end(0, "test").phase.stopped());
}

#[test]
fn read_ahead_is_marked_in_traces_and_delayed_blocks_have_places_when_files_are_examined() {
    let mut model = Model::new(&machine(true)).unwrap();
    let sequential = |read_share: f64| {
        phase(json!({
            "/groups/0/engine": "psync",
            "/groups/0/direct": false,
            "/groups/0/jobs/0/pattern": { "kind": "sequential" },
            "/groups/0/jobs/0/read_share": read_share,
        }))
    };
    run(&mut model, sequential(0.0));
    let bounds: Bounds = serde_json::from_value(json!({
        "extents_max": 1000, "listed_max": 9, "method": null
    }))
    .unwrap();
    let examined = serde_json::to_value(model.examine(vec!["a".to_owned()], bounds)).unwrap();
    assert_eq!(examined["files"][0]["mapped_bytes"], 1000 * 4096, "{examined}");
    let mut phase = sequential(1.0);
    phase.drop_caches = true;
    let mut reads = unobserved(phase);
    reads.probes = serde_json::from_value(json!({
        "block": { "interval_ns": 1_000_000, "trace": "ftrace" }
    }))
    .unwrap();
    run_observed(&mut model, reads);
    let traces = model.take_traces();
    let text = String::from_utf8(traces.into_values().next().unwrap()).unwrap();
    assert!(text.contains(" RA "), "{text}");
}

#[test]
fn a_phase_says_of_which_kind_it_is() {
    let observed = |kind| ObservedPhase::from_json(json!({ "kind": kind, "name": "p", "threads": [] }));
    assert!(matches!(observed(json!("metadata")).unwrap().phase, AnyPhase::Metadata(_)));
    assert_eq!(observed(json!("load")).unwrap_err().key, "phase");
    for unknown in [json!("fio"), json!(1)] {
        assert_eq!(observed(unknown).unwrap_err().key, "kind");
    }
}

#[test]
fn probes_see_detailed_cpus_as_a_kernel_counts_them() {
    let mut machine = detailed();
    machine["drives"] = json!([{
        "device": {
            "kind": "null", "capacity_bytes": 1u64 << 30, "latency_ns": 20_000, "queue_depth": 32
        },
        "scheduler": "noop",
        "interrupt_cpu": 2,
        "affinity": { "application": 0, "completion": 4 },
    }]);
    machine["cpus"]["offline"] = json!([]);
    let mut model = Model::new(&MachineSpec::from_json(machine).unwrap()).unwrap();
    let mut observed = unobserved(phase(json!({
        "/groups/0/jobs/0/read_share": 1.0,
        "/groups/0/jobs/0/queue_depth": 1,
    })));
    observed.probes = serde_json::from_value(json!({
        "cpu": { "interval_ns": 1_000_000 },
        "counters": {},
        "block": { "interval_ns": 1_000_000, "trace": null },
    }))
    .unwrap();
    model.begin(observed).unwrap();
    model.run(|_| true);
    model.check().unwrap();
    let record = serde_json::to_value(model.end(77, "test")).unwrap();
    let probes = &record["probes"];

    let (cpu, counters) = (&probes["cpu"], &probes["counters"]);
    let percent = |cpu_name: &str, state: &str| cpu["means"][cpu_name][format!("{state}_percent")].as_f64().unwrap();
    let all: f64 = cpu["means"]["all"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
    assert!((all - 100.0).abs() < 1e-6, "{all}");
    assert!(percent("cpu0", "user") > 0.0 && percent("cpu0", "iowait") > 0.0);
    assert_eq!(percent("cpu2", "system"), 0.0, "ticks do not see interrupts");
    assert!(percent("cpu4", "system") > 0.0, "the completing thread");
    assert_eq!(percent("cpu6", "idle"), 100.0);
    assert_eq!(cpu["times"]["started_unix_ns"], 77);
    assert_eq!(cpu["frequency"]["hz_mean"], 1.6e9);
    let intervals = cpu["series"]["all"]["at_ns"].as_array().unwrap();
    let elapsed_ns = cpu["times"]["elapsed_ns"].as_u64().unwrap();
    assert_eq!(intervals.len() as u64, elapsed_ns.div_ceil(1_000_000));

    let cycles = counters["events"]["cycles"]["value"].as_f64().unwrap();
    assert!((cycles / (elapsed_ns as f64 * 1.6 * 8.0) - 1.0).abs() < 1e-9);
    let stalled = counters["events"]["stalled-cycles-backend"]["value"].as_f64().unwrap();
    assert!(stalled > 0.0 && stalled < cycles);

    let total = &probes["block"]["devices"][0]["total"];
    assert_eq!((&total["queue_local"], &total["queue_remote"]), (&json!(1000), &json!(0)));
    assert_eq!(total["completions_local"], 0, "interrupted is 2, completing 4");
    assert_eq!(total["completions_remote"], total["requests_completed"]);
}

#[test]
fn simple_cpus_have_nothing_to_show() {
    for (probe, options) in [("cpu", json!({ "interval_ns": 1_000_000 })), ("counters", json!({}))] {
        let mut observed = unobserved(phase(json!({})));
        observed.probes = serde_json::from_value(json!({ probe: options })).unwrap();
        let error = Model::new(&self::machine(false)).unwrap().begin(observed).unwrap_err();
        assert_eq!(error.key, format!("probes.{probe}"), "{error}");
    }
}
