//! FS_IOC_FIEMAP (Documentation/filesystems/fiemap.rst).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use trace::extents::{Extent, FLAGS};

/// The file's extents in its order, no more than `extents_max`.
pub fn extents(file: &File, extents_max: usize) -> io::Result<Vec<Extent>> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let mut request = Request::new(start);
        request.send(file)?;
        let answered = &request.extents[..request.head.mapped_extents.min(BATCH as u32) as usize];
        for raw in answered {
            if found.len() == extents_max {
                return Ok(found);
            }
            found.push(raw.extent());
        }
        match answered.last() {
            None => return Ok(found),
            Some(last) if last.flags & LAST != 0 => return Ok(found),
            // A filesystem that does not get on would be asked for ever.
            Some(last) => match last.logical.checked_add(last.length) {
                Some(next) if next > start => start = next,
                _ => return Ok(found),
            },
        }
    }
}

const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
const BATCH: usize = 512;

/// Write dirty pages out first.
const SYNC: u32 = 0x1;

const LAST: u32 = 0x1;
/// The physical offset means nothing.
const UNKNOWN: u32 = 0x2;
const DELAYED: u32 = 0x4;
const INLINE: u32 = 0x200;

/// struct fiemap, less the extents that follow it.
#[repr(C)]
struct Head {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// struct fiemap_extent.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Raw {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Request {
    head: Head,
    extents: [Raw; BATCH],
}

impl Request {
    fn new(start: u64) -> Box<Request> {
        let head = Head {
            start,
            length: u64::MAX - start,
            flags: SYNC,
            mapped_extents: 0,
            extent_count: BATCH as u32,
            reserved: 0,
        };
        Box::new(Request { head, extents: [Raw::default(); BATCH] })
    }

    fn send(&mut self, file: &File) -> io::Result<()> {
        // SAFETY: the kernel fills no more than `extent_count` extents, and so many follow the head.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *self) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Raw {
    fn extent(&self) -> Extent {
        let named: u32 = FLAGS.iter().map(|(_, flag)| flag).sum();
        let placed = self.flags & (UNKNOWN | DELAYED | INLINE) == 0;
        Extent {
            logical: self.logical,
            physical: placed.then_some(self.physical),
            length: self.length,
            flags: self.flags & named,
        }
    }
}
