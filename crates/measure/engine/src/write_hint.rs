//! How long what is written to a file is expected to live: `F_SET_RW_HINT` of fcntl(2), Linux 4.13. The kernel keeps it
//! with the inode, so that all who write to the inode share it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use workload::phase::WriteHint;

use crate::error::StartError;

/// include/uapi/linux/fcntl.h; `libc` has neither.
const F_GET_RW_HINT: libc::c_int = 1024 + 11;
const F_SET_RW_HINT: libc::c_int = 1024 + 12;

/// The hint of an inode. Dropping it brings back the one that was there before.
#[derive(Debug)]
pub struct HintedInode {
    file: File,
    before: u64,
}

impl HintedInode {
    pub fn set(file: &File, path: &str, hint: WriteHint) -> Result<HintedInode, StartError> {
        let mut before = 0;
        call(file, F_GET_RW_HINT, &mut before).map_err(|error| refused(&error, path))?;
        let file = file.try_clone().map_err(|error| refused(&error, path))?;
        call(&file, F_SET_RW_HINT, &mut (hint as u64)).map_err(|error| refused(&error, path))?;
        Ok(HintedInode { file, before })
    }
}

impl Drop for HintedInode {
    fn drop(&mut self) {
        // A hint that stays behind changes no data, and there is nobody to report it to.
        let _ = call(&self.file, F_SET_RW_HINT, &mut self.before);
    }
}

fn refused(error: &io::Error, path: &str) -> StartError {
    let what = match error.raw_os_error() {
        Some(libc::EINVAL) => "no write hints here: they take Linux 4.13; leave write_hint out".to_owned(),
        Some(libc::EPERM) => {
            "only the owner of a file, and root, may set its write hint; leave write_hint out".to_owned()
        }
        _ => format!("can't set its write hint: {error}"),
    };
    StartError::spec(format!("{path}: {what}"))
}

fn call(file: &File, command: libc::c_int, hint: &mut u64) -> io::Result<()> {
    // SAFETY: both commands take a pointer to a u64, which outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(hint)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
