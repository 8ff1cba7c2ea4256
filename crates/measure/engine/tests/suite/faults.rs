//! What goes wrong is counted and named, and ends what can't continue; nothing hangs and nothing dies.

use std::sync::Arc;

use crate::common::devices::{LoopDevice, Mount};
use crate::common::*;
use engine::{StartError, start};
use workload::phase::{EngineKind, GroupSpec, Phase};
use workload::spec::{BlockSize, JobSpec};

fn refused(phase: Phase) -> StartError {
    start(phase, Arc::default()).expect_err("refused")
}

#[test]
fn a_missing_file_is_named() {
    for engine in ALL_ENGINES {
        let mut phase = phase("/dev/shm/iolab-no-such-file", vec![group(engine, vec![job()])]);
        phase.files[0].create = false;
        match refused(phase) {
            StartError::Os { errno, path, .. } => {
                assert_eq!((errno, path.as_str()), (libc::ENOENT, "/dev/shm/iolab-no-such-file"));
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn no_file_is_made_among_the_devices() {
    let error = refused(phase("/dev/iolab-no-such-device", vec![group(EngineKind::Psync, vec![job()])]));
    assert!(error.to_string().contains("no such device"), "{error}");
    assert!(!std::path::Path::new("/dev/iolab-no-such-device").exists());
}

#[test]
fn what_is_neither_file_nor_device_is_refused() {
    let error = refused(phase("/dev/zero", vec![group(EngineKind::Psync, vec![job()])]));
    assert!(error.to_string().contains("neither a regular file nor a block device"), "{error}");
}

#[test]
fn a_file_that_is_too_small_is_refused_before_anything_runs() {
    let place = ScratchDirectory::in_memory();
    std::fs::write(place.path("data"), b"short").unwrap();
    let mut phase = phase(&place.path("data"), vec![group(EngineKind::Psync, vec![job()])]);
    phase.files[0].create = false;
    assert!(refused(phase).to_string().contains("has 5 bytes, the jobs need 1048576"));
}

#[test]
fn unaligned_direct_io_is_refused_and_says_what_is_needed() {
    let place = ScratchDirectory::on_disk();
    let blocks = vec![BlockSize { bytes: 1000, weight: 1.0 }];
    let job = JobSpec { blocks, align_bytes: 1000, ..job() };
    let direct = GroupSpec { direct: true, ..group(EngineKind::Psync, vec![job]) };
    let error = refused(phase(&place.path("data"), vec![direct])).to_string();
    assert!(error.contains("multiples of") && error.contains("direct = false"), "{error}");
}

#[test]
fn impossible_specifications_are_refused() {
    let place = ScratchDirectory::in_memory();
    let of = |groups| phase(&place.path("data"), groups);
    let says = |phase, what: &str| {
        let error = refused(phase).to_string();
        assert!(error.contains(what), "{error}");
    };
    says(of(vec![]), "nothing to do");
    says(of(vec![group(EngineKind::Null, vec![])]), "nothing to do");
    let lasts = JobSpec { until: lasting(1), ..job() };
    says(Phase { warm_up_ns: 2_000_000, ..of(vec![group(EngineKind::Null, vec![lasts])]) }, "warm_up_ns");
    let deep = JobSpec { queue_depth: 20_000, ..job() };
    says(of(vec![group(EngineKind::Null, vec![deep])]), "at most 16384");
    let elsewhere = JobSpec { files: vec![9], ..job() };
    says(of(vec![group(EngineKind::Null, vec![elsewhere])]), "no file 9");
    let grouped = GroupSpec { cgroup: Some("small".into()), ..group(EngineKind::Null, vec![job()]) };
    says(of(vec![grouped]), "no directory of a control group");
    let mut placed = of(vec![group(EngineKind::Null, vec![job()])]);
    placed.files[0].place = Some(0);
    says(placed, "have a place");
    let both = vec![group(EngineKind::Null, vec![writer()]), group(EngineKind::Null, vec![job()])];
    says(Phase { verify: true, ..of(both) }, "give each job its own files or range");
}

#[test]
fn a_file_cut_short_in_flight_gives_short_reads_or_faults_and_the_job_ends() {
    let place = ScratchDirectory::in_memory();
    for engine in ALL_ENGINES {
        let path = place.path(&format!("{engine:?}"));
        let job = JobSpec { until: lasting(20_000), ..job() };
        let handle = start(phase(&path, vec![group(engine, vec![job])]), Arc::default()).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        let record = finish(&handle);
        let job = only_job(&record);
        let expected = if engine == EngineKind::Mmap { libc::EIO } else { 0 };
        assert_eq!(job.errors.len(), 1, "{engine:?}: {:?}", job.errors);
        let error = &job.errors[0];
        assert_eq!((error.errno, error.op, error.first_path.as_str()), (expected, "read", path.as_str()));
        assert!((1000..1010).contains(&error.count), "{engine:?}: {}", error.count);
        assert!(record.groups[0].notes.iter().any(|note| note.contains("gave up")), "{:?}", record.groups[0].notes);
        assert!(record.elapsed_ns < 10_000_000_000 && !record.stopped);
    }
}

#[test]
fn a_full_filesystem_ends_the_job_at_once() {
    if !is_root("a_full_filesystem_ends_the_job_at_once") {
        return;
    }
    for engine in [EngineKind::IoUring, EngineKind::Libaio, EngineKind::Psync, EngineKind::Pvsync] {
        // One each: the space of a file that was removed is given back a moment later.
        let mount = Mount::small_tmpfs(MIB / 2);
        let path = mount.path("data");
        let job = JobSpec { until: lasting(20_000), ..writer() };
        let record = run(phase(&path, vec![group(engine, vec![job])]));
        let job = only_job(&record);
        let error = &job.errors[0];
        assert_eq!((error.errno, error.op), (libc::ENOSPC, "write"), "{engine:?}");
        assert!(error.count <= 8, "{engine:?}: {}", error.count);
        assert!(job.write.count > 0 && job.write.bytes <= MIB / 2, "{engine:?}: {}", job.write.count);
    }
}

#[test]
fn a_mapping_on_a_full_filesystem_gives_an_error_for_each_page_it_lacks() {
    if !is_root("a_mapping_on_a_full_filesystem_gives_an_error_for_each_page_it_lacks") {
        return;
    }
    let mount = Mount::small_tmpfs(MIB / 2);
    let record = run(phase(&mount.path("data"), vec![group(EngineKind::Mmap, vec![writer()])]));
    let job = only_job(&record);
    assert_eq!((job.write.count, job.errors[0].count), (128, 128));
    assert_eq!((job.errors[0].errno, job.errors[0].first_offset), (libc::EIO, MIB / 2));
}

#[test]
fn a_device_that_loses_its_data_gives_eio() {
    if !is_root("a_device_that_loses_its_data_gives_eio") {
        return;
    }
    let device = LoopDevice::new(MIB);
    std::fs::OpenOptions::new().write(true).open(&device.backing).unwrap().set_len(0).unwrap();
    for engine in [EngineKind::IoUring, EngineKind::Libaio, EngineKind::Psync, EngineKind::Pvsync] {
        let direct = GroupSpec { direct: true, ..group(engine, vec![job()]) };
        let record = run(phase(&device.path, vec![direct]));
        let job = only_job(&record);
        assert_eq!(job.read.count, 0);
        assert_eq!((job.errors[0].errno, job.errors[0].name.as_str(), job.errors[0].count), (libc::EIO, "EIO", 256));
    }
}
