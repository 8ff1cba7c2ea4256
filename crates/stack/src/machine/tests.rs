use serde_json::json;

use super::*;

fn machine() -> Value {
    json!({
        "title": "a disk",
        "kernel": "2.6.35-group-idle-v2",
        "cpus": {
            "count": 2, "time_slice_ns": 100_000_000, "call_ns": 2000, "completion_ns": 2000,
            "page_copy_ns": 1000, "jitter": 0.05
        },
        "memory": { "bytes": 1u64 << 30 },
        "drives": [{
            "device": { "kind": "null", "capacity_bytes": 1u64 << 34, "latency_ns": 1000, "queue_depth": 32 },
            "filesystem": { "kind": "ext3" }
        }]
    })
}

fn with(pointer: &str, value: Value) -> Result<MachineSpec, Impossible> {
    let mut machine = machine();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    machine.pointer_mut(parent).unwrap()[key] = value;
    MachineSpec::from_json(machine)
}

#[test]
fn a_machine_has_what_its_kernel_has() {
    let spec = MachineSpec::from_json(machine()).unwrap();
    let drive = &spec.drives[0];
    assert_eq!(drive.scheduler.version(), "2.6.35-group-idle-v2");
    assert_eq!(
        drive.filesystem.unwrap().kind,
        crate::allocator::Kind::Ext3Windows
    );
    assert_eq!(drive.filesystem.unwrap().blocks, (1 << 34) / 4096);
    spec.build().unwrap();
    let old = with("/kernel", json!("2.4.20")).unwrap();
    assert_eq!(old.drives[0].scheduler.name(), "linus");
    assert_eq!(
        old.drives[0].filesystem.unwrap().kind,
        crate::allocator::Kind::Ext3
    );
    let new = with("/kernel", json!("6.1")).unwrap();
    assert_eq!(new.drives[0].scheduler.name(), "mq-deadline");
    assert!(new.drives[0].hardware.is_some());
}

#[test]
fn what_is_impossible_is_said_with_its_key() {
    for (pointer, value, key) in [
        ("/kernel", json!("2.2"), "kernel"),
        ("/hz", json!(0), "hz"),
        ("/cpus/count", json!(0), "cpus.count"),
        ("/cpus/count", json!("two"), "cpus.count"),
        ("/cpus/call_ns", json!(u64::MAX), "cpus.call_ns"),
        ("/cpus/jitter", json!(2.0), "cpus.jitter"),
        ("/cpus/cores", json!(2), "cpus.cores"),
        ("/cpus/clock_hz", json!(0), "cpus.clock_hz"),
        ("/memory/bytes", json!(0), "memory.bytes"),
        ("/memory/dirty_percent", json!(0), "memory.dirty_percent"),
        ("/drives", json!([]), "drives"),
        ("/drives/0/device", json!("sda"), "drives.0.device"),
        (
            "/drives/0/device/kind",
            json!("tape"),
            "drives.0.device.kind",
        ),
        (
            "/drives/0/device/capacity_bytes",
            json!(0),
            "drives.0.device.capacity_bytes",
        ),
        ("/drives/0/device/depth", json!(1), "drives.0.device.depth"),
        (
            "/drives/0/filesystem/kind",
            json!("ext9"),
            "drives.0.filesystem.kind",
        ),
        (
            "/drives/0/filesystem/blocks",
            json!(1u64 << 40),
            "drives.0.filesystem.blocks",
        ),
        ("/drives/0/scheduler", json!("kyber"), "drives.0.scheduler"),
        (
            "/drives/0/scheduler",
            json!({"name": "cfq", "quantums": 8}),
            "drives.0.scheduler.quantums",
        ),
        (
            "/drives/0/scheduler",
            json!({"name": "cfq", "quantum": "many"}),
            "drives.0.scheduler.quantum",
        ),
        (
            "/drives/0/queue",
            json!({"nr_requests": 1}),
            "drives.0.queue.nr_requests",
        ),
        (
            "/drives/0/queue",
            json!({"read_ahead_kb": 1 << 20}),
            "drives.0.queue.read_ahead_kb",
        ),
        ("/io_priority", json!("be/9"), "io_priority"),
        (
            "/cgroups",
            json!([{"name": "a", "weight": 0}]),
            "cgroups.0.weight",
        ),
    ] {
        match with(pointer, value.clone()) {
            Ok(_) => panic!("{pointer} = {value} is accepted"),
            Err(error) => assert_eq!(error.key, key, "{pointer} = {value}: {error}"),
        }
    }
}

#[test]
fn control_groups_have_numbers_behind_the_root() {
    let spec = with(
        "/cgroups",
        json!([{"name": "a", "weight": 100}, {"name": "b", "weight": 200}]),
    )
    .unwrap();
    assert_eq!(
        (spec.cgroup("a"), spec.cgroup("b"), spec.cgroup("c")),
        (Some(1), Some(2), None)
    );
}
