//! What must hold of every job, on every specification: properties over a simulated device.

use crate::fixture::uniform_reads;
use crate::simulator::{ServedOp, run};
use proptest::prelude::*;
use workload::job::{Job, JobStep, Op, OpKind};
use workload::spec::{
    Arrival, BlockSize, FileOrder, JobBounds, JobSpec, Pattern, Spacing, Sync, SyncKind, WriteBlocks, Zone,
};

const FILES: u32 = 4;
const FILE_BYTES: u64 = 256 << 10;

fn arrivals() -> impl Strategy<Value = Arrival> {
    prop_oneof![
        Just(Arrival::Closed { think_ns: 0, think_every: 0 }),
        (1..50_000u64, 1..5u64).prop_map(|(think_ns, think_every)| Arrival::Closed { think_ns, think_every }),
        (1e3..1e6, any::<bool>()).prop_map(|(rate_per_s, poisson)| Arrival::Open {
            rate_per_s,
            spacing: if poisson { Spacing::Poisson } else { Spacing::Constant },
        }),
    ]
}

fn patterns() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::Sequential),
        Just(Pattern::Backward),
        (1..20u64).prop_map(|blocks| Pattern::Strided {
            stride_bytes: blocks * 4096,
            one_lap: blocks % 2 == 0,
            blocks_done: 0,
        }),
        Just(Pattern::Uniform),
        (0.0..3.0).prop_map(|theta| Pattern::Zipf { theta }),
        (0.01..0.99).prop_map(|h| Pattern::Pareto { h }),
        (0.0..100.0).prop_map(|deviation_percent| Pattern::Normal { deviation_percent }),
        (0.1..9.0, 1..9u64)
            .prop_map(|(weight, blocks)| Pattern::Zoned { zones: vec![Zone { weight, length_bytes: blocks * 512 }] }),
        Just(Pattern::Permutation { blocks_done: 0 }),
    ]
}

fn bounds() -> impl Strategy<Value = JobBounds> {
    let bound = |range: std::ops::Range<u64>| prop::option::of(range);
    (bound(1..400), bound(32_768..4_000_000), bound(1..5_000_000))
        .prop_filter("at least one bound", |(ops, bytes, duration_ns)| {
            ops.is_some() || bytes.is_some() || duration_ns.is_some()
        })
        .prop_map(|(ops, bytes, duration_ns)| JobBounds { ops, bytes, duration_ns })
}

fn syncs() -> impl Strategy<Value = Option<Sync>> {
    let kinds = prop_oneof![Just(SyncKind::Fsync), Just(SyncKind::Fdatasync), Just(SyncKind::SyncFileRange)];
    prop::option::of((kinds, 1..20u64).prop_map(|(kind, every_writes)| Sync { kind, every_writes, when_idle: false }))
}

prop_compose! {
    fn specs()(
        files in prop::sample::subsequence((0..FILES).collect::<Vec<_>>(), 1..=FILES as usize),
        file_order in prop_oneof![
            Just(FileOrder::Sequential), Just(FileOrder::RoundRobin), Just(FileOrder::Random)
        ],
        pattern in patterns(),
        read_share in prop_oneof![Just(0.0), Just(1.0), 0.0..1.0],
        sizes in prop::collection::vec(
            (prop::sample::select(vec![512, 1536, 4096, 32_768u32]), 0.1..10.0), 1..4),
        align_bytes in prop::sample::select(vec![512, 1024, 4096u64]),
        start in 0..8u64,
        length_bytes in 32_768..FILE_BYTES - 65_536,
        queue_depth in 1..40u32,
        arrival in arrivals(),
        until in bounds(),
        sync in syncs(),
        sync_at_end in any::<bool>(),
        write_size in prop::option::of(prop::sample::select(vec![2048, 8192, 16_384u32])),
        start_ns in prop::option::of(0..20_000u64),
        dsync_every in prop::option::of(1..5u64),
        seed in any::<u64>(),
    ) -> JobSpec {
        let mut blocks: Vec<BlockSize> =
            sizes.into_iter().map(|(bytes, weight)| BlockSize { bytes, weight }).collect();
        if matches!(pattern, Pattern::Permutation { .. }) {
            blocks.truncate(1);
        }
        JobSpec {
            name: "any".into(), files, file_order, pattern, read_share, blocks, align_bytes,
            offset_bytes: 2 * start * align_bytes, length_bytes, queue_depth, arrival, until, sync,
            sync_at_end, dsync_every, osync_every: None, commits: false, seed, scatter_seed: None, depth_search: None, steady_state: None, replay: None,
            start_ns: start_ns.filter(|start| until.duration_ns.is_none_or(|end| *start < end)),
            writes: write_size.map(|bytes| WriteBlocks {
                blocks: vec![BlockSize { bytes, weight: 1.0 }],
                align_bytes: (2 * align_bytes).min(4096),
            }),
        }
    }
}

