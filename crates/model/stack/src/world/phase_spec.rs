//! What a phase of loads is to be: its groups of jobs, and how it ends.

use workload::phase::StopCondition;
use workload::spec::JobSpec;

use block_layer::Priority;
use events::time::Time;
use memory::cache::FileId;

/// How a task's jobs do their I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Any number outstanding, past the page cache (io_uring, libaio, O_DIRECT).
    DirectAsync,
    /// The same by a ring of io_uring: what finds no request is handed to its workers.
    DirectRing,
    /// One at a time, past the page cache.
    Direct,
    /// One at a time, through the page cache.
    Buffered,
}

impl Path {
    /// Any number of operations can be in flight.
    pub(crate) fn is_async(self) -> bool {
        matches!(self, Path::DirectAsync | Path::DirectRing)
    }
}

/// Jobs that share a thread.
#[derive(Clone, Debug)]
pub struct GroupSpec {
    /// By which way its I/O goes.
    pub path: Path,
    /// The cgroup that it runs in; 0 is the root.
    pub cgroup: u16,
    /// Its I/O priority.
    pub priority: Priority,
    /// Where it may run, on detailed CPUs; None: where the drive of its first file has its applications, or anywhere.
    pub cpus: Option<Vec<u16>>,
    /// It polls for completions if the drive of its first file lets it.
    pub polls: bool,
    /// It reaps at most so many operations at once, and submits what they make room for; None: all that have completed.
    pub batch: Option<u32>,
    /// The jobs, at least one.
    pub jobs: Vec<JobSpec>,
}

/// What starts together.
#[derive(Clone, Debug)]
pub struct PhaseSpec {
    /// Groups, a task each.
    pub groups: Vec<GroupSpec>,
    /// The machine's files that the jobs' numbers mean.
    pub files: Vec<FileId>,
    /// I/O before this time is done but not measured.
    pub warm_up_ns: Time,
    /// Wanted width of one interval of the time series.
    pub interval_ns: Time,
    /// The first job that is done, or the first cgroup of which all jobs are, ends the measured part of all; what the
    /// others still have to write is written unmeasured.
    pub ends_with_first: bool,
    /// The jobs whose end stops the others; None: each continues to its own end.
    pub stops_with: Option<StopCondition>,
    /// Seeds where tasks begin, the jitter of CPU costs and the times of mounts.
    pub seed: u64,
}

impl PhaseSpec {
    /// Of a phase without jobs of a load.
    pub fn without_loads(seed: u64) -> PhaseSpec {
        PhaseSpec {
            groups: Vec::new(),
            files: Vec::new(),
            warm_up_ns: 0,
            interval_ns: 1,
            ends_with_first: false,
            stops_with: None,
            seed,
        }
    }
}
