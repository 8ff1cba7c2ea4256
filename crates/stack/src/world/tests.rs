use super::*;
use crate::block::plug::PlugRules;
use crate::block::pool::PoolRules;
use crate::block::{Merges, QueueRules};
use crate::device::disk::{Disk, test_disk};
use crate::scheduler::deadline::{Deadline, Generation, Tunables};
use crate::scheduler::noop::Noop;
use crate::time::SECOND;
use workload::spec::{Arrival, BlockSize, FileOrder, Pattern, Until};

const CPUS: CpuSpec = CpuSpec {
    count: 2,
    time_slice_ns: 100_000_000,
    call_ns: 2_000,
    completion_ns: 2_000,
    page_copy_ns: 1_000,
    jitter: 0.05,
};

fn rules() -> QueueRules {
    QueueRules {
        request_sectors_max: 1024,
        request_segments_max: 128,
        merges: Merges::All,
        pool: PoolRules::LINUX_2_6_35,
        pool_by_sync: true,
        plug: PlugRules::SELF,
    }
}

fn job(name: &str, pattern: Pattern, queue_depth: u32, until: Until) -> JobSpec {
    JobSpec {
        name: name.to_owned(),
        files: vec![0],
        file_order: FileOrder::Sequential,
        pattern,
        read_share: 1.0,
        blocks: vec![BlockSize {
            bytes: 4096,
            weight: 1.0,
        }],
        align_bytes: 4096,
        offset_bytes: 0,
        length_bytes: 20 << 20,
        queue_depth,
        arrival: Arrival::Closed {
            think_ns: 0,
            think_every: 1,
        },
        until,
        sync: None,
        sync_at_end: false,
        seed: 1,
    }
}

fn for_ops(ops: u64) -> Until {
    Until {
        ops: Some(ops),
        bytes: None,
        duration_ns: None,
    }
}

/// One disk, whole, as the only file.
fn world(scheduler: Box<dyn crate::scheduler::Scheduler>) -> World {
    let disk = Disk::new(&test_disk()).unwrap();
    let size_bytes = disk.sectors() * 512;
    let drive = DriveParts {
        queue: RequestQueue::new(rules(), scheduler),
        device: Box::new(disk),
        filesystem: None,
    };
    let file = FileSpec {
        drive: 0,
        size_bytes,
        place: Place::Contiguous(0),
    };
    World::new(CPUS, vec![drive], vec![file], None)
}

fn run(mut world: World, groups: &[GroupSpec], seed: u64) -> Results {
    world.begin_phase(groups, 0, SECOND / 10, seed).unwrap();
    world.run(|_| true);
    world.check().unwrap();
    world.end_phase()
}

fn group(path: Path, jobs: Vec<JobSpec>) -> GroupSpec {
    GroupSpec {
        name: "readers".to_owned(),
        path,
        cgroup: 0,
        jobs,
    }
}

#[test]
fn a_job_gets_what_it_asked_for_and_a_deeper_queue_is_faster() {
    let mut took = Vec::new();
    for queue_depth in [1, 16] {
        let reads = job("r", Pattern::Uniform, queue_depth, for_ops(500));
        let results = run(
            world(Box::new(Noop::default())),
            &[group(Path::DirectAsync, vec![reads])],
            1,
        );
        assert_eq!(results.jobs[0].ops, 500);
        assert_eq!(results.jobs[0].bytes, 500 * 4096);
        took.push(results.elapsed_ns);
    }
    assert!(took[1] * 5 < took[0] * 4, "{took:?}");
}

#[test]
fn one_seed_is_one_result() {
    let results = |seed| {
        let reads = job("r", Pattern::Uniform, 4, for_ops(300));
        let scheduler = Box::new(Deadline::new(Generation::C, Tunables::default()));
        run(
            world(scheduler),
            &[group(Path::DirectAsync, vec![reads])],
            seed,
        )
    };
    assert_eq!(format!("{:?}", results(1)), format!("{:?}", results(1)));
    assert_ne!(results(1).elapsed_ns, results(2).elapsed_ns);
}

#[test]
fn blocking_tasks_have_one_operation_outstanding_each() {
    let reads = job("r", Pattern::Uniform, 1, for_ops(200));
    let groups: Vec<GroupSpec> = (0..4)
        .map(|seed| {
            group(
                Path::Direct,
                vec![JobSpec {
                    seed,
                    ..reads.clone()
                }],
            )
        })
        .collect();
    let results = run(world(Box::new(Noop::default())), &groups, 1);
    assert_eq!(results.jobs.iter().map(|job| job.ops).sum::<u64>(), 800);
    assert_eq!(results.requests[0].completed, results.requests[0].issued);
}

#[test]
fn a_duration_ends_the_run() {
    let until = Until {
        ops: None,
        bytes: None,
        duration_ns: Some(2 * SECOND),
    };
    let reads = job("r", Pattern::Uniform, 8, until);
    let results = run(
        world(Box::new(Noop::default())),
        &[group(Path::DirectAsync, vec![reads])],
        1,
    );
    assert!(
        (2 * SECOND..3 * SECOND).contains(&results.elapsed_ns),
        "{}",
        results.elapsed_ns
    );
}

#[test]
fn stopping_ends_it_and_nothing_is_left_behind() {
    let until = Until {
        ops: None,
        bytes: None,
        duration_ns: Some(1000 * SECOND),
    };
    let reads = job("r", Pattern::Uniform, 8, until);
    let mut world = world(Box::new(Noop::default()));
    world
        .begin_phase(&[group(Path::DirectAsync, vec![reads])], 0, SECOND, 1)
        .unwrap();
    world.run(|_| false);
    world.check().unwrap();
    assert!(world.now() < SECOND);
}

#[test]
fn buffered_io_needs_a_page_cache() {
    let reads = job("r", Pattern::Sequential, 1, for_ops(1));
    let refused = world(Box::new(Noop::default())).begin_phase(
        &[group(Path::Buffered, vec![reads])],
        0,
        SECOND,
        1,
    );
    assert_eq!(
        refused,
        Err(Impossible::NoCache {
            name: "readers".to_owned()
        })
    );
}

#[test]
fn phases_follow_each_other_in_one_world() {
    let reads = job("r", Pattern::Uniform, 4, for_ops(100));
    let groups = [group(Path::DirectAsync, vec![reads])];
    let mut world = world(Box::new(Noop::default()));
    for _ in 0..3 {
        world.begin_phase(&groups, 0, SECOND, 1).unwrap();
        world.run(|_| true);
        let results = world.end_phase();
        assert_eq!(results.jobs[0].ops, 100);
        assert!(results.jobs[0].finished_ns <= results.elapsed_ns);
    }
    world.check().unwrap();
    assert_eq!(world.drives[0].queue().counts().completed, 300);
}
