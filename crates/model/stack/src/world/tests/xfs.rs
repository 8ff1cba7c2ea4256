mod data;
mod drive;
mod loads;

use std::ops::Deref;

use proptest::prelude::*;
use serde_json::{Value, json};
use workload::metadata::{CREATE, MetadataPhase, ThreadMeasured};

use crate::machine::MachineSpec;
use crate::world::{PhaseSpec, World};
use events::SpecError;
use events::station::Violation;
use filesystems::filesystem::Results;
use filesystems::switches::SwitchesOptions;
use filesystems::xfs::{small_filesystem as filesystem, *};

fn processors(cores: u16, stays: bool) -> Value {
    json!({
        "topology": { "numa_nodes": 1, "sockets_per_node": 1, "cores_per_socket": cores, "threads_per_core": 1 },
        "clock_hz": 2_000_000_000u64, "transfer_cycles": [40, 80, 80, 200], "computing_stall_per_mille": 0,
        "submit_cycles": 5000, "user_cycles": 2000, "reap_cycles": 500, "page_copy_cycles": 2500, "jitter": 0.0,
        "interrupts": { "send_cycles": 700, "latency_ns": 1000, "latency_other_node_ns": 1000, "receive_cycles": 1000 },
        "scheduling": {
            "time_slice_ns": 4_000_000, "preempt_after_ns": 100_000_000, "wake_cycles": 1000, "switch_cycles": 2000,
            "task_lines": 4, "run_queue_lines": 2, "migrates_within": if stays { "core" } else { "machine" }
        },
        "idle_states": []
    })
}

fn simple(count: u16) -> Value {
    json!({
        "count": count, "time_slice_ns": 4_000_000, "call_ns": 2000, "completion_ns": 2000, "page_copy_ns": 1000,
        "jitter": 0.0, "clock_hz": 2_000_000_000u64
    })
}

/// The filesystem on a machine whose drive takes this long for everything.
struct Machine(World);

impl Machine {
    fn with_drive(cpus: Value, latency_ns: u64, spec: &XfsSpec, form: Allocation) -> Machine {
        Machine::with_depth(cpus, (latency_ns, 32), spec, form)
    }

    /// This many commands at once, each of which takes this long.
    fn with_depth(cpus: Value, (latency_ns, depth): (u64, u32), spec: &XfsSpec, form: Allocation) -> Machine {
        let drive = (latency_ns, depth);
        Machine::with_checkpoints(cpus, drive, spec, form, Checkpoints::ByCommitter)
    }

    fn with_checkpoints(
        cpus: Value,
        (latency_ns, depth): (u64, u32),
        spec: &XfsSpec,
        form: Allocation,
        checkpoints: Checkpoints,
    ) -> Machine {
        let mut file = json!({
            "kernel": "3.4",
            "cpus": cpus,
            "drives": [{
                "device": {
                    "kind": "null", "capacity_bytes": 1u64 << 40, "latency_ns": latency_ns, "queue_depth": depth
                },
                "scheduler": "noop"
            }]
        });
        let count = file["cpus"]["count"].as_u64();
        let cores = file["cpus"]["topology"]["cores_per_socket"].as_u64();
        if cores.is_some() {
            file["completion"] = json!({
                "interrupt_cycles": 3000, "interrupt_stalled_cycles": 1000, "softirq_cycles": 300,
                "complete_cycles": 3000, "enter_cycles": 1500, "hand_over_cycles": 200, "splice_cycles": 200,
                "shares_cache": "socket", "request_lines": 4, "bio_lines": 2, "control_block_lines": 7, "list_lines": 2
            });
        }
        let cpus = count.or(cores).unwrap() as u16;
        let world = MachineSpec::from_json(file).unwrap().build().unwrap();
        let below = Platform { cpus, ..some_drive() };
        let mounted = Xfs::new(&below, spec, form).unwrap();
        Machine(world.with_xfs(0, mounted.with_checkpoints(checkpoints)))
    }

    fn new(cpus: Value, spec: &XfsSpec, form: Allocation) -> Machine {
        Machine::with_drive(cpus, 20_000, spec, form)
    }

