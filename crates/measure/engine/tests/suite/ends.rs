//! Where the measured part of a phase ends, and what the files look like then.

use crate::common::*;
use engine::start;
use std::sync::Arc;
use workload::phase::{EngineKind, GroupSpec, Phase, StopCondition};
use workload::spec::{Arrival, JobBounds, JobSpec};

const BLOCK: u64 = 4096;

/// A pause before the second call, so that whoever has it can't be first.
fn pausing(job: JobSpec) -> JobSpec {
    JobSpec { arrival: Arrival::Closed { think_ns: 50_000_000, think_every: 1 }, ..job }
}

fn over_the_file(job: JobSpec) -> JobSpec {
    JobSpec { until: JobBounds { ops: None, bytes: Some(MIB), duration_ns: None }, ..job }
}

fn growing(path: &str, groups: Vec<GroupSpec>) -> Phase {
    let mut phase = phase(path, groups);
    phase.files[0].extend = false;
    phase
}

/// A quick job and a slow one, on files of their own.
fn race(place: &ScratchDirectory, job: JobSpec) -> Phase {
    let slow = JobSpec { files: vec![1], ..pausing(job.clone()) };
    let groups = vec![group(EngineKind::Psync, vec![job]), group(EngineKind::Psync, vec![slow])];
    let mut phase = growing(&place.path("quick"), groups);
    let slow_file = workload::phase::FileSpec { extend: false, ..file(&place.path("slow")) };
    phase.files.push(slow_file);
    phase.ends_with_first = true;
    phase
}

fn length(place: &ScratchDirectory, name: &str) -> u64 {
    std::fs::metadata(place.path(name)).unwrap().len()
}

#[test]
fn a_file_that_is_not_extended_grows_as_it_is_written() {
    let place = ScratchDirectory::in_memory();
    let half = JobSpec { until: JobBounds::of_ops(MIB / BLOCK / 2), ..writer() };
    let groups = vec![group(EngineKind::Pvsync, vec![half])];
    run(growing(&place.path("data"), groups.clone()));
    assert_eq!(length(&place, "data"), MIB / 2);
    run(phase(&place.path("data"), groups));
    assert_eq!(length(&place, "data"), MIB);
}

#[test]
fn what_is_mapped_must_be_extended() {
    let place = ScratchDirectory::in_memory();
    let refused = start(growing(&place.path("data"), vec![group(EngineKind::Mmap, vec![writer()])]), Arc::default());
    assert!(refused.unwrap_err().to_string().contains("does not grow"));
}

#[test]
fn the_first_job_that_is_done_ends_the_others_figures_and_leaves_whole_files() {
    let place = ScratchDirectory::in_memory();
    let record = run(race(&place, JobSpec { sync_at_end: true, ..over_the_file(writer()) }));
    let [quick, slow] = [&record.groups[0].jobs[0], &record.groups[1].jobs[0]];
    assert_eq!(quick.write.bytes, MIB);
    assert!(slow.write.bytes < MIB && slow.sync.count == 1, "{} {}", slow.write.bytes, slow.sync.count);
    assert_eq!((length(&place, "quick"), length(&place, "slow")), (MIB, MIB));
    assert!(!record.stopped);
}

#[test]
fn what_is_still_to_be_read_then_is_left() {
    let place = ScratchDirectory::in_memory();
    for name in ["quick", "slow"] {
        std::fs::write(place.path(name), vec![1; MIB as usize]).unwrap();
    }
    let record = run(race(&place, over_the_file(JobSpec { pattern: workload::spec::Pattern::Sequential, ..job() })));
    let [quick, slow] = [&record.groups[0].jobs[0], &record.groups[1].jobs[0]];
    assert_eq!(quick.read.bytes, MIB);
    assert!(slow.read.bytes < MIB, "{}", slow.read.bytes);
    assert!(slow.finished_ns <= record.elapsed_ns);
}

#[test]
fn closing_counts_where_it_is_asked_for() {
    let place = ScratchDirectory::in_memory();
    let close_in_time =
        |close_in_time| GroupSpec { close_in_time, ..group(EngineKind::Psync, vec![over_the_file(writer())]) };
    for counts in [false, true] {
        let record = run(phase(&place.path("data"), vec![close_in_time(counts)]));
        let job = only_job(&record);
        let last = job.intervals.last().unwrap();
        assert_eq!(record.elapsed_ns, job.finished_ns);
        assert!(last.start_ns <= job.finished_ns);
    }
    let ring = GroupSpec { engine: EngineKind::IoUring, ..close_in_time(true) };
    let refused = start(phase(&place.path("data"), vec![ring]), Arc::default());
    assert!(refused.unwrap_err().to_string().contains("one operation at a time"));
}

#[test]
fn data_is_fresh_or_the_same() {
    let place = ScratchDirectory::in_memory();
    let sectors = |fresh_data| {
        let spec = GroupSpec { fresh_data, ..group(EngineKind::Psync, vec![over_the_file(writer())]) };
        run(phase(&place.path("data"), vec![spec]));
        let data = std::fs::read(place.path("data")).unwrap();
        let distinct: std::collections::BTreeSet<_> = data.chunks_exact(512).collect();
        distinct.len() as u64
    };
    assert_eq!(sectors(true), MIB / 512);
    assert_eq!(sectors(false), BLOCK / 512);
}

/// A job that is done stops those beside it, of both loops.
#[test]
fn the_end_of_a_job_stops_the_others() {
    for engine in [EngineKind::Psync, EngineKind::Null] {
        let place = ScratchDirectory::in_memory();
        let quick = JobSpec { name: "quick".into(), ..over_the_file(writer()) };
        let slow = JobSpec { until: lasting(60_000), ..pausing(writer()) };
        let groups = vec![group(EngineKind::Psync, vec![quick]), group(engine, vec![slow])];
        let mut phase = phase(&place.path("data"), groups);
        phase.stops_with = Some(StopCondition { jobs: vec!["quick".into()], any: false });
        let record = run(phase);
        assert!(record.elapsed_ns < 10_000_000_000, "{engine:?}");
        assert!(!record.stopped);
        assert_eq!(record.groups[0].jobs[0].write.bytes, MIB);
    }
}

#[test]
fn only_jobs_that_there_are_stop_others() {
    let place = ScratchDirectory::in_memory();
    let mut phase = phase(&place.path("data"), vec![group(EngineKind::Psync, vec![writer()])]);
    phase.stops_with = Some(StopCondition { jobs: vec!["nobody".into()], any: true });
    let refused = start(phase, Arc::default()).unwrap_err().to_string();
    assert!(refused.contains("no job \"nobody\""), "{refused}");
}
