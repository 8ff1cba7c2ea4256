//! The NVMe namespace behind a block device, for commands that pass the block layer.
//!
//! A path always names the block device: it is what mounts, holders and claims are known by. The character device that
//! takes commands is found from it by sysfs alone, and both have to answer for the same namespace.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use workload::phase::{FileSpec, GroupSpec};

use crate::error::StartError;
use crate::placement;
use crate::queue::queue_attribute;

#[derive(Debug)]
pub struct Namespace {
    /// The character device, such as /dev/ng0n1.
    file: File,
    pub id: u32,
    /// Of a logical block.
    pub block_bytes: u64,
    /// Where the drive puts what is written, if the file has a hint.
    pub placement: Option<u16>,
}

impl Namespace {
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// That of an open block device.
    pub fn of(block: &File, spec: &FileSpec, group: &GroupSpec) -> Result<Namespace, StartError> {
        let path = spec.path.as_str();
        let refused = |why: String| {
            let takes = "engine io_uring_cmd sends commands to a whole NVMe namespace of Linux 5.19 or later, such as \
                         /dev/nvme0n1; name one, or take engine = \"io_uring\"";
            StartError::spec(format!("{path}: {why}; {takes}"))
        };
        let metadata = block.metadata().map_err(|error| StartError::os(&error, "can't stat", path))?;
        if !metadata.file_type().is_block_device() {
            return Err(refused("not a block device".into()));
        }
        let number = metadata.rdev();
        let generic = generic_of(Path::new("/sys"), number).map_err(refused)?;
        let writes = group.jobs.iter().any(|job| job.read_share < 1.0);
        let file = OpenOptions::new()
            .read(true)
            .write(writes)
            .open(&generic.path)
            .map_err(|error| StartError::os(&error, "can't open", &generic.path))?;
        let opened = file.metadata().map_err(|error| StartError::os(&error, "can't stat", &generic.path))?;
        if !opened.file_type().is_char_device() || opened.rdev() != generic.number {
            return Err(refused(format!(
                "{} is not the character device that the kernel has for it",
                generic.path.display()
            )));
        }
        let id = namespace_id(block.as_raw_fd())
            .map_err(|error| StartError::os(&error, "can't learn the namespace", path))?;
        if namespace_id(file.as_raw_fd()).ok() != Some(id) {
            return Err(refused(format!("{} is another namespace", generic.path.display())));
        }
        check_sizes(number, group).map_err(|why| StartError::spec(format!("{path}: {why}")))?;
        let block_bytes = queue_attribute(number, "logical_block_size")
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| refused("it has no logical_block_size".into()))?;
        let placed = |hint| placement::identifier(file.as_raw_fd(), id, hint);
        let placement = spec.write_hint.map(placed).transpose();
        let placement = placement.map_err(|why| StartError::spec(format!("{path}: {why}")))?;
        Ok(Namespace { file, id, block_bytes, placement })
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Generic {
    path: PathBuf,
    number: u64,
}

/// The character device beside the block device in sysfs: `nvme_ns_add_cdev` and `nvme_add_ns_head_cdev` (drivers/nvme/host,
/// Linux 6.12) give both the same parent, and names that differ in `nvme` and `ng`.
fn generic_of(sys: &Path, number: u64) -> Result<Generic, String> {
    let (major, minor) = (libc::major(number), libc::minor(number));
    let none = || "no NVMe namespace with a character device of its own".to_owned();
    let disk = sys.join(format!("dev/block/{major}:{minor}"));
    let disk = disk.canonicalize().map_err(|_| none())?;
    if disk.join("partition").exists() {
        return Err("a partition".to_owned());
    }
    let metadata = fs::read_to_string(disk.join("metadata_bytes")).unwrap_or_default();
    let format = fs::read_to_string(disk.join("integrity/format")).unwrap_or_default();
    if !matches!(metadata.trim(), "" | "0") || !matches!(format.trim(), "" | "none") {
        return Err("its blocks carry metadata, which the commands here have not".to_owned());
    }
    let name = disk.file_name().and_then(|name| name.to_str());
    let rest = name.and_then(|name| name.strip_prefix("nvme")).ok_or_else(none)?;
    let generic = format!("ng{rest}");
    let numbers = fs::read_to_string(disk.with_file_name(&generic).join("dev"));
    let numbers = numbers.map_err(|_| none())?;
    let (major, minor) = numbers.trim().split_once(':').ok_or_else(none)?;
    let number = |text: &str| text.parse().map_err(|_| none());
    Ok(Generic { path: Path::new("/dev").join(generic), number: libc::makedev(number(major)?, number(minor)?) })
}

/// The block layer splits what is too large for a drive; a command is as it is.
fn check_sizes(number: u64, group: &GroupSpec) -> Result<(), String> {
    let limit = queue_attribute(number, "max_hw_sectors_kb");
    let Some(most) = limit.and_then(|text| text.parse::<u64>().ok()) else {
        return Ok(());
    };
    let sizes = group.jobs.iter().flat_map(|job| job.all_blocks());
    match sizes.map(|block| block.bytes).max() {
        Some(bytes) if u64::from(bytes) > most << 10 => Err(format!(
            "a command of {bytes} bytes is larger than the {most} KiB that the drive takes (max_hw_sectors_kb); \
             lower block_size"
        )),
        _ => Ok(()),
    }
}

/// `NVME_IOCTL_ID` (include/uapi/linux/nvme_ioctl.h), which block and character devices of a namespace answer.
fn namespace_id(fd: RawFd) -> io::Result<u32> {
    const NVME_IOCTL_ID: libc::Ioctl = 0x4e40;
    // SAFETY: the request takes no argument.
    match unsafe { libc::ioctl(fd, NVME_IOCTL_ID) } {
        id if id > 0 => Ok(id as u32),
        0 => Err(io::Error::from_raw_os_error(libc::ENOTTY)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A sysfs with a disk of number 259:1 below one controller.
    fn sysfs(name: &str, disk: &str) -> PathBuf {
        let sys = std::env::temp_dir().join(format!("iolab-ns-{}-{name}", std::process::id()));
        let place = sys.join("devices/nvme0").join(disk);
        fs::create_dir_all(&place).unwrap();
        fs::create_dir_all(sys.join("dev/block")).unwrap();
        symlink(&place, sys.join("dev/block/259:1")).unwrap();
        sys
    }

    fn found(sys: &Path) -> Result<Generic, String> {
        let found = generic_of(sys, libc::makedev(259, 1));
        fs::remove_dir_all(sys).unwrap();
        found
    }

    #[test]
    fn a_namespace_has_its_character_device_beside_it() {
        let sys = sysfs("whole", "nvme0n1");
        let generic = sys.join("devices/nvme0/ng0n1");
        fs::create_dir_all(&generic).unwrap();
        fs::write(generic.join("dev"), "239:7\n").unwrap();
        let expected = Generic { path: "/dev/ng0n1".into(), number: libc::makedev(239, 7) };
        assert_eq!(found(&sys), Ok(expected));
    }

    #[test]
    fn what_is_no_whole_namespace_is_refused() {
        for (name, disk, file, content) in [
            ("scsi", "sda", "size", "8"),
            ("old", "nvme0n1", "size", "8"),
            ("part", "nvme0n1", "partition", "1"),
            ("dif", "nvme0n1", "metadata_bytes", "8"),
        ] {
            let sys = sysfs(name, disk);
            fs::write(sys.join("devices/nvme0").join(disk).join(file), content).unwrap();
            assert!(found(&sys).is_err(), "{name}");
        }
        let sys = sysfs("none", "nvme0n1");
        fs::remove_file(sys.join("dev/block/259:1")).unwrap();
        assert!(found(&sys).is_err());
    }
}
