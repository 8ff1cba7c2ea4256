//! What is measured, over which window, and that all figures agree with one another.

use crate::common::*;
use workload::phase::{EngineKind, GroupSpec, Phase};
use workload::record::{JobRecord, OpRecord};
use workload::spec::{Arrival, DepthSearch, JobBounds, JobSpec, Spacing};

fn counted(op: &OpRecord) -> u64 {
    op.latency.as_ref().map_or(0, |latency| latency.histogram.iter().map(|bucket| bucket.2).sum())
}

fn late_by_a_millisecond(op: &OpRecord) -> u64 {
    op.latency.as_ref().map_or(0, |latency| {
        let late = latency.histogram.iter().filter(|bucket| bucket.1 >= 1_000_000);
        late.map(|bucket| bucket.2).sum()
    })
}

fn in_intervals(job: &JobRecord, from: u64) -> (u64, u64) {
    let measured = job.intervals.iter().filter(|interval| interval.start_ns >= from);
    measured.fold((0, 0), |(ops, bytes), interval| {
        (
            ops + interval.read_ops + interval.write_ops + interval.null_ops.unwrap_or(0),
            bytes + interval.read_bytes + interval.write_bytes,
        )
    })
}

#[test]
fn totals_histograms_and_timeline_agree() {
    let place = ScratchDirectory::in_memory();
    for engine in ALL_ENGINES {
        let until = JobBounds::of_ops(20_000);
        let job = JobSpec { read_share: 0.7, until, ..job() };
        let phase = Phase { interval_ns: 100_000, ..phase(&place.path("data"), vec![group(engine, vec![job])]) };
        let record = run(phase);
        let job = only_job(&record);
        assert_eq!(job.read.count + job.write.count, 20_000);
        assert_eq!((counted(&job.read), counted(&job.write)), (job.read.count, job.write.count));
        assert_eq!(in_intervals(job, 0), (20_000, job.read.bytes + job.write.bytes));
        assert!(job.intervals.len() <= 256);
        assert!(job.intervals.windows(2).all(|pair| pair[0].start_ns + pair[0].length_ns == pair[1].start_ns));
        let latency = job.read.latency.as_ref().unwrap();
        assert!(latency.min_ns as f64 <= latency.mean_ns && latency.mean_ns <= latency.max_ns as f64);
        assert_eq!(record.elapsed_ns, job.finished_ns);
    }
}

#[test]
fn the_warm_up_is_left_out_of_every_figure() {
    let place = ScratchDirectory::in_memory();
    for engine in [EngineKind::IoUring, EngineKind::Psync] {
        let arrival = Arrival::Open { rate_per_s: 1000.0, spacing: Spacing::Constant };
        let until = JobBounds::of_ops(400);
        let job = JobSpec { until, arrival, ..job() };
        let mut phase = phase(&place.path("data"), vec![group(engine, vec![job])]);
        phase.warm_up_ns = 200_000_000;
        let record = run(phase);
        let job = only_job(&record);
        assert_eq!(record.measured_from_ns, 200_000_000);
        // The 200 that are due after the warm-up can't end in it. Of those due before, one a millisecond, a busy machine
        // may end some afterwards, but then all of these except the last are late by a millisecond or more.
        let late = late_by_a_millisecond(&job.read);
        assert!((199..=202 + late).contains(&job.read.count), "{engine:?}: {} with {late} late", job.read.count);
        assert_eq!(in_intervals(job, 0).0, job.read.count);
        assert!(job.intervals.iter().all(|interval| interval.start_ns >= 200_000_000));
    }
}

#[test]
fn a_transient_is_cut_from_all_figures_alike() {
    let job = JobSpec { until: lasting(600), ..job() };
    let groups = vec![group(EngineKind::Null, vec![job.clone(), job.clone()]), group(EngineKind::Null, vec![job])];
    let record = run(Phase { cut_transient: true, ..phase("/nowhere", groups) });
    let transient = record.transient.as_ref().unwrap();
    assert_eq!(record.measured_from_ns, transient.cut_ns);
    for group in &record.groups {
        assert!(group.cpu_user_ns + group.cpu_system_ns <= (record.measured_to_ns - record.measured_from_ns) * 11 / 10);
        for job in &group.jobs {
            let null = job.null.as_ref().expect("null operations");
            assert_eq!(in_intervals(job, record.measured_from_ns).0, null.count);
            assert_eq!(counted(null), null.count);
            assert_eq!((job.read.count, job.write.count), (0, 0));
        }
    }
}

