//! How often each block is written by patterns that are scattered over the drive: zipf, pareto and normal, as a job draws
//! them (`workload::ranks`). Ranks count from 0, the block that is written most.

use crate::flash::skew_law::Class;

#[derive(Clone, Copy, Debug)]
pub(super) enum Scatter {
    /// In proportion to 1/(rank + 1)^theta.
    Zipf { theta: f64 },
    /// The share x of the blocks gets the share x^exponent of the writes.
    Pareto { exponent: f64 },
    /// As the mean of twelve uniform ranks and one more within this width, a part of the range, whose middle is written
    /// most.
    Normal { width: f64 },
}

/// A class of zipf and pareto ends at a rank this many times as large as the one that it begins with.
const CLASS_RATIO: f64 = 1.5;

/// Classes of normal, as wide as one another.
const NORMAL_CLASSES: u64 = 32;

/// The part of the writes that a class gets at least: what is never written has no steady state.
const WRITES_MIN: f64 = 1e-12;

/// Uniform ranks whose mean makes a normal one (gauss.c of fio 3).
const SUMMANDS: u32 = 12;

/// Into so many steps the width is cut to average over it.
const WIDTH_STEPS: u32 = 64;

impl Scatter {
    /// The share `h` of the blocks gets the share 1 - h of the writes, and so on within it.
    pub(super) fn pareto(h: f64) -> Scatter {
        let exponent = libm::log(1.0 - h) / libm::log(h);
        Scatter::Pareto { exponent }
    }

    /// A width of more than half of the range is half of it, as for a job.
    pub(super) fn normal(deviation: f64) -> Scatter {
        let width = deviation.min(0.5);
        Scatter::Normal { width }
    }

    /// Parts of so many blocks that are written about equally often, in the order of ranks.
    pub(super) fn classes(&self, blocks: u64, block_units: u32) -> Vec<Class> {
        let mut classes = Vec::new();
        let mut first = 0;
        while first < blocks {
            let end = self.class_end(blocks, first).min(blocks);
            classes.push(Class {
                units: (end - first) as u32 * block_units,
                writes: self.writes(blocks, first, end).max(WRITES_MIN),
            });
            first = end;
        }
        let all: f64 = classes.iter().map(|class| class.writes).sum();
        for class in &mut classes {
            class.writes /= all;
        }
        classes
    }

    fn class_end(&self, blocks: u64, first: u64) -> u64 {
        match self {
            Scatter::Normal { .. } => first + (blocks / NORMAL_CLASSES).max(1),
            _ => ((first + 1) as f64 * CLASS_RATIO).ceil() as u64 - 1,
        }
    }

    /// What the ranks from `first` up to and without `end` get of the writes; of zipf, in proportion.
    fn writes(&self, blocks: u64, first: u64, end: u64) -> f64 {
        let share = |rank: u64| rank as f64 / blocks as f64;
        match *self {
            Scatter::Zipf { theta } => powers(first + 1, end + 1, theta),
            Scatter::Pareto { exponent } => libm::pow(share(end), exponent) - libm::pow(share(first), exponent),
            Scatter::Normal { width } => outside(share(first), width) - outside(share(end), width),
        }
    }

    /// The rank that a job draws for the block of this rank: of normal, ranks go up and down from the middle in turn.
    pub(super) fn drawn(&self, blocks: u64, rank: u64) -> u64 {
        match self {
            Scatter::Normal { .. } if rank.is_multiple_of(2) => blocks / 2 + rank / 2,
            Scatter::Normal { .. } => blocks / 2 - rank.div_ceil(2),
            _ => rank,
        }
    }

    /// The rank of the block for which a job draws this one.
    pub(super) fn rank(&self, blocks: u64, drawn: u64) -> u64 {
        match self {
            Scatter::Normal { .. } if drawn >= blocks / 2 => 2 * (drawn - blocks / 2),
            Scatter::Normal { .. } => 2 * (blocks / 2 - drawn) - 1,
            _ => drawn,
        }
    }
}

/// The sum of rank^-theta from `first` up to and without `end`: by the integral between the middles of ranks.
fn powers(first: u64, end: u64, theta: f64) -> f64 {
    if first < 64 {
        return (first..end).map(|rank| libm::pow(rank as f64, -theta)).sum();
    }
    let (low, high) = (first as f64 - 0.5, end as f64 - 0.5);
    if (theta - 1.0).abs() < 1e-9 {
        return libm::log(high / low);
    }
    let power = 1.0 - theta;
    (libm::pow(high, power) - libm::pow(low, power)) / power
}

