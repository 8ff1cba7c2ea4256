//! How long tasks were off their CPUs.

use serde::Serialize;

/// Count, sum and maximum of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    count: u64,
    total_ns: u128,
    max_ns: u64,
}

/// Times as tables carry them. With weighted samples, `count` and `sum_ns` are estimates of the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Stall {
    /// How many times were measured.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub sum_ns: u64,
    /// None if nothing was counted.
    pub mean_ns: Option<f64>,
    /// Their maximum in nanoseconds; None if nothing was counted.
    pub max_ns: Option<u64>,
}

impl Sum {
    pub(super) fn add(&mut self, time_ns: u64, weight: u64) {
        self.count += weight;
        self.total_ns += u128::from(time_ns) * u128::from(weight);
        self.max_ns = self.max_ns.max(time_ns);
    }

    pub(super) fn merge(&mut self, other: &Sum) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// As if it had been counted `by` times as often; the mean and the maximum stay.
    pub(super) fn scaled(&self, by: f64) -> Stall {
        let whole = self.report();
        Stall {
            count: (whole.count as f64 * by).round() as u64,
            sum_ns: (whole.sum_ns as f64 * by).round() as u64,
            ..whole
        }
    }

    pub(super) fn report(&self) -> Stall {
        let any = self.count > 0;
        Stall {
            count: self.count,
            sum_ns: u64::try_from(self.total_ns).unwrap_or(u64::MAX),
            mean_ns: any.then(|| self.total_ns as f64 / self.count as f64),
            max_ns: any.then_some(self.max_ns),
        }
    }
}
