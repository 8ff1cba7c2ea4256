//! Every engine moves the right bytes to the right place and counts them.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use engine::{Handle, Memory, start};
use workload::phase::{EngineKind, FileSpec, GroupSpec, Phase, VerifyPattern, WriteHint};
use workload::spec::{BlockSize, FileOrder, JobBounds, JobSpec, Pattern, Sync, SyncKind};

fn verified(path: &str, engine: EngineKind, direct: bool, job: JobSpec) -> Phase {
    Phase { verify: true, ..phase(path, vec![GroupSpec { direct, ..group(engine, vec![job]) }]) }
}

#[test]
fn a_pattern_is_on_the_disk_and_what_differs_from_it_is_reported() {
    for alone in [true, false] {
        let place = ScratchDirectory::in_memory();
        let path = place.path("patterned");
        let memory = Arc::new(Memory::new());
        let with_pattern = |job| Phase {
            pattern: Some(VerifyPattern { bytes: vec![0xde, 0xad, 0xbe, 0xef], alone }),
            ..verified(&path, EngineKind::Psync, false, job)
        };
        let in_order = || JobSpec { pattern: Pattern::Sequential, ..job() };
        run_with(with_pattern(writer()), &memory);
        let mut bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, MIB);
        let header = if alone { 0 } else { 32 };
        assert!(bytes.chunks(512).all(|block| {
            let (stamp, payload) = block.split_at(header);
            payload.chunks(4).all(|word| word == [0xde, 0xad, 0xbe, 0xef])
                && (alone || stamp.chunks(4).any(|word| word != [0xde, 0xad, 0xbe, 0xef]))
        }));
        let read = run_with(with_pattern(in_order()), &memory);
        assert_eq!(only_job(&read).mismatches_count, 0);
        bytes[700_000] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let read = run_with(with_pattern(in_order()), &memory);
        let mismatches = &only_job(&read).mismatches;
        assert!(!mismatches.is_empty());
        let wrong = &mismatches[0];
        assert_eq!(wrong.offset, 700_000 / 512 * 512);
        assert_eq!(alone, wrong.expected.contains("the pattern"), "{wrong:?}");
    }
}

#[test]
fn what_is_written_is_read_back_by_every_engine() {
    for (place, direct) in [
        (ScratchDirectory::in_memory(), false),
        (ScratchDirectory::on_disk(), false),
        (ScratchDirectory::on_disk(), true),
    ] {
        for writes_with in ALL_ENGINES {
            let path = place.path(&format!("{writes_with:?}-{direct}"));
            let direct = |engine| direct && engine != EngineKind::Mmap;
            let memory = Arc::new(Memory::new());
            let written = run_with(verified(&path, writes_with, direct(writes_with), writer()), &memory);
            assert_eq!(only_job(&written).write.count, 256, "{writes_with:?}");
            assert_eq!(only_job(&written).write.bytes, MIB);
            for reads_with in ALL_ENGINES {
                let read = run_with(verified(&path, reads_with, direct(reads_with), job()), &memory);
                let read = only_job(&read);
                assert_eq!((read.read.count, read.mismatches_count), (256, 0), "{writes_with:?} {reads_with:?}");
                assert!(read.errors.is_empty(), "{:?}", read.errors);
            }
        }
    }
}

#[test]
fn mixed_overwrites_stay_verified() {
    let place = ScratchDirectory::in_memory();
    for engine in ALL_ENGINES {
        let path = place.path(&format!("{engine:?}"));
        let memory = Arc::new(Memory::new());
        let sizes = [512, 4096, 16384].map(|bytes| BlockSize { bytes, weight: 1.0 });
        let until = JobBounds::of_ops(2000);
        let job = JobSpec { read_share: 0.5, blocks: sizes.into(), align_bytes: 512, until, ..job() };
        let record = run_with(verified(&path, engine, false, job), &memory);
        let job = only_job(&record);
        assert_eq!(job.read.count + job.write.count, 2000);
        assert!(job.read.count > 800 && job.write.count > 800);
        assert_eq!(job.mismatches_count, 0, "{engine:?}: {:?}", job.mismatches);
    }
}

