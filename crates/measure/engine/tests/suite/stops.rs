//! A stop ends everything soon, whatever the device does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::devices::Mount;
use crate::common::*;
use engine::start;
use workload::phase::{EngineKind, Phase};
use workload::record::PhaseRecord;
use workload::spec::{Arrival, JobSpec, Spacing};

/// Generous, because the machine may be busy; the engine's own bound is 100 ms.
const SOON: Duration = Duration::from_secs(15);

fn stopped_after(phase: Phase, ops: u64, before_stop: impl FnOnce()) -> PhaseRecord {
    let handle = start(phase, Arc::default()).unwrap();
    let began = Instant::now();
    while handle.snapshot().ops < ops {
        assert!(began.elapsed() < Duration::from_secs(60), "no operation");
        std::thread::sleep(Duration::from_millis(1));
    }
    before_stop();
    let asked = Instant::now();
    handle.stop();
    let record = handle.wait(Duration::from_secs(60)).unwrap().unwrap();
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    assert!(record.stopped && handle.snapshot().done);
    record
}

#[test]
fn busy_jobs_stop_and_keep_their_figures() {
    let place = ScratchDirectory::in_memory();
    for engine in ALL_ENGINES.into_iter().chain([EngineKind::Null]) {
        let job = JobSpec { until: lasting(60_000), ..job() };
        let phase = phase(&place.path("data"), vec![group(engine, vec![job])]);
        let record = stopped_after(phase, 1, || {});
        let done = only_job(&record);
        let null_ops = done.null.as_ref().map_or(0, |null| null.count);
        assert!(done.read.count + null_ops > 0, "{engine:?}");
        assert!(record.elapsed_ns < 30_000_000_000);
    }
}

#[test]
fn a_job_that_sleeps_is_woken() {
    let place = ScratchDirectory::in_memory();
    for engine in [EngineKind::IoUring, EngineKind::Libaio, EngineKind::Psync] {
        let closed = Arrival::Closed { think_ns: 60_000_000_000, think_every: 1 };
        let open = Arrival::Open { rate_per_s: 0.01, spacing: Spacing::Constant };
        for (arrival, first) in [(closed, 1), (open, 0)] {
            let job = JobSpec { until: lasting(60_000), arrival, ..job() };
            let phase = phase(&place.path("data"), vec![group(engine, vec![job])]);
            stopped_after(phase, first, || {});
        }
    }
}

#[test]
fn a_device_that_hangs_does_not_hang_the_caller() {
    if !is_root("a_device_that_hangs_does_not_hang_the_caller") {
        return;
    }
    for engine in [EngineKind::IoUring, EngineKind::Libaio, EngineKind::Psync] {
        let mount = Mount::ext4(64 * MIB);
        let job = JobSpec { name: "stuck".into(), until: lasting(60_000), ..writer() };
        let phase = phase(&mount.path("data"), vec![group(engine, vec![job])]);
        let record = stopped_after(phase, 1, || mount.freeze());
        mount.thaw();
        let notes = record.groups[0].notes.join("; ");
        assert!(notes.contains("\"stuck\""), "{engine:?}: {notes}");
    }
}

#[test]
fn a_handle_that_is_dropped_stops_its_threads() {
    let place = ScratchDirectory::in_memory();
    let job = JobSpec { until: lasting(60_000), ..job() };
    let handle = start(phase(&place.path("data"), vec![group(EngineKind::Psync, vec![job])]), Arc::default()).unwrap();
    drop(handle);
    // Tests beside this one have engines too: those of this one hold its file.
    let held = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let mut paths = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        paths.any(|path| path.starts_with(place.path("")))
    };
    let dropped = Instant::now();
    while held() {
        assert!(dropped.elapsed() < SOON, "its threads go on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_snapshot_counts_up_while_it_runs() {
    let place = ScratchDirectory::in_memory();
    let started = |warm_up_ms: u64, lasting_ms: u64| {
        let job = JobSpec { until: lasting(lasting_ms), ..job() };
        let groups = vec![group(EngineKind::Psync, vec![job])];
        let mut phase = phase(&place.path("data"), groups);
        phase.warm_up_ns = warm_up_ms * 1_000_000;
        start(phase, Arc::default()).unwrap()
    };
    assert!(started(60_000, 120_000).snapshot().warming_up);
    let handle = started(1, 60_000);
    let middle = loop {
        assert!(handle.wait(Duration::from_millis(5)).is_none());
        let middle = handle.snapshot();
        if !middle.warming_up && middle.ops > 0 {
            break middle;
        }
    };
    assert!(middle.bytes == middle.ops * 4096 && !middle.done);
    let fraction = middle.fraction.unwrap();
    assert!(fraction > 0.0 && fraction < 1.0, "{fraction}");
    handle.stop();
    finish(&handle);
    assert!(handle.snapshot().done && handle.snapshot().ops >= middle.ops);
    let whole = started(0, 20);
    finish(&whole);
    assert!(whole.snapshot().done && whole.snapshot().fraction == Some(1.0));
}