fn job(spec: &JobSpec) -> Job {
    Job::new(spec, &[FILE_BYTES; FILES as usize]).expect("a sound specification")
}

/// Service times that vary, so that operations overtake each other.
fn serve(spec: &JobSpec, exclusive: bool) -> Vec<ServedOp> {
    let mut job = job(spec);
    job.exclusive(exclusive);
    run(&mut job, spec.queue_depth, 3, |op| 1_000 + (op.offset / 512).wrapping_mul(7_919) % 30_000)
}

fn data(served: &[ServedOp]) -> impl Iterator<Item = &ServedOp> {
    served.iter().filter(|served| !served.op.kind.is_sync())
}

fn overlap(a: &Op, b: &Op) -> bool {
    a.file == b.file && a.offset < b.offset + u64::from(b.bytes) && b.offset < a.offset + u64::from(a.bytes)
}

proptest! {
    #[test]
    fn operations_are_inside_the_range_and_aligned(spec in specs()) {
        let end = spec.offset_bytes + spec.length_bytes;
        for ServedOp { op, .. } in data(&serve(&spec, false)) {
            prop_assert!(spec.files.contains(&op.file));
            prop_assert!(op.offset >= spec.offset_bytes);
            prop_assert!(op.offset + u64::from(op.bytes) <= end);
            let (blocks, align_bytes) = match &spec.writes {
                Some(writes) if op.kind.is_write() => (&writes.blocks, writes.align_bytes),
                _ => (&spec.blocks, spec.align_bytes),
            };
            prop_assert!(op.offset.is_multiple_of(align_bytes));
            prop_assert!(blocks.iter().any(|block| block.bytes == op.bytes));
            prop_assert!(op.due >= spec.start_ns.unwrap_or(0));
            prop_assert!(spec.read_share < 1.0 || op.kind == OpKind::Read);
            prop_assert!(spec.read_share > 0.0 || op.kind.is_write());
        }
    }

    #[test]
    fn bounds_are_kept_and_one_is_reached(spec in specs()) {
        let served = serve(&spec, false);
        let ops = data(&served).count() as u64;
        let bytes: u64 = data(&served).map(|served| u64::from(served.op.bytes)).sum();
        let largest = spec.all_blocks().map(|block| u64::from(block.bytes)).max().unwrap_or(0);
        let JobBounds { ops: ops_max, bytes: bytes_max, duration_ns } = spec.until;
        prop_assert!(ops_max.is_none_or(|max| ops <= max));
        prop_assert!(bytes_max.is_none_or(|max| bytes <= max));
        prop_assert!(duration_ns.is_none_or(|end| data(&served).all(|served| served.started_ns < end)));
        let reached = ops_max.is_some_and(|max| ops == max)
            || bytes_max.is_some_and(|max| bytes + largest > max)
            || duration_ns.is_some();
        prop_assert!(reached);
    }

    #[test]
    fn the_same_seed_gives_the_same_operations(spec in specs()) {
        prop_assert_eq!(serve(&spec, false), serve(&spec, false));
    }

    #[test]
    fn open_loop_due_times_do_not_depend_on_completions(
        mut spec in specs(), rate_per_s in 1e3..1e7, poisson in any::<bool>(),
    ) {
        let spacing = if poisson { Spacing::Poisson } else { Spacing::Constant };
        spec.arrival = Arrival::Open { rate_per_s, spacing };
        spec.until = JobBounds { ops: Some(200), bytes: None, duration_ns: None };
        let due_with = |service_ns: u64| -> Vec<u64> {
            let served = run(&mut job(&spec), spec.queue_depth, 1, |_| service_ns);
            data(&served).map(|served| served.op.due).collect()
        };
        let due = due_with(1);
        prop_assert_eq!(&due, &due_with(1_000_000));
        prop_assert!(due.is_sorted());
        if !poisson {
            for (index, due) in due.iter().enumerate() {
                let expected = spec.start_ns.unwrap_or(0) as f64 + index as f64 * 1e9 / rate_per_s;
                prop_assert!((*due as f64 - expected).abs() <= 1.0);
            }
        }
    }

    #[test]
    fn latency_counts_from_the_due_time_and_nothing_starts_early(spec in specs()) {
        for ServedOp { op, started_ns, .. } in serve(&spec, false) {
            match spec.arrival {
                Arrival::Open { .. } => prop_assert!(op.due <= started_ns),
                Arrival::Closed { .. } => prop_assert_eq!(op.due, started_ns),
            }
        }
    }

    #[test]
    fn a_closed_job_thinks(mut spec in specs(), think_ns in 1..100_000u64, think_every in 1..10u64) {
        spec.arrival = Arrival::Closed { think_ns, think_every };
        let served = serve(&spec, false);
        let mut completions: Vec<u64> = data(&served).map(|served| served.completed_ns).collect();
        completions.sort_unstable();
        for pause_start in completions.iter().skip(think_every as usize - 1).step_by(think_every as usize) {
            let pause = pause_start + 1..pause_start + think_ns;
            prop_assert!(data(&served).all(|served| !pause.contains(&served.started_ns)));
        }
    }

    #[test]
    fn syncs_come_after_every_n_writes_and_before_the_next_operation(
        mut spec in specs(), every_writes in 1..20u64,
    ) {
        spec.sync = Some(Sync { kind: SyncKind::Fdatasync, every_writes, when_idle: false });
        spec.read_share = spec.read_share.min(0.9);
        let served = serve(&spec, false);
        let (mut writes, mut syncs_end) = (Vec::new(), 0);
        let mut due_files: Vec<u32> = Vec::new();
        for ServedOp { op, started_ns, completed_ns } in served {
            match op.kind {
                OpKind::Fdatasync => {
                    prop_assert!(due_files.contains(&op.file), "a file that needs no sync, or its second");
                    due_files.retain(|file| *file != op.file);
                    syncs_end = syncs_end.max(completed_ns);
                }
                OpKind::Fsync => prop_assert!(spec.sync_at_end && due_files.is_empty()),
                OpKind::Discard | OpKind::WriteZeroes => prop_assert!(false, "only replays clear"),
                OpKind::SyncFileRange => prop_assert!(false, "another call than asked for"),
                OpKind::Read | OpKind::Write | OpKind::DurableWrite | OpKind::OsyncWrite => {
                    prop_assert!(due_files.is_empty(), "an operation before the sync");
                    prop_assert!(started_ns >= syncs_end, "an operation during the sync");
                    if op.kind.is_write() {
                        writes.push((op.file, completed_ns));
                    }
                    if writes.len() as u64 == every_writes {
                        syncs_end = writes.iter().map(|write| write.1).max().unwrap_or(0);
                        due_files = writes.drain(..).map(|write| write.0).collect();
                        due_files.sort_unstable();
                        due_files.dedup();
                    }
                }
            }
        }
        prop_assert!(due_files.is_empty());
    }

    /// A log's writer: no record waits for others that may not come.
    #[test]
    fn a_sync_when_idle_leaves_no_write_behind(
        mut spec in specs(), every_writes in 1..20u64, rate_per_s in 1e3..1e6,
    ) {
        spec.sync = Some(Sync { kind: SyncKind::Fdatasync, every_writes, when_idle: true });
        spec.sync_at_end = false;
        spec.read_share = spec.read_share.min(0.9);
        spec.arrival = Arrival::Open { rate_per_s, spacing: Spacing::Poisson };
        let (mut unsynced, mut due_files): (u64, Vec<u32>) = (0, Vec::new());
        for ServedOp { op, .. } in serve(&spec, false) {
            if op.kind.is_sync() {
                prop_assert!(due_files.contains(&op.file), "a file that needs no sync, or its second");
                due_files.retain(|file| *file != op.file);
            } else if op.kind.is_write() {
                unsynced = if due_files.is_empty() { 1 } else { unsynced + 1 };
                prop_assert!(unsynced <= every_writes);
                due_files.push(op.file);
                due_files.sort_unstable();
                due_files.dedup();
            }
        }
        prop_assert!(due_files.is_empty(), "the job ended before its last sync");
    }

    #[test]
    fn of_every_n_writes_the_last_is_durable(mut spec in specs(), every in 1..20u64, all: bool) {
        let kind = if all { OpKind::OsyncWrite } else { OpKind::DurableWrite };
        (spec.dsync_every, spec.osync_every) = if all { (None, Some(every)) } else { (Some(every), None) };
        let mut offered: Vec<ServedOp> = data(&serve(&spec, false)).copied().collect();
        offered.retain(|served| served.op.kind.is_write());
        let durable = offered.iter().filter(|served| served.op.kind == kind);
        prop_assert_eq!(durable.count() as u64, offered.len() as u64 / every);
    }

    #[test]
    fn each_written_file_is_synced_once_at_the_end(mut spec in specs()) {
        spec.sync_at_end = true;
        spec.sync = None;
        let served = serve(&spec, false);
        let written = data(&served).filter(|served| served.op.kind.is_write());
        let mut written: Vec<u32> = written.map(|served| served.op.file).collect();
        written.sort_unstable();
        written.dedup();
        let last_completion = data(&served).map(|served| served.completed_ns).max().unwrap_or(0);
        let syncs: Vec<&ServedOp> = served.iter().filter(|served| served.op.kind.is_sync()).collect();
        prop_assert!(syncs.iter().all(|sync| sync.started_ns >= last_completion));
        let mut synced: Vec<u32> = syncs.iter().map(|sync| sync.op.file).collect();
        synced.sort_unstable();
        prop_assert_eq!(synced, written);
    }

    #[test]
    fn an_exclusive_job_never_races_with_itself(mut spec in specs()) {
        // A small range, so that conflicts are frequent.
        spec.length_bytes = 40_960;
        let served = serve(&spec, true);
        let data: Vec<&ServedOp> = data(&served).collect();
        for (index, early) in data.iter().enumerate() {
            for late in &data[index + 1..] {
                let together = late.started_ns < early.completed_ns;
                let writes = early.op.kind.is_write() || late.op.kind.is_write();
                prop_assert!(!(together && writes && overlap(&early.op, &late.op)));
            }
        }
    }

    #[test]
    fn exclusion_changes_when_but_not_what(mut spec in specs()) {
        spec.length_bytes = 40_960;
        spec.until = JobBounds { ops: Some(200), bytes: None, duration_ns: None };
        let what = |exclusive| -> Vec<(OpKind, u32, u64, u32)> {
            let served = serve(&spec, exclusive);
            data(&served).map(|ServedOp { op, .. }| (op.kind, op.file, op.offset, op.bytes)).collect()
        };
        prop_assert_eq!(what(false), what(true));
    }

    #[test]
    fn a_stopped_job_offers_nothing_more(spec in specs(), ops_before in 0..50usize) {
        use workload::job::JobStep;
        let mut job = job(&spec);
        let mut in_flight = Vec::new();
        let mut now = 0;
        for _ in 0..ops_before {
            match job.next(now) {
                JobStep::Io(op) => in_flight.push(op),
                JobStep::WaitUntil(time) => now = time,
                JobStep::WaitForCompletion => {
                    let op = in_flight.remove(0);
                    job.completed(now, &op, Err(5));
                }
                JobStep::Done => break,
            }
        }
        job.stop();
        for op in in_flight {
            prop_assert_eq!(job.next(now), JobStep::WaitForCompletion);
            job.completed(now, &op, Ok(op.bytes));
        }
        prop_assert_eq!(job.next(now), JobStep::Done);
    }

    #[test]
    fn progress_is_a_rising_share(spec in specs()) {
        let mut job = job(&spec);
        prop_assert_eq!(job.progress(0), Some(0.0));
        run(&mut job, spec.queue_depth, 2, |_| 5_000);
        prop_assert_eq!(job.progress(u64::MAX), Some(1.0));
    }
}