#[test]
fn a_changed_block_is_named_with_what_was_expected_and_found() {
    use std::os::unix::fs::FileExt;
    let place = ScratchDirectory::in_memory();
    let path = place.path("data");
    let memory = Arc::new(Memory::new());
    run_with(verified(&path, EngineKind::Psync, false, writer()), &memory);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"damage", 5 * 4096 + 600).unwrap();
    let whole = JobSpec { pattern: Pattern::Permutation { blocks_done: 0 }, ..job() };
    for engine in ALL_ENGINES {
        let record = run_with(verified(&path, engine, false, whole.clone()), &memory);
        let job = only_job(&record);
        assert_eq!(job.mismatches_count, 1, "{engine:?}");
        let wrong = &job.mismatches[0];
        assert_eq!((wrong.path.as_str(), wrong.offset), (path.as_str(), 5 * 4096 + 512));
        assert!(wrong.expected.contains("generation 1") && !wrong.found.is_empty(), "{wrong:?}");
    }
}

#[test]
fn syncs_are_counted_apart() {
    let place = ScratchDirectory::on_disk();
    for engine in ALL_ENGINES {
        let path = place.path(&format!("{engine:?}"));
        let sync = Some(Sync { kind: SyncKind::Fdatasync, every_writes: 64, when_idle: false });
        let job = JobSpec { sync, sync_at_end: true, ..writer() };
        let record = run(phase(&path, vec![group(engine, vec![job])]));
        let job = only_job(&record);
        assert_eq!(job.write.count, 256);
        assert!((4..=5).contains(&job.sync.count), "{engine:?}: {}", job.sync.count);
        assert!(job.sync.bytes == 0 && job.sync.latency.is_some() && job.errors.is_empty());
    }
}

#[test]
fn groups_and_jobs_share_files_and_keep_their_own_counts() {
    let place = ScratchDirectory::in_memory();
    let jobs = |count: u64| {
        let until = JobBounds::of_ops(count);
        JobSpec { name: format!("{count}"), files: vec![0, 1], file_order: FileOrder::RoundRobin, until, ..job() }
    };
    for engine in [EngineKind::IoUring, EngineKind::Libaio, EngineKind::Psync, EngineKind::Null] {
        let groups = vec![group(engine, vec![jobs(100), jobs(333)]), group(engine, vec![jobs(50)])];
        let mut phase = phase(&place.path("a"), groups);
        phase.files.push(file(&place.path("b")));
        let record = run(phase);
        let counts = record.groups.iter().flat_map(|group| &group.jobs).map(|job| {
            let of_engine = job.null.as_ref().unwrap_or(&job.read);
            (job.name.as_str(), of_engine.count)
        });
        assert_eq!(counts.collect::<Vec<_>>(), [("100", 100), ("333", 333), ("50", 50)]);
    }
}

#[test]
fn a_region_of_a_device_file_begins_at_its_base() {
    let place = ScratchDirectory::in_memory();
    let path = place.path("data");
    for engine in ALL_ENGINES {
        let _ = std::fs::remove_file(&path);
        let mut phase = phase(&path, vec![group(engine, vec![writer()])]);
        phase.files[0].base_bytes = 3 * MIB;
        run(phase);
        let data = std::fs::read(&path).unwrap();
        assert_eq!(data.len() as u64, 4 * MIB);
        assert!(data[..3 * MIB as usize].iter().all(|&byte| byte == 0), "{engine:?}");
        let blank = data[3 * MIB as usize..].chunks(512).filter(|sector| sector.iter().all(|&byte| byte == 0)).count();
        assert_eq!(blank, 0, "{engine:?}");
    }
}

