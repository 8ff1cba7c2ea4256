//! Where a drive's search for a free tag starts. The kernel draws it at random when it makes a queue; the words of the
//! bitmap differ by some instructions for each request, and a queue with few requests in flight stays in its word.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use io_uring::{IoUring, opcode, types};

use crate::system;

/// The fewest tags that a queue can be set to; all of them lie in the first word.
const FEW: &str = "4";
const BLOCK_BYTES: usize = 4096;

/// Each CPU's search starts in the first word from now on. Tags of schedulers keep their start: a queue that is told another
/// number of requests tells its scheduler other limits, which stay. A queue that can't be told so keeps its start.
pub fn start_in_first_word(disk: &str) -> io::Result<()> {
    let queue = format!("/sys/block/{disk}/queue");
    let scheduler = format!("{queue}/scheduler");
    let had = fs::read_to_string(&scheduler).unwrap_or_default();
    let had = had.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("none", |(name, _)| name);
    if had != "none" {
        fs::write(&scheduler, "none")?;
    }
    let requests = format!("{queue}/nr_requests");
    let before = fs::read_to_string(&requests)?;
    if fs::write(&requests, FEW).is_ok() {
        let polls = fs::read_to_string(format!("{queue}/io_poll")).unwrap_or_default();
        read_on_each_cpu(disk, polls.trim() == "1")?;
        fs::write(&requests, before.trim())?;
    }
    if had != "none" {
        fs::write(&scheduler, had)?;
    }
    Ok(())
}

fn read_on_each_cpu(disk: &str, polls: bool) -> io::Result<()> {
    let device = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(format!("/dev/{disk}"))?;
    // SAFETY: asks for a number.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize;
    std::thread::scope(|scope| {
        let reads: Vec<_> = (0..cpus)
            .map(|cpu| {
                let device = &device;
                scope.spawn(move || read_on(cpu, device, polls))
            })
            .collect();
        reads.into_iter().try_for_each(|read| read.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
    })
}

fn read_on(cpu: usize, device: &File, polls: bool) -> io::Result<()> {
    system::pin(&[cpu])?;
    let mut room = vec![0; 2 * BLOCK_BYTES];
    let at = room.as_ptr().align_offset(BLOCK_BYTES);
    let block = &mut room[at..at + BLOCK_BYTES];
    device.read_exact_at(block, 0)?;
    if polls {
        read_polled(device, block)?;
    }
    Ok(())
}

/// Queues that are polled have tags of their own.
fn read_polled(device: &File, block: &mut [u8]) -> io::Result<()> {
    let mut ring: IoUring = IoUring::builder().setup_iopoll().build(1)?;
    let length = block.len() as u32;
    let read = opcode::Read::new(types::Fd(device.as_raw_fd()), block.as_mut_ptr(), length).build();
    // SAFETY: the block outlives the wait for its read.
    unsafe { ring.submission().push(&read) }.map_err(io::Error::other)?;
    ring.submit_and_wait(1)?;
    Ok(())
}
