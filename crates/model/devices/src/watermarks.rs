//! How much a write cache holds, and between which marks it is emptied.

use events::SpecError;
use events::spec_error::within;

/// In whatever unit the cache counts in.
#[derive(Clone, Debug)]
pub(super) struct Watermarks {
    size: u64,
    high: u64,
    low: u64,
    draining: bool,
}

impl Watermarks {
    pub(super) fn new(size: u64, high_percent: u32, low_percent: u32) -> Watermarks {
        let mark = |percent: u32| (u128::from(size) * u128::from(percent) / 100) as u64;
        Watermarks { size, high: mark(high_percent), low: mark(low_percent), draining: false }
    }

    /// For `more` beside what is held.
    pub(super) fn fits(&self, held: u64, more: u64) -> bool {
        fits(self.size, held, more)
    }

    /// Whether to empty the cache: above the high mark, from there down to the low one, and when a task waits.
    pub(super) fn drains(&mut self, held: u64, somebody_waits: bool) -> bool {
        if held > self.high || somebody_waits {
            self.draining = true;
        } else if held <= self.low {
            self.draining = false;
        }
        self.draining
    }
}

/// What is larger than a cache gets in when that is empty.
#[inline]
pub(super) fn fits(size: u64, held: u64, more: u64) -> bool {
    held == 0 || held + more <= size
}

pub(super) fn check_marks(high_percent: u32, low_percent: u32) -> Result<(), SpecError> {
    within("high_percent", u64::from(high_percent), 1, 100)?;
    within("low_percent", u64::from(low_percent), 0, u64::from(high_percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_drains_from_the_high_mark_to_the_low_one_and_for_whoever_waits() {
        let mut watermarks = Watermarks::new(100, 80, 40);
        assert!(!watermarks.drains(80, false));
        assert!(watermarks.drains(81, false));
        assert!(watermarks.drains(41, false));
        assert!(!watermarks.drains(40, false));
        assert!(watermarks.drains(10, true));
    }

    #[test]
    fn what_is_larger_than_the_cache_gets_in_when_that_is_empty() {
        let watermarks = Watermarks::new(100, 80, 40);
        assert!(watermarks.fits(60, 40) && !watermarks.fits(60, 41) && watermarks.fits(0, 1000));
    }
}
