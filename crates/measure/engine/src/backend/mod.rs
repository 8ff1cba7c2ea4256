//! Ways to the device. A queued backend has many operations in flight; a serial one does one at a time.

pub mod libaio;
pub mod mmap;
pub mod null;
pub mod passthrough;
pub mod ring;
pub mod serial;
pub mod uring;

use std::io;
use std::os::fd::RawFd;

use workload::job::{Op, OpKind};

use crate::files::OpenFile;

/// The longest a thread waits: a stop is noticed no later.
pub const WAIT_MAX_NS: u64 = 20_000_000;

pub trait IoQueue {
    /// Queues an operation under its slot; there is room for every slot. It starts with the next `submit`.
    fn push(&mut self, slot: u32, op: &Op);
    /// Starts what was queued and waits for `want` completions, or until the time is up. With `want` 0 only looks.
    fn submit(&mut self, want: u32, timeout_ns: u64) -> io::Result<()>;
    /// The next completion that is ready.
    fn reap(&mut self) -> Option<Completion>;
    /// Asks what is in flight to end soon. Each operation still completes.
    fn cancel(&mut self) {}
    /// For the record: what it did, and how often, that an option asked for.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

pub trait Serial {
    /// Does the operation. Bytes transferred, or the negative errno.
    fn execute(&mut self, op: &Op) -> i32;
    /// As for `IoQueue`.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Completion {
    pub slot: u32,
    /// Bytes transferred, or the negative errno.
    pub result: i32,
}

/// A file as backends need it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub fd: RawFd,
    /// Where the file's range begins, and how long it is.
    pub base: u64,
    pub size: u64,
    pub is_device: bool,
}

impl Target {
    /// At the files' indices in the phase; those that the group does not use have no descriptor.
    pub fn all(files: &[Option<OpenFile>]) -> Vec<Target> {
        let target =
            |file: &OpenFile| Target { fd: file.fd(), base: file.base, size: file.size, is_device: file.is_device };
        let unused = Target { fd: -1, base: 0, size: 0, is_device: false };
        files.iter().map(|file| file.as_ref().map_or(unused, target)).collect()
    }
}

impl Target {
    /// Does an operation that clears, in the call: 0, or the negative errno; EOPNOTSUPP if the target has no such
    /// operation.
    pub fn clear(&self, op: &Op) -> i32 {
        const BLKDISCARD: libc::Ioctl = 0x1277;
        let (start, length) = (self.base + op.offset, u64::from(op.bytes));
        let status = if op.kind == OpKind::Discard && self.is_device {
            let range = [start, length];
            // SAFETY: the request reads two numbers through the pointer, which outlives the call.
            unsafe { libc::ioctl(self.fd, BLKDISCARD, &range) }
        } else {
            let mode = fallocate_mode(op.kind);
            // SAFETY: takes a descriptor and numbers.
            unsafe { libc::fallocate(self.fd, mode, start as i64, length as i64) }
        };
        completion_result(status.into())
    }
}

/// How fallocate(2) clears: a hole, or zeroes.
fn fallocate_mode(kind: OpKind) -> libc::c_int {
    let what = match kind {
        OpKind::Discard => libc::FALLOC_FL_PUNCH_HOLE,
        _ => libc::FALLOC_FL_ZERO_RANGE,
    };
    what | libc::FALLOC_FL_KEEP_SIZE
}

/// A raw system call's result as a completion carries it.
fn completion_result(status: libc::c_long) -> i32 {
    if status < 0 { -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) } else { status as i32 }
}
