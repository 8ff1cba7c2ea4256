//! Ranks drawn with probability proportional to 1/rank^theta, exactly, in constant time and memory.

use base::rng::Stream;

/// Rejection under a staircase: ranks are gathered in bins that grow geometrically, a bin is drawn by the alias method
/// (Walker, 1977; Vose, 1991) as if each of its ranks were as likely as its first, a rank is drawn uniformly within it,
/// and kept with the probability that makes up for the pretence. A rank that even the least likely one of its bin would
/// survive is kept without computing a power.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    theta: f64,
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Debug)]
struct Bin {
    first: u64,
    width: u64,
    /// A draw below this keeps any rank of the bin.
    keep_below: u64,
    /// The alias table: a draw at or above this goes to `alias` instead.
    own_below: u64,
    alias: usize,
}

/// A bin is 1/32 as wide as its first rank, so that for usual values of theta about one rank in thirty needs a power.
const RANKS_PER_WIDTH: u64 = 32;

impl Zipf {
    /// `ranks` must not be 0; `theta` is finite and not negative.
    pub fn new(ranks: u64, theta: f64) -> Zipf {
        let mut bins = Vec::new();
        let mut weights = Vec::new();
        let mut first = 1;
        while first <= ranks {
            let width = (first / RANKS_PER_WIDTH).max(1).min(ranks - first + 1);
            let least_likely = relative(first, first + width - 1, theta);
            bins.push(Bin { first, width, keep_below: to_bits(least_likely), own_below: 0, alias: 0 });
            weights.push(width as f64 * libm::pow(first as f64, -theta));
            first += width;
        }
        fill_alias_table(&mut bins, &weights);
        Zipf { theta, bins }
    }

    /// A rank from 0: the most likely one is 0.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        loop {
            let product = u128::from(stream.next_u64()) * self.bins.len() as u128;
            let mut bin = &self.bins[(product >> 64) as usize];
            if product as u64 >= bin.own_below {
                bin = &self.bins[bin.alias];
            }
            if bin.width == 1 {
                return bin.first - 1;
            }
            let rank = bin.first + stream.below(bin.width);
            let draw = stream.next_u64();
            if draw < bin.keep_below || draw < to_bits(relative(bin.first, rank, self.theta)) {
                return rank - 1;
            }
        }
    }
}

/// How likely `rank` is, relative to `first`.
fn relative(first: u64, rank: u64, theta: f64) -> f64 {
    libm::pow(rank as f64 / first as f64, -theta)
}

/// Saturates at 1.0.
fn to_bits(probability: f64) -> u64 {
    (probability * 2f64.powi(64)) as u64
}

fn fill_alias_table(bins: &mut [Bin], weights: &[f64]) {
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
    let (mut poor, mut rich): (Vec<usize>, Vec<usize>) = (0..bins.len()).partition(|&bin| shares[bin] < 1.0);
    while let (Some(&receiver), Some(&giver)) = (poor.last(), rich.last()) {
        poor.pop();
        bins[receiver].own_below = to_bits(shares[receiver]);
        bins[receiver].alias = giver;
        shares[giver] -= 1.0 - shares[receiver];
        if shares[giver] < 1.0 {
            rich.pop();
            poor.push(giver);
        }
    }
    // What rounding left over is as good as full.
    for bin in poor.into_iter().chain(rich) {
        bins[bin].own_below = u64::MAX;
        bins[bin].alias = bin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::stream;

    /// The first ranks one by one, the others by powers of two: wide enough to show a small excess in every wide bin.
    fn cell(rank: u64) -> usize {
        if rank <= 8 { rank as usize } else { 6 + rank.ilog2() as usize }
    }

    /// Pearson's statistic against the exact probabilities, and how many cells went into it.
    fn chi_square(ranks: u64, theta: f64, draws: u32) -> (f64, usize) {
        let mut weights = vec![0.0; cell(ranks) + 1];
        for rank in 1..=ranks {
            weights[cell(rank)] += (rank as f64).powf(-theta);
        }
        let total: f64 = weights.iter().sum();
        let zipf = Zipf::new(ranks, theta);
        let mut stream = stream(11, 0);
        let mut counts = vec![0u32; weights.len()];
        for _ in 0..draws {
            counts[cell(zipf.draw(&mut stream) + 1)] += 1;
        }
        let expected = weights.iter().map(|weight| weight / total * f64::from(draws));
        let cells: Vec<(f64, f64)> =
            counts.into_iter().map(f64::from).zip(expected).filter(|(_, expected)| *expected > 5.0).collect();
        let statistic = cells.iter().map(|(found, expected)| (found - expected).powi(2) / expected).sum();
        (statistic, cells.len())
    }

    #[test]
    fn frequencies_follow_theta() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.1, 2.5] {
            for ranks in [1, 2, 33, 1_000, 100_000] {
                let (statistic, cells) = chi_square(ranks, theta, 200_000);
                // Five standard deviations of a chi-square variable above its mean.
                let limit = cells as f64 + 5.0 * (2.0 * cells as f64).sqrt();
                assert!(statistic < limit, "theta {theta}, {ranks} ranks: {statistic} in {cells} cells");
            }
        }
    }

    /// Within a bin the differences are too small for the test above, so one bin has to do alone.
    #[test]
    fn ranks_within_a_bin_follow_theta() {
        for theta in [0.5, 1.0, 8.0] {
            let mut zipf = Zipf::new(100_000, theta);
            zipf.bins.retain(|bin| (3_000..4_000).contains(&bin.first));
            zipf.bins.truncate(1);
            let Bin { first, width, .. } = zipf.bins[0];
            zipf.bins[0].own_below = u64::MAX;
            let mut stream = stream(5, 0);
            let draws = 400_000;
            let found = (0..draws).map(|_| zipf.draw(&mut stream) + 1 - first).sum::<u64>();
            let weight = |rank: u64| (rank as f64).powf(-theta);
            let total: f64 = (first..first + width).map(weight).sum();
            let expected: f64 = (0..width).map(|at| at as f64 * weight(first + at) / total).sum();
            let deviation = width as f64 / 12f64.sqrt() / f64::from(draws).sqrt();
            assert!((found as f64 / f64::from(draws) - expected).abs() < 4.0 * deviation, "theta {theta}");
        }
    }

    #[test]
    fn bins_cover_all_ranks_and_stay_few() {
        for ranks in [1, 31, 32, 33, 12_345, 1 << 50] {
            let zipf = Zipf::new(ranks, 1.0);
            assert_eq!(zipf.bins.iter().map(|bin| bin.width).sum::<u64>(), ranks);
            assert!(zipf.bins.len() < 1_200);
        }
    }
}
