//! Metadata loads on the kernel: what they leave, what they count, and how they end early.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::common::ScratchDirectory;
use engine::StartError;
use engine::metadata::{MetadataPhase, MetadataRecord, PathForm, ThreadRecord, ThreadSpec, start};
use workload::metadata::{MetadataSpec, NameSpec, NextDirectory, SyncMethod, WalkSpec};

const THREADS: u64 = 2;

/// Two threads in one directory, ten files of 5000 bytes each, in calls of 2048 bytes.
fn phase(place: &ScratchDirectory) -> MetadataPhase {
    let thread = |index| ThreadSpec {
        directory: place.path("files"),
        beneath: None,
        paths: PathForm::Full,
        cpus: None,
        job: MetadataSpec {
            name: format!("thread.{index}"),
            files: 10,
            file_bytes: 5000,
            write_bytes: 2048,
            sync: SyncMethod::None,
            keep: true,
            until_full: false,
            subdirectories: None,
            names: NameSpec { bytes: 40, random_bytes: 24, first: index, step: THREADS },
            seed: index,
        },
    };
    MetadataPhase { name: "loop.1".into(), threads: (0..THREADS).map(thread).collect() }
}

fn finish(phase: MetadataPhase) -> MetadataRecord {
    let handle = start(phase).expect("a phase that can start");
    let record = handle.wait(Duration::from_secs(20)).expect("an end");
    record.expect("a record")
}

fn threads(record: &MetadataRecord) -> impl Iterator<Item = &ThreadRecord> {
    record.phase.groups.iter().flat_map(|group| &group.jobs)
}

fn counts(thread: &ThreadRecord) -> BTreeMap<&str, u64> {
    let counts = thread.ops.iter().map(|(&name, op)| (name, op.count));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// Path below `root` -> size.
fn files(root: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut left = vec![std::path::PathBuf::from(root)];
    while let Some(path) = left.pop() {
        let entries = std::fs::read_dir(&path).into_iter().flatten();
        for entry in entries.map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                left.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(root).unwrap().display().to_string();
                found.insert(name, entry.metadata().unwrap().len());
            }
        }
    }
    found
}

#[test]
fn each_thread_makes_its_files_and_counts_its_calls() {
    for paths in [PathForm::Full, PathForm::Relative] {
        let place = ScratchDirectory::in_memory();
        let mut phase = phase(&place);
        phase.threads.iter_mut().for_each(|thread| thread.paths = paths);
        let record = finish(phase);
        for thread in threads(&record) {
            let expected = BTreeMap::from([("create", 10), ("write", 30), ("close", 10)]);
            assert_eq!(counts(thread), expected);
            assert_eq!(thread.ops["write"].bytes, 50_000);
        }
        let left = files(&place.path("files"));
        assert_eq!(left.len(), 20);
        assert!(left.iter().all(|(name, &size)| name.len() == 40 && size == 5000));
    }
}

#[test]
fn files_that_are_not_kept_are_unlinked_and_directories_stay() {
    let place = ScratchDirectory::in_memory();
    let mut phase = phase(&place);
    for thread in &mut phase.threads {
        thread.job.keep = false;
        thread.job.sync = SyncMethod::SystemThenReverse;
        thread.job.subdirectories = Some(WalkSpec { count: 4, first: 3, next_after: NextDirectory::Files(5) });
    }
    let record = finish(phase);
    for thread in threads(&record) {
        let found = counts(thread);
        assert_eq!((found["create"], found["unlink"], found["fsync"]), (10, 10, 10));
        assert_eq!((found["system_sync"], found["mkdir"]), (1, 2));
    }
    assert!(files(&place.path("files")).is_empty());
    let mut directories: Vec<_> =
        std::fs::read_dir(place.path("files")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    directories.sort();
    assert_eq!(directories, ["00", "03"]);
}

#[test]
fn rates_and_overhead_agree_with_the_times_of_the_calls() {
    let place = ScratchDirectory::in_memory();
    let mut phase = phase(&place);
    phase.threads.iter_mut().for_each(|thread| thread.job.files = 2000);
    let record = finish(phase);
    let value = |name| record.measures[name].unwrap();
    let own: f64 = threads(&record).map(|thread| thread.measures["files_per_s"].unwrap()).sum();
    assert_eq!(value("files_per_s"), own);
    assert!(value("files_per_s_wall") <= own * 1.001, "{:?}", record.measures);
    for thread in threads(&record) {
        let called_s: f64 = thread
            .ops
            .values()
            .filter_map(|op| op.latency.as_ref().map(|latency| latency.mean_ns * op.count as f64 / 1e9))
            .sum();
        let own_s = 2000.0 / thread.measures["files_per_s"].unwrap();
        let overhead_s = thread.measures["app_overhead_s"].unwrap();
        assert!(overhead_s > 0.0 && (called_s + overhead_s - own_s).abs() < 1e-6);
    }
    assert!((0.0..=100.0).contains(&value("filesystem_used_percent")));
}

#[test]
fn a_failing_call_is_counted_with_its_path_and_the_others_go_on() {
    let place = ScratchDirectory::in_memory();
    let mut phase = phase(&place);
    phase.threads.truncate(1);
    let job = &mut phase.threads[0].job;
    job.subdirectories = Some(WalkSpec { count: 2, first: 0, next_after: NextDirectory::Files(5) });
    // A file where a subdirectory belongs: mkdir finds it there, and nothing can be made in it.
    std::fs::create_dir(place.path("files")).unwrap();
    std::fs::write(place.path("files/01"), "").unwrap();
    let record = finish(phase);
    let thread = threads(&record).next().unwrap();
    assert_eq!(thread.ops["create"].count, 5);
    let error = &thread.errors[0];
    assert_eq!((error.errno, error.op, error.count), (libc::ENOTDIR, "create", 5));
    assert!(error.first_path.starts_with(&place.path("files/01/")));
}

#[test]
fn a_stop_ends_it_soon() {
    let place = ScratchDirectory::in_memory();
    let mut phase = phase(&place);
    phase.threads.iter_mut().for_each(|thread| thread.job.files = u64::from(u32::MAX));
    let handle = start(phase).unwrap();
    while handle.snapshot().ops < 1000 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let asked = Instant::now();
    handle.stop();
    let record = handle.wait(Duration::from_secs(20)).expect("an end").unwrap();
    assert!(asked.elapsed() < Duration::from_secs(15));
    assert!(record.phase.stopped && threads(&record).all(|thread| thread.ops["unlink"].count == 0));
}

#[test]
fn what_cannot_start_says_where_and_why() {
    let place = ScratchDirectory::in_memory();
    let mut nowhere = phase(&place);
    nowhere.threads[0].directory = place.path("missing/files");
    match start(nowhere).unwrap_err() {
        StartError::Os { errno, path, .. } => {
            assert_eq!((errno, path), (libc::ENOENT, place.path("missing/files")));
        }
        other => panic!("{other}"),
    }
    let mut idle = phase(&place);
    idle.threads[1].job.files = 0;
    assert!(start(idle).unwrap_err().to_string().contains("thread.1"));
    let mut empty = phase(&place);
    empty.threads.clear();
    assert!(start(empty).unwrap_err().to_string().contains("loop.1"));
}
