//! Marks where a phase's operations begin and end, for who watches the processor: an instruction that does nothing.
//!
//! A guest machine's counter (python/iolab/machines/guest/counter) looks for it. On any other machine it costs one
//! no-operation per phase.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static WAIT: OnceLock<fn()> = OnceLock::new();
static IS_ANOTHERS: AtomicBool = AtomicBool::new(false);

/// Has each phase of this process wait when its threads are ready, before the first operation. Once for all: later
/// calls change nothing.
pub fn wait_before_each(wait: fn()) {
    let _ = WAIT.set(wait);
}

/// Another process marks the begin and the end of what this one does from now on.
pub fn leave_to_another() {
    IS_ANOTHERS.store(true, Ordering::Relaxed);
}

pub(crate) fn wait() {
    if let Some(wait) = WAIT.get() {
        wait();
    }
}

/// Where a phase's threads pass: the first to enter marks the begin, the last to leave the end.
#[derive(Debug)]
pub struct Window {
    outside: AtomicUsize,
    in_flight: AtomicUsize,
    threads: usize,
}

impl Window {
    /// For a phase of this many threads, none of which has begun.
    pub fn new(threads: usize) -> Window {
        Window { outside: AtomicUsize::new(threads), in_flight: AtomicUsize::new(threads), threads }
    }

    /// A thread begins with its operations.
    pub fn enter(&self) {
        let is_first = self.outside.fetch_sub(1, Ordering::Relaxed) == self.threads;
        if is_first && !IS_ANOTHERS.load(Ordering::Relaxed) {
            begin();
        }
    }

    /// A thread has done its last operation.
    pub fn leave(&self) {
        let is_last = self.in_flight.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && !IS_ANOTHERS.load(Ordering::Relaxed) {
            end();
        }
    }
}

/// `nopw 0x494f4c01(%rax,%rax)`: nothing else has this displacement.
#[inline(never)]
fn begin() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a no-operation, which reads and writes nothing; its address operand is not accessed.
    unsafe {
        std::arch::asm!(".byte 0x66,0x0f,0x1f,0x84,0x00,0x01,0x4c,0x4f,0x49");
    }
}

/// `nopw 0x494f4c02(%rax,%rax)`.
#[inline(never)]
fn end() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `begin`.
    unsafe {
        std::arch::asm!(".byte 0x66,0x0f,0x1f,0x84,0x00,0x02,0x4c,0x4f,0x49");
    }
}
