//! Files opened where they were checked: below a directory, or the one file that a path led to. What somebody else has
//! put there meanwhile, a symbolic link above all, is refused.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use libc::c_int;
use workload::location::{Directory, Identity};

use crate::error::StartError;

/// The process's umask applies.
const FILE_MODE: u32 = 0o666;
const DIRECTORY_MODE: libc::mode_t = 0o777;
const A_DIRECTORY: c_int = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
/// The kernel asks for another try when something on the way was renamed meanwhile.
const TRIES: usize = 100;

/// A directory that is the one that was checked.
pub struct Root {
    file: OwnedFd,
    path: PathBuf,
}

impl Root {
    pub fn open(directory: &Directory) -> Result<Root, StartError> {
        let path = PathBuf::from(&directory.path);
        let file = match opened(libc::AT_FDCWD, &path, A_DIRECTORY) {
            Ok(file) => File::from(file),
            // Also a symbolic link.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(replaced(&path, "file"));
            }
            Err(error) => return Err(StartError::os(&error, "can't enter the directory", &path)),
        };
        match identity(&file) {
            Ok(found) if found == directory.identity => Ok(Root { file: file.into(), path }),
            Ok(_) => Err(replaced(&path, "directory")),
            Err(error) => Err(StartError::os(&error, "can't stat", &path)),
        }
    }

    /// `path` begins with the directory's.
    pub fn file(&self, path: &Path, flags: c_int) -> io::Result<File> {
        let found = self.entry(self.relative(path)?, flags)?;
        Ok(File::from(found))
    }

    /// Makes it if it does not exist, but not its parents.
    pub fn directory(&self, path: &Path) -> Result<OwnedFd, StartError> {
        let made = || {
            let relative = self.relative(path)?;
            if relative.as_os_str().is_empty() {
                return self.entry(Path::new("."), libc::O_RDONLY | libc::O_DIRECTORY);
            }
            let parent = match relative.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => self.entry(parent, A_DIRECTORY)?,
                _ => self.file.try_clone()?,
            };
            let name = Path::new(relative.file_name().unwrap_or_default());
            make_directory(parent.as_raw_fd(), name)?;
            self.entry(relative, libc::O_RDONLY | libc::O_DIRECTORY)
        };
        made().map_err(|error| StartError::os(&error, "can't make the directory", path))
    }

    fn relative<'path>(&self, path: &'path Path) -> io::Result<&'path Path> {
        path.strip_prefix(&self.path).map_err(|_| io::Error::from_raw_os_error(libc::EXDEV))
    }

    fn entry(&self, relative: &Path, flags: c_int) -> io::Result<OwnedFd> {
        let root = self.file.as_raw_fd();
        match in_one_call(root, relative, flags) {
            // A kernel before 5.6, or a container that forbids unknown calls.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                step_by_step(root, relative, flags)
            }
            other => other,
        }
    }
}

/// Wherever the path leads.
pub fn followed(path: &Path, flags: c_int) -> io::Result<File> {
    opened(libc::AT_FDCWD, path, flags).map(File::from)
}

/// The directory, wherever its path leads; made if it does not exist.
pub fn directory(path: &Path) -> Result<OwnedFd, StartError> {
    make_directory(libc::AT_FDCWD, path).map_err(|error| StartError::os(&error, "can't make the directory", path))?;
    opened(libc::AT_FDCWD, path, libc::O_RDONLY | libc::O_DIRECTORY)
        .map_err(|error| StartError::os(&error, "can't open the directory", path))
}

/// The very file, or the kernel's refusal to open it with these flags. What is there instead is not opened at all: that
/// alone can do something.
pub fn known(path: &Path, expected: Identity, flags: c_int) -> Result<io::Result<File>, StartError> {
    let found = match opened(libc::AT_FDCWD, path, libc::O_PATH | libc::O_NOFOLLOW) {
        Ok(found) => File::from(found),
        Err(error) => return Ok(Err(error)),
    };
    match identity(&found) {
        Ok(seen) if seen == expected => {
            let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
            Ok(followed(Path::new(&itself), flags))
        }
        Ok(_) => Err(replaced(path, "file")),
        Err(error) => Ok(Err(error)),
    }
}

