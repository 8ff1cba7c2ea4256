//! How values are distributed, as reports carry it.

use std::borrow::Cow;

use base::histogram::LatencyHistogram;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

/// Counts of values of any unit, in the buckets of `base::histogram` (1/128 wide); moments are exact. As JSON: `count`,
/// `mean`, `stddev`, `min`, `max`, `p50`, `p99` (null when there is no value) and `histogram`, a list of
/// `[lowest, highest, count]`. The unit is in the name of the field that holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution(Option<Box<LatencyHistogram>>);

impl Distribution {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.0.get_or_insert_default().record(value);
    }

    /// Counts all values of `other`.
    pub fn merge(&mut self, other: &Distribution) {
        if let Some(theirs) = &other.0 {
            self.0.get_or_insert_default().merge(theirs);
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.of(|values| Some(values.count())).unwrap_or(0)
    }

    /// Their exact mean; None if there are none.
    pub fn mean(&self) -> Option<f64> {
        self.of(LatencyHistogram::mean_ns)
    }

    /// Their exact maximum; None if there are none.
    pub fn max(&self) -> Option<u64> {
        self.of(LatencyHistogram::max_ns)
    }

    fn of<T>(&self, value: impl Fn(&LatencyHistogram) -> Option<T>) -> Option<T> {
        self.0.as_deref().and_then(value)
    }
}

/// A distribution as JSON carries it: exact moments (null when there is no value) and its buckets.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct DistributionRecord {
    /// How many values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub stddev: Option<f64>,
    /// Smallest value.
    pub min: Option<u64>,
    /// Largest value.
    pub max: Option<u64>,
    /// Median, of the buckets.
    pub p50: Option<u64>,
    /// 99th percentile, of the buckets.
    pub p99: Option<u64>,
    /// Non-empty buckets in rising order: lowest value, highest value, count.
    pub histogram: Vec<[u64; 3]>,
}

impl From<&Distribution> for DistributionRecord {
    fn from(values: &Distribution) -> DistributionRecord {
        DistributionRecord {
            count: values.count(),
            mean: values.mean(),
            stddev: values.of(LatencyHistogram::stddev_ns),
            min: values.of(LatencyHistogram::min_ns),
            max: values.max(),
            p50: values.of(|values| values.quantile_ns(0.5)),
            p99: values.of(|values| values.quantile_ns(0.99)),
            histogram: values
                .0
                .iter()
                .flat_map(|values| values.buckets())
                .map(|bucket| [bucket.low_ns, bucket.high_ns, bucket.count])
                .collect(),
        }
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        DistributionRecord::from(self).serialize(serializer)
    }
}

impl JsonSchema for Distribution {
    fn schema_name() -> Cow<'static, str> {
        DistributionRecord::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        DistributionRecord::json_schema(generator)
    }
}
