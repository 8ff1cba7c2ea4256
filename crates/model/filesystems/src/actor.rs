//! Who works for a filesystem.

/// Who does a piece of work; a daemon by its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A thread or a flusher.
    Caller(Caller),
    /// Of the allocation workqueue.
    Worker(u32),
    /// A thread of the kernel that interrupts the load.
    Daemon(u16),
    /// Who writes in place what the log has.
    Pusher,
    /// Who writes checkpoints of the log.
    Checkpoints,
    /// Who puts together those that a sync waits for.
    Forces,
    /// Who sends them.
    Sends,
}

/// Who has transactions and calls the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caller {
    /// Of the load.
    Thread(u32),
    /// Who writes back files' data.
    Flusher(u32),
}
