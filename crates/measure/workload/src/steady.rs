//! Where the transient at the start of a series ends.
//!
//! MSER-m truncation: White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69
//! (1997); White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation", Winter
//! Simulation Conference 2000. It takes the truncation point with the smallest value of the standard error of what
//! remains, the variance divided by the count, is least: it leaves out what biases the mean and keeps what narrows it.

/// How many leading intervals to leave out, and whether what remains is steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransientCut {
    /// Intervals to leave out, from the start.
    pub intervals: usize,
    /// False when the series still changes at its end.
    pub steady: bool,
}

/// Fewer intervals show nothing.
pub const INTERVALS_MIN: usize = 10;

/// Finds the transient at the start of `rates`, one value per interval.
///
/// Not steady, and then nothing is cut: fewer than `INTERVALS_MIN` values; the best truncation point lies in the second
/// half, and not by chance; or what remains still has a trend.
pub fn transient(rates: &[f64]) -> TransientCut {
    const UNSTEADY: TransientCut = TransientCut { intervals: 0, steady: false };
    if rates.len() < INTERVALS_MIN || rates.iter().any(|rate| !rate.is_finite()) {
        return UNSTEADY;
    }
    let batch = (rates.len() / BATCHES_WANTED).clamp(1, BATCH_MAX);
    let means: Vec<f64> = rates.chunks_exact(batch).map(mean).collect();
    let errors: Vec<f64> = (0..=means.len() - BATCHES_KEPT_MIN).map(|cut| squared_error(&means[cut..])).collect();
    let (early, late) = errors.split_at(means.len() / 2 + 1);
    let cut = least(early);
    let late_is_better = late.iter().any(|&error| error < LATE_BY_CHANCE * early[cut]);
    if late_is_better || has_trend(&means[cut..]) {
        return UNSTEADY;
    }
    TransientCut { intervals: cut * batch, steady: true }
}

/// MSER-5 has proved better than other batch sizes; short series get smaller batches, so that there are enough of them.
const BATCH_MAX: usize = 5;
const BATCHES_WANTED: usize = 20;

/// The last few batches are never the whole remainder: a handful of values is close together by chance.
const BATCHES_KEPT_MIN: usize = 5;

/// How much better the last few batches have to do than the best early truncation. They do this much better in about
/// one level series of thirty by chance, and better by far in a series that moved in its second half.
const LATE_BY_CHANCE: f64 = 0.5;

/// The squared error of the mean of what remains.
fn squared_error(rest: &[f64]) -> f64 {
    let centre = mean(rest);
    let squares: f64 = rest.iter().map(|x| (x - centre) * (x - centre)).sum();
    squares / (rest.len() * rest.len()) as f64
}

fn least(errors: &[f64]) -> usize {
    (0..errors.len()).min_by(|&a, &b| errors[a].total_cmp(&errors[b])).unwrap_or(0)
}

/// A drift is a trend when it is both visible, more than this share of the mean from end to end ...
const TREND_SHARE: f64 = 0.05;
/// ... and more than chance: this many standard deviations of the Mann-Kendall statistic.
const TREND_DEVIATIONS: f64 = 2.6;

/// Slope by Theil and Sen, significance by Mann and Kendall: both ranks, indifferent to outliers.
fn has_trend(values: &[f64]) -> bool {
    let count = values.len();
    let mut slopes = Vec::with_capacity(count * (count - 1) / 2);
    let mut concordance = 0i64;
    for (i, early) in values.iter().enumerate() {
        for (j, late) in values.iter().enumerate().skip(i + 1) {
            slopes.push((late - early) / (j - i) as f64);
            concordance += i64::from(late > early) - i64::from(late < early);
        }
    }
    let n = count as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let drift = median(&mut slopes) * (n - 1.0);
    drift.abs() > TREND_SHARE * mean(values).abs() && concordance.abs() as f64 > TREND_DEVIATIONS * deviation
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::{Stream, stream};

    /// Roughly normal, standard deviation 1: the sum of twelve uniform numbers.
    fn noise(stream: &mut Stream) -> f64 {
        (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
    }

    fn series(len: usize, seed: u64, level: impl Fn(f64) -> f64, noise_share: f64) -> Vec<f64> {
        let mut stream = stream(seed, 0);
        (0..len).map(|i| level(i as f64 / len as f64) * (1.0 + noise_share * noise(&mut stream))).collect()
    }

    fn share_of_seeds(found: impl Fn(u64) -> bool) -> f64 {
        (0..200).filter(|&seed| found(seed)).count() as f64 / 200.0
    }

    #[test]
    fn a_level_series_is_steady_and_keeps_most_of_itself() {
        for len in [20, 50, 150] {
            let cuts: Vec<TransientCut> = (0..200).map(|seed| transient(&series(len, seed, |_| 1e9, 0.1))).collect();
            let steady = cuts.iter().filter(|cut| cut.steady).count() as f64 / 200.0;
            let kept = cuts.iter().map(|cut| 1.0 - cut.intervals as f64 / len as f64).sum::<f64>() / 200.0;
            assert!(steady > 0.9, "{len} intervals: steady in {steady}");
            assert!(kept > 0.85, "{len} intervals: kept {kept}");
        }
    }

    #[test]
    fn a_slow_start_is_cut_off() {
        for len in [20, 50, 150] {
            let cut = |seed| transient(&series(len, seed, |at| if at < 0.2 { 3e8 } else { 1e9 }, 0.05));
            let found = share_of_seeds(|seed| {
                let TransientCut { intervals, steady } = cut(seed);
                steady && intervals * 5 >= len && intervals * 2 <= len + 10
            });
            assert!(found > 0.9, "{len} intervals: found in {found}");
        }
    }

    #[test]
    fn a_trend_is_not_steady() {
        for len in [20, 50, 150] {
            let unsteady =
                share_of_seeds(|seed| !transient(&series(len, seed, |at| 1e9 * (1.0 - 0.5 * at), 0.03)).steady);
            assert!(unsteady > 0.95, "{len} intervals: unsteady in {unsteady}");
        }
    }

    #[test]
    fn a_late_step_is_not_steady() {
        let unsteady =
            share_of_seeds(|seed| !transient(&series(100, seed, |at| if at < 0.7 { 1e9 } else { 2e8 }, 0.05)).steady);
        assert!(unsteady > 0.95, "unsteady in {unsteady}");
    }

    #[test]
    fn too_short_or_broken_a_series_is_not_steady() {
        let unsteady = TransientCut { intervals: 0, steady: false };
        assert_eq!(transient(&[]), unsteady);
        assert_eq!(transient(&[1.0; INTERVALS_MIN - 1]), unsteady);
        assert_eq!(transient(&[f64::NAN; 20]), unsteady);
    }

    #[test]
    fn a_constant_series_is_steady_and_whole() {
        assert_eq!(transient(&[5.0; 40]), TransientCut { intervals: 0, steady: true });
        assert_eq!(transient(&[0.0; 40]), TransientCut { intervals: 0, steady: true });
    }
}