#[test]
fn what_a_ring_is_refused_is_noted_and_done_without() {
    let place = ScratchDirectory::in_memory();
    let refused = GroupSpec { poll: true, sqpoll: true, ..group(EngineKind::IoUring, vec![job()]) };
    let record = run(phase(&place.path("data"), vec![refused]));
    assert_eq!(only_job(&record).read.count, 256);
    assert!(record.groups[0].notes.iter().any(|note| note.starts_with("polled completion refused")));
    let serial = GroupSpec { poll: true, ..group(EngineKind::Pvsync, vec![job()]) };
    let record = run(phase(&place.path("data"), vec![serial]));
    assert_eq!(only_job(&record).read.count, 256);
    assert!(record.groups[0].notes.iter().any(|note| note.starts_with("polled completion refused")));
    let plain = GroupSpec { fixed_buffers: false, registered_files: false, ..group(EngineKind::IoUring, vec![job()]) };
    assert_eq!(only_job(&run(phase(&place.path("data"), vec![plain]))).read.count, 256);
}

#[test]
fn a_submitting_thread_of_the_kernel_is_pinned_where_asked() {
    let place = ScratchDirectory::in_memory();
    let pinned = |cpu, milliseconds| GroupSpec {
        sqpoll: true,
        sqpoll_cpu: Some(cpu),
        ..group(EngineKind::IoUring, vec![JobSpec { until: lasting(milliseconds), ..job() }])
    };
    let load = start(phase(&place.path("data"), vec![pinned(0, 2_000)]), Arc::default()).unwrap();
    let mut pinned_there = false;
    while !pinned_there && load.wait(Duration::from_millis(5)).is_none() {
        pinned_there = submitting_threads_cpus().contains(&"0".to_owned());
    }
    load.stop();
    finish(&load);
    assert!(pinned_there);
    // Nowhere to be had: not submitted from elsewhere under this name.
    let nowhere = start(phase(&place.path("data"), vec![pinned(100_000, 10)]), Arc::default());
    assert!(nowhere.is_err() || finish_fails(&nowhere.unwrap()));
}

fn finish_fails(load: &Handle) -> bool {
    load.wait(Duration::from_secs(60)).expect("ended within a minute").is_err()
}

/// `Cpus_allowed_list` of this process's io_uring submission threads.
fn submitting_threads_cpus() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok())
        .filter(|status| status.starts_with("Name:\tiou-sqp"))
        .filter_map(|status| {
            let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list:"))?;
            Some(line.split_whitespace().last()?.to_owned())
        })
        .collect()
}

#[test]
fn a_serial_engine_notes_that_its_depth_is_one() {
    let place = ScratchDirectory::in_memory();
    let record = run(phase(&place.path("data"), vec![group(EngineKind::Psync, vec![job()])]));
    assert!(record.groups[0].notes[0].contains("queue_depth is 1"));
}

#[test]
fn durable_writes_are_writes() {
    let place = ScratchDirectory::on_disk();
    for engine in [EngineKind::IoUring, EngineKind::Libaio, EngineKind::Psync, EngineKind::Pvsync] {
        let job = JobSpec { dsync_every: Some(2), ..writer() };
        let phase = verified(&place.path("durable"), engine, false, job);
        let record = run(phase);
        let job = only_job(&record);
        assert_eq!((job.write.count, job.sync.count), (256, 0), "{engine:?}");
        assert!(job.errors.is_empty(), "{engine:?}: {:?}", job.errors);
    }
}

const TAKE_FLAGS: [EngineKind; 3] = [EngineKind::IoUring, EngineKind::Libaio, EngineKind::Pvsync];

/// A whole file in this process' memory.
struct Mapping {
    at: *mut libc::c_void,
    bytes: usize,
}

