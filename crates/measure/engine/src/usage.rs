//! What a thread and the process used, as the kernel reports it.

use base::time::Time;
use base::usage::{Sample, Usage};

/// To be called on the thread that is meant.
pub fn sample(at: Time) -> Sample {
    Sample { at, thread: of_thread(), process: of_process() }
}

pub fn of_thread() -> Usage {
    // getrusage(2) takes a thread's time as of its last tick or switch, up to 10 ms ago; whoever reads the thread's
    // clock makes the kernel bring it up to date.
    thread_clock_ns();
    let used = of(libc::RUSAGE_THREAD);
    Usage { cpu_wait_ns: std::fs::read_to_string(SCHEDSTAT).ok().and_then(|text| cpu_wait_ns(&text)), ..used }
}

/// Time on CPUs, time runnable and waiting for one, times that it got one (Documentation/scheduler/sched-stats.rst).
const SCHEDSTAT: &str = "/proc/thread-self/schedstat";

/// None without CONFIG_SCHED_INFO: three zeros, and the thread that reads them has run.
fn cpu_wait_ns(schedstat: &str) -> Option<u64> {
    let numbers: Vec<u64> = schedstat.split_whitespace().map_while(|word| word.parse().ok()).collect();
    match numbers[..] {
        [ran_ns, waited_ns, _] if ran_ns > 0 => Some(waited_ns),
        _ => None,
    }
}

fn of_process() -> Usage {
    of(libc::RUSAGE_SELF)
}

pub(crate) fn thread_clock_ns() -> u64 {
    // SAFETY: all-zero is a valid timespec, and the call only fills it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn of(who: libc::c_int) -> Usage {
    // SAFETY: all-zero is a valid rusage, and the call only fills it.
    let raw = unsafe {
        let mut raw: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut raw);
        raw
    };
    Usage {
        cpu_user_ns: timeval_ns(raw.ru_utime),
        cpu_system_ns: timeval_ns(raw.ru_stime),
        context_switches_voluntary: raw.ru_nvcsw as u64,
        context_switches_involuntary: raw.ru_nivcsw as u64,
        faults_minor: raw.ru_minflt as u64,
        faults_major: raw.ru_majflt as u64,
        cpu_wait_ns: None,
    }
}

fn timeval_ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn time_since_the_last_tick_counts() {
        const BURN: Duration = Duration::from_micros(300);
        let mut rounds = 0;
        while rounds < 20 {
            let (before, clock_before) = (of_thread(), thread_clock_ns());
            let started = Instant::now();
            while started.elapsed() < BURN {}
            let used = of_thread().since(before);
            let burnt_ns = thread_clock_ns() - clock_before;
            // Whoever had no CPU meanwhile burnt little but what reading the figures takes.
            if u128::from(burnt_ns) >= BURN.as_nanos() {
                rounds += 1;
                assert!(2 * (used.cpu_user_ns + used.cpu_system_ns) >= burnt_ns);
            }
        }
    }

    #[test]
    fn schedstat_has_three_numbers() {
        assert_eq!(cpu_wait_ns("146700 616738 1\n"), Some(616_738));
        for nothing in ["0 0 0\n", "", "1 2\n", "1 2 x\n"] {
            assert_eq!(cpu_wait_ns(nothing), None);
        }
    }

    #[test]
    fn this_thread_has_used_something() {
        let before = of_thread();
        let mut x = 1u64;
        while of_thread().since(before).cpu_user_ns + of_thread().since(before).cpu_system_ns < 1_000_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(of_process().since(before).cpu_user_ns + of_process().cpu_system_ns > 0);
    }
}
