//! Jobs against the laws of queueing, and their statistics against what was asked for.

use crate::fixture::uniform_reads;
use crate::simulator::{ServedOp, run};
use workload::job::{Job, OpKind};
use workload::spec::{Arrival, BlockSize, DepthSearch, FileOrder, JobBounds, JobSpec, Pattern, Spacing, WriteBlocks};

const SERVICE_NS: u64 = 10_000;

fn serve(spec: &JobSpec, servers: usize) -> Vec<ServedOp> {
    let sizes = vec![spec.offset_bytes + spec.length_bytes; 8];
    let mut job = Job::new(spec, &sizes).expect("a sound specification");
    run(&mut job, spec.queue_depth, servers, |_| SERVICE_NS)
}

fn elapsed_ns(served: &[ServedOp]) -> f64 {
    served.iter().map(|served| served.completed_ns).max().unwrap_or(0) as f64
}

/// A closed job keeps its queue full, so throughput is that of the busy servers and, by Little's law, the mean time in
/// the system is depth / throughput.
#[test]
fn a_closed_job_obeys_littles_law() {
    for (queue_depth, servers) in [(1, 1), (4, 1), (32, 4), (3, 8)] {
        let mut spec = uniform_reads();
        spec.queue_depth = queue_depth;
        spec.until.ops = Some(20_000);
        let served = serve(&spec, servers);
        let throughput_per_ns = served.len() as f64 / elapsed_ns(&served);
        let busy = f64::from(queue_depth).min(servers as f64);
        let expected = busy / SERVICE_NS as f64;
        assert!((throughput_per_ns / expected - 1.0).abs() < 0.01, "{queue_depth} on {servers}");
        let in_system = served.iter().map(|served| (served.completed_ns - served.started_ns) as f64);
        let mean_ns = in_system.sum::<f64>() / served.len() as f64;
        assert!((throughput_per_ns * mean_ns / f64::from(queue_depth) - 1.0).abs() < 0.01);
    }
}

/// Mean wait of an M/D/1 queue (Pollaczek and Khinchine): rho / (2 (1 - rho)) service times.
#[test]
fn a_poisson_job_waits_as_long_as_theory_says() {
    let mut spec = uniform_reads();
    spec.queue_depth = 4096;
    spec.arrival = Arrival::Open { rate_per_s: 0.7e5, spacing: Spacing::Poisson };
    spec.until.ops = Some(400_000);
    let served = serve(&spec, 1);
    let latency = served.iter().map(|served| (served.completed_ns - served.op.due) as f64);
    let mean_wait = latency.sum::<f64>() / served.len() as f64 / SERVICE_NS as f64 - 1.0;
    let expected = 0.7 / (2.0 * (1.0 - 0.7));
    assert!((mean_wait / expected - 1.0).abs() < 0.03, "waited {mean_wait}, expected {expected}");
}

/// Each direction of a mix goes at its own rate, exactly, its operations at equal distances.
#[test]
fn each_direction_has_its_own_even_rate() {
    let mut spec = uniform_reads();
    spec.read_share = 300.0 / 350.0;
    spec.arrival = Arrival::Open { rate_per_s: 350.0, spacing: Spacing::ConstantEach };
    spec.queue_depth = 64;
    spec.until = JobBounds::of_time(10_000_000_000 - 1_000);
    let served = serve(&spec, 64);
    for (is_write, rate) in [(false, 300), (true, 50)] {
        let dues: Vec<u64> =
            served.iter().filter(|served| served.op.kind.is_write() == is_write).map(|served| served.op.due).collect();
        assert_eq!(dues.len(), 10 * rate);
        for (number, due) in dues.iter().enumerate() {
            let expected = number as u64 * 1_000_000_000 / rate as u64;
            assert!(due.abs_diff(expected) <= 1, "{number} of {rate}: {due}");
        }
    }
    spec.read_share = 1.0;
    let refusal = Job::new(&spec, &[1 << 40; 8]).unwrap_err().to_string();
    assert!(refusal.contains("expected a mix"), "{refusal}");
}

/// The rate is one of operations, so a mix of sizes cannot bend it.
#[test]
fn the_open_rate_is_right_with_mixed_sizes() {
    for spacing in [Spacing::Constant, Spacing::Poisson] {
        let mut spec = uniform_reads();
        spec.blocks = [(4096, 9.0), (65_536, 1.0)].map(|(bytes, weight)| BlockSize { bytes, weight }).into();
        spec.arrival = Arrival::Open { rate_per_s: 33_333.3, spacing };
        spec.queue_depth = 4096;
        spec.until = JobBounds::of_time(10_000_000_000);
        let served = serve(&spec, 64);
        let rate_per_s = served.len() as f64 / 10.0;
        let tolerance = if spacing == Spacing::Constant { 1e-5 } else { 0.01 };
        assert!((rate_per_s / 33_333.3 - 1.0).abs() < tolerance, "{spacing:?}: {rate_per_s}");
        let large = served.iter().filter(|served| served.op.bytes == 65_536).count();
        assert!((large as f64 / served.len() as f64 - 0.1).abs() < 0.005);
    }
}

