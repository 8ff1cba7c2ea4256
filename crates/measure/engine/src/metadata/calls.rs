//! The system calls, by name. An error is the kernel's own.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// As `creat` and most programs have it; the process's umask applies.
const FILE_MODE: libc::c_uint = 0o666;
const DIRECTORY_MODE: libc::mode_t = 0o777;

/// A directory that is there already is as good.
pub fn make_directory(base: RawFd, path: &CStr) -> io::Result<()> {
    // SAFETY: `path` ends with a zero byte and outlives the call.
    match checked(unsafe { libc::mkdirat(base, path.as_ptr(), DIRECTORY_MODE) }) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other.map(drop),
    }
}

#[inline]
pub fn create(base: RawFd, path: &CStr) -> io::Result<OwnedFd> {
    open(base, path, libc::O_CREAT | libc::O_TRUNC | libc::O_RDWR)
}

/// False: a part was written.
#[inline]
pub fn write(file: &OwnedFd, data: &[u8]) -> io::Result<bool> {
    // SAFETY: `data` is readable for its whole length, and the descriptor is open.
    let written = unsafe { libc::write(file.as_raw_fd(), data.as_ptr().cast(), data.len()) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(written as usize == data.len()) }
}

#[inline]
pub fn fsync(file: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    checked(unsafe { libc::fsync(file.as_raw_fd()) }).map(drop)
}

/// With the error that dropping it would lose.
#[inline]
pub fn close(file: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is open, and nobody else owns it any more.
    checked(unsafe { libc::close(file.into_raw_fd()) }).map(drop)
}

pub fn sync_system() {
    // SAFETY: takes nothing and can't fail.
    unsafe { libc::sync() };
}

pub fn fsync_again(base: RawFd, path: &CStr) -> io::Result<()> {
    let file = open(base, path, libc::O_RDONLY)?;
    fsync(&file)?;
    close(file)
}

#[inline]
pub fn unlink(base: RawFd, path: &CStr) -> io::Result<()> {
    // SAFETY: `path` ends with a zero byte and outlives the call.
    checked(unsafe { libc::unlinkat(base, path.as_ptr(), 0) }).map(drop)
}

/// The share of the filesystem's space that a user can no longer write to: reserved space counts as used, as in df.
pub fn used_share(path: &CStr) -> io::Result<f64> {
    // SAFETY: all-zero is a valid statvfs, and the call only fills it; `path` ends with a zero byte.
    let found = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        checked(libc::statvfs(path.as_ptr(), &mut found))?;
        found
    };
    let blocks = found.f_blocks.max(1) as f64;
    Ok((blocks - found.f_bavail as f64) / blocks)
}

/// From now on the calling thread has open files of its own; those that are open now are open in both tables.
pub fn separate_open_files() -> io::Result<()> {
    // SAFETY: no memory is involved. Descriptors that other threads open from now on mean nothing here, and none is
    // handed to this thread.
    checked(unsafe { libc::unshare(libc::CLONE_FILES) }).map(drop)
}

#[inline]
fn open(base: RawFd, path: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: `path` ends with a zero byte and outlives the call.
    let file = checked(unsafe { libc::openat(base, path.as_ptr(), flags | libc::O_CLOEXEC, FILE_MODE) })?;
    // SAFETY: the kernel has just given it to us.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

#[inline]
fn checked(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}
