//! What the engine's tests share: phases in a few words, and places to run them.

pub mod devices;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use engine::{Handle, Memory, start};
use workload::phase::{EngineKind, FileSpec, GroupSpec, Phase};
use workload::record::{JobRecord, PhaseRecord};
use workload::spec::{JobBounds, JobSpec, Pattern};

pub const MIB: u64 = 1 << 20;
pub const ALL_ENGINES: [EngineKind; 5] =
    [EngineKind::IoUring, EngineKind::Libaio, EngineKind::Psync, EngineKind::Pvsync, EngineKind::Mmap];

/// A directory that goes away again.
pub struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    /// On tmpfs.
    pub fn in_memory() -> ScratchDirectory {
        ScratchDirectory::under("/dev/shm")
    }

    /// On a filesystem with a device, as a rule.
    pub fn on_disk() -> ScratchDirectory {
        ScratchDirectory::under("/var/tmp")
    }

    fn under(parent: &str) -> ScratchDirectory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(parent).join(format!("iolab-engine-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        ScratchDirectory(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Uniform reads of 4 KiB, 8 deep, over the first file's first MiB, 256 of them.
pub fn job() -> JobSpec {
    JobSpec {
        pattern: Pattern::Uniform,
        queue_depth: 8,
        seed: 7,
        ..JobSpec::reads(0, 4096, MIB, JobBounds::of_ops(256))
    }
}

pub fn writer() -> JobSpec {
    JobSpec { read_share: 0.0, pattern: Pattern::Sequential, ..job() }
}

pub fn lasting(milliseconds: u64) -> JobBounds {
    JobBounds::of_time(milliseconds * 1_000_000)
}

pub fn group(engine: EngineKind, jobs: Vec<JobSpec>) -> GroupSpec {
    GroupSpec {
        name: "group".into(),
        engine,
        direct: false,
        cpus: None,
        batch: None,
        fixed_buffers: true,
        registered_files: true,
        poll: false,
        hybrid_poll: false,
        registered_waits: false,
        sqpoll: false,
        sqpoll_cpu: None,
        fresh_data: true,
        close_in_time: false,
        realtime: false,
        uncached: false,
        atomic_writes: false,
        nowait_reads: false,
        io_log: None,
        cgroup: None,
        jobs,
    }
}

pub fn phase(path: &str, groups: Vec<GroupSpec>) -> Phase {
    Phase {
        name: "phase".into(),
        files: vec![file(path)],
        groups,
        warm_up_ns: 0,
        interval_ns: 10_000_000,
        cut_transient: false,
        verify: false,
        pattern: None,
        drop_caches: false,
        ends_with_first: false,
        stops_with: None,
        seed: 1,
    }
}

pub fn file(path: &str) -> FileSpec {
    FileSpec {
        path: path.into(),
        base_bytes: 0,
        size_bytes: MIB,
        create: true,
        extend: true,
        place: None,
        write_hint: None,
        beneath: None,
        identity: None,
    }
}

pub fn finish(handle: &Handle) -> PhaseRecord {
    handle.wait(Duration::from_secs(60)).expect("ended within a minute").expect("ran")
}

pub fn run(phase: Phase) -> PhaseRecord {
    finish(&start(phase, Arc::default()).unwrap())
}

pub fn run_with(phase: Phase, memory: &Arc<Memory>) -> PhaseRecord {
    finish(&start(phase, Arc::clone(memory)).unwrap())
}

pub fn only_job(record: &PhaseRecord) -> &JobRecord {
    let [group] = &record.groups[..] else { panic!("one group") };
    let [job] = &group.jobs[..] else { panic!("one job") };
    job
}

/// Whether the test can continue; reports if it can't.
pub fn is_root(test: &str) -> bool {
    // SAFETY: takes nothing and only tells.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("SKIPPED {test}: needs root");
    }
    root
}

/// Runs a program that has to succeed; its output without the line's end.
pub fn sh(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
