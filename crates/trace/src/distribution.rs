//! How values are distributed, as reports carry it.

use serde::ser::{Serialize, SerializeStruct, Serializer};
use workload::histogram::LatencyHistogram;

/// Counts of values of any unit, in the buckets of `workload::histogram` (1/128 wide); moments are exact. As JSON: `count`,
/// `mean`, `stddev`, `min`, `max`, `p50`, `p99` (null when there is no value) and `histogram`, a list of
/// `[lowest, highest, count]`. The unit is in the name of the field that holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution(Option<Box<LatencyHistogram>>);

impl Distribution {
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.0.get_or_insert_default().record(value);
    }

    pub fn merge(&mut self, other: &Distribution) {
        if let Some(theirs) = &other.0 {
            self.0.get_or_insert_default().merge(theirs);
        }
    }

    pub fn count(&self) -> u64 {
        self.of(|values| Some(values.count())).unwrap_or(0)
    }

    pub fn mean(&self) -> Option<f64> {
        self.of(LatencyHistogram::mean_ns)
    }

    pub fn max(&self) -> Option<u64> {
        self.of(LatencyHistogram::max_ns)
    }

    fn of<T>(&self, value: impl Fn(&LatencyHistogram) -> Option<T>) -> Option<T> {
        self.0.as_deref().and_then(value)
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let buckets: Vec<[u64; 3]> = self
            .0
            .iter()
            .flat_map(|values| values.buckets())
            .map(|bucket| [bucket.low_ns, bucket.high_ns, bucket.count])
            .collect();
        let mut fields = serializer.serialize_struct("Distribution", 8)?;
        fields.serialize_field("count", &self.count())?;
        fields.serialize_field("mean", &self.mean())?;
        fields.serialize_field("stddev", &self.of(LatencyHistogram::stddev_ns))?;
        fields.serialize_field("min", &self.of(LatencyHistogram::min_ns))?;
        fields.serialize_field("max", &self.max())?;
        fields.serialize_field("p50", &self.of(|values| values.quantile_ns(0.5)))?;
        fields.serialize_field("p99", &self.of(|values| values.quantile_ns(0.99)))?;
        fields.serialize_field("histogram", &buckets)?;
        fields.end()
    }
}
