//! The arguments of a ring's waits in memory that is registered with the ring: the kernel reads them where they lie,
//! instead of copying them in each call (IORING_REGISTER_MEM_REGION and IORING_ENTER_EXT_ARG_REG, Linux 6.13).

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;

use base::units::counted;
use io_uring::IoUring;
use io_uring::types::io_uring_region_desc;

/// A page that a ring has registered, with the arguments of its next wait at its start.
#[derive(Debug)]
pub struct RegisteredWait {
    page: NonNull<Arguments>,
    page_bytes: usize,
    /// How many waits read them.
    waits: u64,
}

/// `struct io_uring_reg_wait` (include/uapi/linux/io_uring.h, Linux 6.13).
#[repr(C)]
pub struct Arguments {
    seconds: i64,
    nanoseconds: i64,
    least_wait_us: u32,
    flags: u32,
    signals: u64,
    signals_bytes: u32,
    unused: [u32; 7],
}

/// The arguments have a time: `IORING_REG_WAIT_TS`.
const HAS_TIME: u32 = 1;

/// `struct io_uring_mem_region_reg`.
#[repr(C)]
struct Registration {
    region: *const io_uring_region_desc,
    flags: u64,
    unused: [u64; 2],
}

impl RegisteredWait {
    /// A ring takes it before it is enabled alone: one that was set up with IORING_SETUP_R_DISABLED.
    pub fn new(ring: RawFd) -> io::Result<RegisteredWait> {
        const REGISTER_MEM_REGION: libc::c_uint = 34;
        const TYPE_USER: u32 = 1;
        const REG_WAIT_ARG: u64 = 1;
        let wait = RegisteredWait::mapped()?;
        let region = io_uring_region_desc {
            user_addr: wait.page.as_ptr() as u64,
            size: wait.page_bytes as u64,
            flags: TYPE_USER,
            ..Default::default()
        };
        let registration = Registration { region: &raw const region, flags: REG_WAIT_ARG, unused: [0; 2] };
        // SAFETY: the call reads both structures, which outlive it; the kernel holds the page itself until the ring is gone.
        let status = unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                ring,
                REGISTER_MEM_REGION,
                &raw const registration,
                1 as libc::c_uint,
            )
        };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(wait) }
    }

    fn mapped() -> io::Result<RegisteredWait> {
        // SAFETY: reads a number.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        // SAFETY: a new private mapping; no existing memory is touched.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match NonNull::new(page.cast::<Arguments>()) {
            Some(found) if page != libc::MAP_FAILED => Ok(RegisteredWait { page: found, page_bytes, waits: 0 }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sets how long the next wait lasts at most.
    #[inline(always)]
    pub fn set_time(&mut self, time_ns: u64) {
        self.waits += 1;
        // SAFETY: the page is mapped as long as this lives, and larger than the arguments; the kernel reads it in a wait of
        // this thread alone.
        unsafe {
            let arguments = self.page.as_ptr();
            (&raw mut (*arguments).seconds).write_volatile((time_ns / 1_000_000_000) as i64);
            (&raw mut (*arguments).nanoseconds).write_volatile((time_ns % 1_000_000_000) as i64);
            (&raw mut (*arguments).flags).write_volatile(HAS_TIME);
        }
    }

    /// For the record: how often the kernel read the arguments here. A wait without a time has none.
    pub fn note(&self) -> String {
        match self.waits {
            0 => "no wait had a time limit, so registered_waits changed nothing".into(),
            waits => format!(
                "the kernel read the time limit of {} from registered memory (registered_waits)",
                counted(waits, "wait")
            ),
        }
    }
}

impl Drop for RegisteredWait {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `mapped` mapped; a ring that is still there holds the page itself.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.page_bytes) };
    }
}

/// Whether this kernel's rings register the arguments of waits.
pub fn probe() -> io::Result<()> {
    let ring: IoUring = IoUring::builder().setup_r_disabled().build(2)?;
    RegisteredWait::new(ring.as_raw_fd()).map(drop)
}

#[cfg(test)]
mod tests {
    use io_uring::EnterFlags;

    use super::*;

    /// What a wait for a completion that never comes returns, and the errors that the registered flags ask for.
    fn wait_error(flags: u32) -> Option<i32> {
        let ring: IoUring = IoUring::builder().setup_r_disabled().build(2).unwrap();
        let mut wait = RegisteredWait::new(ring.as_raw_fd()).unwrap();
        ring.submitter().register_enable_rings().unwrap();
        wait.set_time(1_000_000);
        // SAFETY: the page is mapped and nobody else uses it.
        unsafe { (&raw mut (*wait.page.as_ptr()).flags).write_volatile(flags) };
        let enter = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG | EnterFlags::EXT_ARG_REG;
        // SAFETY: the argument is an offset in the registered memory, and it is 0.
        let entered = unsafe { ring.submitter().enter::<Arguments>(0, 1, enter.bits(), None) };
        entered.unwrap_err().raw_os_error()
    }

    #[test]
    fn the_kernel_reads_the_arguments_where_they_lie() {
        assert_eq!(size_of::<Arguments>(), 64);
        if let Err(error) = probe() {
            return eprintln!("SKIPPED registered waits: {error}");
        }
        assert_eq!(wait_error(HAS_TIME), Some(libc::ETIME));
        assert_eq!(wait_error(1 << 31), Some(libc::EINVAL));
    }
}
