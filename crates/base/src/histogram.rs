//! Latency histograms: log-linear buckets, exact moments.

use std::cmp::Ordering;

/// Counts of latencies in nanoseconds, in the buckets of an HDR histogram of two significant digits: exact below 256 ns,
/// above that at most 1/128 (0.8 %) wide, up to 73 minutes; longer ones count in the last bucket. Count, minimum,
/// maximum, mean and standard deviation are exact whatever the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyHistogram {
    counts: Box<[u64; BUCKETS]>,
    moments: Moments,
}

/// A bucket that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The lowest and the highest latency that count here.
    pub low_ns: u64,
    /// The highest latency that counts here, in nanoseconds.
    pub high_ns: u64,
    /// How many latencies were recorded in this bucket.
    pub count: u64,
}

/// A histogram for keeping: 8 bytes per bucket that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseHistogram {
    /// Bucket index and count, packed.
    buckets: Box<[u64]>,
    moments: Moments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moments {
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
    sum_of_squares: u128,
}

impl LatencyHistogram {
    /// An empty histogram; allocates all buckets at once, so that `record` never does.
    pub fn new() -> LatencyHistogram {
        let counts = vec![0; BUCKETS].into_boxed_slice().try_into().expect("as many counts as buckets");
        LatencyHistogram { counts, moments: Moments::default() }
    }

    /// Counts one latency, in nanoseconds.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.counts[bucket_of(latency_ns)] += 1;
        self.moments.record(latency_ns);
    }

    /// Adds every count and moment of `other`.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        for index in other.occupied() {
            self.counts[index] += other.counts[index];
        }
        self.moments.merge(&other.moments);
    }

    /// Adds every count and moment of a histogram that was kept sparsely.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        for &packed in &other.buckets {
            let (index, count) = unpack(packed);
            self.counts[index] += count;
        }
        self.moments.merge(&other.moments);
    }

    /// Empties the histogram without freeing it; touches only the buckets in use.
    pub fn reset(&mut self) {
        let occupied = self.occupied();
        self.counts[occupied].fill(0);
        self.moments = Moments::default();
    }

    /// A copy that holds only the buckets in use.
    pub fn to_sparse(&self) -> SparseHistogram {
        let buckets = self.occupied().filter(|&index| self.counts[index] > 0);
        SparseHistogram {
            buckets: buckets.map(|index| pack(index, self.counts[index])).collect(),
            moments: self.moments,
        }
    }

    /// How many latencies were recorded.
    pub fn count(&self) -> u64 {
        self.moments.count
    }

    /// The exact minimum in nanoseconds; None when empty.
    pub fn min_ns(&self) -> Option<u64> {
        self.moments.present().map(|moments| moments.min)
    }

    /// The exact maximum in nanoseconds; None when empty.
    pub fn max_ns(&self) -> Option<u64> {
        self.moments.present().map(|moments| moments.max)
    }

    /// The exact mean in nanoseconds; None when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        self.moments.present().map(Moments::mean)
    }

    /// The standard deviation of the population: divided by the count, not by the count less one.
    pub fn stddev_ns(&self) -> Option<f64> {
        self.moments.present().map(Moments::stddev)
    }

    /// The smallest latency that at least the share `q` (0 to 1) of all does not exceed, rounded up to the end of its
    /// bucket, never beyond the maximum. `None` when nothing was recorded.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let moments = self.moments.present()?;
        let rank = ((q.clamp(0.0, 1.0) * moments.count as f64).ceil() as u64).clamp(1, moments.count);
        let mut seen = 0;
        let bucket = self.buckets().find(|bucket| {
            seen += bucket.count;
            seen >= rank
        })?;
        Some(bucket.high_ns.clamp(moments.min, moments.max))
    }

    /// The buckets that are not empty, in rising order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.occupied().filter(|&index| self.counts[index] > 0).map(|index| Bucket {
            low_ns: lowest(index),
            high_ns: highest(index),
            count: self.counts[index],
        })
    }

    /// The range of indices outside which every bucket is empty.
    fn occupied(&self) -> std::ops::Range<usize> {
        match self.moments.present() {
            Some(moments) => bucket_of(moments.min)..bucket_of(moments.max) + 1,
            None => 0..0,
        }
    }
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram::new()
    }
}

