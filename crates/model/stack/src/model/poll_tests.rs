//! Tasks that look for their completions by themselves.

use serde_json::{Value, json};

use super::tests::{load, run};
use super::*;

fn simple_cpus(count: u16) -> Value {
    json!({
        "count": count, "time_slice_ns": 3_000_000, "call_ns": 1000, "completion_ns": 1500, "interrupt_ns": 1000,
        "page_copy_ns": 300, "jitter": 0.0
    })
}

fn machine(kernel: &str, cpus: &Value, queue: Value) -> Value {
    let of_2008: Value = serde_json::from_str(include_str!("../../tests/cpus_of_2008.json")).unwrap();
    let mut machine = json!({
        "kernel": kernel,
        "cpus": cpus,
        "drives": [{
            "scheduler": "none",
            "queue": queue,
            "device": { "kind": "null", "capacity_bytes": 1u64 << 32, "latency_ns": 20_000, "queue_depth": 64 }
        }]
    });
    if cpus.get("topology").is_some() {
        machine["completion"] = of_2008["completion"].clone();
        machine["completion"].as_object_mut().unwrap().remove("variant");
    }
    machine
}

fn detailed_cpus() -> Value {
    let of_2008: Value = serde_json::from_str(include_str!("../../tests/cpus_of_2008.json")).unwrap();
    let mut cpus = of_2008["cpus"].clone();
    cpus["topology"] = json!({ "numa_nodes": 1, "sockets_per_node": 1, "cores_per_socket": 2, "threads_per_core": 1 });
    cpus["offline"] = json!([]);
    cpus
}

struct Read {
    mean_ns: f64,
    /// Of the task.
    cpu_share: f64,
    cpu_ns_per_read: f64,
    notes: Value,
}

/// 500 random reads of each of `tasks` tasks, of which this many are in flight.
fn reads(machine: Value, engine: &str, depth: u32, tasks: usize, poll: bool) -> Read {
    reads_of(4096, machine, engine, depth, tasks, poll)
}

fn reads_of(bytes: u32, machine: Value, engine: &str, depth: u32, tasks: usize, poll: bool) -> Read {
    let mut model = Model::new(&MachineSpec::from_json(machine).unwrap()).unwrap();
    let mut phase = load();
    let group = &mut phase["groups"][0];
    group["engine"] = json!(engine);
    group["poll"] = json!(poll);
    let job = &mut group["jobs"][0];
    job["read_share"] = json!(1.0);
    job["blocks"] = json!([{ "bytes": bytes, "weight": 1.0 }]);
    job["queue_depth"] = json!(depth);
    job["until"] = json!({ "ops": 500, "bytes": null, "duration_ns": null });
    let group = group.clone();
    phase["groups"] = json!(vec![group; tasks]);
    let record = run(&mut model, serde_json::from_value(phase).unwrap());
    let record = serde_json::to_value(record).unwrap();
    let group = &record["groups"][0];
    let job = &group["jobs"][0];
    assert_eq!(job["read"]["count"], json!(500));
    let used = group;
    let cpu_ns = used["cpu_user_ns"].as_f64().unwrap() + used["cpu_system_ns"].as_f64().unwrap();
    Read {
        mean_ns: job["read"]["latency"]["mean_ns"].as_f64().unwrap(),
        cpu_share: cpu_ns / record["elapsed_ns"].as_f64().unwrap(),
        cpu_ns_per_read: cpu_ns / 500.0,
        notes: group["notes"].clone(),
    }
}

#[test]
fn a_call_that_returns_what_has_completed_costs_what_the_cpus_say() {
    let mut cpus = simple_cpus(2);
    cpus["reap_call_ns"] = json!(700);
    for (engine, takes_ns) in [("psync", 2500.0), ("libaio", 3200.0), ("io_uring", 2500.0)] {
        let each = reads(machine("6.1", &cpus, json!({})), engine, 1, 1, false).cpu_ns_per_read;
        assert!((each / takes_ns - 1.0).abs() < 0.01, "{engine}: {each}");
    }
}

