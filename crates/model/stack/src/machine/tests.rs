use serde_json::json;

use super::*;
use block_layer::completion::RequestAffinity;

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

fn with(pointer: &str, value: Value) -> Result<MachineSpec, SpecError> {
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
    assert_eq!(drive.filesystem.unwrap().kind, filesystems::allocator::Kind::Ext3Windows);
    assert_eq!(drive.filesystem.unwrap().blocks, (1 << 34) / 4096);
    spec.build().unwrap();
    let old = with("/kernel", json!("2.4.20")).unwrap();
    assert_eq!(old.drives[0].scheduler.name(), "linus");
    assert_eq!(old.drives[0].filesystem.unwrap().kind, filesystems::allocator::Kind::Ext3);
    let new = with("/kernel", json!("6.1")).unwrap();
    assert_eq!(new.drives[0].scheduler.name(), "mq-deadline");
    assert!(new.drives[0].hardware.is_some());
}

/// Of a machine of eight CPUs with 6.1.
fn hardware(kind: &str, queue: Value, scheduler: &str) -> Result<DrivePlan, SpecError> {
    let mut device = json!({ "capacity_bytes": 1u64 << 34, "latency_ns": 1000, "queue_depth": 64 });
    if kind == "lun" {
        device = json!({
            "capacity_bytes": 1u64 << 34, "queue_depth": 64, "adapter_ns": 0, "link_ns": 0,
            "controller_ns": 40_000, "controller_commands_per_s": 30_000, "link_bytes_per_s": 200_000_000,
            "cache": {
                "line_bytes": 4096, "read_bytes": 1 << 27, "write_bytes": 1 << 27,
                "high_percent": 80, "low_percent": 40, "idle_flush_ns": 1_000_000
            },
            "back_end": { "access_ns": 6_000_000, "servers": 6, "bytes_per_s": 170_000_000 }
        });
    }
    device["kind"] = json!(kind);
    let spec = changed(
        machine(),
        &[
            ("/kernel", json!("6.1")),
            ("/cpus/count", json!(8)),
            ("/drives/0/device", device),
            ("/drives/0/queue", queue),
            ("/drives/0/scheduler", json!(scheduler)),
        ],
    )?;
    Ok(spec.drives.into_iter().next().unwrap())
}

#[test]
fn each_hardware_queue_has_the_devices_depth() {
    let drive = hardware("null", json!({ "hardware_queues": 8 }), "none").unwrap();
    let queues = drive.hardware.unwrap();
    assert_eq!((queues.depth, queues.shared_tags), (64, false));
    assert_eq!(drive.rules.pool.requests, 64);
    let drive = hardware("null", json!({ "hardware_queues": 8 }), "mq-deadline").unwrap();
    assert_eq!(drive.rules.pool.requests, 128);
    // A SCSI device's depth is its own, whatever its adapter has.
    let drive = hardware("lun", json!({ "hardware_queues": 8 }), "none").unwrap();
    assert!(drive.hardware.unwrap().shared_tags);
}

#[test]
fn nr_requests_limits_tags_and_never_adds_any() {
    let given = |scheduler, requests| {
        let queue = json!({ "hardware_queues": 4, "nr_requests": requests });
        let drive = hardware("null", queue, scheduler).map_err(|error| error.key)?;
        Ok((drive.hardware.unwrap().depth, drive.rules.pool.requests))
    };
    let no = || Err("drives.0.queue.nr_requests".to_owned());
    assert_eq!(given("none", 16), Ok((16, 16)));
    assert_eq!(given("none", 65), no());
    assert_eq!(given("mq-deadline", 16), Ok((64, 16)));
    assert_eq!(given("mq-deadline", 2048), Ok((64, 2048)));
    assert_eq!(given("mq-deadline", 2049), no());
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
        ("/drives/0/device/kind", json!("tape"), "drives.0.device.kind"),
        ("/drives/0/device/capacity_bytes", json!(0), "drives.0.device.capacity_bytes"),
        ("/drives/0/device/depth", json!(1), "drives.0.device.depth"),
        ("/drives/0/filesystem/kind", json!("ext9"), "drives.0.filesystem.kind"),
        ("/drives/0/filesystem/blocks", json!(1u64 << 40), "drives.0.filesystem.blocks"),
        ("/drives/0/scheduler", json!("kyber"), "drives.0.scheduler"),
        ("/drives/0/scheduler", json!({"name": "cfq", "quantums": 8}), "drives.0.scheduler.quantums"),
        ("/drives/0/scheduler", json!({"name": "cfq", "quantum": "many"}), "drives.0.scheduler.quantum"),
        ("/drives/0/queue", json!({"nr_requests": 1}), "drives.0.queue.nr_requests"),
        ("/drives/0/queue", json!({"read_ahead_kb": 1 << 20}), "drives.0.queue.read_ahead_kb"),
        ("/io_priority", json!("be/9"), "io_priority"),
        ("/cgroups", json!([{"name": "a", "weight": 0}]), "cgroups.0.weight"),
    ] {
        match with(pointer, value.clone()) {
            Ok(_) => panic!("{pointer} = {value} is accepted"),
            Err(error) => assert_eq!(error.key, key, "{pointer} = {value}: {error}"),
        }
    }
}

