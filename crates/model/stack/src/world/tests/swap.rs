//! Invariants of every run, and what becomes of the load of 2003 in small.

use proptest::prelude::*;

use crate::machine::MachineSpec;
use crate::world::{PhaseSpec, World};
use events::SpecError;
use memory::swap::*;
use serde_json::json;

const MIB: u64 = 1 << 20;

fn machine(kernel: &str, swap: serde_json::Value) -> MachineSpec {
    let device: serde_json::Value =
        toml::from_str(include_str!("../../../../../../machines/devices/scsi_10k_2003.toml")).unwrap();
    MachineSpec::from_json(json!({
        "kernel": kernel,
        "cpus": {
            "count": 4, "time_slice_ns": 100_000_000, "call_ns": 6000, "completion_ns": 6000,
            "page_copy_ns": 44000, "jitter": 0.0
        },
        "drives": [{ "device": device }],
        "swap": swap
    }))
    .unwrap()
}

fn swap() -> serde_json::Value {
    json!({ "drive": 0, "bytes": 256 * MIB, "number_ns": 20.0, "fault_ns": 3000, "scan_ns": 200 })
}

fn load(memory_mib: u64, processes: u32, share_percent: u64, seed: u64) -> SortLoad {
    SortLoad {
        processes,
        process_bytes: memory_mib * MIB * share_percent / 100,
        passes: 1,
        memory_bytes: memory_mib * MIB,
        swap_bytes: None,
        seed,
    }
}

fn begun(machine: &MachineSpec, load: &SortLoad) -> World {
    let area = machine.swap_area(load).unwrap();
    let mut world = machine.build().unwrap();
    world.begin_phase(&PhaseSpec::without_loads(1)).unwrap();
    world.begin_sorting(&area, load);
    world
}

fn ended(mut world: World) -> Results {
    let results = world.end_sorting();
    world.end_phase();
    world.check().unwrap();
    results
}

fn sorted(kernel: &str, swap: serde_json::Value, load: &SortLoad) -> Results {
    let mut world = begun(&machine(kernel, swap), load);
    world.run(|_| true);
    ended(world)
}

