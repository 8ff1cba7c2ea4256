//! How likely each block is, by rank: the most likely ones first, or in the middle.

use crate::spec::Pattern;
use crate::zipf::Zipf;
use base::rng::Stream;

/// How many uniform ranks make a normal one (gauss.c of fio 3).
const SUMMANDS: u64 = 12;

#[derive(Clone, Debug)]
pub(crate) enum Ranks {
    Zipf(Zipf),
    Pareto { ranks: u64, power: f64 },
    Normal { ranks: u64, width: u64 },
}

impl Ranks {
    /// `ranks` must not be 0. Patterns without a likelihood by rank are uniform.
    pub fn new(pattern: &Pattern, ranks: u64) -> Ranks {
        match *pattern {
            Pattern::Pareto { h } => Ranks::Pareto { ranks, power: libm::log(h) / libm::log(1.0 - h) },
            Pattern::Normal { deviation_percent } => Ranks::Normal {
                ranks,
                width: ((ranks as f64 * deviation_percent / 100.0).ceil() as u64).min(ranks / 2),
            },
            Pattern::Zipf { theta } => Ranks::Zipf(Zipf::new(ranks, theta)),
            _ => Ranks::Zipf(Zipf::new(ranks, 0.0)),
        }
    }

    /// A rank from 0.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Ranks::Zipf(zipf) => zipf.draw(stream),
            Ranks::Pareto { ranks, power } => {
                // The inverse of the distribution function: a share x of the ranks has the share x^(1/power).
                let share = libm::pow(stream.unit(), *power);
                ((*ranks as f64 * share) as u64).min(ranks - 1)
            }
            Ranks::Normal { ranks, width } => {
                let sum: u64 = (0..SUMMANDS).map(|_| stream.below(*ranks)).sum();
                let deviation = if *width == 0 { 0 } else { stream.below(*width) };
                (sum / SUMMANDS + deviation).saturating_sub(width / 2).min(ranks - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::stream;

    const RANKS: u64 = 10_000;
    const DRAWS: usize = 100_000;

    fn drawn(pattern: &Pattern) -> Vec<u64> {
        let ranks = Ranks::new(pattern, RANKS);
        let mut stream = stream(7, 1);
        (0..DRAWS).map(|_| ranks.draw(&mut stream)).collect()
    }

    fn share_below(drawn: &[u64], rank: u64) -> f64 {
        drawn.iter().filter(|&&one| one < rank).count() as f64 / drawn.len() as f64
    }

    #[test]
    fn a_fifth_of_the_blocks_gets_four_fifths_and_so_on_within_it() {
        let drawn = drawn(&Pattern::Pareto { h: 0.2 });
        assert!((share_below(&drawn, RANKS / 5) - 0.8).abs() < 0.01);
        assert!((share_below(&drawn, RANKS / 25) - 0.64).abs() < 0.01);
    }

    #[test]
    fn half_of_the_blocks_with_half_of_the_operations_is_uniform() {
        let drawn = drawn(&Pattern::Pareto { h: 0.5 });
        assert!((share_below(&drawn, RANKS / 10) - 0.1).abs() < 0.01);
    }

    #[test]
    fn normal_ranks_spread_as_twelve_uniform_ones_and_the_width() {
        for percent in [0.0, 10.0, 80.0] {
            let drawn = drawn(&Pattern::Normal { deviation_percent: percent });
            let mean = drawn.iter().sum::<u64>() as f64 / DRAWS as f64;
            let variance = drawn.iter().map(|&rank| (rank as f64 - mean).powi(2)).sum::<f64>() / DRAWS as f64;
            let ranks = RANKS as f64;
            let width = ranks * (percent / 100.0).min(0.5);
            let expected = ranks * ranks / 144.0 + width * width / 12.0;
            assert!((mean - ranks / 2.0).abs() < 0.01 * ranks, "{percent}: {mean}");
            assert!((variance / expected - 1.0).abs() < 0.03, "{percent}: {variance}");
        }
    }

    #[test]
    fn a_range_of_one_block_has_one_rank() {
        let mut stream = stream(7, 1);
        for pattern in [Pattern::Pareto { h: 0.2 }, Pattern::Normal { deviation_percent: 50.0 }] {
            assert_eq!(Ranks::new(&pattern, 1).draw(&mut stream), 0);
        }
    }
}
