//! A CPU's samples, in memory shared with the kernel (perf_event_open(2), "MMAP layout").

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::event::{Kind, Rate, enable, open_sampler};
use super::record::{Period, Record, Records};
use crate::probe::Reason;

/// Room for some thousand samples per CPU.
const RING_BYTES: usize = 512 << 10;
const WAKE_BYTES: u32 = RING_BYTES as u32 / 4;

/// A sampler of one CPU and its ring.
#[derive(Debug)]
pub struct Ring {
    event: OwnedFd,
    base: NonNull<u8>,
    page_bytes: usize,
    period: Period,
    /// The ring's contents in one piece, without its wrap.
    contents: Vec<u8>,
}

// SAFETY: the mapping is this ring's alone, and is used through `&mut`.
unsafe impl Send for Ring {}

impl Ring {
    /// Sampling begins with `start`.
    pub fn open(kind: Kind, cpu: u32, rate: Rate) -> Result<Ring, Reason> {
        let event = open_sampler(kind, cpu, rate, WAKE_BYTES)?;
        let page_bytes = page_bytes();
        let base = map(&event, page_bytes + RING_BYTES).map_err(|error| {
            let kib = RING_BYTES >> 10;
            format!("perf ring of {kib} KiB: {error}; run as root, or raise sysctl kernel.perf_event_mlock_kb")
        })?;
        Ok(Ring { event, base, page_bytes, period: rate.period(), contents: Vec::new() })
    }

    pub fn start(&self) -> io::Result<()> {
        enable(&self.event)
    }

    pub fn descriptor(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// Hands over all that is there. False when the contents contradicted themselves: what they held is lost.
    pub fn drain(&mut self, mut each: impl FnMut(Record<'_>)) -> bool {
        let mut contents = std::mem::take(&mut self.contents);
        contents.clear();
        self.take(&mut contents);
        let understood = Records::new(&contents, self.period).all(|record| record.map(&mut each).is_ok());
        self.contents = contents;
        understood
    }

    /// Copies what the kernel has finished and gives the room back.
    fn take(&mut self, contents: &mut Vec<u8>) {
        // SAFETY: both words are in the first mapped page, aligned, and only ever used atomically by both sides.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(self.base.as_ptr().add(DATA_HEAD).cast()),
                AtomicU64::from_ptr(self.base.as_ptr().add(DATA_TAIL).cast()),
            )
        };
        let end = head.load(Ordering::Acquire);
        let begin = tail.load(Ordering::Relaxed);
        let length = (end.wrapping_sub(begin) as usize).min(RING_BYTES);
        let start = begin as usize % RING_BYTES;
        let before_wrap = length.min(RING_BYTES - start);
        // SAFETY: the kernel leaves [tail, head) alone until the tail moves, and both pieces lie in the mapped ring.
        unsafe {
            let data = self.base.as_ptr().add(self.page_bytes);
            contents.extend_from_slice(std::slice::from_raw_parts(data.add(start), before_wrap));
            contents.extend_from_slice(std::slice::from_raw_parts(data, length - before_wrap));
        }
        tail.store(end, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped with this length in `open`, and nothing of it is borrowed any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page_bytes + RING_BYTES) };
    }
}

/// Offsets in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

fn map(event: &OwnedFd, bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            event.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)
}

fn page_bytes() -> usize {
    // SAFETY: takes no pointer; the page size always exists.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}
