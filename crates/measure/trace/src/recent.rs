//! Where the values of keys are that were asked for of late, before a map is searched for them.

/// Places by key; a key may displace another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecentPlaces([(u32, u32); SLOTS]);

const SLOTS: usize = 64;
const NOWHERE: u32 = u32::MAX;

impl Default for RecentPlaces {
    fn default() -> RecentPlaces {
        RecentPlaces([(0, NOWHERE); SLOTS])
    }
}

impl RecentPlaces {
    /// Where the value of that key is, if that is remembered.
    #[inline]
    pub(crate) fn place(&self, key: u32) -> Option<usize> {
        let (known, place) = self.0[slot(key)];
        (known == key && place != NOWHERE).then_some(place as usize)
    }

    /// It is there.
    pub(crate) fn remember(&mut self, key: u32, place: usize) {
        self.0[slot(key)] = (key, u32::try_from(place).unwrap_or(NOWHERE));
    }
}

/// Keys that follow one another, and those that are a power of two apart, have slots of their own.
#[inline]
fn slot(key: u32) -> usize {
    (key.wrapping_mul(0x9e37_79b1) >> 26) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_until_another_takes_its_slot() {
        let mut recent = RecentPlaces::default();
        assert_eq!(recent.place(0), None);
        recent.remember(0, 7);
        recent.remember(1, 8);
        assert_eq!((recent.place(0), recent.place(1)), (Some(7), Some(8)));
        let other = (2..).find(|&key| slot(key) == slot(0)).unwrap_or(0);
        recent.remember(other, 9);
        assert_eq!((recent.place(0), recent.place(other)), (None, Some(9)));
    }
}
