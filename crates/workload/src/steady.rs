//! Where the transient at the start of a series ends.
//!
//! MSER-m truncation: White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69
//! (1997); White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation", Winter
//! Simulation Conference 2000. Of all truncation points it takes the one where the standard error of what remains, the
//! variance divided by the count, is least: it leaves out what biases the mean and keeps what narrows it.

/// How many leading intervals to leave out, and whether what remains is steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub intervals: usize,
    pub steady: bool,
}

/// Fewer intervals tell nothing.
pub const INTERVALS_MIN: usize = 10;

/// Finds the transient at the start of `rates`, one value per interval.
///
/// Not steady, and then nothing is cut: fewer than `INTERVALS_MIN` values; the best truncation point lies in the second
/// half; or what remains still has a trend.
pub fn transient(rates: &[f64]) -> Cut {
    const UNSTEADY: Cut = Cut {
        intervals: 0,
        steady: false,
    };
    if rates.len() < INTERVALS_MIN || rates.iter().any(|rate| !rate.is_finite()) {
        return UNSTEADY;
    }
    let batch = (rates.len() / BATCHES_WANTED).clamp(1, BATCH_MAX);
    let means: Vec<f64> = rates.chunks_exact(batch).map(mean).collect();
    let cut = truncation_point(&means);
    if cut > means.len() / 2 || has_trend(&means[cut..]) {
        return UNSTEADY;
    }
    Cut {
        intervals: cut * batch,
        steady: true,
    }
}

/// MSER-5 has proved better than other batch sizes; short series get smaller batches, so that there are enough of them.
const BATCH_MAX: usize = 5;
const BATCHES_WANTED: usize = 20;

/// The last few batches are never the whole remainder: a handful of values is close together by chance.
const BATCHES_KEPT_MIN: usize = 5;

fn truncation_point(means: &[f64]) -> usize {
    let candidates = 0..=means.len() - BATCHES_KEPT_MIN;
    let squared_error = |cut: usize| {
        let rest = &means[cut..];
        let centre = mean(rest);
        rest.iter()
            .map(|x| (x - centre) * (x - centre))
            .sum::<f64>()
            / (rest.len() * rest.len()) as f64
    };
    candidates
        .min_by(|&a, &b| squared_error(a).total_cmp(&squared_error(b)))
        .unwrap_or(0)
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
    drift.abs() > TREND_SHARE * mean(values).abs()
        && concordance.abs() as f64 > TREND_DEVIATIONS * deviation
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}