#[test]
fn poisson_gaps_vary_as_much_as_their_mean() {
    let mut spec = uniform_reads();
    spec.arrival = Arrival::Open { rate_per_s: 1e5, spacing: Spacing::Poisson };
    spec.queue_depth = 4096;
    spec.until.ops = Some(200_000);
    let due: Vec<f64> = serve(&spec, 64).iter().map(|served| served.op.due as f64).collect();
    let gaps: Vec<f64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.02);
}

#[test]
fn the_mix_follows_the_read_share() {
    let mut spec = uniform_reads();
    spec.read_share = 0.7;
    spec.until.ops = Some(100_000);
    let served = serve(&spec, 1);
    let reads = served.iter().filter(|served| served.op.kind == OpKind::Read).count();
    assert!((reads as f64 / served.len() as f64 - 0.7).abs() < 0.005);
}

#[test]
fn reads_and_writes_of_their_own_sizes_each_go_through_the_file() {
    let mut spec = uniform_reads();
    spec.pattern = Pattern::Sequential;
    spec.read_share = 0.5;
    spec.writes = Some(WriteBlocks { blocks: vec![BlockSize { bytes: 65_536, weight: 1.0 }], align_bytes: 65_536 });
    spec.until.ops = Some(200);
    let served = serve(&spec, 1);
    for (kind, bytes) in [(OpKind::Read, 4096), (OpKind::Write, 65_536)] {
        let offsets: Vec<u64> =
            served.iter().filter(|served| served.op.kind == kind).map(|served| served.op.offset).collect();
        assert!(offsets.len() > 50);
        let laps = spec.length_bytes / bytes;
        let wanted = (0..offsets.len() as u64).map(|turn| spec.offset_bytes + turn % laps * bytes);
        assert!(offsets.into_iter().eq(wanted), "{kind:?}");
    }
}

#[test]
fn a_job_that_starts_late_offers_nothing_before_and_is_due_from_there() {
    for arrival in [
        Arrival::Closed { think_ns: 0, think_every: 1 },
        Arrival::Open { rate_per_s: 1e6, spacing: Spacing::Constant },
        Arrival::Open { rate_per_s: 1e6, spacing: Spacing::Poisson },
    ] {
        let mut spec = uniform_reads();
        spec.arrival = arrival;
        spec.start_ns = Some(1_000_000);
        spec.until.ops = Some(100);
        let served = serve(&spec, 1);
        assert!(served.iter().all(|served| served.op.due >= 1_000_000));
        let first = served.iter().map(|served| served.op.due).min();
        assert!(first.is_some_and(|due| due < 1_000_000 + 20_000), "{arrival:?}");
    }
}

#[test]
fn the_search_finds_the_depth_that_the_servers_serve_at_once() {
    // Two servers of 1 us: the third operation in flight waits for one of them.
    let mut spec = uniform_reads();
    spec.queue_depth = 32;
    spec.depth_search = Some(DepthSearch { target_ns: 1_500, window_ns: 100_000, share: 0.99, goes_on: false });
    spec.until = JobBounds::of_time(1_000_000_000);
    let mut job = Job::new(&spec, &[spec.offset_bytes + spec.length_bytes; 8]).unwrap();
    let served = run(&mut job, spec.queue_depth, 2, |_| 1_000);
    let searched = job.searched().unwrap();
    assert_eq!(searched.queue_depth, Some(2), "{searched:?}");
    let tried: Vec<u32> = searched.windows.iter().map(|window| window.queue_depth).collect();
    assert_eq!(tried, [1, 2, 4, 3, 2]);
    assert!(served.len() < 2_000, "it ends after its last window");
    assert!(job.measures_anew() && !job.measures_anew());
}

