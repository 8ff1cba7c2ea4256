use serde_json::{Value, json};

use super::tests::{phase, run, run_observed, unobserved};
use super::*;

fn mount() -> Value {
    let text = include_str!("../../../../../machines/mounts/nfs-rdma.toml");
    toml::from_str(text).expect("a client")
}

/// Mounts beside this many drives.
fn machine(drives: usize, mounts: &[Value]) -> Result<MachineSpec, SpecError> {
    let drive = json!({
        "device": { "kind": "null", "capacity_bytes": 1u64 << 30, "latency_ns": 100_000, "queue_depth": 32 }
    });
    MachineSpec::from_json(json!({
        "kernel": "5.4",
        "cpus": {
            "count": 12, "time_slice_ns": 4_000_000, "call_ns": 2000, "completion_ns": 2000,
            "page_copy_ns": 1000, "jitter": 0.05
        },
        "memory": { "bytes": 64 << 20 },
        "drives": vec![drive; drives],
        "mounts": mounts
    }))
}

fn writes(ops: u64, bytes: u64) -> Value {
    json!({
        "/groups/0/engine": "psync",
        "/groups/0/jobs/0/read_share": 0.0,
        "/groups/0/jobs/0/blocks/0/bytes": bytes,
        "/groups/0/jobs/0/align_bytes": bytes,
        "/groups/0/jobs/0/sync_at_end": true,
        "/groups/0/jobs/0/until/ops": ops,
    })
}

fn calls(model: &Model) -> Vec<u64> {
    let mounts = model.world.mounts();
    mounts.map(|io| io.mount().counters().operations.write.calls).collect()
}

#[test]
fn a_machine_of_mounts_alone_runs_phases_on_them() {
    let mut model = Model::new(&machine(0, &[mount()]).unwrap()).unwrap();
    let record = run(&mut model, phase(writes(500, 1024)));
    let record = serde_json::to_value(record).unwrap();
    let job = &record["groups"][0]["jobs"][0];
    assert_eq!(job["write"]["count"], 500);
    assert_eq!(job["sync"]["count"], 1);
    assert_eq!(calls(&model), [500]);
}

#[test]
fn places_count_drives_first() {
    let mut model = Model::new(&machine(1, &[mount(), mount()]).unwrap()).unwrap();
    let mut changes = writes(100, 4096);
    changes["/files/0/place"] = json!(2);
    run(&mut model, phase(changes.clone()));
    assert_eq!(calls(&model), [0, 100]);
    changes["/files/0/place"] = json!(0);
    changes["/files/0/path"] = json!("b");
    run(&mut model, phase(changes.clone()));
    assert_eq!(calls(&model), [0, 100]);
    changes["/files/0/place"] = json!(3);
    changes["/files/0/path"] = json!("c");
    let error = model.begin(unobserved(phase(changes))).unwrap_err();
    assert_eq!(error.key, "files.0.place");
}

#[test]
fn an_io_is_as_many_calls_as_it_takes() {
    let mut model = Model::new(&machine(0, &[mount()]).unwrap()).unwrap();
    run(&mut model, phase(writes(8, 4 << 20)));
    assert_eq!(calls(&model), [32]);
}

#[test]
fn any_number_may_be_in_flight() {
    let mut changes = writes(1000, 1024);
    changes["/groups/0/engine"] = json!("io_uring");
    changes["/groups/0/jobs/0/queue_depth"] = json!(32);
    let rates = [1u32, 32].map(|depth| {
        changes["/groups/0/jobs/0/queue_depth"] = json!(depth);
        let mut model = Model::new(&machine(0, &[mount()]).unwrap()).unwrap();
        run(&mut model, phase(changes.clone()));
        model.world.now()
    });
    assert!(rates[1] * 2 < rates[0], "{rates:?}");
}

#[test]
fn the_probe_sees_what_a_phase_called_and_keeps_the_kernels_text() {
    let mut model = Model::new(&machine(0, &[mount()]).unwrap()).unwrap();
    run(&mut model, phase(writes(300, 1024)));
    let mut observed = unobserved(phase(writes(2000, 1024)));
    observed.probes = serde_json::from_value(json!({ "nfs": {} })).unwrap();
    let record = serde_json::to_value(run_observed(&mut model, observed)).unwrap();
    let seen = &record["probes"]["nfs"]["mounts"]["/mnt/0"];
    let write = &seen["operations"]["write"];
    assert_eq!(seen["operations"].as_object().unwrap().len(), 1);
    assert_eq!(write["ops"], 2000);
    assert_eq!(write["bytes_sent"], 2000 * 1172);
    let ms = |key: &str| write[key].as_u64().unwrap();
    assert!(ms("queue_ms") > 0 && ms("queue_ms") + ms("rtt_ms") < ms("execute_ms"));
    let text = String::from_utf8(model.take_traces().remove("mountstats").unwrap()).unwrap();
    let counted: Vec<&str> = text.lines().filter(|line| line.contains("WRITE:")).collect();
    assert!(counted[0].contains("WRITE: 300 300 0 "), "{text}");
    assert!(counted[1].contains("WRITE: 2300 2300 0 "), "{text}");
}

#[test]
fn buffered_io_on_a_mount_is_refused() {
    let mut model = Model::new(&machine(1, &[mount()]).unwrap()).unwrap();
    let mut changes = writes(100, 4096);
    changes["/groups/0/direct"] = json!(false);
    changes["/files/0/place"] = json!(1);
    let error = model.begin(unobserved(phase(changes))).unwrap_err();
    assert_eq!(error.key, "groups.0.direct");
}

#[test]
fn what_a_mount_cannot_be_is_said_with_its_key() {
    let wrong = |pointer: &str, value: Value| {
        let mut mount = mount();
        let (table, key) = pointer.rsplit_once('/').unwrap();
        mount.pointer_mut(table).unwrap()[key] = value;
        machine(0, &[mount]).unwrap_err().key
    };
    for (pointer, value, key) in [
        ("/costs/encode_ns/read", json!(u64::MAX), "mounts.0.costs.encode_ns.read"),
        ("/costs/encode_ns/read", json!("long"), "mounts.0.costs.encode_ns.read"),
        ("/transport/kernel", json!("5.4"), "mounts.0.transport.kernel"),
        ("/iommu/modes", json!("lazy"), "mounts.0.iommu.modes"),
        ("/process/spread", json!(2.0), "mounts.0.process.spread"),
    ] {
        assert_eq!(wrong(pointer, value.clone()), key, "{pointer} = {value}");
    }
    assert_eq!(machine(0, &[]).unwrap_err().key, "drives");
}
