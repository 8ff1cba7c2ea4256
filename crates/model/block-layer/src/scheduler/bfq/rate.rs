//! What the device can do at best, by watching what it is given: the measure of budgets.
//!
//! Source: `bfq_update_peak_rate` in `block/bfq-iosched.c` of 5.10. Rates are sectors per microsecond, with 16 bits of
//! fraction.

use events::time::{MILLISECOND, SECOND, Time};

const FRACTION_BITS: u32 = 16;
const SAMPLES_MIN: u64 = 32;
/// Anything faster is a mistake of measuring.
const RATE_MAX: u64 = 20 << FRACTION_BITS;
const NEAR_SECTORS: u64 = 8 * 100;

#[derive(Clone, Debug)]
pub(super) struct PeakRate {
    rate: u64,
    first_dispatch: Time,
    last_dispatch: Time,
    last_completion: Time,
    last_position: u64,
    samples: u64,
    sequential: u64,
    sectors: u64,
}

impl PeakRate {
    pub(super) fn new(rotational: bool) -> PeakRate {
        let typical = if rotational { 14_000 } else { 33_000 };
        PeakRate {
            rate: typical * 2 / 3,
            first_dispatch: 0,
            last_dispatch: 0,
            last_completion: 0,
            last_position: 0,
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

    pub(super) fn completed(&mut self, now: Time) {
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
        self.sequential += u64::from(self.last_position.abs_diff(start) <= NEAR_SECTORS);
        self.sectors += u64::from(sectors);
        let long_enough = now - self.first_dispatch >= SECOND;
        self.last_position = start + u64::from(sectors);
        self.last_dispatch = now;
        if self.samples >= SAMPLES_MIN && long_enough {
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
    }

    /// Lets the interval count, the more the longer and the more sequential it was (`bfq_update_rate_reset`). Intervals
    /// that were not mostly sequential count only if they were faster.
    fn judge(&mut self) {
        let took_us = self.last_dispatch.max(self.last_completion) - self.first_dispatch;
        let took_us = took_us / 1000;
        if self.samples < SAMPLES_MIN || took_us == 0 {
            return;
        }
        let rate = (self.sectors << FRACTION_BITS) / took_us;
        let sequential = self.sequential >= self.samples * 3 / 4;
        if (!sequential && rate <= self.rate) || rate > RATE_MAX {
            return;
        }
        let by_order = 9 * self.sequential / self.samples;
        let weight = by_order * (8 * took_us / 1_000_000).min(8) / 8;
        let divisor = 10 - weight;
        self.rate = self.rate * (divisor - 1) / divisor + rate / divisor;
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
    fn random_intervals_count_only_where_they_are_faster() {
        let mut rate = PeakRate::new(true);
        let before = rate.sectors_in(SECOND);
        for n in 0..5000u64 {
            rate.dispatched(n * MILLISECOND, n * 7_919_000 % 100_000_000, 8, 1);
        }
        assert_eq!(rate.sectors_in(SECOND), before);
    }
}