    fn begin(&mut self, phase: &MetadataPhase, switches: bool) -> Result<(), SpecError> {
        let options = SwitchesOptions { interval_ns: 1_000_000_000 };
        self.0.begin_phase(&PhaseSpec::without_loads(1)).unwrap();
        self.0.begin_metadata(0, phase, switches.then_some(&options))
    }

    fn end(&mut self) -> Results {
        let results = self.0.end_metadata(0);
        self.0.end_phase();
        results
    }
}

impl Deref for Machine {
    type Target = Xfs;

    fn deref(&self) -> &Xfs {
        self.0.xfs(0)
    }
}

fn phase(threads: u32, files: u64, changes: serde_json::Value) -> MetadataPhase {
    let threads = (0..threads).map(|number| {
        let mut thread = json!({
            "directory": format!("d{number}"), "paths": "full", "cpus": null,
            "job": {
                "name": format!("thread.{number}"), "files": files, "file_bytes": 0, "write_bytes": 1, "sync": "none",
                "keep": true, "until_full": false,
                "subdirectories": { "count": 5, "first": 3, "next_after": { "files": 700 } },
                "names": { "bytes": 40, "random_bytes": 24, "first": 0, "step": 1 }, "seed": number + 7
            }
        });
        for (pointer, value) in changes.as_object().unwrap() {
            *thread.pointer_mut(pointer).unwrap() = value.clone();
        }
        thread
    });
    serde_json::from_value(json!({ "name": "p", "threads": threads.collect::<Vec<_>>() })).unwrap()
}

fn mounted(allocation: Allocation) -> Machine {
    Machine::new(processors(4, false), &filesystem(8), allocation)
}

fn run(machine: &mut Machine, phase: &MetadataPhase) -> Results {
    machine.begin(phase, true).unwrap();
    machine.0.run(|_| true);
    // Flushers end what they do.
    machine.0.settle_filesystem(0);
    let results = machine.end();
    machine.0.check().unwrap();
    results
}

fn files(results: &Results) -> u64 {
    let of = |thread: &Option<ThreadMeasured>| thread.as_ref().unwrap().ops[CREATE].latency.count();
    results.threads.iter().map(of).sum()
}

fn elapsed_ns(results: &Results) -> u64 {
    results.threads.iter().flatten().map(|thread| thread.finished_at).max().unwrap()
}

#[test]
fn one_thread_makes_files_at_the_speed_of_its_calls() {
    let mut machine = mounted(Allocation::Direct);
    let results = run(&mut machine, &phase(1, 5_000, json!({})));
    assert_eq!(files(&results), 5_000);
    // 94,000 cycles at 2 GHz, and some for chunks, blocks and the scan.
    let each = elapsed_ns(&results) / 5_000;
    assert!((47_000..52_000).contains(&each), "{each}");
    assert_eq!(results.switches.unwrap().report.by_state["disk_sleep"], 0);
}

#[test]
fn a_call_that_is_handed_over_switches_to_a_worker_and_back() {
    let direct = run(&mut mounted(Allocation::Direct), &phase(1, 5_000, json!({})));
    for stays in [true, false] {
        let mut machine = Machine::new(processors(4, stays), &filesystem(8), Allocation::Workqueue);
        let deferred = run(&mut machine, &phase(1, 5_000, json!({})));
        let calls = machine.allocator_calls();
        assert!((150..300).contains(&calls), "{calls}");
        assert!(elapsed_ns(&deferred) > elapsed_ns(&direct));
        let report = deferred.switches.unwrap().report;
        let site = |name: &str| report.sites.iter().find(|site| site.site == name).map_or(0, |site| site.switches);
        assert!(site("xfs_alloc_vextent").abs_diff(calls) <= 1);
        assert!(site("worker_thread").abs_diff(calls) <= 1);
        // Where the caller moves to an idle CPU, that switches too.
        let idle = report.by_state["cpu_idle"];
        assert!(if stays { idle <= 2 } else { idle >= calls }, "{idle} of {calls}");
    }
    let exempt = run(&mut mounted(Allocation::DataOnly), &phase(1, 5_000, json!({})));
    assert_eq!(elapsed_ns(&exempt), elapsed_ns(&direct));
}

