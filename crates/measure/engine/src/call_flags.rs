//! The flags of single calls, and whether a file takes them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use base::units::counted;
use workload::job::OpKind;
use workload::phase::GroupSpec;

use crate::error::StartError;

/// The flags of preadv2(2) and pwritev2(2) for the calls of one group.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallFlags {
    read: libc::c_int,
    write: libc::c_int,
    /// Of a first read, which is not to wait; 0: every read may.
    nowait: libc::c_int,
}

impl CallFlags {
    /// Linux 6.14, include/uapi/linux/fs.h.
    const DONTCACHE: libc::c_int = 0x80;
    /// Linux 6.11, include/uapi/linux/fs.h.
    const ATOMIC: libc::c_int = 0x40;

    pub fn of_group(spec: &GroupSpec) -> CallFlags {
        let both = if spec.uncached { Self::DONTCACHE } else { 0 };
        let atomic = if spec.atomic_writes { Self::ATOMIC } else { 0 };
        CallFlags { read: both, write: both | atomic, nowait: if spec.nowait_reads { libc::RWF_NOWAIT } else { 0 } }
    }

    /// Those of an operation that is asked for the first time.
    #[inline(always)]
    pub fn at_first(self, kind: OpKind) -> libc::c_int {
        match kind {
            OpKind::Read => self.read | self.nowait,
            _ => self.of(kind),
        }
    }

    /// Whether an operation that was asked for the first time has to be asked for again: it would have waited.
    #[inline(always)]
    pub fn would_wait(self, kind: OpKind, result: i32) -> bool {
        self.nowait != 0 && result == -libc::EAGAIN && kind == OpKind::Read
    }

    /// A durable write has to be on the medium before it completes.
    #[inline(always)]
    pub fn of(self, kind: OpKind) -> libc::c_int {
        match kind {
            OpKind::Read => self.read,
            OpKind::DurableWrite => self.write | libc::RWF_DSYNC,
            OpKind::OsyncWrite => self.write | libc::RWF_SYNC,
            _ => self.write,
        }
    }
}

/// How many reads were asked for again because they would have waited, if any.
pub fn waited_note(waited: u64) -> Option<String> {
    (waited > 0).then(|| {
        let reads = counted(waited, "read");
        format!("{reads} would have waited, and waited when asked for again (nowait_reads)")
    })
}

/// Whether the file takes the calls of the group: each of them would fail.
pub fn check_flags(file: &File, path: &str, group: &GroupSpec) -> Result<(), StartError> {
    if group.nowait_reads && !takes(file, libc::RWF_NOWAIT) {
        return Err(StartError::spec(format!(
            "{path}: no reads without waiting here: they take Linux 4.14, and a block device, ext4, xfs or btrfs; \
             leave nowait_reads out"
        )));
    }
    if group.uncached && !takes(file, CallFlags::DONTCACHE) {
        return Err(StartError::spec(format!(
            "{path}: no uncached I/O here: it takes Linux 6.14, and ext4, xfs or btrfs; leave uncached out"
        )));
    }
    if group.atomic_writes {
        let (least, most) = atomic_write_bytes(file).unwrap_or((0, 0));
        if most == 0 {
            return Err(StartError::spec(format!(
                "{path}: no atomic writes here: they take Linux 6.11, a device with queue/atomic_write_max_bytes above 0, \
                 and the device itself, or xfs or ext4 of Linux 6.13; leave atomic_writes out"
            )));
        }
        let sizes = group.jobs.iter().flat_map(|job| &job.blocks);
        if let Some(block) = sizes.map(|block| u64::from(block.bytes)).find(|bytes| !(least..=most).contains(bytes)) {
            return Err(StartError::spec(format!(
                "{path}: a write of {block} bytes is not atomic here: from {least} to {most} bytes are; change block_size"
            )));
        }
    }
    Ok(())
}

/// Reads a byte with the flag: a file without it refuses before it looks at anything.
fn takes(file: &File, flag: libc::c_int) -> bool {
    let mut byte = 0u8;
    let vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: the vector and its one byte outlive the call.
    let status =
        unsafe { libc::syscall(libc::SYS_preadv2, file.as_raw_fd(), &vector, 1usize, 0usize, 0usize, flag as usize) };
    // A direct read of a byte is invalid, where the flag is not.
    let refused: &[_] = match flag {
        libc::RWF_NOWAIT => &[Some(libc::EOPNOTSUPP)],
        _ => &[Some(libc::EOPNOTSUPP), Some(libc::EINVAL)],
    };
    status >= 0 || !refused.contains(&io::Error::last_os_error().raw_os_error())
}

/// The least and the largest atomic write, `stx_atomic_write_unit_min` and `_max` of statx(2), Linux 6.11; None: a kernel
/// without.
fn atomic_write_bytes(file: &File) -> Option<(u64, u64)> {
    const STATX_WRITE_ATOMIC: libc::c_uint = 0x1_0000;
    const MASK_AT: usize = 0;
    const LEAST_AT: usize = 0xa8;
    let mut found = [0u32; 64];
    // SAFETY: the kernel stores a `struct statx` of 256 bytes; the path is the empty string.
    let status = unsafe {
        libc::syscall(
            libc::SYS_statx,
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            STATX_WRITE_ATOMIC,
            found.as_mut_ptr(),
        )
    };
    let knows = status == 0 && found[MASK_AT] & STATX_WRITE_ATOMIC != 0;
    knows.then(|| (found[LEAST_AT / 4].into(), found[LEAST_AT / 4 + 1].into()))
}
