//! Opening what a group works on: everything that can be refused is refused here, before the first operation.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use workload::phase::{EngineKind, FileSpec, GroupSpec, Phase};
use workload::spec::JobSpec;

use crate::beneath::{self, Root};
use crate::call_flags::check_flags;
use crate::error::StartError;
use crate::namespace::Namespace;
use crate::queue::queue_attribute;
use crate::write_hint::HintedInode;

#[derive(Debug)]
pub struct OpenFile {
    pub file: File,
    pub path: String,
    /// Where the file's range begins.
    pub base: u64,
    pub size: u64,
    pub device: u64,
    /// A block device.
    pub is_device: bool,
    pub on_tmpfs: bool,
    /// What takes commands past the block layer, if the group sends such.
    pub namespace: Option<Namespace>,
    /// Its inode has a write hint as long as this lives.
    pub hinted: Option<Arc<HintedInode>>,
}

impl OpenFile {
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// The files a group uses, at their indices in the phase; None for the others.
pub fn open_all(phase: &Phase, group: &GroupSpec) -> Result<Vec<Option<OpenFile>>, StartError> {
    raise_descriptor_limit();
    let mut files: Vec<Option<OpenFile>> = phase.files.iter().map(|_| None).collect();
    for job in &group.jobs {
        for &index in &job.files {
            let spec = phase.files.get(index as usize).ok_or_else(|| {
                StartError::spec(format!("job {:?} names file {index} of {}", job.name, phase.files.len()))
            })?;
            let slot = &mut files[index as usize];
            if slot.is_none() {
                let users = group.jobs.iter().filter(|job| job.files.contains(&index));
                let writes = users.clone().any(writes);
                *slot = Some(open(spec, group, writes)?);
            }
            if group.direct {
                check_alignment(slot.as_ref().expect("opened above"), job)?;
            }
        }
    }
    Ok(files)
}

pub fn writes(job: &JobSpec) -> bool {
    job.read_share < 1.0
}

pub fn reads(job: &JobSpec) -> bool {
    job.read_share > 0.0
}

fn open(spec: &FileSpec, group: &GroupSpec, writes: bool) -> Result<OpenFile, StartError> {
    let path = Path::new(&spec.path);
    if group.engine == EngineKind::Null {
        return open_nothing(spec);
    }
    let access = if writes || spec.create { libc::O_RDWR } else { libc::O_RDONLY };
    let flags = access | if group.direct { libc::O_DIRECT } else { 0 };
    let opened = match (&spec.beneath, spec.identity) {
        (Some(directory), _) => {
            let root = Root::open(directory)?;
            open_or_create(spec, flags, |flags| root.file(path, flags))?
        }
        (None, Some(identity)) => beneath::known(path, identity, flags)?,
        (None, None) => open_or_create(spec, flags, |flags| beneath::followed(path, flags))?,
    };
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) if group.direct => {
            StartError::os(&error, "this filesystem has no direct I/O, set direct = false", path)
        }
        Some(libc::ELOOP) => {
            StartError::spec(format!("{}: a symbolic link has been put where iolab's file was", spec.path))
        }
        _ => StartError::os(&error, "can't open", path),
    })?;
    let metadata = file.metadata().map_err(|error| StartError::os(&error, "can't stat", path))?;
    let kind = metadata.file_type();
    let end = spec.base_bytes.checked_add(spec.size_bytes).ok_or_else(|| StartError::spec("a file ends past 2^64"))?;
    let size = if kind.is_block_device() {
        device_bytes(&file).map_err(|error| StartError::os(&error, "can't learn the device's size", path))?
    } else if kind.is_file() {
        if spec.create && spec.extend && metadata.len() < end {
            file.set_len(end).map_err(|error| StartError::os(&error, format!("can't extend to {end} bytes"), path))?;
        }
        metadata.len().max(if spec.create { end } else { 0 })
    } else {
        return Err(StartError::spec(format!("{}: neither a regular file nor a block device", spec.path)));
    };
    if size < end {
        return Err(StartError::spec(format!("{}: has {size} bytes, the jobs need {end}", spec.path)));
    }
    if kind.is_block_device() {
        leave_access_time(&file);
    }
    check_flags(&file, &spec.path, group)?;
    let namespace = match group.engine {
        EngineKind::IoUringCmd => Some(Namespace::of(&file, spec, group)?),
        _ => None,
    };
    let device = if kind.is_block_device() { metadata.rdev() } else { metadata.dev() };
    let on_tmpfs = kind.is_file() && filesystem_magic(&file) == Some(TMPFS_MAGIC);
    Ok(OpenFile {
        file,
        path: spec.path.clone(),
        base: spec.base_bytes,
        size: spec.size_bytes,
        device,
        is_device: kind.is_block_device(),
        on_tmpfs,
        namespace,
        hinted: None,
    })
}

