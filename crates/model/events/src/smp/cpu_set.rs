//! Sets of CPUs, for finding a member near some place.

use std::ops::Range;

/// A set of CPUs by number, a bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet {
    words: Vec<u64>,
}

impl CpuSet {
    /// Empty, with room for this many CPUs.
    pub fn none(cpus: u16) -> CpuSet {
        CpuSet { words: vec![0; usize::from(cpus).div_ceil(64)] }
    }

    /// The first CPUs, this many.
    pub fn all(cpus: u16) -> CpuSet {
        CpuSet::of(cpus, 0..cpus)
    }

    /// The given CPUs, with room for `cpus`.
    pub fn of(cpus: u16, members: impl IntoIterator<Item = u16>) -> CpuSet {
        let mut set = CpuSet::none(cpus);
        for cpu in members {
            set.put(cpu, true);
        }
        set
    }

    /// Puts a CPU in or takes it out.
    #[inline]
    pub fn put(&mut self, cpu: u16, is_in: bool) {
        let (word, bit) = (usize::from(cpu / 64), 1 << (cpu % 64));
        if is_in {
            self.words[word] |= bit;
        } else {
            self.words[word] &= !bit;
        }
    }

    /// Whether the CPU is in the set.
    #[inline]
    pub fn has(&self, cpu: u16) -> bool {
        self.words[usize::from(cpu / 64)] >> (cpu % 64) & 1 == 1
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Whether both sets have a CPU in common.
    pub fn meets(&self, other: &CpuSet) -> bool {
        let mut pairs = self.words.iter().zip(&other.words);
        pairs.any(|(one, two)| one & two != 0)
    }

    /// The first member of both sets in the range.
    pub fn first_common(&self, other: &CpuSet, range: Range<u16>) -> Option<u16> {
        let mut at = range.start;
        while at < range.end {
            let word = usize::from(at / 64);
            let common = (self.words[word] & other.words[word]) >> (at % 64);
            if common != 0 {
                return Some(at + common.trailing_zeros() as u16).filter(|&cpu| cpu < range.end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// The members in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        (0..self.words.len() as u16 * 64).filter(|&cpu| self.has(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_common_member_is_what_a_look_at_each_finds(
            one in prop::collection::btree_set(0u16..300, 0..40),
            two in prop::collection::btree_set(0u16..300, 0..200),
            start in 0u16..300,
            length in 0u16..300,
        ) {
            let range = start..(start + length).min(300);
            let expected = range.clone().find(|cpu| one.contains(cpu) && two.contains(cpu));
            let (one, two) = (CpuSet::of(300, one), CpuSet::of(300, two));
            prop_assert_eq!(one.first_common(&two, range), expected);
        }
    }
}
