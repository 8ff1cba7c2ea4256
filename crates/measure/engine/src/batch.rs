//! How many completions to wait for: as many as arrive within a short time at the present rate.
//!
//! Waiting for one at a time costs a system call per operation; waiting for many lets finished operations lie about and
//! the device run dry. With a wait of at most `BUDGET_NS` at the recent rate, the call costs little of the time between
//! calls, and a slow device, for which a wait gains nothing, is waited for one by one.

use base::time::Time;

/// A call costs a few microseconds with its wake-up: a few percent of this.
const BUDGET_NS: u64 = 100_000;

#[derive(Debug)]
pub struct Batcher {
    asked: Option<u32>,
    /// Recent time per completion: an exponential mean in 1/16 ns.
    gap_q4: u64,
    last: Time,
}

impl Batcher {
    /// `asked` fixes the number.
    pub fn new(asked: Option<u32>) -> Batcher {
        Batcher { asked, gap_q4: BUDGET_NS << 4, last: 0 }
    }

    /// How many to wait for. At most a quarter of what is in flight, so that the device keeps at least three quarters.
    #[inline]
    pub fn want(&self, in_flight: u32) -> u32 {
        match self.asked {
            Some(asked) => asked.min(in_flight),
            None => {
                let arriving = ((BUDGET_NS << 4) / self.gap_q4.max(1)).min(u64::from(in_flight / 4));
                (arriving as u32).max(1)
            }
        }
    }

    /// How many to take at once at most: what was asked, however many are ready (`iodepth_batch_complete_max` of fio).
    #[inline]
    pub fn most(&self) -> u32 {
        self.asked.unwrap_or(u32::MAX)
    }

    #[inline]
    pub fn reaped(&mut self, now: Time, completions: u32) {
        if completions > 0 {
            let gap_q4 = (now.saturating_sub(self.last) << 4) / u64::from(completions);
            self.gap_q4 = (self.gap_q4 * 7 + gap_q4) / 8;
            self.last = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(gap_ns: u64, in_flight: u32) -> u32 {
        let mut batcher = Batcher::new(None);
        let mut now = 0;
        for _ in 0..100 {
            let want = batcher.want(in_flight);
            now += gap_ns * u64::from(want);
            batcher.reaped(now, want);
        }
        batcher.want(in_flight)
    }

    #[test]
    fn a_fast_device_is_reaped_in_quarters_of_the_depth_and_a_slow_one_singly() {
        assert_eq!(settled(1_000, 32), 8);
        assert_eq!(settled(1_000, 128), 32);
        assert_eq!(settled(1_000, 1), 1);
        assert_eq!(settled(200_000, 128), 1);
        assert_eq!(settled(10_000_000, 1024), 1);
    }

    #[test]
    fn a_wait_at_the_present_rate_stays_in_the_budget() {
        for gap_ns in [50, 333, 4_000, 40_000, 99_000] {
            assert!(u64::from(settled(gap_ns, 4096)) * gap_ns <= BUDGET_NS + gap_ns);
        }
    }

    #[test]
    fn a_fixed_batch_is_what_was_asked_or_all_there_is() {
        let batcher = Batcher::new(Some(16));
        assert_eq!((batcher.want(32), batcher.want(5)), (16, 5));
        assert_eq!(batcher.most(), 16);
    }
}