impl SparseHistogram {
    /// Both together.
    pub fn merged(&self, other: &SparseHistogram) -> SparseHistogram {
        let mut buckets = Vec::with_capacity(self.buckets.len() + other.buckets.len());
        let (mut ours, mut theirs) = (self.buckets.iter().peekable(), other.buckets.iter().peekable());
        while let (Some(&&a), Some(&&b)) = (ours.peek(), theirs.peek()) {
            let ((a_index, a_count), (b_index, b_count)) = (unpack(a), unpack(b));
            buckets.push(match a_index.cmp(&b_index) {
                Ordering::Less => a,
                Ordering::Greater => b,
                Ordering::Equal => pack(a_index, a_count + b_count),
            });
            ours.next_if(|_| a_index <= b_index);
            theirs.next_if(|_| b_index <= a_index);
        }
        buckets.extend(ours.chain(theirs));
        let mut moments = self.moments;
        moments.merge(&other.moments);
        SparseHistogram { buckets: buckets.into(), moments }
    }

    /// How many latencies were recorded.
    pub fn count(&self) -> u64 {
        self.moments.count
    }
}

impl Default for Moments {
    fn default() -> Moments {
        Moments { count: 0, min: u64::MAX, max: 0, sum: 0, sum_of_squares: 0 }
    }
}

impl Moments {
    #[inline]
    fn record(&mut self, value: u64) {
        self.count += 1;
        // Not `min` and `max`, which store each time: new extremes are rare.
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
        self.sum += u128::from(value);
        let square = u128::from(value) * u128::from(value);
        match self.sum_of_squares.checked_add(square) {
            Some(sum) => self.sum_of_squares = sum,
            None => self.saturate(),
        }
    }

    #[cold]
    #[inline(never)]
    fn saturate(&mut self) {
        self.sum_of_squares = u128::MAX;
    }

    fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
    }

    fn present(&self) -> Option<&Moments> {
        (self.count > 0).then_some(self)
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// From n * sum(x^2) - sum(x)^2 in integers: the cancellation that ruins this formula in floating point cannot
    /// happen. Falls back to floating point if 128 bits do not hold the products.
    fn stddev(&self) -> f64 {
        let count = u128::from(self.count);
        let exact = count
            .checked_mul(self.sum_of_squares)
            .zip(self.sum.checked_mul(self.sum))
            .map(|(squares, square)| squares.saturating_sub(square) as f64);
        let scaled = exact.unwrap_or_else(|| {
            let mean = self.mean();
            (self.sum_of_squares as f64 / count as f64 - mean * mean).max(0.0) * count as f64 * count as f64
        });
        scaled.sqrt() / count as f64
    }
}

/// Sub-buckets per power of two, as a power of two.
const PRECISION_BITS: u32 = 7;
/// Longest latency with a bucket of its own, about 73 minutes.
const LONGEST_NS: u64 = (1 << 42) - 1;
const BUCKETS: usize = place_of(LONGEST_NS) + 1;

/// Below `BUCKETS`, which spares `record` the check of its index.
#[inline]
fn bucket_of(latency_ns: u64) -> usize {
    place_of(latency_ns).min(BUCKETS - 1)
}

/// The bucket, if there were one for each latency.
#[inline]
const fn place_of(latency_ns: u64) -> usize {
    let shift = (latency_ns | (EXACT_BELOW - 1)).ilog2() - PRECISION_BITS;
    ((shift as usize) << PRECISION_BITS) + (latency_ns >> shift) as usize
}

const EXACT_BELOW: u64 = 2 << PRECISION_BITS;

fn lowest(index: usize) -> u64 {
    let (shift, mantissa) = split(index);
    mantissa << shift
}

fn highest(index: usize) -> u64 {
    let (shift, mantissa) = split(index);
    (mantissa << shift) + ((1 << shift) - 1)
}

/// The inverse of `bucket_of`: by how much values were shifted, and the shifted value.
fn split(index: usize) -> (u32, u64) {
    let index = index as u64;
    let shift = (index >> PRECISION_BITS).saturating_sub(1);
    (shift as u32, index - (shift << PRECISION_BITS))
}

