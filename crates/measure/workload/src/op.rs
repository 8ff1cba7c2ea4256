//! One read, write or sync, as a job offers it, or why it offers none.

use base::time::Time;

/// The kinds of operation that a job offers. Their order stands in the digests of stored traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// A read of `bytes` at `offset`.
    Read,
    /// A write of `bytes` at `offset`.
    Write,
    /// The same, on the medium before it completes (RWF_DSYNC).
    DurableWrite,
    /// fsync(2): data and metadata of the file.
    Fsync,
    /// fdatasync(2): data, and the metadata that reading it back needs.
    Fdatasync,
    /// The device need not keep what is there; of a file: a hole.
    Discard,
    /// Zeroes there, without a transfer of them where the device can.
    WriteZeroes,
    /// A durable write with all of the file's metadata (RWF_SYNC).
    OsyncWrite,
    /// sync_file_range(2), all three flags: what of the file's range is dirty has been sent to the device, whose cache
    /// may hold it, and so may memory what finds it again.
    SyncFileRange,
}

impl OpKind {
    /// Whether it writes data.
    #[inline(always)]
    pub fn is_write(self) -> bool {
        matches!(self, OpKind::Write) | self.is_durable_write()
    }

    /// Whether it is a write that is on the medium before it completes.
    #[inline(always)]
    pub fn is_durable_write(self) -> bool {
        matches!(self, OpKind::DurableWrite | OpKind::OsyncWrite)
    }

    /// Whether it is fsync, fdatasync or sync_file_range.
    pub fn is_sync(self) -> bool {
        matches!(self, OpKind::Fsync | OpKind::Fdatasync | OpKind::SyncFileRange)
    }

    /// Whether it changes what is there without data to carry. Not every target takes such.
    #[inline(always)]
    pub fn clears(self) -> bool {
        matches!(self, OpKind::Discard | OpKind::WriteZeroes)
    }
}

/// One operation. A sync has offset 0 and 0 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Read, write or sync.
    pub kind: OpKind,
    /// Index into the phase's files.
    pub file: u32,
    /// Bytes from the start of the file's range.
    pub offset: u64,
    /// Length of the transfer, or of what is cleared, in bytes.
    pub bytes: u32,
    /// Latency counts from here: the intended start with open arrival, otherwise the `now` of `next`.
    pub due: Time,
}

impl Op {
    /// Whether a system call for it that returned `result` has done all of it. A sync moves no bytes and returns 0.
    #[inline(always)]
    pub fn has_completed(&self, result: i32) -> bool {
        result == self.bytes as i32 || (result == 0 && self.kind.clears())
    }

    /// What a system call for it returns when all of it is done.
    #[inline(always)]
    pub fn result(&self) -> i32 {
        if self.kind.clears() { 0 } else { self.bytes as i32 }
    }
}

/// What a job wants from the thread that drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStep {
    /// Start this operation; it is in flight from now on.
    Io(Op),
    /// Nothing before this time. A completion may change that: ask again after each.
    WaitUntil(Time),
    /// Nothing until an operation in flight completes: the queue is full, or a sync waits for it.
    WaitForCompletion,
    /// Nothing is in flight and nothing will be offered again.
    Done,
}
