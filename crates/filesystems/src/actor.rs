//! Who works for a filesystem, and what it wants to be told of.

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
}

/// Who has transactions and calls the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caller {
    /// Of the load.
    Thread(u32),
    /// Who writes back files' data.
    Flusher(u32),
}

/// What the filesystem wants to be told at a time.
#[derive(Clone, Copy, Debug)]
pub enum Timer {
    /// A daemon wakes up.
    Daemon,
    /// Flushers look for pages that have expired.
    WriteBack,
    /// The allocator's answer reaches its caller late.
    Answered(Caller),
    /// The log is written, whatever room it has.
    Sync,
    /// The pusher looks again.
    Push,
}
