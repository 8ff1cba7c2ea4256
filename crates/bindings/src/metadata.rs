//! Metadata loads.

use engine::metadata::{MetadataPhase, start};
use pyo3::prelude::*;

use crate::border::{finished, json, specification, start_error, timeout};

/// A metadata load under way.
#[pyclass(frozen)]
pub struct MetadataLoad(engine::Handle<MetadataPhase>);

#[pymethods]
impl MetadataLoad {
    #[staticmethod]
    fn start(py: Python<'_>, phase_json: &str) -> PyResult<MetadataLoad> {
        let phase = specification("phase specification", phase_json)?;
        py.detach(|| start(phase)).map(MetadataLoad).map_err(start_error)
    }

    fn snapshot(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| self.0.snapshot()))
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        let timeout = timeout(timeout_s)?;
        finished(py.detach(|| self.0.wait(timeout)))
    }
}
