//! What can go wrong before and while a phase runs; faults of single operations are counted in the record instead.

use std::io;
use std::path::Path;

use thiserror::Error;

/// The phase did not start; nothing was read or written.
#[derive(Debug, Error)]
pub enum StartError {
    /// The specification asks for something impossible.
    #[error("{0}")]
    Spec(String),
    /// The kernel refused. `errno` is positive.
    #[error("{path}: {what}: {reason}", reason = io::Error::from_raw_os_error(*errno))]
    Os {
        /// The kernel's error number.
        errno: i32,
        /// What was attempted.
        what: String,
        /// The file or device that it concerns.
        path: String,
    },
}

/// The phase started and could not be carried through.
#[derive(Clone, Debug, Error)]
#[error("group {group:?}: {what}: {reason}", reason = io::Error::from_raw_os_error(*errno))]
pub struct RunError {
    /// The kernel's error number, positive.
    pub errno: i32,
    /// What was attempted.
    pub what: String,
    /// The name of the group whose thread failed.
    pub group: String,
}

impl StartError {
    /// Without the path, for those who carry it apart.
    pub fn message(&self) -> String {
        match self {
            StartError::Spec(what) => what.clone(),
            StartError::Os { errno, what, .. } => {
                format!("{what}: {}", io::Error::from_raw_os_error(*errno))
            }
        }
    }

    pub(crate) fn spec(what: impl Into<String>) -> StartError {
        StartError::Spec(what.into())
    }

    pub(crate) fn os(error: &io::Error, what: impl Into<String>, path: impl AsRef<Path>) -> StartError {
        StartError::Os {
            errno: error.raw_os_error().unwrap_or(libc::EIO),
            what: what.into(),
            path: path.as_ref().display().to_string(),
        }
    }
}

/// The symbol of an errno, as manual pages write it.
pub(crate) fn errno_name(errno: i32) -> String {
    let name = match errno {
        libc::EPERM => "EPERM",
        libc::EINTR => "EINTR",
        libc::EIO => "EIO",
        libc::ENXIO => "ENXIO",
        libc::EBADF => "EBADF",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EACCES => "EACCES",
        libc::EFAULT => "EFAULT",
        libc::EBUSY => "EBUSY",
        libc::ENODEV => "ENODEV",
        libc::EINVAL => "EINVAL",
        libc::EFBIG => "EFBIG",
        libc::ENOSPC => "ENOSPC",
        libc::EROFS => "EROFS",
        libc::ENOLINK => "ENOLINK",
        libc::EREMOTEIO => "EREMOTEIO",
        libc::ENODATA => "ENODATA",
        libc::ETIME => "ETIME",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::EBADE => "EBADE",
        libc::EILSEQ => "EILSEQ",
        libc::EUCLEAN => "EUCLEAN",
        libc::ESTALE => "ESTALE",
        libc::EDQUOT => "EDQUOT",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::ECANCELED => "ECANCELED",
        libc::EOVERFLOW => "EOVERFLOW",
        _ => return format!("errno {errno}"),
    };
    name.to_owned()
}
