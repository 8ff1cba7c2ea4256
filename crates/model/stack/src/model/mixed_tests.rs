//! Buffered and direct jobs, rings and fsync beside one another, on old and new kernels: all of it ends, and nothing is lost.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::flush_tests::disk;
use super::tests::{load, run};
use super::*;
use kernels::Kernel;

fn flash() -> Value {
    json!({
        "kind": "flash", "queue_depth": 4,
        "geometry": {
            "channels": 2, "dies_per_channel": 2, "planes_per_die": 1, "blocks_per_plane": 64, "pages_per_block": 256,
            "page_bytes": 8192, "over_provision_per_mille": 200
        },
        "timing": {
            "page_read_ns": 75_000, "page_program_ns": 750_000, "block_erase_ns": 3_800_000,
            "channel_bytes_per_s": 333_000_000
        },
        "firmware": {
            "command_ns": 7_000, "cores": 1, "unit_bytes": 4096, "buffer_bytes": 1 << 20, "buffer_ns_max": 10_000_000,
            "collect_per_mille": 50, "collect_only_per_mille": 5, "read_first": true, "filled": false
        },
        "interface": { "bytes_per_s": 1_000_000_000, "half_duplex": false }
    })
}

/// A job of this many operations on a file of its own.
#[derive(Clone, Debug)]
struct MixedJob {
    engine: &'static str,
    direct: bool,
    depth: u32,
    read_share: f64,
    sync_every: Option<u64>,
    random: bool,
}

fn asked() -> impl Strategy<Value = MixedJob> {
    let depth = prop::sample::select(vec![1u32, 3, 40]);
    let share = prop::sample::select(vec![0.0, 0.5, 1.0]);
    let sync = prop::option::of(1u64..20);
    (0u8..3, depth, share, sync, any::<bool>()).prop_map(|(path, depth, read_share, sync_every, random)| MixedJob {
        engine: if path == 2 { "io_uring" } else { "psync" },
        direct: path > 0,
        depth: if path == 2 { depth } else { 1 },
        read_share,
        sync_every: sync_every.filter(|_| read_share < 1.0),
        random,
    })
}

fn phase_of(jobs: &[MixedJob]) -> Value {
    let mut phase = load();
    let (file, group) = (phase["files"][0].clone(), phase["groups"][0].clone());
    phase["files"] = json!([]);
    phase["groups"] = json!([]);
    for (number, asked) in jobs.iter().enumerate() {
        let mut file = file.clone();
        file["path"] = json!(format!("f{number}"));
        file["size_bytes"] = json!(16 << 20);
        phase["files"].as_array_mut().unwrap().push(file);
        let mut group = group.clone();
        group["name"] = json!(format!("g{number}"));
        group["engine"] = json!(asked.engine);
        group["direct"] = json!(asked.direct);
        let job = &mut group["jobs"][0];
        job["files"] = json!([number]);
        job["queue_depth"] = json!(asked.depth);
        job["read_share"] = json!(asked.read_share);
        job["length_bytes"] = json!(16 << 20);
        job["until"]["ops"] = json!(300);
        if !asked.random {
            job["pattern"] = json!({ "kind": "sequential" });
            job["blocks"] = json!([{ "bytes": 65_536, "weight": 1.0 }]);
        }
        job["sync"] = match asked.sync_every {
            None => Value::Null,
            Some(every) => json!({ "kind": "fsync", "every_writes": every }),
        };
        phase["groups"].as_array_mut().unwrap().push(group);
    }
    phase
}

/// Direct jobs are in two groups by turns, the first of which has a latency, or half of the drive's time is shared.
fn control(controller: &str, machine: &mut Value, phase: &mut Value) {
    machine["cgroups"] = json!([{ "name": "first", "weight": 100 }, { "name": "other", "weight": 300 }]);
    match controller {
        "io.latency" => machine["cgroups"][0]["io_latency_ns"] = json!(100_000),
        _ => machine["io_cost"] = json!({ "qos": { "min": 50, "max": 50 } }),
    }
    let direct = phase["groups"].as_array_mut().unwrap().iter_mut();
    for (number, group) in direct.filter(|group| group["direct"] == true).enumerate() {
        group["cgroup"] = json!(["first", "other"][number % 2]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_runs_beside_whatever_ends(
        jobs in prop::collection::vec(asked(), 1..5),
        kernel in prop::sample::select(vec!["2.4.20", "2.5.59", "2.6.35", "3.10", "4.19", "5.15", "6.12"]),
        scheduler in prop::sample::select(vec!["none", "mq-deadline", "kyber", "bfq"]),
        on_flash: bool,
        filesystem: bool,
        megabytes in prop::sample::select(vec![4u64, 64]),
        controller in prop::sample::select(vec!["", "io.latency", "io.cost"]),
    ) {
        let mut drive = json!({ "device": if on_flash { flash() } else { disk() } });
        if Kernel::named(kernel).unwrap().throttles_writeback() {
            drive["scheduler"] = json!(scheduler);
        }
        if filesystem {
            drive["filesystem"] = json!({ "kind": "ext3", "start_colours": false });
        }
        let mut phase = phase_of(&jobs);
        let mut machine = json!({
            "kernel": kernel,
            "cpus": {
                "count": 2, "time_slice_ns": 3_000_000, "call_ns": 2000, "completion_ns": 2000,
                "page_copy_ns": 300, "jitter": 0.05
            },
            "memory": { "bytes": megabytes << 20 },
            "drives": [drive]
        });
        if !controller.is_empty() && Kernel::named(kernel).unwrap().shares_by_cost() {
            control(controller, &mut machine, &mut phase);
        }
        let machine = MachineSpec::from_json(machine).unwrap();
        let mut model = Model::new(&machine).unwrap();
        let record = run(&mut model, serde_json::from_value(phase).unwrap());
        let record = serde_json::to_value(record).unwrap();
        for number in 0..jobs.len() {
            let job = &record["groups"][number]["jobs"][0];
            let ops = job["read"]["count"].as_u64().unwrap() + job["write"]["count"].as_u64().unwrap();
            prop_assert_eq!(ops, 300, "{} of {:?}", number, jobs);
        }
    }
}
