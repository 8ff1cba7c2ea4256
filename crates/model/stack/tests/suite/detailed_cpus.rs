//! Invariants of a machine whose CPUs are simulated in detail, under loads of all kinds, with CPUs going offline and coming back.

use proptest::prelude::*;
use serde_json::{Value, json};

use events::smp::Context;
use events::time::{MILLISECOND, SECOND, Time};
use stack::machine::MachineSpec;
use stack::world::{FileLayout, FileSpec, GroupSpec, Path, PhaseSpec, Results, World};
use workload::spec::{JobBounds, JobSpec, Pattern};
use workload::timeline::totals;

const CPUS: u16 = 8;
const FILE_BYTES: u64 = 1 << 30;

/// Two NUMA nodes of two sockets of two CPUs, where tasks change often.
fn machine(kernel: &str, drives: Vec<Value>) -> Value {
    let mut machine: Value = serde_json::from_str(include_str!("../cpus_of_2008.json")).expect("JSON");
    let cpus = &mut machine["cpus"];
    cpus["scheduling"]["time_slice_ns"] = json!(1_000_000);
    cpus["scheduling"]["preempt_after_ns"] = json!(100_000);
    cpus["idle_states"] = json!([{ "after_ns": 100_000, "exit_ns": 20_000 }]);
    cpus["reap_cycles"] = json!(500);
    cpus["jitter"] = json!(0.1);
    machine["kernel"] = json!(kernel);
    machine["memory"] = json!({ "bytes": 256 << 20 });
    machine["drives"] = json!(drives);
    machine
}

fn drive(latency_ns: u64, queue_depth: u32, more: &Value) -> Value {
    let mut drive = json!({
        "device": {
            "kind": "null", "capacity_bytes": FILE_BYTES, "latency_ns": latency_ns, "queue_depth": queue_depth
        },
    });
    let more = more.as_object().expect("a table").clone();
    drive.as_object_mut().expect("a table").extend(more);
    drive
}

fn build(machine: Value) -> World {
    let spec = MachineSpec::from_json(machine).expect("a possible machine");
    let mut world = spec.build().expect("it builds");
    for drive in 0..spec.drive_count() {
        world.add_file(FileSpec {
            name: format!("file{drive}"),
            drive,
            size_bytes: FILE_BYTES,
            place: FileLayout::Contiguous(0),
        });
    }
    world
}

fn job(file: u32, read_share: f64, bytes: u32, queue_depth: u32, ops: u64) -> JobSpec {
    JobSpec {
        read_share,
        queue_depth,
        sync_at_end: read_share < 1.0,
        seed: u64::from(file),
        ..JobSpec::reads(file, bytes, FILE_BYTES, JobBounds::of_ops(ops))
    }
}

fn group(path: Path, cpus: Option<Vec<u16>>, job: JobSpec) -> GroupSpec {
    GroupSpec { polls: false, batch: None, path, cgroup: 0, priority: Default::default(), cpus, jobs: vec![job] }
}

fn phase(files: u32, groups: Vec<GroupSpec>) -> PhaseSpec {
    PhaseSpec {
        groups,
        files: (0..files).collect(),
        warm_up_ns: 0,
        interval_ns: SECOND,
        ends_with_first: false,
        stops_with: None,
        seed: 1,
    }
}

fn run(world: &mut World, phase: &PhaseSpec) -> Results {
    world.begin_phase(phase).expect("a possible phase");
    world.run(|_| true);
    world.check().expect("Little's law and conservation");
    world.end_phase()
}

fn operations(results: &Results) -> u64 {
    let jobs = results.groups.iter().flat_map(|group| &group.jobs);
    jobs.map(|job| {
        let total = totals(&job.intervals, 0);
        total.read.latency.count() + total.write.latency.count()
    })
    .sum()
}

fn ns_of(world: &mut World, cpu: u16, context: Context) -> Time {
    world.processors().expect("detailed CPUs").usage(cpu).ns(context)
}

#[test]
fn tasks_run_and_interrupts_land_where_they_are_told_to() {
    let placed = json!({
        "scheduler": "noop", "interrupt_cpu": 1,
        "affinity": { "application": 6, "queue": 3, "completion": 4 }
    });
    let mut world = build(machine("2.6.24-kthread", vec![drive(50_000, 8, &placed)]));
    run(&mut world, &phase(1, vec![group(Path::DirectAsync, None, job(0, 1.0, 4096, 4, 500))]));
    let busy =
        |world: &mut World, context| (0..CPUS).filter(|&cpu| ns_of(world, cpu, context) > 0).collect::<Vec<u16>>();
    assert_eq!(busy(&mut world, Context::User), [6]);
    assert_eq!(busy(&mut world, Context::KernelThread), [3, 4]);
    // Devices interrupt 1; the others are told by it, or tell each other.
    assert_eq!(busy(&mut world, Context::HardInterrupt), [1, 3, 4, 6]);
    assert_eq!(busy(&mut world, Context::SoftInterrupt), Vec::<u16>::new(), "nothing completes where it arrives");
    let counters = world.completion_counters()[0];
    assert_eq!((counters.queued_local, counters.queued_remote), (0, 500));
    assert_eq!(counters.completed_local, 0);
}

