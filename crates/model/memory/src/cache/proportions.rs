//! Floating proportions: who has had which part of what happened lately, without a look at all of them when time
//! passes.

use events::time::{SECOND, Time};
pub use kernels::cache::WriteoutPeriod;

/// Events of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proportions {
    length: Length,
    all: Share,
}

#[derive(Clone, Copy, Debug)]
enum Length {
    /// A power of two.
    Events(u64),
    Ns(Time),
}

/// Events of one: those of every period before this one count half of what they did in the one after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    events: u64,
    period: u64,
}

/// `VM_COMPLETIONS_PERIOD_LEN`.
const PERIOD_NS: Time = 3 * SECOND;

impl Share {
    fn in_period(self, period: u64) -> u64 {
        self.events.checked_shr((period - self.period) as u32).unwrap_or(0)
    }
}

impl Proportions {
    /// `limit`: of dirty pages (`calc_period_shift`).
    pub(super) fn new(lately: WriteoutPeriod, limit: u64) -> Proportions {
        let length = match lately {
            WriteoutPeriod::Pages => Length::Events(2 << limit.saturating_sub(1).max(1).ilog2()),
            WriteoutPeriod::Time => Length::Ns(PERIOD_NS),
        };
        Proportions { length, all: Share::default() }
    }

    /// The share of each of `among` drives if all had had the same for ever. If periods are of time, no history lasts
    /// so long.
    pub(super) fn equal(&self, among: u64) -> Share {
        let events = match self.length {
            Length::Events(period) => period / among.max(1),
            Length::Ns(_) => 0,
        };
        Share { events, period: 0 }
    }

    pub(super) fn count(&mut self, now: Time, share: &mut Share, events: u64) {
        let period = self.period(now);
        *share = Share { events: share.in_period(period) + events, period };
        self.all = match self.length {
            Length::Events(_) => Share { events: self.all.events + events, period: 0 },
            Length::Ns(_) => Share { events: self.all.in_period(period) + events, period },
        };
    }

    /// That part of the amount.
    pub(super) fn part(&self, now: Time, share: Share, amount: u64) -> u64 {
        let period = self.period(now);
        let of_one = share.in_period(period);
        let of_all = match self.length {
            Length::Events(length) => length + self.all.events % length,
            Length::Ns(_) => self.all.in_period(period).max(1),
        };
        (u128::from(amount) * u128::from(of_one.min(of_all)) / u128::from(of_all)) as u64
    }

    fn period(&self, now: Time) -> u64 {
        match self.length {
            Length::Events(length) => self.all.events / length,
            Length::Ns(length) => now / length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_period_is_the_power_of_two_from_the_limit_on() {
        // calc_period_shift() - 1 of 1000 pages: 1 + ilog2(999) = 10.
        let proportions = Proportions::new(WriteoutPeriod::Pages, 1000);
        assert_eq!(proportions.equal(1).events, 1024);
    }

    #[test]
    fn after_a_period_of_another_half_is_forgotten() {
        let mut proportions = Proportions::new(WriteoutPeriod::Pages, 1000);
        let (mut first, mut second) = (proportions.equal(1), Share::default());
        assert_eq!(proportions.part(0, first, 1000), 1000);
        proportions.count(0, &mut second, 1024);
        assert_eq!(proportions.part(0, first, 1000), 500);
        assert_eq!(proportions.part(0, second, 1000), 500);
        proportions.count(0, &mut second, 1024);
        assert_eq!(proportions.part(0, first, 1000), 250);
        proportions.count(0, &mut first, 0);
        assert_eq!(proportions.part(0, first, 1000), 250);
    }

    #[test]
    fn from_3_6_on_half_is_forgotten_every_3_s() {
        let mut proportions = Proportions::new(WriteoutPeriod::Time, 1000);
        let (mut first, mut second) = (Share::default(), Share::default());
        proportions.count(0, &mut first, 800);
        assert_eq!(proportions.part(0, first, 1000), 1000);
        proportions.count(3 * SECOND, &mut second, 400);
        assert_eq!(proportions.part(3 * SECOND, first, 1000), 500);
        assert_eq!(proportions.part(3 * SECOND, second, 1000), 500);
        // Nothing happens for a long time: no drive has a part any more.
        assert_eq!(proportions.part(600 * SECOND, second, 1000), 0);
    }

    proptest! {
        /// Whoever has had what, all parts together are never more than the whole, and where all began equal never much less.
        #[test]
        fn parts_make_a_whole(
            of_time: bool, limit in 1u64..5000,
            events in prop::collection::vec((0usize..4, 1u64..3000, 0..8 * SECOND), 1..100),
        ) {
            let lately = if of_time { WriteoutPeriod::Time } else { WriteoutPeriod::Pages };
            let mut proportions = Proportions::new(lately, limit);
            let mut shares = [proportions.equal(4); 4];
            let mut now = 0;
            for (who, count, after) in events {
                now += after;
                // In the kernel a page at a time.
                for _ in 0..count {
                    proportions.count(now, &mut shares[who], 1);
                }
                let parts = shares.map(|share| proportions.part(now, share, 1_000_000));
                let sum: u64 = parts.iter().sum();
                prop_assert!(sum <= 1_000_000, "{parts:?}");
                let lost = 1_000_000 - sum;
                let most = if of_time { 1_000_000 * 4 * 2 / count.max(1) + 4 } else { 1_000_000 * 4 / limit.max(4) * 2 + 4 };
                prop_assert!(lost <= most, "{parts:?} with {count} events, limit {limit}");
            }
        }
    }
}
