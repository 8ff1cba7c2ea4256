//! FIBMAP: the device's block of each block of a file, one call each. For filesystems without FIEMAP.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use trace::extents::Extent;

/// The file's extents in its order, no more than `extents_max`: blocks that follow one another are one. EPERM without
/// CAP_SYS_RAWIO. It shows no flags, and 2^31 blocks at most.
pub fn extents(file: &File, size_bytes: u64, extents_max: usize) -> io::Result<Vec<Extent>> {
    let block_bytes = block_bytes(file)?;
    let mut found: Vec<Extent> = Vec::new();
    for block in 0..size_bytes.div_ceil(block_bytes) {
        let number = libc::c_int::try_from(block).map_err(|_| too_large())?;
        let Some(physical) = block_of(file, number)? else {
            continue;
        };
        let extent = Extent {
            logical: block * block_bytes,
            physical: Some(physical * block_bytes),
            length: block_bytes,
            flags: 0,
        };
        if let Some(last) = found.last_mut().filter(|last| last.touches(&extent)) {
            last.length += block_bytes;
        } else if found.len() < extents_max {
            found.push(extent);
        } else {
            break;
        }
    }
    Ok(found)
}

/// The filesystem's block size, in which FIBMAP counts.
pub fn block_bytes(file: &File) -> io::Result<u64> {
    let bytes = ask(file, FIGETBSZ, 0)?;
    u64::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| io::Error::other("the filesystem has no block size"))
}

const FIBMAP: libc::Ioctl = 1;
const FIGETBSZ: libc::Ioctl = 2;

/// None in a hole.
fn block_of(file: &File, number: libc::c_int) -> io::Result<Option<u64>> {
    let physical = ask(file, FIBMAP, number)?;
    Ok((physical != 0).then_some(u64::from(physical.cast_unsigned())))
}

fn ask(file: &File, request: libc::Ioctl, argument: libc::c_int) -> io::Result<libc::c_int> {
    let mut value = argument;
    // SAFETY: both requests take and fill one int.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request, &raw mut value) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value)
}

fn too_large() -> io::Error {
    io::Error::from_raw_os_error(libc::EFBIG)
}