#[test]
fn further_pages_of_a_direct_read_cost_what_the_cpus_say() {
    let of = |further_page_ns, bytes| {
        let mut cpus = simple_cpus(2);
        cpus["further_page_ns"] = further_page_ns;
        reads_of(bytes, machine("6.1", &cpus, json!({})), "psync", 1, 1, false).cpu_ns_per_read
    };
    for (further_page_ns, bytes, takes_ns) in
        [(Value::Null, 65536, 2500.0), (json!(400), 4096, 2500.0), (json!(400), 65536, 8500.0)]
    {
        let each = of(further_page_ns, bytes);
        assert!((each / takes_ns - 1.0).abs() < 0.01, "{bytes}: {each}");
    }
}

#[test]
fn further_reads_of_a_call_cost_what_the_cpus_say() {
    let of = |further_op_ns, depth| {
        let mut cpus = simple_cpus(2);
        cpus["further_op_ns"] = further_op_ns;
        reads(machine("6.1", &cpus, json!({})), "libaio", depth, 1, false).cpu_ns_per_read
    };
    let each = of(Value::Null, 8);
    assert!((2490.0..2510.0).contains(&each), "{each}");
    assert_eq!(of(json!(0), 1), of(Value::Null, 1));
    let [less, least] = [500, 0].map(|ns| of(json!(ns), 8));
    assert!((750.0..2000.0).contains(&less) && least < less - 100.0, "{less} {least}");
}

#[test]
fn who_polls_is_told_sooner_and_has_no_cpu_left() {
    for cpus in [simple_cpus(2), detailed_cpus()] {
        let machine = || machine("6.1", &cpus, json!({ "io_poll": 1 }));
        for (engine, depth) in [("pvsync", 1), ("io_uring", 1), ("io_uring", 16)] {
            let interrupted = reads(machine(), engine, depth, 1, false);
            let polled = reads(machine(), engine, depth, 1, true);
            let what = format!("{engine} {depth}: {} and {}", polled.mean_ns, interrupted.mean_ns);
            // With more than a CPU can do, a second one that takes the interrupts is worth more than to be told sooner.
            let takes_interrupts = depth > 1 && cpus.get("topology").is_some();
            assert!(takes_interrupts || polled.mean_ns < interrupted.mean_ns - 400.0, "{what}");
            assert!(polled.cpu_share > 0.95, "{engine} {depth}: {}", polled.cpu_share);
        }
    }
}

#[test]
fn a_drive_without_polled_queues_interrupts_and_says_so() {
    let with = |queue: Value, poll| reads(machine("6.1", &simple_cpus(1), queue), "io_uring", 1, 1, poll);
    let refused = with(json!({}), true);
    assert_eq!(refused.mean_ns, with(json!({}), false).mean_ns);
    assert!(refused.notes[0].as_str().unwrap().starts_with("polled completion refused"));
}

#[test]
fn who_sleeps_first_is_told_as_soon_with_half_the_cpu() {
    let with = |delay: i64| {
        let queue = json!({ "io_poll": 1, "io_poll_delay": delay });
        // 500 reads last 12 ms; the mean is of windows of 100 ms.
        reads(machine("6.1", &simple_cpus(1), queue), "pvsync", 1, 1, true)
    };
    let (classic, fixed, long) = (with(-1), with(10), with(50));
    assert_eq!(fixed.mean_ns, classic.mean_ns);
    assert!(fixed.cpu_share < 0.65, "{}", fixed.cpu_share);
    assert!(long.mean_ns > classic.mean_ns + 20_000.0);
}

#[test]
fn more_tasks_poll_than_there_are_cpus() {
    for cpus in [simple_cpus(2), detailed_cpus()] {
        for (engine, depth) in [("pvsync", 1), ("io_uring", 64)] {
            let machine = machine("6.1", &cpus, json!({ "io_poll": 1, "nr_requests": 8 }));
            reads(machine, engine, depth, 5, true);
        }
    }
}

#[test]
fn what_cannot_be_polled_names_its_key() {
    let key =
        |kernel: &str, queue: Value| MachineSpec::from_json(machine(kernel, &simple_cpus(1), queue)).unwrap_err().key;
    assert_eq!(key("4.3", json!({ "io_poll": 1 })), "drives.0.queue.io_poll");
    assert_eq!(key("6.4", json!({ "io_poll_delay": 0 })), "drives.0.queue.io_poll_delay");
    assert_eq!(key("6.1", json!({ "io_poll_delay": -2 })), "drives.0.queue.io_poll_delay");
}
