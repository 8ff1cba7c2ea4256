//! Where files lie on their device.

use std::path::PathBuf;

use engine::extents::{Bounds, examine};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::json;

/// Each file's extents and how the files interleave, as JSON.
#[pyfunction]
pub fn extents(py: Python<'_>, paths: Vec<PathBuf>, bounds_json: &str) -> PyResult<String> {
    let bounds: Bounds = serde_json::from_str(bounds_json)
        .map_err(|error| PyValueError::new_err(format!("bounds of extents: {error}")))?;
    json(&py.detach(|| examine(&paths, bounds)))
}
