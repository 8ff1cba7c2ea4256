//! What goes in comes out once, and Little's law: kept by every station of the model, always.

use crate::time::Time;

/// Counts what enters and leaves, and how much is inside over time.
#[derive(Clone, Debug, Default)]
pub struct Station {
    entered: u64,
    left: u64,
    changed_at: Time,
    /// Integral of the number inside over time, in item-nanoseconds.
    inside_ns: u128,
    /// Sum of the times between entering and leaving, of those that have left.
    stayed_ns: u128,
}

/// A violated invariant, as found at the end of a run: a defect of the model, never of its input.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{station}: {what}")]
pub struct Violation {
    /// Where it was found: a queue, a device, a mount.
    pub station: String,
    /// What does not add up, with the figures.
    pub what: String,
}

impl Violation {
    /// An invariant: violated unless it `holds`.
    pub fn unless(holds: bool, station: &str, what: impl FnOnce() -> String) -> Result<(), Violation> {
        match holds {
            true => Ok(()),
            false => Err(Violation { station: station.to_owned(), what: what() }),
        }
    }
}

impl Station {
    /// One enters. `now` never goes back, here and in all calls.
    #[inline]
    pub fn enter(&mut self, now: Time) {
        self.advance(now);
        self.entered += 1;
    }

    /// One leaves that entered at `since`.
    #[inline]
    pub fn leave(&mut self, now: Time, since: Time) {
        self.advance(now);
        self.left += 1;
        self.stayed_ns += u128::from(now - since);
    }

    /// How many have entered and not left.
    pub fn inside(&self) -> u64 {
        self.entered - self.left
    }

    /// How many have entered since time 0.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Little's law, exact for a finite run: the integral of the number inside is the sum of the stays, those of the
    /// items still inside counted up to `now`. `still_since`: when each of these entered.
    pub fn check(&self, name: &str, now: Time, still_since: impl Iterator<Item = Time>) -> Result<(), Violation> {
        let violated = |what| Violation { station: name.to_owned(), what };
        let (mut count, mut stays) = (0, self.stayed_ns);
        for since in still_since {
            count += 1;
            stays += u128::from(now - since);
        }
        if count != self.inside() {
            return Err(violated(format!("{} entered and {} left, but {count} are inside", self.entered, self.left)));
        }
        let integral = self.inside_ns + u128::from(self.inside()) * u128::from(now - self.changed_at);
        if integral != stays {
            return Err(violated(format!(
                "Little's law: the number inside adds up to {integral} ns, the stays to {stays} ns"
            )));
        }
        Ok(())
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        self.inside_ns += u128::from(self.inside()) * u128::from(now - self.changed_at);
        self.changed_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn littles_law_holds_with_items_still_inside() {
        let mut station = Station::default();
        station.enter(10);
        station.enter(20);
        station.leave(50, 10);
        assert_eq!(station.check("queue", 100, [20].into_iter()), Ok(()));
    }

    #[test]
    fn a_lost_item_and_a_wrong_time_are_found() {
        let mut station = Station::default();
        station.enter(10);
        assert!(station.check("queue", 100, std::iter::empty()).is_err());
        assert!(station.check("queue", 100, [11].into_iter()).is_err());
    }
}
