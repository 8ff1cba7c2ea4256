//! A random order of `0..len` in constant memory, and back.

use base::rng::{GOLDEN_GAMMA, mix64};

/// A keyed bijection: a Feistel network over a power of 4, walked until it is below `len` (Black and Rogaway, "Ciphers
/// with arbitrary finite domains", 2002).
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    key: u64,
    len: u32,
    half_bits: u32,
}

const ROUNDS: u64 = 4;

impl Permutation {
    pub(super) fn new(key: u64, len: u32) -> Permutation {
        let bits = u32::BITS - len.saturating_sub(1).leading_zeros();
        Permutation {
            key,
            len,
            half_bits: bits.div_ceil(2).max(1),
        }
    }

    /// Where `number`, below `len`, lands.
    pub(super) fn at(&self, number: u32) -> u32 {
        self.walk(number, |value| {
            (0..ROUNDS).fold(value, |(left, right), round| {
                (right, left ^ self.hash(round, right))
            })
        })
    }

    /// What lands at `place`.
    pub(super) fn number_at(&self, place: u32) -> u32 {
        self.walk(place, |value| {
            (0..ROUNDS).rev().fold(value, |(left, right), round| {
                (right ^ self.hash(round, left), left)
            })
        })
    }

    fn walk(&self, number: u32, step: impl Fn((u32, u32)) -> (u32, u32)) -> u32 {
        let mut value = u64::from(number);
        loop {
            let halves = (value >> self.half_bits, value & self.mask());
            let (left, right) = step((halves.0 as u32, halves.1 as u32));
            value = u64::from(left) << self.half_bits | u64::from(right);
            if value < u64::from(self.len) {
                return value as u32;
            }
        }
    }

    fn mask(&self) -> u64 {
        (1 << self.half_bits) - 1
    }

    fn hash(&self, round: u64, half: u32) -> u32 {
        let key = self.key.wrapping_add(round.wrapping_mul(GOLDEN_GAMMA));
        (mix64(key ^ u64::from(half)) & self.mask()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_has_a_place_of_its_own_and_comes_back(len in 1u32..3000, key: u64) {
            let permutation = Permutation::new(key, len);
            let mut places: Vec<u32> = (0..len).map(|number| permutation.at(number)).collect();
            for (number, &place) in (0..).zip(&places) {
                prop_assert_eq!(permutation.number_at(place), number);
            }
            places.sort_unstable();
            prop_assert!(places.into_iter().eq(0..len));
        }

        #[test]
        fn large_domains_are_kept(len in 1..u32::MAX, key: u64, number: u32) {
            let permutation = Permutation::new(key, len);
            let place = permutation.at(number % len);
            prop_assert!(place < len);
            prop_assert_eq!(permutation.number_at(place), number % len);
        }
    }
}
