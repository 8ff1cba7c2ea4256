//! Where a thread runs, and how soon it wakes.

use std::io;

/// Restricts the calling thread to `cpus`.
pub fn pin(cpus: &[u32]) -> io::Result<()> {
    if let Some(&cpu) = cpus.iter().find(|&&cpu| cpu >= libc::CPU_SETSIZE as u32) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no CPU {cpu}")));
    }
    // SAFETY: all-zero is an empty cpu_set_t, each CPU is below CPU_SETSIZE, and the set outlives the call.
    let status = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu as usize, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the calling thread's timers fire when they are due and not up to 50 us later, the kernel's default slack.
pub fn wake_on_time() {
    // SAFETY: sets one attribute of the calling thread; takes no pointer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Puts the calling thread before all others that have no real-time priority; threads that it makes are not.
pub fn realtime() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters outlive the call, which reads them.
    let status = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