const INDEX_BITS: u32 = 13;

fn pack(index: usize, count: u64) -> u64 {
    count << INDEX_BITS | index as u64
}

fn unpack(packed: u64) -> (usize, u64) {
    ((packed & ((1 << INDEX_BITS) - 1)) as usize, packed >> INDEX_BITS)
}

const _: () = assert!(BUCKETS <= 1 << INDEX_BITS);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(latencies: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        latencies.iter().for_each(|&latency_ns| histogram.record(latency_ns));
        histogram
    }

    /// Latencies of all magnitudes.
    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        let latency = (0..42u32, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1));
        prop::collection::vec(latency, 1..300)
    }

    proptest! {
        #[test]
        fn buckets_hold_what_was_counted_in_them(latency_ns in 0..=LONGEST_NS) {
            let index = bucket_of(latency_ns);
            prop_assert!((lowest(index)..=highest(index)).contains(&latency_ns));
            prop_assert!((highest(index) - lowest(index)) as f64 <= latency_ns as f64 / 128.0);
        }

        #[test]
        fn merging_is_recording_everything_in_one(a in latencies(), b in latencies()) {
            let together = of(&[a.clone(), b.clone()].concat());
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(&merged, &together);
            prop_assert_eq!(of(&a).to_sparse().merged(&of(&b).to_sparse()), together.to_sparse());
            let mut from_sparse = of(&a);
            from_sparse.merge_sparse(&of(&b).to_sparse());
            prop_assert_eq!(&from_sparse, &together);
            merged.reset();
            prop_assert_eq!(merged, LatencyHistogram::new());
        }

        #[test]
        fn moments_are_exact(latencies in latencies()) {
            let histogram = of(&latencies);
            let count = latencies.len() as f64;
            let mean = latencies.iter().map(|&x| x as f64).sum::<f64>() / count;
            let variance = latencies.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / count;
            prop_assert_eq!(histogram.count(), latencies.len() as u64);
            prop_assert_eq!(histogram.min_ns(), latencies.iter().copied().min());
            prop_assert_eq!(histogram.max_ns(), latencies.iter().copied().max());
            let close = |found: Option<f64>, expected: f64| {
                found.is_some_and(|found| (found - expected).abs() <= 1e-9 * expected.max(1.0))
            };
            prop_assert!(close(histogram.mean_ns(), mean));
            prop_assert!(close(histogram.stddev_ns(), variance.sqrt()));
        }

        #[test]
        fn quantiles_are_within_one_percent(mut latencies in latencies(), q in 0.0..=1.0) {
            let found = of(&latencies).quantile_ns(q).expect("not empty");
            latencies.sort_unstable();
            let rank = ((q * latencies.len() as f64).ceil() as usize).clamp(1, latencies.len());
            let exact = latencies[rank - 1];
            prop_assert!(found >= exact && (found - exact) as f64 <= exact as f64 / 100.0);
        }

        #[test]
        fn quantiles_agree_with_the_reference_implementation(latencies in latencies(), q in 0.0..=1.0) {
            let mut reference = hdrhistogram::Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 2).expect("sound bounds");
            latencies.iter().for_each(|&latency_ns| reference.saturating_record(latency_ns));
            let expected = reference.value_at_quantile(q).min(reference.max()) as f64;
            let found = of(&latencies).quantile_ns(q).expect("not empty") as f64;
            prop_assert!((found - expected).abs() <= expected / 100.0);
        }
    }

    #[test]
    fn the_longest_latencies_share_a_bucket_but_keep_their_moments() {
        let histogram = of(&[u64::MAX, u64::MAX]);
        assert_eq!(histogram.buckets().count(), 1);
        assert_eq!(histogram.max_ns(), Some(u64::MAX));
        assert_eq!(histogram.quantile_ns(0.5), Some(u64::MAX));
        assert_eq!(histogram.mean_ns(), Some(u64::MAX as f64));
    }

    #[test]
    fn an_empty_histogram_knows_nothing() {
        let histogram = LatencyHistogram::new();
        assert_eq!((histogram.min_ns(), histogram.quantile_ns(0.5), histogram.mean_ns()), (None, None, None));
        assert_eq!(histogram.buckets().count(), 0);
    }
}
