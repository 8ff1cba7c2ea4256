//! A table over time, as the record has it: when each interval starts, and a column per value.

use std::collections::BTreeMap;

use serde::Serialize;

use super::series::Interval;

/// A table under construction, row by row; columns may begin late.
#[derive(Default)]
pub struct Columns {
    at_ns: Vec<u64>,
    columns: BTreeMap<String, Vec<Option<f64>>>,
}

/// What was read over time: a row per interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SampledSeries {
    /// Begin of each interval, since the first reading.
    pub at_ns: Vec<u64>,
    /// By column, a value per interval; null if there was none. `length_s` is the interval's length.
    pub columns: BTreeMap<String, Vec<Option<f64>>>,
}

const LENGTH: &str = "length_s";

impl Columns {
    /// The next row; its values are absent until they are set.
    pub fn begin<R>(&mut self, interval: &Interval<'_, R>) {
        self.at_ns.push(interval.start_ns);
        for column in self.columns.values_mut() {
            column.push(None);
        }
        self.set(LENGTH, Some((interval.end_ns - interval.start_ns) as f64 / 1e9));
    }

    /// In the row that was begun last.
    pub fn set(&mut self, name: &str, value: Option<f64>) {
        let rows = self.at_ns.len();
        let column = match self.columns.get_mut(name) {
            Some(column) => column,
            None => self.columns.entry(name.to_owned()).or_default(),
        };
        column.resize(rows, None);
        column[rows - 1] = value;
    }

    /// The whole table, every column as long as it.
    pub fn finish(mut self) -> SampledSeries {
        let rows = self.at_ns.len();
        self.columns.values_mut().for_each(|column| column.resize(rows, None));
        SampledSeries { at_ns: self.at_ns, columns: self.columns }
    }
}