#[test]
fn control_groups_have_numbers_behind_the_root() {
    let spec = with("/cgroups", json!([{"name": "a", "weight": 100}, {"name": "b", "weight": 200}])).unwrap();
    assert_eq!((spec.cgroup("a"), spec.cgroup("b"), spec.cgroup("c")), (Some(1), Some(2), None));
}

/// Four NUMA nodes of two CPUs.
pub(crate) fn detailed() -> Value {
    let mut machine = machine();
    machine["kernel"] = json!("2.6.24-kthread");
    let mut of_2008: Value = serde_json::from_str(include_str!("../../tests/cpus_of_2008.json")).unwrap();
    machine["cpus"] = of_2008["cpus"].take();
    machine["completion"] = of_2008["completion"].take();
    machine["cpus"]["topology"] =
        json!({ "numa_nodes": 4, "sockets_per_node": 2, "cores_per_socket": 1, "threads_per_core": 1 });
    machine["cpus"]["offline"] = json!([{ "cpu": 3, "from_ns": 1_000 }]);
    machine
}

fn changed(mut machine: Value, changes: &[(&str, Value)]) -> Result<MachineSpec, SpecError> {
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        machine.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    MachineSpec::from_json(machine)
}

#[test]
fn detailed_cpus_are_told_by_their_topology() {
    let spec = changed(detailed(), &[]).unwrap();
    spec.build().unwrap();
    assert_eq!(spec.allowed_cpus(&[7, 0]).unwrap(), [7, 0]);
    assert_eq!(spec.allowed_cpus(&[8]).unwrap_err().key, "cpus");
    let simple = changed(machine(), &[]).unwrap();
    assert_eq!(simple.allowed_cpus(&[0]).unwrap_err().key, "cpus");
}

#[test]
fn a_beginning_of_tasks_that_the_kernel_does_not_know_is_refused() {
    let of = |kernel: &str| {
        let keys =
            [("/kernel", json!(kernel)), ("/cpus/count", json!(1)), ("/cpus/start", json!({ "lead_ns": 7_000_000 }))];
        changed(machine(), &keys).unwrap().build()
    };
    assert!(of("2.6.35").is_ok() && of("6.1").is_ok());
    for kernel in ["2.6.18", "6.6", "6.12"] {
        assert_eq!(of(kernel).err().unwrap().key, "cpus.start");
    }
}

#[test]
fn timers_interrupt_one_cpu_before_null_devices_of_blk_mq() {
    let interrupts = json!({
        "first_ns": 3_800, "further_ns": 2_200, "calls_thread_ns": 3_200, "switch_ns": 1_200, "thread_ns": 2_900,
        "thread_ends_ns": 3_000, "dequeue_ns": 800, "issue_ns": 1_300, "after_issue_ns": 500
    });
    let of = |changes: &[(&str, Value)]| {
        let mut all =
            vec![("/kernel", json!("6.12")), ("/cpus/count", json!(1)), ("/cpus/timer_interrupts", interrupts.clone())];
        all.extend_from_slice(changes);
        changed(machine(), &all).and_then(|spec| spec.build().map(|_| ()))
    };
    assert!(of(&[]).is_ok());
    let key = |changes: &[(&str, Value)]| of(changes).unwrap_err().key;
    assert_eq!(key(&[("/cpus/count", json!(2))]), "cpus.timer_interrupts");
    assert_eq!(key(&[("/kernel", json!("2.6.35"))]), "drives.0.device");
    assert_eq!(key(&[("/cpus/timer_interrupts/first_ns", json!(u64::MAX))]), "cpus.timer_interrupts.first_ns");
}

#[test]
fn words_for_places_become_cpus() {
    let places = |affinity: Value| {
        let drive = [("/drives/0/interrupt_cpu", json!(6)), ("/drives/0/affinity", affinity)];
        let spec = changed(detailed(), &drive).unwrap();
        spec.cpus.placements(&spec.drives)[0].clone()
    };
    let of = |a: Value, q: Value, c: Value| {
        let found = places(json!({ "application": a, "queue": q, "completion": c }));
        (found.application, found.affinity.queue, found.affinity.completion)
    };
    let (a, i, x) = (json!("application"), json!("interrupt"), json!("other"));
    let cpus = |a: u16, q: u16, c: u16| (Some(a), Some(q), Some(c));
    assert_eq!(of(x.clone(), a.clone(), i.clone()), cpus(0, 0, 6));
    assert_eq!(of(x.clone(), x.clone(), x.clone()), cpus(0, 2, 4));
    assert_eq!(of(i.clone(), a, x.clone()), cpus(6, 6, 0));
    assert_eq!(of(json!(1), x.clone(), x), cpus(1, 2, 4));
    assert_eq!(places(json!({})).application, None);
}

