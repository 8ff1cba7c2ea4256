//! Random streams: one per component, so that a component that draws more does not shift what another one sees.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A xoshiro256++ stream (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021).
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

/// The stream of one component under one seed.
///
/// The 256-bit state comes from SplitMix64 started at a bijective mix of `component` for each seed: under one seed no
/// two components start alike, and the chance that two streams of 2^64 draws overlap is below 2^-120 for a million
/// components.
pub fn stream(seed: u64, component: u64) -> Stream {
    let mut state = mix64(mix64(seed).wrapping_add(component));
    let mut bytes = [0; 32];
    for word in bytes.chunks_exact_mut(8) {
        state = state.wrapping_add(GOLDEN_GAMMA);
        word.copy_from_slice(&mix64(state).to_le_bytes());
    }
    Stream(Xoshiro256PlusPlus::from_seed(bytes))
}

impl Stream {
    /// The stream's next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..bound`, without bias and without a division on the common path (Lemire, "Fast random integer
    /// generation in an interval", 2019). `bound` must not be 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let unfair = bound.wrapping_neg() % bound;
            while (product as u64) < unfair {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Uniform in the open interval (0, 1).
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }
}

/// The odd integer closest to 2^64 divided by the golden ratio: SplitMix64's step.
pub const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's output function (Steele, Lea and Flood, 2014): a bijection whose every output bit depends on every
/// input bit.
#[inline]
pub fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_and_seeds_have_streams_of_their_own() {
        let mut firsts: Vec<u64> =
            (0..100).flat_map(|seed| (0..100).map(move |component| stream(seed, component).next_u64())).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 10_000);
        assert_eq!(stream(7, 3).next_u64(), stream(7, 3).next_u64());
    }

    #[test]
    fn streams_are_uncorrelated() {
        let (mut a, mut b) = (stream(1, 0), stream(1, 1));
        let equal_bits: u32 = (0..10_000).map(|_| (a.next_u64() ^ b.next_u64()).count_zeros()).sum();
        // 640,000 fair coins: five standard deviations are 2000.
        assert!((318_000..322_000).contains(&equal_bits), "{equal_bits}");
    }

    #[test]
    fn below_is_uniform() {
        let mut stream = stream(1, 0);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert_eq!(stream.below(1), 0);
    }

    #[test]
    fn unit_excludes_its_ends() {
        let mut stream = stream(1, 0);
        assert!((0..10_000).all(|_| (f64::MIN_POSITIVE..1.0).contains(&stream.unit())));
    }
}