#[test]
fn a_permutation_visits_each_block_of_each_file_once_a_pass() {
    for file_order in [FileOrder::Sequential, FileOrder::RoundRobin, FileOrder::Random] {
        let mut spec = uniform_reads();
        spec.pattern = Pattern::Permutation { blocks_done: 0 };
        spec.file_order = file_order;
        spec.files = vec![0, 1, 2];
        // Not a power of two, not a multiple of the block.
        spec.length_bytes = 37 * 4096 + 100;
        spec.until.ops = Some(37 * 3 * 10);
        let served = serve(&spec, 1);
        let mut orders = Vec::new();
        for file in 0..3 {
            let offsets: Vec<u64> =
                served.iter().filter(|served| served.op.file == file).map(|served| served.op.offset).collect();
            for pass in offsets.chunks_exact(37) {
                let mut blocks: Vec<u64> = pass.iter().map(|offset| offset / 4096).collect();
                orders.push(blocks.clone());
                blocks.sort_unstable();
                assert_eq!(blocks, (0..37).collect::<Vec<_>>());
            }
        }
        let passes = orders.len();
        orders.sort_unstable();
        orders.dedup();
        assert_eq!(orders.len(), passes, "two passes in the same order");
    }
}

#[test]
fn jobs_that_share_a_seed_share_the_passes_of_a_permutation() {
    let mut spec = uniform_reads();
    spec.length_bytes = 37 * 4096;
    spec.scatter_seed = Some(3);
    let offsets = |spec: &JobSpec| -> Vec<u64> { serve(spec, 1).iter().map(|served| served.op.offset).collect() };
    let part = |spec: &mut JobSpec, blocks_done: u64, ops: u64| {
        spec.seed += 1;
        spec.pattern = Pattern::Permutation { blocks_done };
        spec.until.ops = Some(ops);
        offsets(spec)
    };
    let whole = part(&mut spec, 0, 100);
    let parts = [(0, 20), (20, 17), (37, 40), (77, 23)];
    let found = parts.map(|(blocks_done, ops)| part(&mut spec, blocks_done, ops));
    assert_eq!(found.concat(), whole);
}

/// Sizes below the alignment are as far apart as larger ones, but fit in more places.
#[test]
fn zipf_places_fit_the_largest_size_whatever_the_order_of_sizes() {
    for sizes in [[4096, 512], [512, 4096]] {
        let mut spec = uniform_reads();
        spec.pattern = Pattern::Zipf { theta: 0.0 };
        spec.blocks = sizes.map(|bytes| BlockSize { bytes, weight: 1.0 }).into();
        spec.length_bytes = 8 * 4096 + 512;
        for ServedOp { op, .. } in serve(&spec, 1) {
            assert!(op.offset + u64::from(op.bytes) <= spec.length_bytes);
        }
    }
}

fn offsets_in_blocks(spec: &JobSpec) -> Vec<(u32, u64)> {
    serve(spec, 1).iter().map(|served| (served.op.file, served.op.offset / 4096)).collect()
}

#[test]
fn positional_patterns_visit_blocks_in_their_order() {
    let mut spec = uniform_reads();
    spec.offset_bytes = 4096;
    spec.length_bytes = 5 * 4096 + 512;
    spec.until.ops = Some(7);
    let mut blocks = |pattern| -> Vec<u64> {
        spec.pattern = pattern;
        offsets_in_blocks(&spec).into_iter().map(|(_, block)| block).collect()
    };
    assert_eq!(blocks(Pattern::Sequential), [1, 2, 3, 4, 5, 1, 2]);
    assert_eq!(blocks(Pattern::Backward), [5, 4, 3, 2, 1, 5, 4]);
    assert_eq!(blocks(Pattern::Strided { stride_bytes: 8192, one_lap: false, blocks_done: 0 }), [1, 3, 5, 2, 4, 1, 3]);
    for (blocks_done, then) in (0..).zip([1, 3, 5, 2, 4, 1, 3]) {
        let later = Pattern::Strided { stride_bytes: 8192, one_lap: false, blocks_done };
        assert_eq!(blocks(later)[0], then);
    }
    let one_lap = Pattern::Strided { stride_bytes: 8192, one_lap: true, blocks_done: 0 };
    assert_eq!(blocks(one_lap), [1, 3, 5, 1, 3, 5, 1]);
}

#[test]
fn files_take_turns() {
    let mut spec = uniform_reads();
    spec.pattern = Pattern::Sequential;
    spec.files = vec![2, 5];
    spec.length_bytes = 2 * 4096;
    spec.until.ops = Some(5);
    spec.file_order = FileOrder::Sequential;
    assert_eq!(offsets_in_blocks(&spec), [(2, 0), (2, 1), (5, 0), (5, 1), (2, 0)]);
    spec.file_order = FileOrder::RoundRobin;
    assert_eq!(offsets_in_blocks(&spec), [(2, 0), (5, 0), (2, 1), (5, 1), (2, 0)]);
    spec.pattern = Pattern::Uniform;
    spec.file_order = FileOrder::Sequential;
    let files: Vec<u32> = offsets_in_blocks(&spec).into_iter().map(|(file, _)| file).collect();
    assert_eq!(files, [2, 2, 5, 5, 2]);
}
