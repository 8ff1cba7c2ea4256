//! Sums over the rows of large files. A line that can't be read is ValueError(offset of its start in the file).

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rows::UnreadLine;
use rows::groups::{BETWEEN, Groups, Layout, Role};
use rows::io_log;

use crate::border::value_error;

/// Sums of a table's numbers by its keys.
#[pyclass]
pub struct RowGroups(Groups);

/// A group: texts of its key, where it starts, its rows, count and sum of each number column.
type Group = (Vec<String>, u64, u64, Vec<u64>, Vec<f64>);

#[pymethods]
impl RowGroups {
    #[new]
    #[pyo3(signature = (*, separator, decimal, columns, batch_bytes))]
    fn new(separator: char, decimal: char, columns: Vec<String>, batch_bytes: u64) -> PyResult<RowGroups> {
        if columns.is_empty() {
            return Err(PyValueError::new_err("a table without columns"));
        }
        Ok(RowGroups(Groups::new(Layout {
            separator: u8::try_from(separator).map_err(value_error)?,
            decimal: u8::try_from(decimal).map_err(value_error)?,
            columns: columns.iter().map(|name| role(name)).collect::<PyResult<_>>()?,
            batch_bytes,
        })))
    }

    fn add(&mut self, py: Python<'_>, text: &[u8], begin: usize, end: usize, offset: u64) -> PyResult<()> {
        let lines = part(text, begin, end)?;
        py.detach(|| self.0.add(lines, offset)).map_err(unread)
    }

    fn merge(&mut self, later: &RowGroups) {
        self.0.merge(&later.0);
    }

    fn groups(&self) -> PyResult<Vec<Group>> {
        let named = self.0.iter().map(|group| {
            let texts = group.key.split(|&byte| byte == BETWEEN);
            let key = texts.map(|text| String::from_utf8(text.to_vec()));
            Ok((key.collect::<Result<_, _>>()?, group.offset, group.rows, group.counts.to_vec(), group.sums.to_vec()))
        });
        named.collect::<Result<_, std::string::FromUtf8Error>>().map_err(value_error)
    }
}

/// A log of fio's.
#[pyclass]
pub struct IoLog(io_log::IoLog);

/// What the lines of one direction of a log came to.
#[pyclass(frozen, get_all)]
pub struct LogDirection {
    count: u64,
    bytes: u64,
    last_ms: u64,
    mean: f64,
    stddev: f64,
    min: u64,
    max: u64,
    buckets: Vec<(u64, u64)>,
    intervals: Vec<(u64, u64, u64)>,
}

#[pymethods]
impl IoLog {
    #[new]
    fn new(interval_ms: u64) -> IoLog {
        IoLog(io_log::IoLog::new(interval_ms))
    }

    fn add(&mut self, py: Python<'_>, text: &[u8], begin: usize, end: usize, offset: u64) -> PyResult<()> {
        let lines = part(text, begin, end)?;
        py.detach(|| self.0.add(lines, offset)).map_err(unread)
    }

    fn merge(&mut self, later: &IoLog) {
        self.0.merge(&later.0);
    }

    fn directions(&self) -> Vec<Option<LogDirection>> {
        self.0.directions.iter().map(direction).collect()
    }
}

fn direction(of: &io_log::Direction) -> Option<LogDirection> {
    Some(LogDirection {
        count: of.values.count(),
        bytes: of.bytes,
        last_ms: of.last_ms,
        mean: of.values.mean_ns()?,
        stddev: of.values.stddev_ns()?,
        min: of.values.min_ns()?,
        max: of.values.max_ns()?,
        buckets: of.values.buckets().map(|bucket| (bucket.high_ns, bucket.count)).collect(),
        intervals: of.intervals.iter().map(|one| (one.count, one.bytes, one.sum)).collect(),
    })
}

fn role(name: &str) -> PyResult<Role> {
    match name {
        "key" => Ok(Role::Key),
        "number" => Ok(Role::Number),
        "ignored" => Ok(Role::Ignored),
        _ => Err(PyValueError::new_err(format!("{name}: no role"))),
    }
}

fn part(text: &[u8], begin: usize, end: usize) -> PyResult<&[u8]> {
    text.get(begin..end).ok_or_else(|| PyValueError::new_err(format!("{begin} to {end} is not in the text")))
}

fn unread(error: UnreadLine) -> PyErr {
    PyValueError::new_err(error.offset)
}
