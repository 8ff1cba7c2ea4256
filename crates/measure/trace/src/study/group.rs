//! I/Os that have something in common: how many, how large, how long in each stage.

use base::histogram::LatencyHistogram;
use serde::Serialize;

use super::values::Values;
use crate::request::{Io, Stages};

/// What is counted of them.
#[derive(Clone, Debug, Default)]
pub struct Group {
    count: u64,
    bytes: u64,
    errors: u64,
    stages: [Values; 4],
}

/// A group in the form of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct GroupFigures {
    /// What they have in common.
    pub name: String,
    /// Requests that completed; of traces without completions, that arrived.
    pub count: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Completions with an error.
    pub errors: u64,
    /// From the queue event of the first bio until inserted, or issued if it never was.
    pub queue_ns: Option<Quantiles>,
    /// From there until issued to the driver.
    pub scheduler_ns: Option<Quantiles>,
    /// From issue to completion.
    pub device_ns: Option<Quantiles>,
    /// From queue to completion.
    pub whole_ns: Option<Quantiles>,
}

/// Where values lie. Exact moments; quantiles are the upper ends of buckets 1/128 wide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Quantiles {
    /// How many are known.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: u64,
    /// Half are no larger.
    pub p50: u64,
    /// Nine tenths.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p99_9: u64,
    /// 99.99 %.
    pub p99_99: u64,
    /// Largest.
    pub max: u64,
    /// Non-empty buckets in rising order: lowest value, highest value, count.
    pub histogram: Vec<[u64; 3]>,
}

impl Group {
    /// With histograms that grow with what they hold, unless they are to be roomy.
    pub(super) fn new(roomy: bool) -> Group {
        Group { stages: std::array::from_fn(|_| Values::new(roomy)), ..Group::default() }
    }

    /// Counts one.
    #[inline]
    pub fn add(&mut self, io: &Io) {
        self.count_stages(io, &io.stages());
    }

    /// Counts one of which the stages are known already.
    #[inline]
    pub(super) fn count_stages(&mut self, io: &Io, stages: &Stages) {
        self.count += 1;
        self.bytes += io.bytes();
        self.errors += u64::from(io.error != 0);
        for (stage, value) in stages.iter().enumerate() {
            if let Some(value) = *value {
                self.stages[stage].record(value);
            }
        }
    }

    /// Counts those of another group too.
    pub fn merge(&mut self, other: &Group) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.errors += other.errors;
        for (values, theirs) in self.stages.iter_mut().zip(&other.stages) {
            values.merge(theirs);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The report's form.
    pub fn figures(&self, name: String) -> GroupFigures {
        let quantiles = |stage: usize| self.stages[stage].histogram().and_then(|it| Quantiles::of(&it));
        GroupFigures {
            name,
            count: self.count,
            bytes: self.bytes,
            errors: self.errors,
            queue_ns: quantiles(0),
            scheduler_ns: quantiles(1),
            device_ns: quantiles(2),
            whole_ns: quantiles(3),
        }
    }
}

impl Quantiles {
    /// The quantiles of a histogram's values; None if it has none.
    pub fn of(values: &LatencyHistogram) -> Option<Quantiles> {
        let quantile = |q| values.quantile_ns(q);
        Some(Quantiles {
            count: values.count(),
            mean: values.mean_ns()?,
            min: values.min_ns()?,
            p50: quantile(0.5)?,
            p90: quantile(0.9)?,
            p99: quantile(0.99)?,
            p99_9: quantile(0.999)?,
            p99_99: quantile(0.9999)?,
            max: values.max_ns()?,
            histogram: values.buckets().map(|bucket| [bucket.low_ns, bucket.high_ns, bucket.count]).collect(),
        })
    }
}
