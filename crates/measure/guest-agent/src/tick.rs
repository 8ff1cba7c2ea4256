//! Where in a tick of the kernel's timer a load begins: at its start. A tick costs some 2,500 instructions (Debian's
//! 6.1), and how many fall into a load would else depend on where in a tick the boot ended.
//!
//! Steps and loads may be aligned to multiples of a longer time: what waits for a time since a step (a journal's commit, a
//! worker's delay) then falls into the same operation of a load under two kernels that differ in what is not run.

use std::sync::atomic::{AtomicI64, Ordering};

const NS_PER_S: i64 = 1_000_000_000;
static ALIGNMENT_NS: AtomicI64 = AtomicI64::new(0);

/// Has steps and loads begin at multiples of so many nanoseconds of the machine's own time.
pub fn set_alignment(ns: i64) {
    ALIGNMENT_NS.store(ns, Ordering::Relaxed);
}

/// Sleeps until the next multiple, if there is one.
pub fn align() {
    let alignment = ALIGNMENT_NS.load(Ordering::Relaxed);
    if alignment == 0 {
        return;
    }
    let now = read(libc::CLOCK_MONOTONIC);
    let next = (now.tv_sec * NS_PER_S + now.tv_nsec) / alignment * alignment + alignment;
    let until = libc::timespec { tv_sec: next / NS_PER_S, tv_nsec: next % NS_PER_S };
    // SAFETY: `until` outlives the call, and nobody asks for what is left.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut());
    }
}

/// Waits for the next tick, at most as long as one takes: 4 ms if the kernel has 250 a second.
pub fn wait() {
    // Takes 20 ms, once, which must not come between the tick and the load.
    engine::calibrate_clock();
    align();
    let before = last();
    while last() == before {}
}

/// The time of the last tick (`Documentation/core-api/timekeeping.rst`, coarse and fast_ns access).
fn last() -> (libc::time_t, libc::c_long) {
    let time = read(libc::CLOCK_MONOTONIC_COARSE);
    (time.tv_sec, time.tv_nsec)
}

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call, which fills it; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time
}
