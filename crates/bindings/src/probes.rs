//! Probes of a phase.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::border::{json, specification, start_error};

/// Probes under way.
#[pyclass(frozen)]
pub struct Probes(Mutex<Option<engine::probe::Probes>>);

#[pymethods]
impl Probes {
    #[staticmethod]
    fn start(py: Python<'_>, spec_json: &str) -> PyResult<Probes> {
        let spec = specification("probe specification", spec_json)?;
        py.detach(|| engine::probe::Probes::start(&spec))
            .map(|probes| Probes(Mutex::new(Some(probes))))
            .map_err(start_error)
    }

    fn stop(&self, py: Python<'_>) -> PyResult<String> {
        let observed = py.detach(|| {
            let mut probes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            probes.take().map(engine::probe::Probes::stop)
        });
        match observed {
            Some(observed) => json(&observed),
            None => Err(PyValueError::new_err("these probes have been stopped")),
        }
    }
}
