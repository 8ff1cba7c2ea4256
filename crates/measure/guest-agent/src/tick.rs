//! Where in a tick of the kernel's timer a load begins: at its start. A tick costs some 2,500 instructions (Debian's
//! 6.1), and how many fall into a load would else depend on where in a tick the boot ended.

/// Waits for the next tick, at most as long as one takes: 4 ms if the kernel has 250 a second.
pub fn wait() {
    // Takes 20 ms, once, which must not come between the tick and the load.
    engine::calibrate_clock();
    let before = last();
    while last() == before {}
}

/// The time of the last tick (`Documentation/core-api/timekeeping.rst`, coarse and fast_ns access).
fn last() -> (libc::time_t, libc::c_long) {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call, which fills it; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    (time.tv_sec, time.tv_nsec)
}