#[test]
fn a_search_that_every_depth_satisfies_ends_at_the_deepest_and_is_measured_there() {
    let job = JobSpec {
        queue_depth: 8,
        depth_search: Some(DepthSearch {
            target_ns: 600_000_000_000,
            window_ns: 20_000_000,
            share: 0.9,
            goes_on: false,
        }),
        until: lasting(50_000),
        ..job()
    };
    let place = ScratchDirectory::in_memory();
    let path = place.path("file");
    run(phase(&path, vec![group(EngineKind::Psync, vec![writer()])]));
    let record = run(phase(&path, vec![group(EngineKind::IoUring, vec![job])]));
    let group = &record.groups[0];
    let searched = group.jobs[0].depth_search.as_ref().unwrap();
    assert_eq!(searched.queue_depth, Some(8));
    let tried: Vec<u32> = searched.windows.iter().map(|window| window.queue_depth).collect();
    assert_eq!(tried, [1, 2, 4, 8, 8]);
    let last = searched.windows.last().unwrap();
    assert_eq!(record.measured_from_ns, last.start_ns);
    // What is in flight when the window closes is measured too.
    let measured = group.jobs[0].read.count;
    assert!((last.count..last.count + 8).contains(&measured), "{measured} of {}", last.count);
    assert!(record.elapsed_ns < 50_000_000_000, "it ends by itself");
    assert!(group.notes.iter().any(|note| note.contains("queue depth 8 keeps 90 %")), "{:?}", group.notes);
}

#[test]
fn threads_and_process_account_for_the_work() {
    let job = JobSpec { until: lasting(300), ..job() };
    let record = run(phase("/nowhere", vec![group(EngineKind::Null, vec![job])]));
    let thread = record.groups[0].cpu_user_ns + record.groups[0].cpu_system_ns;
    let process = record.process_cpu_user_ns + record.process_cpu_system_ns;
    assert!(thread > 0 && process * 11 / 10 + 10_000_000 >= thread, "{thread} {process}");
    assert!(thread <= record.elapsed_ns * 11 / 10 + 10_000_000);
}

#[test]
fn open_loop_latency_counts_from_the_due_time() {
    let place = ScratchDirectory::in_memory();
    let arrival = Arrival::Open { rate_per_s: 1e6, spacing: Spacing::Constant };
    let until = JobBounds::of_ops(20_000);
    let blocks = vec![workload::spec::BlockSize { bytes: 1 << 20, weight: 1.0 }];
    let job = JobSpec { arrival, until: JobBounds { ops: Some(500), ..until }, blocks, queue_depth: 1, ..job() };
    let record = run(phase(&place.path("data"), vec![group(EngineKind::Psync, vec![job])]));
    let latency = only_job(&record).read.latency.as_ref().unwrap();
    // A million MiB a second can't be had: the last one was due half a millisecond from the start and is late by the rest.
    assert!(latency.max_ns + 1_000_000 > record.elapsed_ns, "{} {}", latency.max_ns, record.elapsed_ns);
}

#[test]
fn a_paced_job_keeps_its_rate_on_a_ring_with_others() {
    let place = ScratchDirectory::in_memory();
    let arrival = Arrival::Open { rate_per_s: 2000.0, spacing: Spacing::Constant };
    let paced = JobSpec { name: "paced".into(), arrival, until: JobBounds::of_ops(1000), ..job() };
    let busy = JobSpec { name: "busy".into(), until: lasting(500), ..job() };
    let record = run(phase(&place.path("data"), vec![group(EngineKind::Libaio, vec![paced, busy])]));
    let [paced, busy] = &record.groups[0].jobs[..] else { panic!("two jobs") };
    // The last is due 999 times 0.5 ms from the start: the job can't end before, and on a machine that has no time for it
    // it ends later by no more than the lateness that its latencies show.
    let last_due_ns = 999 * 500_000;
    let late_ns_max = paced.read.latency.as_ref().unwrap().max_ns;
    assert_eq!(paced.read.count, 1000);
    assert!(
        (last_due_ns..=last_due_ns + late_ns_max).contains(&paced.finished_ns),
        "{} with {late_ns_max}",
        paced.finished_ns
    );
    assert!(busy.read.count > paced.read.count);
}

#[test]
fn a_pin_that_can_not_be_is_noted() {
    let place = ScratchDirectory::in_memory();
    let pinned = GroupSpec { cpus: Some(vec![1000]), ..group(EngineKind::Psync, vec![job()]) };
    let record = run(phase(&place.path("data"), vec![pinned]));
    assert!(record.groups[0].notes.iter().any(|note| note.contains("pinning to CPUs [1000] failed")));
}