/// How likely a normal rank is further from the middle than this share of half of the range. What would lie beyond the
/// range is at its ends.
fn outside(share: f64, width: f64) -> f64 {
    if share >= 1.0 {
        return 0.0;
    }
    let below = f64::from(SUMMANDS) * (1.0 - share) / 2.0;
    let each = (0..WIDTH_STEPS).map(|step| {
        let part = (f64::from(step) + 0.5) / f64::from(WIDTH_STEPS) - 0.5;
        sum_below(below + f64::from(SUMMANDS) * width * part)
    });
    2.0 * each.sum::<f64>() / f64::from(WIDTH_STEPS)
}

/// How likely the sum of `SUMMANDS` uniform numbers from 0 to 1 is less (Irwin and Hall, 1927).
fn sum_below(sum: f64) -> f64 {
    let count = f64::from(SUMMANDS);
    if sum > count / 2.0 {
        return 1.0 - sum_below(count - sum);
    }
    let mut all = 0.0;
    let mut choices = 1.0;
    for number in 0..SUMMANDS {
        let left = sum - f64::from(number);
        if left <= 0.0 {
            break;
        }
        all += choices * libm::pow(left, count);
        choices *= -(count - f64::from(number)) / f64::from(number + 1);
    }
    (1..=SUMMANDS).fold(all, |all, factor| all / f64::from(factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::{Stream, stream};
    use proptest::prelude::*;

    const BLOCKS: u64 = 10_000;
    const DRAWS: u32 = 100_000;

    /// As `workload::ranks` draws them, which this crate is not built on.
    fn drawn_by_a_job(scatter: Scatter, draws: &mut Stream) -> u64 {
        match scatter {
            Scatter::Zipf { .. } => unreachable!("its classes are sums of the definition"),
            Scatter::Pareto { exponent } => (BLOCKS as f64 * draws.unit().powf(1.0 / exponent)) as u64,
            Scatter::Normal { width } => {
                let width = (BLOCKS as f64 * width).ceil() as u64;
                let sum: u64 = (0..12).map(|_| draws.below(BLOCKS)).sum();
                let deviation = if width == 0 { 0 } else { draws.below(width) };
                (sum / 12 + deviation).saturating_sub(width / 2).min(BLOCKS - 1)
            }
        }
    }

    #[test]
    fn classes_get_what_a_job_draws() {
        for scatter in [
            Scatter::pareto(0.1),
            Scatter::pareto(0.5),
            Scatter::normal(0.0),
            Scatter::normal(0.2),
            Scatter::normal(0.8),
        ] {
            let mut draws = stream(3, 0);
            let mut found: Vec<u64> =
                (0..DRAWS).map(|_| scatter.rank(BLOCKS, drawn_by_a_job(scatter, &mut draws))).collect();
            found.sort_unstable();
            let mut first = 0;
            for class in scatter.classes(BLOCKS, 1) {
                let below = |rank: u64| found.partition_point(|&one| one < rank) as f64;
                let end = first + u64::from(class.units);
                let share = (below(end) - below(first)) / f64::from(DRAWS);
                let error = (class.writes * (1.0 - class.writes) / f64::from(DRAWS)).sqrt();
                assert!(
                    (share - class.writes).abs() < 5.0 * error + 1e-4,
                    "{scatter:?}, {first} to {end}: {share} for {}",
                    class.writes
                );
                first = end;
            }
            assert_eq!(first, BLOCKS);
        }
    }

    proptest! {
        #[test]
        fn each_block_has_one_rank(blocks in 1u64..200) {
            for scatter in [Scatter::Zipf { theta: 1.0 }, Scatter::normal(0.1)] {
                let mut drawn: Vec<u64> = (0..blocks).map(|rank| scatter.drawn(blocks, rank)).collect();
                for (rank, &one) in drawn.iter().enumerate() {
                    prop_assert_eq!(scatter.rank(blocks, one), rank as u64);
                }
                drawn.sort_unstable();
                prop_assert_eq!(drawn, (0..blocks).collect::<Vec<_>>());
            }
        }
    }
}