#[test]
fn groups_of_a_phase_have_their_own_cpus() {
    let placed = json!({ "scheduler": "noop", "interrupt_cpu": 0, "affinity": { "application": 1 } });
    let mut world = build(machine("2.6.24", vec![drive(50_000, 8, &placed)]));
    let job = job(0, 1.0, 4096, 4, 100);
    run(&mut world, &phase(1, vec![group(Path::DirectAsync, Some(vec![5]), job)]));
    assert!(ns_of(&mut world, 5, Context::User) > 0);
    assert_eq!(ns_of(&mut world, 1, Context::User), 0);
}

/// Published: (bios + 33) / 2. The first 32 go to the device one by one, the driver holds another, the rest finds company.
#[test]
fn pairs_of_bios_become_requests_while_the_driver_holds_one() {
    let keys = |peek: bool| {
        json!({
            "scheduler": "noop", "peek": peek,
            "affinity": { "application": "other" },
            "dma": { "near_bytes_per_s": 100_000_000, "far_bytes_per_s": 100_000_000 },
        })
    };
    for (ahead, alone) in [(true, 33), (false, 32)] {
        let mut world = build(machine("2.6.24", vec![drive(10_000, 32, &keys(ahead))]));
        let bios = 129 + 2 * 1000;
        let job = job(0, 1.0, 256 << 10, 128, bios);
        let results = run(&mut world, &phase(1, vec![group(Path::DirectAsync, None, job)]));
        let expected = (bios + alone).div_ceil(2);
        assert_eq!(results.requests[0].completed, expected, "ahead: {ahead}");
    }
}

#[test]
fn data_take_longer_to_the_memory_of_another_node() {
    let rate = |application: u16| {
        let keys = json!({
            "scheduler": "noop", "interrupt_cpu": 0, "affinity": { "application": application },
            "dma": { "near_bytes_per_s": 50_000_000, "far_bytes_per_s": 100_000_000 },
        });
        let mut world = build(machine("2.6.24", vec![drive(10_000, 32, &keys)]));
        let job = job(0, 1.0, 256 << 10, 16, 400);
        run(&mut world, &phase(1, vec![group(Path::DirectAsync, None, job)]));
        400.0 * 262_144.0 / (world.now() as f64 / SECOND as f64)
    };
    let (near, far) = (rate(3), rate(4));
    assert!((near / 50e6 - 1.0).abs() < 0.01, "{near}");
    assert!((far / 100e6 - 1.0).abs() < 0.01, "{far}");
}

/// Operations a second of this many tasks, each on its own CPU and hardware queue, of a modern server.
fn rate(scheduler: &str, tasks: u16) -> f64 {
    let keys = json!({ "scheduler": scheduler, "queue": { "hardware_queues": CPUS } });
    let mut machine = machine("6.1", vec![drive(10_000, 64, &keys)]);
    for (key, cycles) in [("submit_cycles", 3_000), ("user_cycles", 500)] {
        machine["cpus"][key] = json!(cycles);
    }
    for (key, cycles) in [("interrupt_cycles", 1_000), ("interrupt_stalled_cycles", 0), ("complete_cycles", 500)] {
        machine["completion"][key] = json!(cycles);
    }
    let mut world = build(machine);
    let ops = 2_000;
    let groups = (0..tasks).map(|cpu| {
        let job = JobSpec { pattern: Pattern::Uniform, seed: u64::from(cpu), ..job(0, 1.0, 4096, 32, ops) };
        group(Path::DirectAsync, Some(vec![cpu]), job)
    });
    run(&mut world, &phase(1, groups.collect()));
    (ops * u64::from(tasks)) as f64 / (world.now() as f64 / SECOND as f64)
}