/// When the processes finished, in seconds, first to last.
fn finished(results: &Results) -> Vec<f64> {
    let times = results.processes.iter().map(|one| one.finished_ns.unwrap());
    let mut times: Vec<f64> = times.map(|time| time as f64 / 1e9).collect();
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn what_fits_is_never_swapped() {
    for kernel in ["2.4.20", "2.5.59"] {
        let results = sorted(kernel, swap(), &load(32, 4, 24, 1));
        assert_eq!((results.swap_in_bytes, results.swap_out_bytes), (0, 0));
        let times = finished(&results);
        assert!(times[3] < 1.1 * times[0], "{kernel}: {times:?}");
    }
}

/// Four processes of 30 % each.
#[test]
fn under_2_4_somebody_runs_ahead_and_under_2_5_all_thrash() {
    let mut elapsed = [0.0; 2];
    let mut read = [0; 2];
    for seed in 1..=3 {
        let load = load(96, 4, 30, seed);
        let [old, new] = ["2.4.20", "2.5.59"].map(|kernel| sorted(kernel, swap(), &load));
        let alone = SortLoad { processes: 1, ..load };
        let alone = finished(&sorted("2.4.20", swap(), &alone))[0];
        let (first, last) = (finished(&old)[0], finished(&old)[3]);
        assert!(first < 2.0 * alone, "seed {seed}: {first} s, alone {alone} s");
        assert!(last > 1.4 * first, "seed {seed}: {first} s and {last} s");
        for (kernel, results) in [&old, &new].into_iter().enumerate() {
            elapsed[kernel] += finished(results)[3];
            read[kernel] += results.swap_in_bytes;
        }
    }
    assert!(elapsed[1] > 1.5 * elapsed[0], "{elapsed:?}");
    assert!(read[1] > 2 * read[0], "{read:?}");
}

/// What decides it: the same kernel, made to walk the page tables of all processes in turn.
#[test]
#[ignore = "long: `make test-all` runs it"]
fn a_walk_that_changes_the_process_after_each_call_thrashes_too() {
    let mut in_turn = swap();
    in_turn["walk_pages"] = json!(32);
    for seed in 1..=3 {
        let load = load(96, 4, 30, seed);
        let staying = sorted("2.4.20", swap(), &load);
        let turning = sorted("2.4.20", in_turn.clone(), &load);
        assert!(
            turning.swap_in_bytes as f64 > 1.5 * staying.swap_in_bytes as f64,
            "seed {seed}: {} and {} bytes read",
            turning.swap_in_bytes,
            staying.swap_in_bytes
        );
    }
}

#[test]
fn a_stop_leaves_everything_in_order() {
    let mut world = begun(&machine("2.5.59", swap()), &load(32, 4, 30, 1));
    let mut asked = 0;
    world.run(|_| {
        asked += 1;
        asked < 2
    });
    let results = ended(world);
    assert!(results.processes.iter().any(|one| one.finished_ns.is_none()));
}

#[test]
fn what_has_no_room_is_said_with_its_key() {
    let refused = |load: SortLoad| machine("2.4.20", swap()).swap_area(&load).unwrap_err();
    let good = load(32, 4, 30, 1);
    for (load, key) in [
        (SortLoad { processes: 0, ..good }, "processes"),
        (SortLoad { processes: 64, ..good }, "process_bytes"),
        (SortLoad { process_bytes: 3, ..good }, "process_bytes"),
        (SortLoad { passes: 0, ..good }, "passes"),
        (SortLoad { memory_bytes: 4096, ..good }, "memory_limit_bytes"),
        (SortLoad { swap_bytes: Some(257 * MIB), ..good }, "swap_bytes"),
        (SortLoad { swap_bytes: Some(4 * MIB), ..good }, "process_bytes"),
    ] {
        assert_eq!(refused(load).key, key, "{load:?}");
    }
}

#[test]
fn a_table_of_the_file_that_is_wrong_is_said_with_its_key() {
    for (key, value) in [
        ("drive", json!(1)),
        ("bytes", json!(u64::MAX)),
        ("page_cluster", json!(11)),
        ("number_ns", json!(-1.0)),
        ("fault_ns", json!(u64::MAX)),
        ("scan_ns", json!("long")),
        ("walk_pages", json!(0)),
        ("priority", json!(1)),
    ] {
        let mut table = swap();
        table[key] = value;
        let error = MachineSpec::from_json(json!({
            "kernel": "2.4.20",
            "cpus": {
                "count": 1, "time_slice_ns": 1, "call_ns": 1, "completion_ns": 1, "page_copy_ns": 1, "jitter": 0.0
            },
            "drives": [{
                "device": { "kind": "null", "capacity_bytes": 1u64 << 40, "latency_ns": 1000, "queue_depth": 1 }
            }],
            "swap": table
        }));
        let SpecError { key: blamed, .. } = error.unwrap_err();
        assert_eq!(blamed, format!("swap.{key}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Everybody comes to an end, and `check` finds each page in one place, no frame and no slot lost.
    #[test]
    #[ignore = "long: `make test-all` runs it"]
    fn nobody_starves_and_nothing_is_lost(
        kernel in prop::sample::select(vec!["2.4.20", "2.5.59", "2.6.10"]),
        memory_mib in 1u64..12,
        processes in 1u32..7,
        share_percent in 5u64..70,
        passes in 1u32..3,
        swap_percent in 0u64..300,
        page_cluster in 0u32..6,
        walk_pages in prop::option::of(1u64..200),
        seed: u64,
    ) {
        let load = SortLoad { passes, ..load(memory_mib, processes, share_percent, seed) };
        // Down to what is just enough.
        let beyond = (u64::from(processes) * load.process_bytes + MIB).saturating_sub(load.memory_bytes);
        let bytes = beyond + 2 * MIB + memory_mib * MIB * swap_percent / 100;
        let table = json!({
            "drive": 0, "bytes": bytes, "page_cluster": page_cluster, "walk_pages": walk_pages,
            "number_ns": 5.0, "fault_ns": 3000, "scan_ns": 200
        });
        let results = sorted(kernel, table, &load);
        prop_assert!(results.processes.iter().all(|one| one.finished_ns.is_some()));
        prop_assert!(results.memory_bytes_max <= load.memory_bytes);
        prop_assert!(results.swap_bytes_max <= bytes);
    }
}
