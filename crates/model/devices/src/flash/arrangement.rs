//! How blocks are arranged before the start.

use base::rng::Stream;

/// The state that a device starts in is the same in every run.
pub(super) const SEED: u64 = 0x57EA_D751;

pub(super) fn shuffle(draws: &mut Stream, blocks: &mut [u32]) {
    for last in (1..blocks.len()).rev() {
        blocks.swap(last, draws.below(last as u64 + 1) as usize);
    }
}

/// Of what is before each, and of all at the end.
pub(super) fn sums(of: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut sum = 0;
    std::iter::once(0)
        .chain(of.map(|units| {
            sum += units;
            sum
        }))
        .collect()
}
