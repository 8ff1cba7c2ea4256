//! A phase: files, and groups of jobs that start together on them. What Python hands to the engine and to the simulated
//! machine; see `record` for what comes out.

use serde::Deserialize;

use crate::location::{Directory, Identity};
use crate::spec::JobSpec;

/// A load on files or devices.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// The phase's name in the record.
    pub name: String,
    /// Files that jobs name by index.
    pub files: Vec<FileSpec>,
    /// Groups, a thread each.
    pub groups: Vec<GroupSpec>,
    /// I/O before this time is done but not measured.
    pub warm_up_ns: u64,
    /// Wanted width of one interval of the time series; it doubles whenever a series would outgrow its fixed memory.
    pub interval_ns: u64,
    /// Look for a transient at the start of the measured time and leave it out of the metrics.
    pub cut_transient: bool,
    /// Stamp each written block (checksum, offset, generation) and check each block read.
    pub verify: bool,
    /// With `verify`: what blocks are filled with; absent: pseudo-random bytes.
    pub pattern: Option<VerifyPattern>,
    /// Sync and drop the page cache before the phase.
    pub drop_caches: bool,
    /// The first job that is done ends the measured part of all. What is still to be written then is written
    /// unmeasured, so that files are whole; what is still to be read is left. For engines of one operation at a time.
    pub ends_with_first: bool,
    /// Jobs whose end stops the others; absent: each job runs to its own end.
    pub stops_with: Option<StopCondition>,
    /// Seeds what is written and, on a simulated machine, its jitter; jobs have seeds of their own.
    pub seed: u64,
}

/// When jobs of a phase are stopped before an end of their own: they offer nothing more, and what is under way is
/// measured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopCondition {
    /// Names of jobs.
    pub jobs: Vec<String>,
    /// The first of them that is done stops the others; else the last.
    pub any: bool,
}

impl StopCondition {
    /// How many of them have to be done.
    pub fn count(&self) -> usize {
        if self.any { 1 } else { self.jobs.len() }
    }
}

/// What verified blocks are filled with. The bytes begin anew every 512 bytes of a file.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyPattern {
    /// 1 to 512 bytes, repeated.
    pub bytes: Vec<u8>,
    /// Blocks hold nothing else: there is no stamp, and an old block can't be distinguished from a new one.
    pub alone: bool,
}

/// A file or a block device, or a range of it.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// The path that is opened.
    pub path: String,
    /// Where the file's range begins; not zero only when several files are regions of one device.
    pub base_bytes: u64,
    /// The length of the range in bytes.
    pub size_bytes: u64,
    /// Make the file if it is not there. Never for a block device.
    pub create: bool,
    /// Give it its full size at once, sparsely; else writes make it grow, which what is mapped can't.
    pub extend: bool,
    /// Which drive of a simulated machine holds the file, from 0; the first if it is absent. On other machines the path
    /// determines it.
    pub place: Option<u32>,
    /// The directory in or below which `path` lies; null: the path is followed wherever it leads.
    pub beneath: Option<Directory>,
    /// The one file that `path` may lead to; null: any.
    pub identity: Option<Identity>,
    /// How long its data are expected to live (F_SET_RW_HINT); absent: not set.
    pub write_hint: Option<WriteHint>,
}

/// How long what is written will live, beside what else is written: RWH_WRITE_LIFE_* of fcntl(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum WriteHint {
    /// Nothing is known of it.
    None = 1,
    /// Short.
    Short = 2,
    /// Longer than short.
    Medium = 3,
    /// Longer than medium.
    Long = 4,
    /// Longer than long.
    Extreme = 5,
}