#[test]
fn a_stall_of_every_call_costs_its_share() {
    let elapsed = |call_stall_ns| {
        let spec = XfsSpec { call_stall_ns, ..filesystem(8) };
        let mut machine = Machine::new(processors(4, true), &spec, Allocation::Workqueue);
        let results = run(&mut machine, &phase(1, 3_000, json!({})));
        (elapsed_ns(&results), machine.allocator_calls())
    };
    let ((none, calls), (stalled, _)) = (elapsed(0), elapsed(250_000));
    let each = (stalled - none) / calls;
    assert!((249_000..256_000).contains(&each), "{each}");
}

#[test]
fn threads_in_one_group_wait_for_one_another() {
    let elapsed = |ag_count| {
        let mut machine = Machine::new(processors(4, false), &filesystem(ag_count), Allocation::Direct);
        let results = run(&mut machine, &phase(4, 2_000, json!({})));
        (elapsed_ns(&results), machine.lock_waits())
    };
    let ((one, waits), (many, few)) = (elapsed(1), elapsed(8));
    assert!(one > 2 * many && waits > 4_000 && few < 400, "{one} {many} {waits} {few}");
}

#[test]
fn a_full_filesystem_ends_the_phase_or_is_an_error() {
    let mut small = filesystem(1);
    small.blocks = 4096;
    for until_full in [true, false] {
        let mut machine =
            Machine::new(processors(2, false), &XfsSpec { log_blocks: 1024, ..small }, Allocation::Workqueue);
        let results = run(&mut machine, &phase(2, 1_000_000, json!({ "/job/until_full": until_full })));
        let made = files(&results);
        assert!((30_000..60_000).contains(&made), "{made}");
        assert!(results.filesystem_used_percent > 98.0);
        let failures: u64 = results.threads.into_iter().flatten().map(|thread| thread.failures.count).sum();
        assert_eq!(failures > 0, !until_full);
    }
}

#[test]
fn what_there_is_no_mechanism_for_is_refused_with_its_key() {
    for (pointer, value, key) in [
        ("/cpus", json!([]), "threads.0.cpus"),
        ("/cpus", json!([4]), "threads.0.cpus"),
        ("/job/files", json!(0), "threads"),
    ] {
        let error = mounted(Allocation::Direct).begin(&phase(1, 10, json!({ pointer: value })), false).unwrap_err();
        assert_eq!(error.key, key, "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever runs the allocator, however many threads share directories and groups, and whichever CPUs go offline in the
    /// middle: all files are made, with inodes of their own (`Xfs::check` and `put_inode`), and no call is lost.
    #[test]
    fn nothing_is_lost(
        threads in 1u32..9,
        shared in any::<bool>(),
        keep in any::<bool>(),
        ag_count in 1u32..6,
        allocation in prop::sample::select(vec![Allocation::Direct, Allocation::Workqueue, Allocation::DataOnly]),
        offline in prop::collection::vec((0u16..4, any::<bool>()), 0..12),
    ) {
        let mut spec = filesystem(ag_count);
        spec.daemons = Daemons { wakeups_per_s: 2_000, cycles: 20_000 };
        let mut machine = Machine::new(processors(4, false), &spec, allocation);
        let mut changes = json!({ "/job/keep": keep });
        if shared {
            changes["/directory"] = json!("d");
        }
        for _ in 0..2 {
            machine.begin(&phase(threads, 600, changes.clone()), false).unwrap();
            let now = machine.0.now();
            for (at, &(cpu, on)) in (1..).zip(&offline) {
                machine.0.plan_online(now + at * 3_000_000, cpu, on);
            }
            machine.0.run(|_| true);
            let results = machine.end();
            machine.0.check().unwrap();
            prop_assert_eq!(files(&results), u64::from(threads) * 600);
        }
    }
}
