//! A random order of `0..len` in constant memory, and back.

use crate::rng::GOLDEN_GAMMA;

/// A keyed bijection of `0..len`: a Feistel network with cycle walking (Black and Rogaway, "Ciphers with arbitrary
/// finite domains", 2002).
///
/// The halves are a number below `rows` and one of `column_bits` bits; `rows << column_bits` exceeds `len` by less than
/// one row, so that for large domains almost no value needs a second walk, and no step divides.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    len: u64,
    rows: u64,
    column_bits: u32,
}

impl Permutation {
    /// Of `0..len`; `len` must not be 0.
    pub fn new(len: u64) -> Permutation {
        let column_bits = (u64::BITS - len.leading_zeros()) / 2;
        let rows = ((len - 1) >> column_bits) + 1;
        Permutation { len, rows, column_bits }
    }

    /// How many indices there are.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Where `index` (below `len`) lands under `key`.
    #[inline]
    pub fn at(&self, key: u64, index: u64) -> u64 {
        let mut value = self.walk(key, index);
        while value >= self.len {
            value = self.walk(key, value);
        }
        value
    }

    /// Which index lands at `place` (below `len`) under `key`.
    pub fn index_at(&self, key: u64, place: u64) -> u64 {
        let mut value = self.walk_back(key, place);
        while value >= self.len {
            value = self.walk_back(key, value);
        }
        value
    }

    #[inline]
    fn walk(&self, key: u64, value: u64) -> u64 {
        let mask = (1 << self.column_bits) - 1;
        let (mut row, mut column) = (value >> self.column_bits, value & mask);
        let mut round_key = key;
        for _ in 0..ROUNDS {
            row += scale(round(round_key, column), self.rows);
            if row >= self.rows {
                row -= self.rows;
            }
            column ^= round(round_key.wrapping_add(GOLDEN_GAMMA), row) & mask;
            round_key = round_key.wrapping_add(GOLDEN_GAMMA.wrapping_mul(2));
        }
        (row << self.column_bits) | column
    }

    fn walk_back(&self, key: u64, value: u64) -> u64 {
        let mask = (1 << self.column_bits) - 1;
        let (mut row, mut column) = (value >> self.column_bits, value & mask);
        for number in (0..u64::from(ROUNDS)).rev() {
            let round_key = key.wrapping_add(GOLDEN_GAMMA.wrapping_mul(2 * number));
            column ^= round(round_key.wrapping_add(GOLDEN_GAMMA), row) & mask;
            let added = scale(round(round_key, column), self.rows);
            row = if row >= added { row - added } else { row + self.rows - added };
        }
        (row << self.column_bits) | column
    }
}

/// Each round changes both halves; two of them are the four half-rounds that make a strong pseudo-random permutation
/// of a pseudo-random function (Luby and Rackoff, 1988), the third is for small domains.
const ROUNDS: u32 = 3;

/// From 64 random bits to `0..bound`, by the high half of the product.
#[inline]
fn scale(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// A keyed hash of half a value in one multiplication: both halves of the 128-bit product, folded.
#[inline]
fn round(key: u64, half: u64) -> u64 {
    let product = u128::from(half ^ key) * u128::from(key | 1);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_index_has_a_place_of_its_own_and_comes_back(len in 1..5000u64, key: u64) {
            let permutation = Permutation::new(len);
            let mut places: Vec<u64> = (0..len).map(|index| permutation.at(key, index)).collect();
            for (index, &place) in (0..).zip(&places) {
                prop_assert_eq!(permutation.index_at(key, place), index);
            }
            places.sort_unstable();
            prop_assert!(places.into_iter().eq(0..len));
        }

        #[test]
        fn large_domains_are_kept(len in 1..=i64::MAX as u64, key: u64, index: u64) {
            let permutation = Permutation::new(len);
            let place = permutation.at(key, index % len);
            prop_assert!(place < len);
            prop_assert_eq!(permutation.index_at(key, place), index % len);
        }
    }

    #[test]
    fn neighbours_are_scattered() {
        let len = 100_003;
        let permutation = Permutation::new(len);
        for key in [0, 1, u64::MAX, 0x5DEE_CE66D] {
            let place = |index| permutation.at(key, index) as f64 / len as f64;
            let distance = (1..len).map(|index| (place(index) - place(index - 1)).abs()).sum::<f64>();
            // Two uniform numbers are a third apart on average; their standard deviation is 0.236.
            assert!((distance / len as f64 - 1.0 / 3.0).abs() < 5.0 * 0.236 / (len as f64).sqrt() * 2.0);
        }
    }

    #[test]
    fn small_domains_come_in_all_orders() {
        let permutation = Permutation::new(4);
        let mut orders: Vec<[u64; 4]> =
            (0..2_000u64).map(|key| [0, 1, 2, 3].map(|index| permutation.at(crate::rng::mix64(key), index))).collect();
        orders.sort_unstable();
        orders.dedup();
        assert!(orders.len() >= 12, "{} of 24 orders", orders.len());
    }
}