/// Jobs that share one thread, one ring and one pool of buffers.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// The group's name in the record.
    pub name: String,
    /// By which system calls it submits.
    pub engine: EngineKind,
    /// Direct I/O (O_DIRECT).
    pub direct: bool,
    /// CPUs the thread may run on; null leaves it to the scheduler. One CPU is a pin.
    pub cpus: Option<Vec<u32>>,
    /// Completions waited for and submitted at once; null adapts to what is ready.
    pub batch: Option<u32>,
    /// Register the buffers with the ring (IORING_REGISTER_BUFFERS).
    pub fixed_buffers: bool,
    /// Register the files with the ring (IORING_REGISTER_FILES).
    pub registered_files: bool,
    /// Polled completion (IORING_SETUP_IOPOLL, RWF_HIPRI), where the device has it.
    pub poll: bool,
    /// With polled completion, a ring sleeps half the shortest time that a request took, and polls after that
    /// (IORING_SETUP_HYBRID_IOPOLL, Linux 6.13). Not on a simulated machine.
    #[serde(default)]
    pub hybrid_poll: bool,
    /// A ring's waits with a time limit read it from registered memory (IORING_REGISTER_MEM_REGION, Linux 6.13). Not on a
    /// simulated machine.
    #[serde(default)]
    pub registered_waits: bool,
    /// A kernel thread submits (IORING_SETUP_SQPOLL).
    pub sqpoll: bool,
    /// The CPU of that kernel thread: where requests are then queued; null leaves it to the scheduler.
    pub sqpoll_cpu: Option<u32>,
    /// What is read and written does not stay in the page cache (RWF_DONTCACHE). Not on a simulated machine.
    #[serde(default)]
    pub uncached: bool,
    /// Each write reaches the medium whole or not at all (RWF_ATOMIC). Not on a simulated machine.
    #[serde(default)]
    pub atomic_writes: bool,
    /// Each read is first asked for without waiting (RWF_NOWAIT), and again with it if it would have to wait. Not on a
    /// simulated machine.
    #[serde(default)]
    pub nowait_reads: bool,
    /// No sector is written twice with the same data, so that a device has no duplicates to remove; else every write
    /// carries what its buffer holds.
    pub fresh_data: bool,
    /// Closing the files counts in the jobs' time. For engines of one operation at a time.
    pub close_in_time: bool,
    /// The thread has a real-time priority (SCHED_FIFO, 1), so that other work on the CPUs makes no operation late. Not
    /// on a simulated machine.
    #[serde(default)]
    pub realtime: bool,
    /// A file for a line about each operation, by the clock CLOCK_MONOTONIC: for whoever compares them with what others
    /// timed. Written at the end; until then each takes 48 bytes of memory. Not on a simulated machine.
    pub io_log: Option<String>,
    /// The control group of its jobs: a name on a simulated machine, elsewhere the directory of one of version 1, which
    /// the group's thread joins. None: where its process is.
    pub cgroup: Option<String>,
    /// The jobs, at least one.
    pub jobs: Vec<JobSpec>,
}

/// The interface through which a group submits I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// io_uring, io_uring_setup(2) and its kin.
    IoUring,
    /// NVMe commands through io_uring to the namespace of the block device (IORING_OP_URING_CMD, Linux 5.19). Not on a
    /// simulated machine.
    IoUringCmd,
    /// Linux AIO, io_submit(2) and io_getevents(2).
    Libaio,
    /// pread/pwrite, one at a time.
    Psync,
    /// preadv2/pwritev2, one at a time.
    Pvsync,
    /// Loads and stores on a mapping of the file, mmap(2).
    Mmap,
    /// Completes at once without a system call: measures iolab itself.
    Null,
}

impl EngineKind {
    /// Whether it submits through a ring of io_uring.
    pub fn is_ring(self) -> bool {
        matches!(self, EngineKind::IoUring | EngineKind::IoUringCmd)
    }

    /// Whether its jobs do one operation at a time, whatever their queue depth.
    pub fn is_serial(self) -> bool {
        matches!(self, EngineKind::Psync | EngineKind::Pvsync | EngineKind::Mmap)
    }
}

impl GroupSpec {
    /// The most operations that its thread has in flight at once.
    pub fn operations_in_flight(&self) -> u64 {
        if self.engine.is_serial() {
            return 1;
        }
        self.jobs.iter().map(|job| u64::from(job.queue_depth)).sum()
    }
}