/// Inside, the kernel's refusal to open.
fn open_or_create(
    spec: &FileSpec,
    flags: libc::c_int,
    open: impl Fn(libc::c_int) -> io::Result<File>,
) -> Result<io::Result<File>, StartError> {
    match open(flags) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && spec.create => {
            refuse_to_create_among_devices(Path::new(&spec.path))?;
            Ok(open(flags | libc::O_CREAT | libc::O_EXCL))
        }
        other => Ok(other),
    }
}

/// The null engine never touches its files, so they need not exist.
fn open_nothing(spec: &FileSpec) -> Result<OpenFile, StartError> {
    let file = File::open("/dev/null").map_err(|error| StartError::os(&error, "can't open", "/dev/null"))?;
    let (base, size) = (spec.base_bytes, spec.size_bytes);
    Ok(OpenFile {
        file,
        path: spec.path.clone(),
        base,
        size,
        device: 0,
        is_device: false,
        on_tmpfs: false,
        namespace: None,
        hinted: None,
    })
}

/// A mistyped device name must not become a file in memory that fills it.
fn refuse_to_create_among_devices(path: &Path) -> Result<(), StartError> {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    match parent {
        Some(parent) if parent.starts_with("/dev") && !parent.starts_with("/dev/shm") => {
            let missing = io::Error::from_raw_os_error(libc::ENOENT);
            Err(StartError::os(&missing, "no such device, and files aren't made under /dev", path))
        }
        _ => Ok(()),
    }
}

/// Reads of a device do not ask whether its access time is due (157 instructions of a 4 KiB read under 6.12), as with fio.
/// Files keep theirs, since `noatime` and `relatime` are settings that may be compared. Who does not own the device is
/// refused (fcntl(2), `O_NOATIME`), and reads as before.
fn leave_access_time(file: &File) {
    let descriptor = file.as_raw_fd();
    // SAFETY: both calls take a descriptor that is open, and numbers.
    unsafe {
        let flags = libc::fcntl(descriptor, libc::F_GETFL);
        if flags >= 0 {
            libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NOATIME);
        }
    }
}

fn device_bytes(file: &File) -> io::Result<u64> {
    const BLKGETSIZE64: libc::Ioctl = 0x8008_1272;
    let mut bytes = 0u64;
    // SAFETY: the request stores one u64 through the pointer, which outlives the call.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &mut bytes) } {
        0 => Ok(bytes),
        _ => Err(io::Error::last_os_error()),
    }
}

const TMPFS_MAGIC: i64 = 0x0102_1994;

fn filesystem_magic(file: &File) -> Option<i64> {
    // SAFETY: all-zero is a valid statfs, which the call only fills.
    unsafe {
        let mut raw: libc::statfs = std::mem::zeroed();
        (libc::fstatfs(file.as_raw_fd(), &mut raw) == 0).then_some(raw.f_type as i64)
    }
}

fn check_alignment(file: &OpenFile, job: &JobSpec) -> Result<(), StartError> {
    let Some(needed) = direct_alignment(file)? else {
        return Ok(());
    };
    let wants = [("offset", job.offset_bytes), ("length", job.length_bytes), ("base", file.base)];
    let aligns = job.alignments().map(|bytes| ("align", bytes));
    let blocks = job.all_blocks().map(|block| ("block size", u64::from(block.bytes)));
    match wants.into_iter().chain(aligns).chain(blocks).find(|(_, bytes)| bytes % needed != 0) {
        None => Ok(()),
        Some((what, bytes)) => Err(StartError::spec(format!(
            "{}: direct I/O here needs multiples of {needed} bytes, and job {:?} has {what} {bytes}; \
             choose block sizes and ranges that are multiples of {needed}, or set direct = false",
            file.path, job.name
        ))),
    }
}

/// What offsets and lengths must be multiples of; None if this kernel does not report it.
fn direct_alignment(file: &OpenFile) -> Result<Option<u64>, StartError> {
    // SAFETY: all-zero is a valid statx, the path is an empty C string, and the call only fills the buffer.
    let (status, raw) = unsafe {
        let mut raw: libc::statx = std::mem::zeroed();
        (libc::statx(file.fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN, &mut raw), raw)
    };
    if status != 0 || raw.stx_mask & libc::STATX_DIOALIGN == 0 {
        return Ok(logical_block_bytes(file));
    }
    match raw.stx_dio_offset_align {
        0 => Err(StartError::spec(format!("{}: this file has no direct I/O here; set direct = false", file.path))),
        bytes => Ok(Some(u64::from(bytes))),
    }
}

fn logical_block_bytes(file: &OpenFile) -> Option<u64> {
    queue_attribute(file.device, "logical_block_size")?.parse().ok()
}

/// A job may have more files than the usual soft limit; the hard one is ours to use.
fn raise_descriptor_limit() {
    // SAFETY: both calls take a pointer to a local rlimit that outlives them.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
