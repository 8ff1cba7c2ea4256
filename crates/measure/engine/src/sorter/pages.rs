//! The memory that is sorted: a private anonymous mapping, which takes a page when it is first touched.

use std::io;
use std::ptr::NonNull;

#[derive(Debug)]
pub struct Pages {
    base: NonNull<u32>,
    numbers: usize,
}

// SAFETY: the mapping belongs to this value alone and is reached only through it.
unsafe impl Send for Pages {}

impl Pages {
    /// No huge pages: what is swapped, and how much at a time, must not depend on how memory happened to be laid out.
    pub fn map(numbers: usize) -> io::Result<Pages> {
        let too_large = || io::Error::from_raw_os_error(libc::ENOMEM);
        let bytes = numbers.checked_mul(size_of::<u32>()).ok_or_else(too_large)?;
        // SAFETY: a new private mapping; no existing memory is touched.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range is the mapping just made; the advice does not change its contents.
        unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
        let base = NonNull::new(base.cast()).ok_or_else(too_large)?;
        Ok(Pages { base, numbers })
    }

    pub fn numbers(&mut self) -> &mut [u32] {
        // SAFETY: the mapping is that long, page-aligned, zeroed by the kernel, and borrowed through `self` alone.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.numbers) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`, which nothing borrows any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.numbers * size_of::<u32>()) };
    }
}
