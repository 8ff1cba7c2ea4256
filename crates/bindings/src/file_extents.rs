//! Where files lie on their device.

use std::path::PathBuf;

use engine::extents::{Bounds, examine};
use pyo3::prelude::*;

use crate::border::{json, specification};

/// Each file's extents and how the files interleave, as JSON.
#[pyfunction]
pub fn extents(py: Python<'_>, paths: Vec<PathBuf>, bounds_json: &str) -> PyResult<String> {
    let bounds: Bounds = specification("bounds of extents", bounds_json)?;
    json(&py.detach(|| examine(&paths, bounds)))
}
