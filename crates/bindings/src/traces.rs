//! Files of traces.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use engine::trace_file::{self, TraceSpec};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{json, specification, timeout, value_error};

/// A trace that is being read.
#[pyclass(frozen)]
pub struct TraceJob(trace_file::TraceJob);

#[pymethods]
impl TraceJob {
    #[staticmethod]
    fn start(py: Python<'_>, spec_json: &str) -> PyResult<TraceJob> {
        let spec: TraceSpec = specification("trace specification", spec_json)?;
        py.detach(|| trace_file::TraceJob::start(spec))
            .map(TraceJob)
            .map_err(value_error)
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
        py.detach(|| trace_file::TraceRows::open(&spec))
            .map(|rows| TraceRows(Mutex::new(rows)))
            .map_err(value_error)
    }

    fn next<'py>(
        &self,
        py: Python<'py>,
        count: usize,
    ) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
        let columns = py.detach(|| {
            let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            rows.next(count)
        });
        let columns = columns.map_err(value_error)?;
        Ok(columns.map(|columns| {
            columns
                .iter()
                .map(|column| PyBytes::new(py, column))
                .collect()
        }))
    }

    fn names(&self) -> BTreeMap<u32, String> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.names()
    }
}

/// Name and type of each column of `TraceRows`.
#[pyfunction]
pub fn trace_columns() -> Vec<(&'static str, &'static str)> {
    trace::output::ROW_COLUMNS.to_vec()
}
