mod drives;
mod swap;
mod xfs;

use super::*;
use block_layer::scheduler::cfq::{self, Cfq};
use block_layer::scheduler::deadline::{Deadline, DeadlineTunables, DeadlineVariant};
use block_layer::scheduler::noop::Noop;
use block_layer::{Priority, RequestQueue, Sector};
use devices::disk::{Disk, test_disk};
use devices::{Command, Completion, Device};
use events::time::SECOND;
use filesystems::allocator::{FilesystemSpec, Kind};
use kernels::hardware_queue::{TagLimit, TagWakeRule};
use kernels::queue::{Merges, PlugRules, PoolRules, QueueRules, TaskPlugRules};
use memory::cache::{self, CacheSpec};
use workload::measure::JobMeasurement;
use workload::spec::JobSpec;
use workload::spec::{Arrival, JobBounds, Pattern};
use workload::timeline::totals;

const CPUS: CpuSpec = CpuSpec {
    count: 2,
    time_slice_ns: 100_000_000,
    call_ns: 2_000,
    completion_ns: 2_000,
    page_copy_ns: 1_000,
    copy_call_ns: None,
    sync_call_ns: None,
    write_call_ns: None,
    page_write_ns: None,
    reap_call_ns: None,
    further_op_ns: None,
    further_page_ns: None,
    start: None,
    interrupt_ns: None,
    timer_interrupts: None,
    clock_hz: None,
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

fn job(name: &str, pattern: Pattern, queue_depth: u32, until: JobBounds) -> JobSpec {
    JobSpec { name: name.to_owned(), pattern, queue_depth, ..JobSpec::reads(0, 4096, 20 << 20, until) }
}

/// One disk, whole, as the only file.
fn world(scheduler: Box<dyn block_layer::scheduler::Scheduler>) -> World {
    let disk = Disk::new(&test_disk()).unwrap();
    let size_bytes = disk.sectors() * 512;
    let drive = DriveParts {
        polling: None,
        run_costs: None,
        queue: RequestQueue::new(rules(), scheduler),
        device: Box::new(disk),
        filesystem: None,
        write_bio_sectors_max: 2048,
        peek: false,
    };
    let mut world = World::new(CPUS, vec![drive], None, None);
    world.add_file(FileSpec { name: "disk".to_owned(), drive: 0, size_bytes, place: FileLayout::Contiguous(0) });
    world
}

/// In every run of a test: how often the contract of components is looked at.
pub(super) const EVENTS_BETWEEN_CHECKS: u64 = 211;

impl World {
    pub(super) fn hold_contracts(&mut self) {
        let now = self.clock.now();
        let swap = self.swap.iter_mut();
        let mut swap = swap.map(|one| one.hold_contract(now));
        self.io
            .hold_contract(now)
            .and_then(|()| self.vfs.hold_contract(now))
            .and_then(|()| swap.try_for_each(|held| held))
            .expect("the contract holds");
    }

    /// The machine has that drive in place of its own.
    fn replace_drive(&mut self, drive: DriveParts) {
        self.io = IoPath::new(vec![drive], None, self.cpus.count(), false);
    }
}

/// A disk of which that is the queue.
fn drive_of(rules: QueueRules, write_bio_sectors_max: u32) -> DriveParts {
    DriveParts {
        polling: None,
        run_costs: None,
        queue: RequestQueue::new(rules, Box::new(Noop::default())),
        device: Box::new(Disk::new(&test_disk()).unwrap()),
        filesystem: None,
        write_bio_sectors_max,
        peek: false,
    }
}

fn phase(groups: &[GroupSpec], seed: u64) -> PhaseSpec {
    PhaseSpec {
        groups: groups.to_vec(),
        files: vec![0],
        warm_up_ns: 0,
        interval_ns: SECOND / 10,
        ends_with_first: false,
        stops_with: None,
        seed,
    }
}

fn run(mut world: World, groups: &[GroupSpec], seed: u64) -> Results {
    world.begin_phase(&phase(groups, seed)).unwrap();
    world.run(|_| true);
    world.check().unwrap();
    world.end_phase()
}

/// A job's operations, bytes, errors and end.
struct Done {
    ops: u64,
    bytes: u64,
    errors: u64,
    finished_ns: Time,
}

fn jobs(results: &Results) -> Vec<Done> {
    let of = |job: &JobMeasurement| {
        let total = totals(&job.intervals, 0);
        Done {
            ops: total.read.latency.count() + total.write.latency.count(),
            bytes: total.read.bytes + total.write.bytes,
            errors: job.errors.iter().map(|error| error.count).sum(),
            finished_ns: job.finished,
        }
    };
    let groups = results.groups.iter();
    groups.flat_map(|group| group.jobs.iter().map(of)).collect()
}

fn elapsed_ns(results: &Results) -> Time {
    jobs(results).iter().map(|job| job.finished_ns).max().unwrap()
}

fn group(path: Path, jobs: Vec<JobSpec>) -> GroupSpec {
    GroupSpec { polls: false, batch: None, path, cgroup: 0, priority: Priority::default(), cpus: None, jobs }
}

#[test]
fn a_job_gets_what_it_asked_for_and_a_deeper_queue_is_faster() {
    let mut took = Vec::new();
    for queue_depth in [1, 16] {
        let reads = job("r", Pattern::Uniform, queue_depth, JobBounds::of_ops(500));
        let results = run(world(Box::new(Noop::default())), &[group(Path::DirectAsync, vec![reads])], 1);
        assert_eq!(jobs(&results)[0].ops, 500);
        assert_eq!(jobs(&results)[0].bytes, 500 * 4096);
        took.push(elapsed_ns(&results));
    }
    assert!(took[1] * 5 < took[0] * 4, "{took:?}");
}

#[test]
fn one_seed_is_one_result() {
    let results = |seed| {
        let reads = job("r", Pattern::Uniform, 4, JobBounds::of_ops(300));
        let scheduler = Box::new(Deadline::new(DeadlineVariant::C, DeadlineTunables::default()));
        run(world(scheduler), &[group(Path::DirectAsync, vec![reads])], seed)
    };
    assert_eq!(format!("{:?}", results(1)), format!("{:?}", results(1)));
    assert_ne!(elapsed_ns(&results(1)), elapsed_ns(&results(2)));
}

#[test]
fn blocking_tasks_have_one_operation_outstanding_each() {
    let reads = job("r", Pattern::Uniform, 1, JobBounds::of_ops(200));
    let groups: Vec<GroupSpec> =
        (0..4).map(|seed| group(Path::Direct, vec![JobSpec { seed, ..reads.clone() }])).collect();
    let results = run(world(Box::new(Noop::default())), &groups, 1);
    assert_eq!(jobs(&results).iter().map(|job| job.ops).sum::<u64>(), 800);
    assert_eq!(results.requests[0].completed, results.requests[0].issued);
}

#[test]
fn a_duration_ends_the_run() {
    let until = JobBounds::of_time(2 * SECOND);
    let reads = job("r", Pattern::Uniform, 8, until);
    let results = run(world(Box::new(Noop::default())), &[group(Path::DirectAsync, vec![reads])], 1);
    assert!((2 * SECOND..3 * SECOND).contains(&elapsed_ns(&results)), "{}", elapsed_ns(&results));
}

#[test]
fn stopping_ends_it_and_nothing_is_left_behind() {
    let until = JobBounds::of_time(1000 * SECOND);
    let reads = job("r", Pattern::Uniform, 8, until);
    let mut world = world(Box::new(Noop::default()));
    world.begin_phase(&phase(&[group(Path::DirectAsync, vec![reads])], 1)).unwrap();
    world.run(|_| false);
    world.check().unwrap();
    assert!(world.now() < SECOND);
}

#[test]
fn buffered_io_needs_a_page_cache() {
    let reads = job("r", Pattern::Sequential, 1, JobBounds::of_ops(1));
    let groups = [group(Path::Buffered, vec![reads])];
    let refused = world(Box::new(Noop::default())).begin_phase(&phase(&groups, 1));
    assert_eq!(refused, Err(PhaseError::NoCache));
}

#[test]
fn phases_follow_each_other_in_one_world() {
    let reads = job("r", Pattern::Uniform, 4, JobBounds::of_ops(100));
    let groups = [group(Path::DirectAsync, vec![reads])];
    let mut world = world(Box::new(Noop::default()));
    for _ in 0..3 {
        world.begin_phase(&phase(&groups, 1)).unwrap();
        world.run(|_| true);
        let results = world.end_phase();
        assert_eq!(jobs(&results)[0].ops, 100);
    }
    world.check().unwrap();
    assert_eq!(world.io[0].queue().counts().completed, 300);
}

/// What fits on the test disk.
const BLOCKS: u64 = 6000;

/// One disk with a filesystem of this many blocks and a page cache, and empty files in it.
fn with_files(kind: Kind, blocks: u64, files: &[u64]) -> World {
    let variant = cache::CacheVariant::Linux2_6_35;
    with_files_of(variant, rules(), kind, blocks, files)
}

fn with_files_of(variant: cache::CacheVariant, rules: QueueRules, kind: Kind, blocks: u64, files: &[u64]) -> World {
    let filesystem = FilesystemSpec {
        kind,
        blocks,
        group_metadata_blocks: 16,
        group_inodes: 1024,
        start_colours: false,
        preallocated_blocks: 0,
    };
    let drive = DriveParts { filesystem: Some(filesystem.build().unwrap()), ..drive_of(rules, 2048) };
    let cache = CacheSpec::new(variant, 4 << 20);
    let mut world = World::new(CPUS, vec![drive], Some(PageCache::new(&cache).unwrap()), None);
    for (number, &size_bytes) in files.iter().enumerate() {
        world.add_file(FileSpec {
            name: format!("file.{number}"),
            drive: 0,
            size_bytes,
            place: FileLayout::Allocated { directory: 0 },
        });
    }
    world
}

fn sequential(file: u32, bytes: u64, read_share: f64) -> JobSpec {
    JobSpec {
        files: vec![file],
        read_share,
        length_bytes: bytes,
        sync_at_end: read_share == 0.0,
        ..job("sequential", Pattern::Sequential, 1, JobBounds::of_ops(bytes / 4096))
    }
}

fn run_phase(world: &mut World, phase: &PhaseSpec) -> Results {
    world.begin_phase(phase).unwrap();
    world.run(|_| true);
    world.check().unwrap();
    world.end_phase()
}

#[test]
fn what_is_written_through_the_cache_is_read_back_in_the_next_phase() {
    const BYTES: u64 = 12 << 20;
    for kind in [Kind::Ext2, Kind::Ext3, Kind::Ext4] {
        let mut world = with_files(kind, BLOCKS, &[BYTES]);
        for read_share in [0.0, 1.0] {
            let groups = [group(Path::Buffered, vec![sequential(0, BYTES, read_share)])];
            let results = run_phase(&mut world, &phase(&groups, 1));
            assert_eq!(jobs(&results)[0].bytes, BYTES);
            assert_eq!(jobs(&results)[0].errors, 0);
        }
        let blocks: u64 = world.extents(0).iter().map(|extent| extent.blocks).sum();
        assert_eq!(blocks, BYTES / 4096, "{kind:?}");
    }
}

#[test]
fn a_full_filesystem_is_an_error_of_the_job_that_writes() {
    for kind in [Kind::Ext3, Kind::Ext4] {
        let mut world = with_files(kind, 1024, &[40 << 20]);
        let groups = [group(Path::Buffered, vec![sequential(0, 40 << 20, 0.0)])];
        let results = run_phase(&mut world, &phase(&groups, 1));
        assert_eq!(jobs(&results)[0].errors, 1, "{kind:?}");
    }
}

#[test]
fn a_phase_with_fewer_tasks_ignores_the_wake_ups_of_the_one_before() {
    let mut world = world(Box::new(Noop::default()));
    let paced = JobSpec {
        arrival: Arrival::Open { rate_per_s: 1.0, spacing: workload::spec::Spacing::Constant },
        until: JobBounds { ops: Some(3), bytes: None, duration_ns: Some(2 * SECOND) },
        ..job("r", Pattern::Uniform, 4, JobBounds::of_ops(3))
    };
    let four = vec![group(Path::DirectAsync, vec![paced.clone()]); 4];
    run_phase(&mut world, &phase(&four, 1));
    let results = run_phase(&mut world, &phase(&four[..1], 1));
    assert!(jobs(&results)[0].ops > 0);
}

#[test]
fn more_bios_than_requests_wait_their_turn_on_every_path() {
    let few = QueueRules {
        pool: PoolRules { requests: 4, congested_from: 4, uncongested_below: 3, ..PoolRules::LINUX_2_6_35 },
        ..rules()
    };
    for path in [Path::DirectAsync, Path::Buffered] {
        let mut world = with_files(Kind::Ext3, BLOCKS, &[2 << 20; 8]);
        world.replace_drive(drive_of(few, 2048));
        for read_share in [0.0, 1.0] {
            let groups: Vec<GroupSpec> = (0..8)
                .map(|file| {
                    let random = JobSpec {
                        pattern: Pattern::Permutation { blocks_done: 0 },
                        queue_depth: if path == Path::Buffered { 1 } else { 16 },
                        until: JobBounds::of_ops(300),
                        ..sequential(file, 2 << 20, read_share)
                    };
                    group(path, vec![random])
                })
                .collect();
            let all_files = PhaseSpec { files: (0..8).collect(), ..phase(&groups, 1) };
            let results = run_phase(&mut world, &all_files);
            assert!(jobs(&results).iter().all(|job| job.ops >= 300), "{path:?}");
        }
    }
}

#[test]
fn the_first_job_that_is_done_ends_the_measured_part_and_files_are_whole_all_the_same() {
    let mut world = with_files(Kind::Ext3, BLOCKS, &[1 << 20, 8 << 20]);
    let groups = [
        group(Path::Buffered, vec![sequential(0, 1 << 20, 0.0)]),
        group(Path::Buffered, vec![sequential(1, 8 << 20, 0.0)]),
    ];
    let both = PhaseSpec { files: vec![0, 1], ends_with_first: true, ..phase(&groups, 1) };
    let results = run_phase(&mut world, &both);
    assert_eq!(jobs(&results)[0].bytes, 1 << 20);
    assert!(jobs(&results)[1].bytes < 4 << 20);
    let blocks: u64 = world.extents(1).iter().map(|extent| extent.blocks).sum();
    assert_eq!(blocks, (8 << 20) / 4096);
}

#[test]
fn tasks_plug_for_themselves_from_2_6_39_on_with_the_same_result_for_the_job() {
    let rules = TaskPlugRules { requests: 16, last_sectors: u32::MAX, submissions_above: 0, newest_first: false };
    for plugs in [false, true] {
        let mut world = with_files(Kind::Ext4, BLOCKS, &[8 << 20]);
        if plugs {
            world.io.give_back_plug(TaskPlug::new(rules));
        }
        let groups = [group(Path::Buffered, vec![sequential(0, 8 << 20, 0.0)])];
        assert_eq!(jobs(&run_phase(&mut world, &phase(&groups, 1)))[0].bytes, 8 << 20);
    }
}

#[test]
fn what_one_call_submits_is_merged_from_three_operations_on() {
    let rules = TaskPlugRules { requests: 32, last_sectors: 256, submissions_above: 2, newest_first: false };
    let requests_of = |depth: u32, plug: Option<TaskPlug>, merges: Merges, batch: Option<u32>| {
        let mut world = world(Box::new(Noop::default()));
        let rules = QueueRules { merges, ..rules_without_plug() };
        let drive = drive_of(rules, 2048);
        world.io = IoPath::new(vec![drive], plug, world.cpus.count(), false);
        let reads = JobSpec { queue_depth: depth, ..sequential(0, 1 << 20, 1.0) };
        let groups = [GroupSpec { batch, ..group(Path::DirectAsync, vec![reads]) }];
        let results = run_phase(&mut world, &phase(&groups, 1));
        assert_eq!(jobs(&results)[0].ops, 256);
        world.io[0].queue().counts().issued
    };
    let requests = |depth, plug| requests_of(depth, plug, Merges::All, None);
    let plug = || Some(TaskPlug::new(rules));
    assert_eq!(requests(32, plug()), 8);
    assert!(requests(32, None) > 8);
    assert_eq!(requests(2, plug()), requests(2, None));
    // Who takes completions one by one submits one by one, although the first call's come together.
    let in_batches = |most| requests_of(32, plug(), Merges::LastOnly, Some(most));
    assert_eq!(in_batches(64), 8);
    assert_eq!(in_batches(8), 1 + (256 - 32) / 8);
    assert_eq!(in_batches(1), 1 + (256 - 32));
    assert_eq!(requests_of(32, plug(), Merges::Never, None), 256);
}

#[test]
fn what_a_call_submits_joins_the_request_that_it_has_waited_for() {
    let plug =
        TaskPlug::new(TaskPlugRules { requests: 32, last_sectors: 256, submissions_above: 2, newest_first: false });
    let mut world = world(Box::new(Noop::default()));
    let rules = QueueRules { pool: PoolRules::tags(1, TagWakeRule::Batch, TagLimit::OfWord), ..rules_without_plug() };
    let drive = drive_of(rules, 2048);
    world.io = IoPath::new(vec![drive], Some(plug), world.cpus.count(), false);
    let reads = JobSpec { queue_depth: 8, ..sequential(0, 1 << 20, 1.0) };
    let groups = vec![group(Path::DirectAsync, vec![reads]); 3];
    let results = run_phase(&mut world, &phase(&groups, 1));
    assert!(jobs(&results).iter().all(|job| job.ops == 256));
    let requests = world.io[0].queue().counts().issued;
    assert!(requests <= 3 * 256 / 8, "one for each call: {requests}");
}

fn rules_without_plug() -> QueueRules {
    QueueRules { plug: PlugRules::NONE, ..rules() }
}

#[test]
fn real_time_readers_go_before_best_effort_ones_under_cfq() {
    let tunables = cfq::CfqTunables::default();
    let around = cfq::Surroundings { hz: 1000, rotational: true };
    let scheduler = Cfq::new(cfq::Version::Linux2_6_35, tunables, around, &[1000]);
    let until = JobBounds::of_time(2 * SECOND);
    let groups: Vec<GroupSpec> = ["rt/4", "be/4"]
        .into_iter()
        .zip(1..)
        .map(|(words, seed)| GroupSpec {
            polls: false,
            batch: None,
            priority: Priority::named(words).unwrap(),
            ..group(Path::Direct, vec![JobSpec { seed, ..job("r", Pattern::Uniform, 1, until) }])
        })
        .collect();
    let results = run(world(Box::new(scheduler)), &groups, 1);
    let done = jobs(&results);
    assert!(done[0].ops > 10 * done[1].ops.max(1), "{} {}", done[0].ops, done[1].ops);
}

#[test]
fn no_more_is_unwritten_than_may_be_dirty_and_the_queue_takes() {
    const BYTES: u64 = 2 << 20;
    let old = QueueRules {
        merges: Merges::Never,
        pool: PoolRules::LINUX_2_4_20,
        pool_by_sync: false,
        plug: PlugRules::EXPLICIT,
        ..rules()
    };
    let variant = cache::CacheVariant::Linux2_4;
    let mut world = with_files_of(variant, old, Kind::Ext3, BLOCKS, &[BYTES; 8]);
    world.replace_drive(drive_of(old, 8));
    let groups: Vec<GroupSpec> = (0..8)
        .map(|file| {
            let scattered =
                JobSpec { pattern: Pattern::Permutation { blocks_done: 0 }, ..sequential(file, BYTES, 0.0) };
            group(Path::Buffered, vec![scattered])
        })
        .collect();
    let all_files = PhaseSpec { files: (0..8).collect(), ..phase(&groups, 1) };
    world.begin_phase(&all_files).unwrap();
    let mut most = 0;
    while !world.phase.is_over() {
        let (now, event) = world.clock.take().unwrap();
        world.handle(now, event);
        most = most.max(world.vfs.cache().unwrap().dirty_pages());
    }
    // 60 % of the memory, a page for each request, and a step of each writer and flusher.
    let bound = (4 << 20) / 4096 * 6 / 10 + 64 + 10 * 32;
    assert!(most <= bound, "{most} pages, at most {bound}");
}

/// Takes commands, has something to do each second, and never completes one.
struct SilentDevice {
    now: Time,
}

impl Device for SilentDevice {
    fn sectors(&self) -> Sector {
        1 << 20
    }

    fn queue_depth(&self) -> u32 {
        32
    }

    fn submit(&mut self, now: Time, _command: Command) {
        self.now = now;
    }

    fn next_event(&self) -> Option<Time> {
        Some(self.now + SECOND)
    }

    fn advance(&mut self, now: Time, _completed: &mut Vec<Completion>) {
        self.now = now;
    }
}

fn world_on(device: Box<dyn Device>) -> World {
    let mut world = world(Box::new(Noop::default()));
    world.replace_drive(DriveParts { device, ..drive_of(rules(), 2048) });
    world
}

#[test]
#[should_panic(
    expected = "the simulated machine stands still: no I/O has ended for 3600 s of its time and 1 task waits"
)]
fn a_device_that_never_answers_ends_the_run() {
    let one = job("r", Pattern::Uniform, 4, JobBounds::of_ops(10));
    run(world_on(Box::new(SilentDevice { now: 0 })), &[group(Path::Direct, vec![one])], 1);
}

#[test]
fn a_job_that_sleeps_for_hours_is_not_a_standstill() {
    let mut sleeper = job("r", Pattern::Uniform, 1, JobBounds::of_ops(4));
    sleeper.arrival = Arrival::Closed { think_ns: 2 * 3600 * SECOND, think_every: 1 };
    let mut world = world(Box::new(Noop::default()));
    world.poll_every(Some(60 * SECOND));
    let results = run(world, &[group(Path::Direct, vec![sleeper])], 1);
    assert_eq!(jobs(&results)[0].ops, 4);
}