#[test]
fn kernels_without_the_knobs_have_the_cells_that_their_rules_come_to() {
    let requests = |kernel: &str, queue: &str, completion: &str| {
        let affinity = json!({ "application": "other", "queue": queue, "completion": completion });
        let changes = [
            ("/kernel", json!(kernel)),
            ("/drives/0/scheduler", json!("noop")),
            ("/drives/0/interrupt_cpu", json!(6)),
            ("/drives/0/affinity", affinity),
        ];
        let spec = changed(detailed(), &changes).map_err(|error| error.key)?;
        let found = spec.cpus.placements(&spec.drives)[0].affinity;
        assert_eq!((found.queue, found.completion), (None, None));
        Ok(found.requests)
    };
    let no = |key: &str| Err(format!("drives.0.affinity.{key}"));
    use RequestAffinity::{Exact, Interrupted};
    assert_eq!(requests("3.10", "application", "interrupt"), Ok(Interrupted));
    assert_eq!(requests("3.10", "application", "application"), Ok(Exact));
    assert_eq!(requests("3.10", "application", "other"), no("completion"));
    assert_eq!(requests("3.10", "interrupt", "interrupt"), no("queue"));
    assert_eq!(requests("2.6.20", "application", "interrupt"), Ok(Interrupted));
    assert_eq!(requests("2.6.20", "application", "application"), no("completion"));
}

#[test]
fn what_only_detailed_cpus_have_is_refused_with_its_key() {
    for (pointer, value, key) in [
        ("/completion", json!({}), "completion"),
        ("/drives/0/interrupt_cpu", json!(0), "drives.0.interrupt_cpu"),
        ("/drives/0/affinity", json!({}), "drives.0.affinity"),
        ("/drives/0/queue", json!({ "rq_affinity": 1 }), "drives.0.queue.rq_affinity"),
        ("/drives/0/dma", json!({ "near_bytes_per_s": 1 << 30, "far_bytes_per_s": 1 << 30 }), "drives.0.dma"),
    ] {
        let error = changed(machine(), &[(pointer, value)]).unwrap_err();
        assert_eq!(error.key, key, "{error}");
    }
}

#[test]
fn what_detailed_cpus_cannot_do_is_said_with_its_key() {
    for (pointer, value, key) in [
        ("/cpus/cores", json!(2), "cpus.cores"),
        ("/cpus/topology/numa_nodes", json!(0), "cpus.topology"),
        ("/cpus/clock_hz", json!("fast"), "cpus.clock_hz"),
        ("/cpus/submit_cycles", json!(u32::MAX), "cpus.submit_cycles"),
        ("/cpus/jitter", json!(2.0), "cpus.jitter"),
        ("/cpus/offline", json!([{ "cpu": 8, "from_ns": 0 }]), "cpus.offline.0.cpu"),
        ("/completion", json!(null), "completion"),
        ("/completion/variant", json!("magic"), "completion.variant"),
        ("/completion/interrupt_stalled_cycles", json!(9_000), "completion.interrupt_stalled_cycles"),
        ("/drives/0/interrupt_cpu", json!(8), "drives.0.interrupt_cpu"),
        ("/drives/0/affinity", json!({ "application": "here" }), "drives.0.affinity.application"),
        ("/drives/0/affinity", json!({ "queue": "application" }), "drives.0.affinity.queue"),
        ("/drives/0/affinity", json!({ "completion": 8 }), "drives.0.affinity.completion"),
        ("/drives/0/queue", json!({ "rq_affinity": 2 }), "drives.0.queue.rq_affinity"),
        ("/drives/0/queue", json!({ "rq_affinity": 3 }), "drives.0.queue.rq_affinity"),
        (
            "/drives/0/dma",
            json!({ "near_bytes_per_s": 0, "far_bytes_per_s": 1 << 30 }),
            "drives.0.dma.near_bytes_per_s",
        ),
    ] {
        match changed(detailed(), &[("/drives/0/scheduler", json!("noop")), (pointer, value.clone())]) {
            Ok(_) => panic!("{pointer} = {value} is accepted"),
            Err(error) => assert_eq!(error.key, key, "{pointer} = {value}: {error}"),
        }
    }
    let of_2_6_24 = [("/kernel", json!("2.6.24")), ("/drives/0/affinity", json!({ "queue": 1 }))];
    let error = changed(detailed(), &of_2_6_24).unwrap_err();
    assert_eq!(error.key, "drives.0.affinity.queue");
}