#[test]
fn schedulers_cost_cpus_and_those_with_one_lock_do_not_scale() {
    let alone = ["none", "kyber", "mq-deadline", "bfq"].map(|scheduler| rate(scheduler, 1));
    let all = ["none", "kyber", "mq-deadline", "bfq"].map(|scheduler| rate(scheduler, CPUS));
    assert!(alone.is_sorted_by(|more, less| more > less), "{alone:?}");
    assert!(all.is_sorted_by(|more, less| more > less), "{all:?}");
    let scale: Vec<f64> = std::iter::zip(all, alone).map(|(all, alone)| all / alone).collect();
    assert!(scale[0] > 7.0, "none: {scale:?}");
    assert!(scale[1] > 5.0, "kyber: {scale:?}");
    assert!(scale[2] < 4.0 && scale[3] < 2.0, "one lock: {scale:?}");
}

const KERNELS: [&str; 6] = ["2.6.24", "2.6.24-remote-softirq", "2.6.24-kthread", "2.6.28", "3.4", "6.1"];

#[derive(Clone, Debug)]
struct Load {
    kernel: &'static str,
    rq_affinity: u8,
    groups: Vec<(u8, u8, u8, Option<u16>)>,
    /// When, which, and whether it comes back.
    plans: Vec<(Time, u16, bool)>,
}

fn loads() -> impl Strategy<Value = Load> {
    let groups = prop::collection::vec((0u8..3, 0u8..3, 0u8..3, prop::option::of(0..CPUS)), 1..6);
    let plans = prop::collection::vec((0..40 * MILLISECOND, 0..CPUS, any::<bool>()), 0..8);
    (0..KERNELS.len(), 0u8..2, groups, plans).prop_map(|(kernel, rq_affinity, groups, plans)| Load {
        kernel: KERNELS[kernel],
        rq_affinity,
        groups,
        plans,
    })
}

impl Load {
    fn run(&self) -> (World, Results) {
        let queue = match self.kernel {
            "2.6.24" => json!({}),
            _ => json!({ "rq_affinity": self.rq_affinity }),
        };
        let scheduler = match self.kernel {
            "6.1" => "mq-deadline",
            _ => "deadline",
        };
        let keys = json!({ "scheduler": scheduler, "queue": queue });
        let drives = vec![drive(80_000, 4, &keys), drive(300_000, 16, &keys)];
        let mut world = build(machine(self.kernel, drives));
        for &(at, cpu, is) in &self.plans {
            world.plan_online(at, cpu, is);
        }
        let groups = self.groups.iter().enumerate();
        let groups = groups.map(|(number, &(path, reads, depth, cpu))| {
            let path = [Path::Direct, Path::DirectAsync, Path::Buffered][usize::from(path)];
            let depth = match path {
                Path::DirectAsync => 1 << (2 * depth),
                _ => 1,
            };
            let read_share = f64::from(reads) / 2.0;
            let job = job(number as u32 % 2, read_share, 16 << 10, depth, OPERATIONS);
            group(path, cpu.map(|cpu| vec![cpu]), job)
        });
        let phase = phase(2, groups.collect());
        let results = run(&mut world, &phase);
        (world, results)
    }
}

const OPERATIONS: u64 = 150;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever goes offline meanwhile: every operation is done, all requests complete, and the contexts of all CPUs add
    /// up to the time that has passed.
    #[test]
    fn nothing_is_lost_and_time_adds_up(load in loads()) {
        let (mut world, results) = load.run();
        prop_assert_eq!(operations(&results), OPERATIONS * load.groups.len() as u64);
        let now = world.now();
        let counters = world.completion_counters();
        for (counts, counters) in results.requests.iter().zip(counters) {
            let interrupted = counters.completed_local + counters.completed_remote;
            prop_assert!(interrupted >= counts.completed);
            prop_assert!(interrupted <= counts.issued);
        }
        let processors = world.processors().expect("detailed CPUs");
        for cpu in 0..CPUS {
            prop_assert_eq!(processors.usage(cpu).total_ns(), now);
        }
    }

    #[test]
    fn one_seed_has_one_result(load in loads()) {
        let outcome = || {
            let (mut world, results) = load.run();
            let processors = world.processors().expect("detailed CPUs");
            let usages: Vec<_> = (0..CPUS).map(|cpu| processors.usage(cpu)).collect();
            (world.now(), usages, format!("{results:?}"))
        };
        prop_assert_eq!(outcome(), outcome());
    }

    /// What tasks used is what CPUs spent on them.
    #[test]
    fn tasks_and_cpus_agree_on_user_time(load in loads()) {
        let (mut world, results) = load.run();
        let of_tasks: Time = results
            .groups
            .iter()
            .map(|group| group.last_sample.thread.cpu_user_ns)
            .sum();
        let of_cpus: Time = (0..CPUS).map(|cpu| ns_of(&mut world, cpu, Context::User)).sum();
        prop_assert_eq!(of_tasks, of_cpus);
    }
}
