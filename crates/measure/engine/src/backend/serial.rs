//! pread/pwrite and preadv2/pwritev2.

use std::rc::Rc;

use workload::job::{Op, OpKind};

use crate::backend::{Serial, Target, completion_result};
use crate::buffers::Buffers;
use crate::call_flags::{CallFlags, waited_note};

/// The one slot of a serial group.
const SLOT: u32 = 0;

#[derive(Debug)]
pub struct Psync {
    files: Vec<Target>,
    buffers: Rc<Buffers>,
}

impl Psync {
    pub fn new(files: Vec<Target>, buffers: Rc<Buffers>) -> Psync {
        Psync { files, buffers }
    }
}

impl Serial for Psync {
    /// Through `syscall`: the C library's wrappers are cancellation points and pay for that on each call.
    #[inline(always)]
    fn execute(&mut self, op: &Op) -> i32 {
        let file = self.files[op.file as usize];
        let offset = file.base + op.offset;
        // SAFETY: the slot's buffers hold the group's largest operation, and nobody else uses them meanwhile.
        let status = unsafe {
            match op.kind {
                OpKind::Read => {
                    libc::syscall(libc::SYS_pread64, file.fd, self.buffers.read(SLOT), op.bytes as usize, offset)
                }
                OpKind::Write => {
                    libc::syscall(libc::SYS_pwrite64, file.fd, self.buffers.write(SLOT), op.bytes as usize, offset)
                }
                OpKind::DurableWrite | OpKind::OsyncWrite => {
                    let buffer = self.buffers.write(SLOT);
                    let flags = CallFlags::default().of(op.kind);
                    return vectored(op, libc::SYS_pwritev2, buffer, file, flags);
                }
                OpKind::Fsync | OpKind::Fdatasync | OpKind::SyncFileRange => {
                    return sync(op.kind, file);
                }
                OpKind::Discard | OpKind::WriteZeroes => return file.clear(op),
            }
        };
        completion_result(status)
    }
}

#[derive(Debug)]
pub struct Pvsync {
    files: Vec<Target>,
    buffers: Rc<Buffers>,
    flags: CallFlags,
    /// RWF_HIPRI, if calls look for their completion instead of waiting for an interrupt.
    poll: libc::c_int,
    /// Reads that were asked for again because they would have waited.
    waited: u64,
}

impl Pvsync {
    pub fn new(files: Vec<Target>, buffers: Rc<Buffers>, flags: CallFlags, poll: bool) -> Pvsync {
        let poll = if poll { libc::RWF_HIPRI } else { 0 };
        Pvsync { files, buffers, flags, poll, waited: 0 }
    }
}

impl Serial for Pvsync {
    #[inline(always)]
    fn execute(&mut self, op: &Op) -> i32 {
        let file = self.files[op.file as usize];
        let (call, buffer) = match op.kind {
            OpKind::Read => (libc::SYS_preadv2, self.buffers.read(SLOT)),
            OpKind::Write | OpKind::DurableWrite | OpKind::OsyncWrite => (libc::SYS_pwritev2, self.buffers.write(SLOT)),
            OpKind::Fsync | OpKind::Fdatasync | OpKind::SyncFileRange => {
                return sync(op.kind, file);
            }
            OpKind::Discard | OpKind::WriteZeroes => return file.clear(op),
        };
        let result = vectored(op, call, buffer, file, self.flags.at_first(op.kind) | self.poll);
        if !self.flags.would_wait(op.kind, result) {
            return result;
        }
        self.waited += 1;
        vectored(op, call, buffer, file, self.flags.of(op.kind) | self.poll)
    }

    fn notes(&self) -> Vec<String> {
        waited_note(self.waited).into_iter().collect()
    }
}

/// preadv2 or pwritev2 of a buffer that holds the operation and that nobody else uses meanwhile.
#[inline(always)]
fn vectored(op: &Op, call: libc::c_long, buffer: *mut u8, file: Target, flags: libc::c_int) -> i32 {
    let offset = file.base + op.offset;
    let vector = libc::iovec { iov_base: buffer.cast(), iov_len: op.bytes as usize };
    let (vectors, offset_high) = (1usize, offset >> 32);
    // SAFETY: as for `Psync`; the one vector outlives the call.
    completion_result(unsafe { libc::syscall(call, file.fd, &vector, vectors, offset, offset_high, flags as usize) })
}

pub fn sync(kind: OpKind, file: Target) -> i32 {
    // SAFETY: they take a descriptor and no pointer.
    completion_result(unsafe {
        match kind {
            OpKind::Fsync => libc::syscall(libc::SYS_fsync, file.fd),
            OpKind::SyncFileRange => {
                libc::syscall(libc::SYS_sync_file_range, file.fd, file.base, file.size, WRITE_AND_WAIT)
            }
            _ => libc::syscall(libc::SYS_fdatasync, file.fd),
        }
    })
}

/// Pages that are being written are waited for before and after the dirty ones are.
pub const WRITE_AND_WAIT: libc::c_uint =
    libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