/// That the path, followed, leads to the directory that is open.
pub fn check_leads_to(path: &Path, directory: &OwnedFd) -> Result<(), StartError> {
    let same = || {
        let there = identity(&followed(path, libc::O_PATH | libc::O_DIRECTORY)?)?;
        Ok(there == identity(&File::from(directory.try_clone()?))?)
    };
    match same() {
        Ok(true) => Ok(()),
        Ok(false) => Err(replaced(path, "directory")),
        Err(error) => Err(StartError::os(&error, "can't open the directory", path)),
    }
}

fn replaced(path: &Path, kind: &str) -> StartError {
    StartError::spec(format!(
        "{}: another {kind} is there now than the one that iolab made or checked; nobody else may change what is on \
         the way to it",
        path.display()
    ))
}

fn identity(file: &File) -> io::Result<Identity> {
    let metadata = file.metadata()?;
    Ok(Identity { device: metadata.dev(), inode: metadata.ino() })
}

/// openat2(2): nothing outside of `root`, no symbolic links.
fn in_one_call(root: RawFd, relative: &Path, flags: c_int) -> io::Result<OwnedFd> {
    let path = c_string(relative.as_os_str())?;
    // SAFETY: all-zero is a valid open_how.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.mode = if flags & libc::O_CREAT != 0 { u64::from(FILE_MODE) } else { 0 };
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
    let mut answer = try_in_one_call(root, &path, &how);
    for _ in 1..TRIES {
        match answer {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
                answer = try_in_one_call(root, &path, &how);
            }
            other => return other,
        }
    }
    answer
}

fn try_in_one_call(root: RawFd, path: &CStr, how: &libc::open_how) -> io::Result<OwnedFd> {
    // SAFETY: `path` ends with a zero byte, `how` is as large as said, and both outlive the call.
    let status = unsafe {
        libc::syscall(libc::SYS_openat2, root, path.as_ptr(), std::ptr::from_ref(how), size_of::<libc::open_how>())
    };
    taken(status as c_int)
}

/// The same for kernels without that call: a directory at a time, none of them a link.
fn step_by_step(root: RawFd, relative: &Path, flags: c_int) -> io::Result<OwnedFd> {
    let mut at: Option<OwnedFd> = None;
    let mut parts = relative.components().peekable();
    while let Some(part) = parts.next() {
        let name = match part {
            Component::Normal(name) => name,
            Component::CurDir => OsStr::new("."),
            _ => return Err(io::Error::from_raw_os_error(libc::EXDEV)),
        };
        let from = at.as_ref().map_or(root, AsRawFd::as_raw_fd);
        let is_last = parts.peek().is_none();
        let how = if is_last { flags | libc::O_NOFOLLOW } else { A_DIRECTORY };
        at = Some(opened(from, Path::new(name), how)?);
    }
    at.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

fn make_directory(base: RawFd, path: &Path) -> io::Result<()> {
    let path = c_string(path.as_os_str())?;
    // SAFETY: `path` ends with a zero byte and outlives the call.
    match unsafe { libc::mkdirat(base, path.as_ptr(), DIRECTORY_MODE) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            error => Err(error),
        },
    }
}

fn opened(base: RawFd, path: &Path, flags: c_int) -> io::Result<OwnedFd> {
    let path = c_string(path.as_os_str())?;
    // SAFETY: `path` ends with a zero byte and outlives the call.
    taken(unsafe { libc::openat(base, path.as_ptr(), flags | libc::O_CLOEXEC, FILE_MODE) })
}

/// A file in an open directory, where nothing had this name.
pub(crate) fn new_file(directory: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    opened(directory.as_raw_fd(), Path::new(name), flags)
}

/// Another descriptor of what the caller has open.
pub(crate) fn shared(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers and no memory; of a descriptor that is not open it is EBADF.
    taken(unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) })
}

fn taken(descriptor: c_int) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given it to us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests;
