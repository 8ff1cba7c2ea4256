//! A ring's setup that the crate of rings does not offer.

use std::io;

use io_uring::IoUring;

/// A ring that sleeps before it polls: IORING_SETUP_HYBRID_IOPOLL (include/uapi/linux/io_uring.h, Linux 6.13), which
/// the crate does not offer.
pub fn hybrid_polled(entries: u32) -> io::Result<IoUring> {
    const IOPOLL: u32 = 1;
    const COOP_TASKRUN: u32 = 1 << 8;
    const SINGLE_ISSUER: u32 = 1 << 12;
    const DEFER_TASKRUN: u32 = 1 << 13;
    const NO_SQARRAY: u32 = 1 << 16;
    const HYBRID_IOPOLL: u32 = 1 << 17;
    const FLAGS_AT: usize = 2;
    let mut asked = [0u32; 30];
    asked[FLAGS_AT] = IOPOLL | HYBRID_IOPOLL | COOP_TASKRUN | SINGLE_ISSUER | DEFER_TASKRUN | NO_SQARRAY;
    // SAFETY: a `struct io_uring_params` is 120 bytes of integers, which the call reads and writes.
    let made = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, asked.as_mut_ptr()) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `Parameters` is transparent over that structure, and the descriptor is the new ring's, owned by nobody else.
    unsafe {
        let parameters = std::mem::transmute::<[u32; 30], io_uring::Parameters>(asked);
        IoUring::from_fd(made as i32, parameters)
    }
}
