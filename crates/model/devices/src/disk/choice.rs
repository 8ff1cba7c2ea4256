//! What the mechanism does next: the nearest, less what waiting is worth.

use crate::disk::mechanics::{Arm, Mechanics, PhysicalSector, ReferenceTime};
use events::time::Time;

/// What a command's waiting is worth against the way to it: over the age limit, the longest way that there is. Nothing
/// waits for more than that limit behind commands that came after it and are nearer (aged shortest positioning, as
/// Jacobson and Wilkes, "Disk scheduling algorithms based on rotational position", 1991; the weight is inferred).
#[derive(Clone, Copy, Debug)]
pub(super) struct Aging {
    /// In 2^-20 of the time waited.
    weight: u64,
}

impl Aging {
    pub(super) fn new(way_ns_max: Time, age_limit_ns: Time) -> Aging {
        Aging { weight: (way_ns_max << 20) / age_limit_ns.max(1) }
    }

    /// What having waited so long takes off the way.
    #[inline]
    pub(super) fn worth_ns(self, waited_ns: Time) -> i64 {
        ((waited_ns >> 10).saturating_mul(self.weight) >> 10) as i64
    }
}

/// Offered one candidate after the other, keeps the one of the least cost, the first of several. The way to a candidate
/// is worked out only if it could be shorter than that: with a deep queue that is most of a disk's wall time.
pub(super) struct Choice<'a, T> {
    mechanics: &'a Mechanics,
    now: Time,
    since: ReferenceTime,
    arm: Arm,
    aging: Aging,
    best: Option<T>,
    cost: i64,
}

impl<'a, T> Choice<'a, T> {
    pub(super) fn new(mechanics: &'a Mechanics, now: Time, arm: Arm, aging: Aging) -> Self {
        Choice { mechanics, now, since: mechanics.since(now), arm, aging, best: None, cost: i64::MAX }
    }

    /// Whether something that waits since then, or less long, could still be the best.
    #[inline]
    pub(super) fn is_open_to(&self, since: Time) -> bool {
        -self.worth_ns(since) < self.cost
    }

    /// A place to go to, no earlier than `ready_at`.
    #[inline]
    pub(super) fn offer(&mut self, what: T, since: Time, ready_at: Time, to: &PhysicalSector, write: bool) {
        let worth_ns = self.worth_ns(since);
        let way_ns_min = self.mechanics.positioning_ns_min(&self.since, self.arm, to);
        if way_ns_min - worth_ns >= self.cost {
            return;
        }
        let ready_at = ready_at.max(self.now);
        let way_ns = ready_at - self.now + self.mechanics.positioning_ns(ready_at, self.arm, to, write);
        self.keep(what, way_ns as i64 - worth_ns);
    }

    /// Something that takes this long to get to, whatever the arm does.
    #[inline]
    pub(super) fn offer_way(&mut self, what: T, since: Time, way_ns: Time) {
        let worth_ns = self.worth_ns(since);
        self.keep(what, way_ns as i64 - worth_ns);
    }

    /// The best, and its cost in nanoseconds: way less worth of waiting.
    pub(super) fn made(self) -> Option<(T, i64)> {
        self.best.map(|best| (best, self.cost))
    }

    #[inline]
    fn worth_ns(&self, since: Time) -> i64 {
        self.aging.worth_ns(self.now.saturating_sub(since))
    }

    #[inline]
    fn keep(&mut self, what: T, cost: i64) {
        if cost < self.cost {
            (self.best, self.cost) = (Some(what), cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::test_disk;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_first_of_the_least_cost(
            candidates in prop::collection::vec((0u64..6_000, 0u64..2_000_000_000, 0u64..300_000, any::<bool>()), 1..60),
            (cylinder, surface) in (0u32..300, 0u32..2),
        ) {
            let mechanics = Mechanics::new(&test_disk());
            let (now, arm) = (2_000_000_000, Arm { cylinder, surface });
            let aging = Aging::new(mechanics.positioning_ns_max(), 500_000_000);
            let mut choice = Choice::new(&mechanics, now, arm, aging);
            let mut costs = Vec::new();
            for (number, &(sector, since, ready_ns, write)) in candidates.iter().enumerate() {
                let place = mechanics.place(sector * 8);
                let ready_at = now + ready_ns;
                choice.offer(number, since, ready_at, &place, write);
                let way_ns = ready_ns + mechanics.positioning_ns(ready_at, arm, &place, write);
                costs.push(way_ns as i64 - aging.worth_ns(now - since));
            }
            let least = costs.iter().copied().enumerate().min_by_key(|&(_, cost)| cost);
            prop_assert_eq!(choice.made(), least);
        }
    }
}
