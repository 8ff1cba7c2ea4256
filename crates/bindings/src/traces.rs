//! Files of traces.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::sync::{Arc, Mutex, PoisonError};

use engine::schedule_file;
use engine::trace_file::{self, TraceSpec};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ruzstd::encoding::CompressionLevel;
use workload::traced::{Schedule, TraceChoice};

use crate::border::{json, specification, timeout, value_error};

/// A trace that is being read.
#[pyclass(frozen)]
pub struct TraceJob(trace_file::TraceJob);

#[pymethods]
impl TraceJob {
    #[staticmethod]
    fn start(py: Python<'_>, spec_json: &str) -> PyResult<TraceJob> {
        let spec: TraceSpec = specification("trace specification", spec_json)?;
        py.detach(|| trace_file::TraceJob::start(spec)).map(TraceJob).map_err(value_error)
    }

    fn events(&self) -> u64 {
        self.0.events()
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        let timeout = timeout(timeout_s)?;
        match py.detach(|| self.0.wait(timeout)) {
            None => Ok(None),
            Some(Ok(figures)) => json(&figures).map(Some),
            Some(Err(error)) => Err(value_error(error)),
        }
    }
}

/// Requests of a trace, as columns.
#[pyclass(frozen)]
pub struct TraceRows(Mutex<trace_file::TraceRows>);

#[pymethods]
impl TraceRows {
    #[staticmethod]
    fn open(py: Python<'_>, spec_json: &str) -> PyResult<TraceRows> {
        let spec: TraceSpec = specification("trace specification", spec_json)?;
        py.detach(|| trace_file::TraceRows::open(&spec)).map(|rows| TraceRows(Mutex::new(rows))).map_err(value_error)
    }

    fn next<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
        let columns = py.detach(|| {
            let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            rows.next(count)
        });
        let columns = columns.map_err(value_error)?;
        Ok(columns.map(|columns| columns.iter().map(|column| PyBytes::new(py, column)).collect()))
    }

    fn began_ns(&self) -> Option<u64> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.began_ns()
    }

    fn device_names(&self) -> (BTreeMap<u32, String>, bool) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.device_names()
    }

    fn names(&self) -> BTreeMap<u32, String> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.names()
    }
}

/// The I/Os of a trace that can be replayed.
#[pyclass(frozen)]
pub struct TraceSchedule(Arc<Schedule>);

#[pymethods]
impl TraceSchedule {
    #[staticmethod]
    fn open(py: Python<'_>, choice_json: &str) -> PyResult<TraceSchedule> {
        let choice: TraceChoice = specification("choice of a trace", choice_json)?;
        py.detach(|| schedule_file::schedule(&choice)).map(TraceSchedule).map_err(value_error)
    }

    fn summary(&self, py: Python<'_>, region_bytes: u64) -> PyResult<String> {
        if region_bytes == 0 {
            return Err(value_error("region_bytes = 0; expected at least 1"));
        }
        json(&py.detach(|| self.0.summary(region_bytes)))
    }

    fn table(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.table())
    }
}

/// Watches a recording while it is made.
#[pyclass(frozen)]
pub struct TraceWatch(Mutex<trace::watch::Watch>);

#[pymethods]
impl TraceWatch {
    #[new]
    fn new(header_page: &str, formats: Vec<String>, limit_ns: u64) -> PyResult<TraceWatch> {
        let formats: Vec<&str> = formats.iter().map(String::as_str).collect();
        trace::watch::Watch::new(header_page, &formats, limit_ns)
            .map(|watch| TraceWatch(Mutex::new(watch)))
            .map_err(value_error)
    }

    fn add(&self, py: Python<'_>, cpu: u16, page: &[u8]) -> Option<u64> {
        py.detach(|| {
            let mut watch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            watch.add(cpu, page)
        })
    }
}

/// Name and type of each column of `TraceRows`.
#[pyfunction]
pub fn trace_columns() -> Vec<(&'static str, &'static str)> {
    trace::output::ROW_COLUMNS.to_vec()
}

/// Bytes packed as one frame of zstd.
#[pyfunction]
pub fn zstd<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    let packed = py.detach(|| ruzstd::encoding::compress_to_vec(data, CompressionLevel::Fastest));
    PyBytes::new(py, &packed)
}

/// What frames of zstd hold. OverflowError above `limit` bytes, ValueError for what can't be unpacked.
#[pyfunction]
pub fn unzstd<'py>(py: Python<'py>, data: &[u8], limit: u64) -> PyResult<Bound<'py, PyBytes>> {
    let packed = Cursor::new(data.to_vec());
    let mut bytes = Vec::new();
    py.detach(|| {
        let content = trace::input::unpacked("zstd", Box::new(packed)).map_err(value_error)?;
        content.take(limit + 1).read_to_end(&mut bytes).map_err(value_error)
    })?;
    if bytes.len() as u64 > limit {
        return Err(PyOverflowError::new_err(format!("more than {limit} bytes")));
    }
    Ok(PyBytes::new(py, &bytes))
}
