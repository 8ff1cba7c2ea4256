//! What lost events make doubtful, and for how long.

/// The losses of a trace up to here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    /// No time of an I/O is trusted that was issued before: what was lost may hold the events that were its own.
    doubt_until_ns: u64,
    /// The first loss that nothing was given up for yet.
    pending: Option<PendingLoss>,
    /// The end of the last one after it. It waits for its turn, so that constant losses don't put the first one off for
    /// ever.
    later_ns: Option<u64>,
    /// The longest time that a driver had a request up to here.
    longest_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct PendingLoss {
    /// The loss's end: what began before is given up ...
    before_ns: u64,
    /// ... at this time.
    at_ns: u64,
}

/// How much longer than the longest time seen an unseen request may still be in flight after a loss.
const LONGER: u64 = 2;
/// The least of it: of a trace that has only begun, little has been seen.
const DOUBT_NS_MIN: u64 = 100_000_000;

impl Losses {
    /// Events are missing until then.
    pub(super) fn add(&mut self, until_ns: u64) {
        let over_ns = self.over_ns(until_ns);
        self.doubt_until_ns = self.doubt_until_ns.max(over_ns);
        match self.pending {
            None => {
                self.pending = Some(PendingLoss { before_ns: until_ns, at_ns: over_ns });
            }
            Some(_) => self.later_ns = self.later_ns.max(Some(until_ns)),
        }
    }

    /// A driver had a request for this long.
    #[inline]
    pub(super) fn took(&mut self, time_ns: u64) {
        self.longest_ns = self.longest_ns.max(time_ns);
    }

    /// What began before that is to be given up now.
    #[inline]
    pub(super) fn due(&mut self, now_ns: u64) -> Option<u64> {
        let due = self.pending.filter(|pending| now_ns >= pending.at_ns)?;
        let later =
            self.later_ns.take().map(|before_ns| PendingLoss { before_ns, at_ns: self.over_ns(before_ns.max(now_ns)) });
        self.pending = later;
        Some(due.before_ns)
    }

    /// Nothing from before continues, so nothing is to be given up.
    pub(super) fn restart(&mut self) {
        (self.pending, self.later_ns, self.doubt_until_ns) = (None, None, 0);
    }

    /// Whether what is in flight now is known.
    #[inline]
    pub(super) fn in_doubt(&self, now_ns: u64) -> bool {
        now_ns < self.doubt_until_ns
    }

    fn over_ns(&self, until_ns: u64) -> u64 {
        let longest_ns = self.longest_ns.saturating_mul(LONGER).max(DOUBT_NS_MIN);
        until_ns.saturating_add(longest_ns).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_losses_put_nothing_off_for_ever() {
        let mut losses = Losses::default();
        let mut given_up_before_ns = 0;
        for now_ns in (0..2_000_000_000).step_by(10_000_000) {
            losses.add(now_ns);
            given_up_before_ns = given_up_before_ns.max(losses.due(now_ns).unwrap_or(0));
            assert!(losses.in_doubt(now_ns));
        }
        assert!(given_up_before_ns > 1_500_000_000, "{given_up_before_ns}");
    }

    #[test]
    fn what_a_driver_had_for_long_lengthens_the_doubt() {
        let mut losses = Losses::default();
        losses.took(400_000_000);
        losses.add(1_000);
        assert!(losses.in_doubt(800_001_000) && losses.due(800_001_000).is_none());
        assert_eq!(losses.due(800_001_001), Some(1_000));
        assert_eq!(losses.due(u64::MAX), None);
    }
}
