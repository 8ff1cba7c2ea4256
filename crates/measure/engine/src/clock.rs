//! The clock of the hot loops: nanoseconds since the phase's start.
//!
//! The time stamp counter is read if the kernel itself keeps time by it: the kernel leaves it when its rate changes, when
//! it stops in an idle state and when its watchdog finds it out of step across CPUs (arch/x86/kernel/tsc.c), so
//! `clock_gettime` reads the same counter and errs by no less. Anywhere else the monotonic clock serves.

use std::sync::OnceLock;
use std::time::Duration;

use base::time::Time;
use workload::record::ClockKind;

pub trait Clock: Copy + Send + 'static {
    fn now(self) -> Time;
}

/// The common zero of a phase, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    monotonic_ns: u64,
    ticks: u64,
    /// None: the monotonic clock serves. Decided once, so that all threads of a phase read the same clock.
    calibration: Option<Calibration>,
}

impl Origin {
    pub fn now() -> Origin {
        let calibration = calibration().ok();
        let (ticks, monotonic_ns) = paired_reading();
        Origin { monotonic_ns, ticks, calibration }
    }

    /// On CLOCK_MONOTONIC.
    pub fn monotonic_ns(self) -> u64 {
        self.monotonic_ns
    }

    pub fn monotonic(self) -> Monotonic {
        Monotonic { origin_ns: self.monotonic_ns }
    }

    /// None if `tsc_unusable_because` gives a reason.
    pub fn tsc(self) -> Option<Tsc> {
        Some(Tsc { origin_ticks: self.ticks, ns_per_tick_q32: self.calibration?.ns_per_tick_q32 })
    }

    pub fn kind(self) -> ClockKind {
        if self.calibration.is_some() { ClockKind::Tsc } else { ClockKind::Monotonic }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    origin_ns: u64,
}

impl Clock for Monotonic {
    #[inline(always)]
    fn now(self) -> Time {
        monotonic_ns().saturating_sub(self.origin_ns)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Tsc {
    origin_ticks: u64,
    /// Nanoseconds per tick, 32 fractional bits.
    ns_per_tick_q32: u64,
}

impl Clock for Tsc {
    #[inline(always)]
    fn now(self) -> Time {
        let ticks = read_ticks().saturating_sub(self.origin_ticks);
        ((u128::from(ticks) * u128::from(self.ns_per_tick_q32)) >> 32) as u64
    }
}

pub fn tsc_unusable_because() -> Option<&'static str> {
    calibration().err()
}

pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Wall-clock time, in nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call, which fills it; the clocks named here always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn read_ticks() -> u64 {
    // SAFETY: reads a counter that every x86-64 has; no memory is touched.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn read_ticks() -> u64 {
    0
}

#[derive(Clone, Copy, Debug)]
struct Calibration {
    ns_per_tick_q32: u64,
}

/// Measures the counter's rate once for this process and those that it forks later: a fifth of a trial of 100 ms.
pub fn calibrate() {
    let _ = calibration();
}

/// Long against the jitter of one paired reading (tens of nanoseconds): the rate is right to a few parts per million.
const CALIBRATION_TIME: Duration = Duration::from_millis(10);

/// The rate, while the kernel keeps time by the counter: it can leave it at any time.
fn calibration() -> Result<Calibration, &'static str> {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let name = std::fs::read_to_string(source).unwrap_or_default();
    // Under the second name until the kernel has measured its rate for a second (arch/x86/kernel/tsc.c): in guest machines.
    if !matches!(name.trim(), "tsc" | "tsc-early") {
        return Err("the kernel doesn't keep time by the time stamp counter here");
    }
    static MEASURED: OnceLock<Result<Calibration, &'static str>> = OnceLock::new();
    *MEASURED.get_or_init(measured)
}

fn measured() -> Result<Calibration, &'static str> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("this architecture has no time stamp counter");
    }
    let rates = [ticks_rate(), ticks_rate()];
    let apart = (rates[0] / rates[1] - 1.0).abs();
    if apart.is_nan() || apart > 1e-4 {
        return Err("the time stamp counter and the monotonic clock don't run at one rate");
    }
    Ok(Calibration { ns_per_tick_q32: ((rates[0] + rates[1]) / 2.0 * (1u64 << 32) as f64) as u64 })
}

/// Nanoseconds per tick over `CALIBRATION_TIME`.
fn ticks_rate() -> f64 {
    let (ticks_before, ns_before) = paired_reading();
    std::thread::sleep(CALIBRATION_TIME);
    let (ticks_after, ns_after) = paired_reading();
    (ns_after - ns_before) as f64 / ticks_after.wrapping_sub(ticks_before) as f64
}

/// Both clocks at one instant: of a few tries, the one that was interrupted least.
fn paired_reading() -> (u64, u64) {
    (0..8)
        .map(|_| {
            let before = read_ticks();
            let ns = monotonic_ns();
            let after = read_ticks();
            (after.wrapping_sub(before), before.wrapping_add(after.wrapping_sub(before) / 2), ns)
        })
        .min()
        .map(|(_, ticks, ns)| (ticks, ns))
        .expect("eight tries")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_tell_the_same_time() {
        let origin = Origin::now();
        std::thread::sleep(Duration::from_millis(30));
        let monotonic = origin.monotonic().now();
        assert!(monotonic >= 30_000_000);
        if let Some(tsc) = origin.tsc() {
            let monotonic_after = origin.monotonic();
            let (low, ticks, high) = (origin.monotonic().now(), tsc.now(), monotonic_after.now());
            assert!(ticks + 100_000 > low && ticks < high + 100_000, "{low} {ticks} {high}");
        } else {
            assert!(tsc_unusable_because().is_some());
        }
    }

    #[test]
    fn a_reading_before_the_origin_is_zero_and_not_a_wrap() {
        let future = Origin { monotonic_ns: u64::MAX, ticks: u64::MAX, calibration: calibration().ok() };
        assert_eq!(future.monotonic().now(), 0);
        if let Some(tsc) = future.tsc() {
            assert_eq!(tsc.now(), 0);
        }
    }
}