/// The syncs of an end first, measured; then what is still to be written, without its pauses, and what is read is left.
#[test]
fn a_job_that_ends_early_syncs_and_then_writes_the_rest() {
    let spec = |read_share| JobSpec {
        read_share,
        pattern: Pattern::Sequential,
        arrival: Arrival::Closed { think_ns: 1_000_000_000, think_every: 1 },
        until: JobBounds::of_ops(4),
        sync_at_end: read_share < 1.0,
        ..uniform_reads()
    };
    let mut kinds = Vec::new();
    let mut job = Job::new(&spec(0.0), &[1 << 20]).unwrap();
    let take = |job: &mut Job| match job.next(0) {
        JobStep::Io(op) => {
            job.completed(0, &op, Ok(op.bytes));
            Some((op.kind, job.is_measured()))
        }
        _ => None,
    };
    kinds.extend(take(&mut job));
    assert_eq!(take(&mut job), None, "it pauses");
    job.end_early(0);
    job.end_early(0);
    while let Some(one) = take(&mut job) {
        kinds.push(one);
    }
    use OpKind::{Fsync, Write};
    let rest = [(Write, false), (Write, false), (Write, false), (Fsync, false)];
    assert_eq!(kinds, [&[(Write, true), (Fsync, true)][..], &rest].concat());
    let mut reader = Job::new(&spec(1.0), &[1 << 20]).unwrap();
    assert!(take(&mut reader).is_some());
    reader.end_early(0);
    assert_eq!(reader.next(0), JobStep::Done);
}
