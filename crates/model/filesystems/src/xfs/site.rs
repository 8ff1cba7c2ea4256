//! Where tasks leave their CPU: the kernel's functions, innermost first, as stacks of 3.4 have them.

use trace::sched::State;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// Not yet begun, or over.
    Begins,
    Ends,
    /// A worker has nothing to do.
    WorkerIdle,
    /// A caller waits for the worker that allocates for it.
    Allocation,
    /// For the header of a group's inodes, of its free space, and a directory's mutex.
    InodesLock,
    SpaceLock,
    WorkerSpaceLock,
    /// The worker that writes checkpoints waits for a buffer of the log.
    WorkerLogBuffers,
    DirectoryLock,
    /// A flusher waits for the worker that maps for it, and that worker for a free-space header.
    Mapping,
    MappingSpaceLock,
    /// A flusher has nothing to do, or who writes in place what the log has.
    FlusherIdle,
    PusherIdle,
    /// For room in the log, for a buffer of it, and for it to be on the drive.
    LogSpace,
    LogBuffers,
    LogForce,
    /// For a file's pages to be on the drive, and for dirty pages to become fewer.
    FileWrites,
    Throttled,
    /// Still runnable: the worker that it woke takes the CPU before it has begun to wait.
    AllocationBegins,
    MappingBegins,
    /// Still runnable, anywhere.
    Preempted,
}

impl Site {
    pub(super) const ALL: [Site; 21] = [
        Site::Begins,
        Site::Ends,
        Site::WorkerIdle,
        Site::Allocation,
        Site::InodesLock,
        Site::SpaceLock,
        Site::WorkerSpaceLock,
        Site::WorkerLogBuffers,
        Site::DirectoryLock,
        Site::Mapping,
        Site::MappingSpaceLock,
        Site::FlusherIdle,
        Site::PusherIdle,
        Site::LogSpace,
        Site::LogBuffers,
        Site::LogForce,
        Site::FileWrites,
        Site::Throttled,
        Site::AllocationBegins,
        Site::MappingBegins,
        Site::Preempted,
    ];

    /// Where it is off its CPU although it could continue.
    pub(super) fn preempted(self) -> Site {
        match self {
            Site::Allocation => Site::AllocationBegins,
            Site::Mapping => Site::MappingBegins,
            _ => Site::Preempted,
        }
    }

    pub(super) fn state(self) -> State {
        match self {
            Site::Begins | Site::FlusherIdle | Site::PusherIdle => State::Sleep,
            Site::WorkerIdle => State::Idle,
            Site::Ends => State::Exited,
            Site::AllocationBegins | Site::MappingBegins | Site::Preempted => State::Preempted,
            _ => State::DiskSleep,
        }
    }

    pub(super) fn frames(self) -> impl Iterator<Item = &'static str> {
        let (how, whose): (&[&str], &[&str]) = match self {
            Site::Begins => (SLEEPS, &["pipe_wait"]),
            Site::Ends => (SLEEPS, &["do_exit"]),
            Site::WorkerIdle => (SLEEPS, &["worker_thread", "kthread"]),
            Site::Allocation => (WAITS_FOR_WORKER, &["xfs_alloc_vextent"]),
            Site::InodesLock => (WAITS_FOR_BUFFER, &["xfs_read_agi", "xfs_dialloc"]),
            Site::SpaceLock => (WAITS_FOR_BUFFER, &["xfs_read_agf", "xfs_alloc_vextent"]),
            Site::WorkerSpaceLock => (WAITS_FOR_BUFFER, &["xfs_read_agf", "xfs_alloc_vextent_worker"]),
            Site::DirectoryLock => (SLEEPS, &["__mutex_lock_slowpath", "mutex_lock", "do_last"]),
            Site::Mapping => (WAITS_FOR_WORKER, &["xfs_bmapi_allocate"]),
            Site::MappingSpaceLock => {
                (WAITS_FOR_BUFFER, &["xfs_read_agf", "xfs_alloc_vextent", "xfs_bmapi_allocate_worker"])
            }
            Site::FlusherIdle => (SLEEPS, &["schedule_timeout", "bdi_writeback_thread", "kthread"]),
            Site::PusherIdle => (SLEEPS, &["schedule_timeout", "xfsaild", "kthread"]),
            Site::LogSpace => (SLEEPS, &["xlog_grant_head_wait", "xfs_log_reserve"]),
            Site::LogBuffers => (SLEEPS, &["xlog_state_get_iclog_space", "xlog_write"]),
            Site::WorkerLogBuffers => (SLEEPS, &["xlog_state_get_iclog_space", "xlog_write", "xlog_cil_push"]),
            Site::LogForce => (SLEEPS, &["_xfs_log_force_lsn", "xfs_file_fsync"]),
            Site::FileWrites => (SLEEPS, &["io_schedule", "wait_on_page_bit", "filemap_fdatawait_range"]),
            Site::Throttled => (SLEEPS, &["schedule_timeout", "balance_dirty_pages_ratelimited_nr"]),
            Site::MappingBegins => (MAKES_WAY, &["xfs_bmapi_allocate"]),
            Site::AllocationBegins => (MAKES_WAY, &["xfs_alloc_vextent"]),
            Site::Preempted => (&["__schedule", "preempt_schedule_irq"], &["retint_kernel"]),
        };
        how.iter().chain(whose).copied()
    }
}

const SLEEPS: &[&str] = &["__schedule", "schedule"];
const WAITS_FOR_WORKER: &[&str] =
    &["__schedule", "schedule", "schedule_timeout", "wait_for_common", "wait_for_completion"];
/// Before it has begun to wait.
const MAKES_WAY: &[&str] = &["__schedule", "_cond_resched", "wait_for_completion"];
const WAITS_FOR_BUFFER: &[&str] =
    &["__schedule", "schedule", "schedule_timeout", "__down", "down", "xfs_buf_lock", "_xfs_buf_find"];
