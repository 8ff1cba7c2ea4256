//! What the device can do at best, by watching what it is given: the measure of budgets.
//!
//! Source: `bfq_update_peak_rate`, `bfq_update_rate_reset` and `bfq_completed_request` in `block/bfq-iosched.c` of 6.1.
//! Rates are sectors per microsecond, with 16 bits of fraction.

use crate::scheduler::bfq::queue::is_seek;
use events::time::{MILLISECOND, SECOND, Time};

const FRACTION_BITS: u32 = 16;
const SAMPLES_MIN: u64 = 32;
/// A shorter interval shows nothing.
const INTERVAL_MIN_NS: Time = 300 * MILLISECOND;
/// A request that follows a completion later than this is not part of a sequence.
const PAUSE_NS: Time = 2 * MILLISECOND;
/// Sectors a microsecond below which the device was waiting and not working: one in 1024.
const IDLE_FRACTION: u64 = 1 << (FRACTION_BITS - 10);
/// Anything faster is a mistake of measuring.
const RATE_MAX: u64 = 20 << FRACTION_BITS;

#[derive(Clone, Debug)]
pub(super) struct PeakRate {
    rotational: bool,
    rate: u64,
    /// An interval has counted.
    is_measured: bool,
    first_dispatch: Time,
    last_dispatch: Time,
    last_completion: Time,
    last_position: u64,
    /// From the first request of the interval to the last one.
    interval_ns: Time,
    largest: u32,
    samples: u64,
    sequential: u64,
    sectors: u64,
}

impl PeakRate {
    pub(super) fn new(rotational: bool) -> PeakRate {
        let typical = if rotational { 14_000 } else { 33_000 };
        PeakRate {
            rotational,
            rate: typical * 2 / 3,
            is_measured: false,
            first_dispatch: 0,
            last_dispatch: 0,
            last_completion: 0,
            last_position: 0,
            interval_ns: 0,
            largest: 0,
            samples: 0,
            sequential: 0,
            sectors: 0,
        }
    }

    /// What the device does in that time.
    pub(super) fn sectors_in(&self, time_ns: Time) -> u64 {
        (self.rate * (time_ns / 1000)) >> FRACTION_BITS
    }

    /// How long weights are raised: 7 s on a common disk and 2.5 s if seeking is free, more on slower devices and less
    /// on faster ones (`bfq_wr_duration`).
    pub(super) fn raise_ns(&self, rotational: bool) -> Time {
        let (typical, typical_ns) = match rotational {
            true => (14_000, 7 * SECOND),
            false => (33_000, 5 * SECOND / 2),
        };
        (typical_ns * typical / self.rate.max(1)).clamp(3 * SECOND, 25 * SECOND)
    }

    /// Whether the device has shown what it does.
    pub(super) fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// A pause so long that it says nothing of the device ends the interval, which counts as far as the last request
    /// (`bfq_completed_request`).
    pub(super) fn completed(&mut self, now: Time) {
        let pause_ns = now.saturating_sub(self.last_completion);
        let at_most = (u64::from(self.largest) << FRACTION_BITS) / (pause_ns / 1000).max(1);
        if pause_ns > PAUSE_NS && at_most < IDLE_FRACTION {
            self.judge();
            self.samples = 0;
        }
        self.last_completion = now;
    }

    /// `bfq_update_peak_rate`. `in_driver`: requests at the device before this one.
    pub(super) fn dispatched(&mut self, now: Time, start: u64, sectors: u32, in_driver: u32) {
        if self.samples == 0 {
            self.begin(now, start, sectors);
            return;
        }
        if now - self.last_dispatch > 100 * MILLISECOND && in_driver == 0 {
            self.judge();
            self.begin(now, start, sectors);
            return;
        }
        self.samples += 1;
        let follows = in_driver > 0 || now < self.last_completion + PAUSE_NS;
        let near = !is_seek(self.last_position, start, sectors, self.rotational);
        self.sequential += u64::from(follows && near);
        self.sectors += u64::from(sectors);
        self.largest = match self.samples % SAMPLES_MIN {
            0 => sectors,
            _ => self.largest.max(sectors),
        };
        self.interval_ns = now - self.first_dispatch;
        self.last_position = start + u64::from(sectors);
        self.last_dispatch = now;
        if self.interval_ns >= SECOND {
            self.judge();
            self.begin(now, start, sectors);
        }
    }