impl Mapping {
    fn of(path: &str) -> Mapping {
        let file = File::open(path).unwrap();
        let bytes = file.metadata().unwrap().len() as usize;
        let (at, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a new mapping of the file's length, which goes when it is dropped.
        let at = unsafe { libc::mmap(at, bytes, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Mapping { at, bytes }
    }

    /// The same with all pages in memory, where they stay, also if somebody else on this machine has the kernel drop its
    /// caches, or it takes back what seems idle.
    fn locked(self) -> Mapping {
        // SAFETY: the range is the mapping.
        assert_eq!(unsafe { libc::mlock(self.at, self.bytes) }, 0);
        self
    }

    fn pages_in_memory(&self) -> usize {
        let mut found = vec![0u8; self.bytes.div_ceil(4096)];
        // SAFETY: mincore stores a byte for each page of the mapping.
        assert_eq!(unsafe { libc::mincore(self.at, self.bytes, found.as_mut_ptr()) }, 0);
        found.iter().filter(|&&page| page & 1 == 1).count()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is its own, and nothing refers to it.
        unsafe { libc::munmap(self.at, self.bytes) };
    }
}

/// Pages of the file that are in memory.
fn pages_in_memory(path: &str) -> usize {
    Mapping::of(path).pages_in_memory()
}

#[test]
fn uncached_reads_do_not_stay_in_the_page_cache() {
    let place = ScratchDirectory::on_disk();
    for engine in TAKE_FLAGS {
        for uncached in [false, true] {
            let path = place.path(&format!("{engine:?}-{uncached}"));
            // Past the page cache, so that nothing is in it that a read would find and leave there.
            let writes = GroupSpec { direct: true, ..group(engine, vec![writer()]) };
            run(phase(&path, vec![writes]));
            assert_eq!(pages_in_memory(&path), 0);
            // All at once: a page that was read ahead and never asked for would stay.
            let whole = JobSpec {
                pattern: Pattern::Sequential,
                blocks: vec![BlockSize { bytes: MIB as u32, weight: 1.0 }],
                align_bytes: MIB,
                queue_depth: 1,
                until: JobBounds::of_ops(1),
                ..job()
            };
            let reads = GroupSpec { uncached, ..group(engine, vec![whole]) };
            match start(phase(&path, vec![reads]), Arc::default()) {
                Err(error) if error.to_string().contains("no uncached I/O here") => {
                    return eprintln!("SKIPPED uncached reads: {error}");
                }
                started => assert_eq!(only_job(&finish(&started.unwrap())).read.count, 1),
            }
            let pages = pages_in_memory(&path);
            assert_eq!(pages < 128, uncached, "{engine:?}: {pages}");
        }
    }
}

#[test]
fn reads_that_would_wait_are_asked_for_again_and_counted() {
    let place = ScratchDirectory::on_disk();
    for engine in [EngineKind::IoUring, EngineKind::Pvsync] {
        let path = place.path(&format!("{engine:?}"));
        let writes = GroupSpec { direct: true, ..group(engine, vec![writer()]) };
        run(phase(&path, vec![writes]));
        assert_eq!(pages_in_memory(&path), 0);
        let reads = || GroupSpec { nowait_reads: true, ..group(engine, vec![job()]) };
        // The first pass finds nothing in the page cache, and the second everything.
        for waits in [true, false] {
            let _locked = (!waits).then(|| Mapping::of(&path).locked());
            let record = run(phase(&path, vec![reads()]));
            let job = only_job(&record);
            assert_eq!(job.read.count, 256, "{engine:?}");
            assert!(job.errors.is_empty(), "{engine:?}: {:?}", job.errors);
            let notes = &record.groups[0].notes;
            let noted = notes.iter().any(|note| note.contains("would have waited"));
            assert_eq!(noted, waits, "{engine:?}: {notes:?}");
        }
        let direct = GroupSpec { direct: true, ..reads() };
        assert_eq!(only_job(&run(phase(&path, vec![direct]))).read.count, 256);
    }
}

#[test]
fn registered_waits_are_refused_where_no_ring_waits() {
    let place = ScratchDirectory::in_memory();
    for (engine, poll) in [(EngineKind::Psync, false), (EngineKind::IoUring, true)] {
        let group = GroupSpec { poll, registered_waits: true, ..group(engine, vec![job()]) };
        let started = start(phase(&place.path("data"), vec![group]), Arc::default());
        let error = started.expect_err("refused").to_string();
        assert!(error.contains("needs a ring that does not poll"), "{error}");
    }
}

#[test]
fn hybrid_polling_is_refused_by_kernels_without_it() {
    let place = ScratchDirectory::on_disk();
    let group = GroupSpec { direct: true, poll: true, hybrid_poll: true, ..group(EngineKind::IoUring, vec![job()]) };
    let started = start(phase(&place.path("data"), vec![group]), Arc::default());
    if engine::features::features().io_uring.hybrid_poll {
        assert_eq!(only_job(&finish(&started.unwrap())).read.count, 256);
    } else {
        let error = started.expect_err("the kernel has none").to_string();
        assert!(error.contains("it takes Linux 6.13"), "{error}");
    }
}

#[test]
fn registered_waits_are_used_where_a_wait_has_a_time_limit_and_refused_by_kernels_without_them() {
    let place = ScratchDirectory::on_disk();
    let path = place.path("data");
    let notes_of = |queue_depth| {
        let job = JobSpec { queue_depth, ..job() };
        let group =
            GroupSpec { batch: Some(queue_depth), registered_waits: true, ..group(EngineKind::IoUring, vec![job]) };
        let record = finish(&start(phase(&path, vec![group]), Arc::default())?);
        let job = only_job(&record);
        assert_eq!((job.read.count, job.errors.len()), (256, 0));
        Ok::<_, engine::StartError>(record.groups[0].notes.join("; "))
    };
    match notes_of(8) {
        Ok(notes) => {
            // 256 reads of which 8 are in flight take 32 batches.
            let (_, rest) = notes.split_once("read the time limit of ").expect(&notes);
            let waits: u32 = rest.split(' ').next().unwrap().parse().unwrap();
            assert!(waits >= 31, "{notes}");
            let notes = notes_of(1).unwrap();
            assert!(notes.contains("registered_waits changed nothing"), "{notes}");
        }
        Err(error) => {
            assert!(!engine::features::features().io_uring.registered_waits);
            assert!(error.to_string().contains("they take Linux 6.13"), "{error}");
        }
    }
}

/// Of the inode, F_GET_RW_HINT.
fn hint_of(path: &str) -> u64 {
    let file = File::open(path).unwrap();
    let mut hint = 0;
    // SAFETY: the call stores one u64 through the pointer, which outlives it.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), 1024 + 11, &raw mut hint) };
    assert_eq!(status, 0);
    hint
}

#[test]
fn a_file_has_its_write_hint_as_long_as_it_is_written_and_one_for_all_writers() {
    let place = ScratchDirectory::in_memory();
    let path = place.path("data");
    let endless = JobSpec { until: JobBounds::of_time(60_000_000_000), ..writer() };
    let hinted = |hints: &[Option<WriteHint>]| {
        let groups = hints.iter().zip(0..).map(|(_, number)| {
            let job = JobSpec { files: vec![number], ..endless.clone() };
            group(EngineKind::Psync, vec![job])
        });
        let mut phase = phase(&path, groups.collect());
        phase.files = hints.iter().map(|&write_hint| FileSpec { write_hint, ..file(&path) }).collect();
        start(phase, Arc::default())
    };
    let running = hinted(&[Some(WriteHint::Long), Some(WriteHint::Long)]).unwrap();
    assert_eq!(hint_of(&path), WriteHint::Long as u64);
    running.stop();
    finish(&running);
    drop(running);
    assert_eq!(hint_of(&path), 0);
    for other in [None, Some(WriteHint::Short)] {
        let error = hinted(&[Some(WriteHint::Long), other]).expect_err("one inode, two hints");
        assert!(error.to_string().contains("one write hint"), "{error}");
        assert_eq!(hint_of(&path), 0);
    }
}

#[test]
fn flags_that_a_file_does_not_take_are_refused_before_the_first_operation() {
    let place = ScratchDirectory::in_memory();
    for engine in TAKE_FLAGS {
        let uncached = GroupSpec { uncached: true, ..group(engine, vec![job()]) };
        let atomic = GroupSpec { atomic_writes: true, ..group(engine, vec![writer()]) };
        for (group, said) in [(uncached, "no uncached I/O here"), (atomic, "no atomic writes here")] {
            let error = start(phase(&place.path("data"), vec![group]), Arc::default()).expect_err("memory has neither");
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