    /// `bfq_reset_rate_computation`.
    fn begin(&mut self, now: Time, start: u64, sectors: u32) {
        self.first_dispatch = now;
        self.last_dispatch = now;
        self.last_position = start + u64::from(sectors);
        self.samples = 1;
        self.sequential = 0;
        self.sectors = u64::from(sectors);
        self.largest = sectors;
    }

    /// Lets the interval count, the more the longer and the more sequential it was (`bfq_update_rate_reset`). Intervals
    /// that were not mostly sequential count only if they were faster.
    fn judge(&mut self) {
        if self.samples < SAMPLES_MIN || self.interval_ns < INTERVAL_MIN_NS {
            return;
        }
        let until_completion = self.last_completion.saturating_sub(self.first_dispatch);
        let took_us = self.interval_ns.max(until_completion) / 1000;
        let rate = (self.sectors << FRACTION_BITS) / took_us;
        let sequential = self.sequential >= self.samples * 3 / 4;
        if (!sequential && rate <= self.rate) || rate > RATE_MAX {
            return;
        }
        let by_order = 9 * self.sequential / self.samples;
        let divisor = 10 - (by_order * took_us / 1_000_000).min(8);
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
        self.is_measured = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequential_seconds(rate: &mut PeakRate, seconds: u64, sectors_per_ms: u32) {
        for ms in 0..seconds * 1000 {
            let now = ms * MILLISECOND;
            rate.dispatched(now, ms * u64::from(sectors_per_ms), sectors_per_ms, 1);
            rate.completed(now + MILLISECOND / 2);
        }
    }

    #[test]
    fn a_budget_before_anything_is_known_is_that_of_a_common_disk() {
        let sectors = PeakRate::new(true).sectors_in(125 * MILLISECOND);
        assert_eq!(sectors, 17_801);
    }

    #[test]
    fn the_rate_of_long_sequential_intervals_is_found() {
        let mut rate = PeakRate::new(true);
        sequential_seconds(&mut rate, 20, 400);
        let sectors = rate.sectors_in(SECOND);
        assert!((380_000..420_000).contains(&sectors), "{sectors}");
    }

    #[test]
    fn large_requests_are_a_sequence_wherever_they_are_if_seeking_is_free() {
        let measured = |rotational, sectors| {
            let mut rate = PeakRate::new(rotational);
            for n in 0..2000u64 {
                let now = n * MILLISECOND;
                rate.dispatched(now, 1 + n * 7_919_000 % 100_000_000, sectors, 1);
                rate.completed(now + MILLISECOND / 2);
            }
            rate.is_measured()
        };
        assert!(measured(false, 128));
        assert!(!measured(true, 128), "a disk seeks");
        assert!(!measured(false, 8), "slower than what is assumed");
    }

    #[test]
    fn an_interval_in_which_the_device_waited_begins_anew() {
        let mut rate = PeakRate::new(false);
        for n in 0..200u64 {
            let now = n * 20 * MILLISECOND;
            rate.dispatched(now, n * 8, 8, 1);
            rate.completed(now + MILLISECOND);
        }
        assert!(!rate.is_measured());
    }

    #[test]
    fn what_was_before_a_pause_counts_if_it_was_long_enough() {
        let measured = |ms: u64| {
            let mut rate = PeakRate::new(true);
            for n in 0..ms {
                rate.dispatched(n * MILLISECOND, n * 400, 400, 1);
                rate.completed(n * MILLISECOND);
            }
            rate.dispatched(ms * MILLISECOND, ms * 400, 8, 1);
            rate.completed((ms + 500) * MILLISECOND);
            rate.is_measured()
        };
        assert!(measured(310));
        assert!(!measured(290));
    }

    #[test]
    fn random_intervals_count_only_where_they_are_faster() {
        let mut rate = PeakRate::new(true);
        let before = rate.sectors_in(SECOND);
        for n in 0..5000u64 {
            rate.dispatched(n * MILLISECOND, n * 7_919_000 % 100_000_000, 8, 1);
        }
        assert_eq!(rate.sectors_in(SECOND), before);
    }
}
