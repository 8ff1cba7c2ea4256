#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! The border to Python: parse arguments, release the GIL, map errors; and what drives a simulation.

mod border;
mod file_extents;
mod json_schema;
mod metadata;
#[cfg(feature = "model")]
mod model;
mod probes;
#[cfg(feature = "model")]
mod simulation;
mod sums;
mod traces;

use std::sync::Arc;

use base::units;
use border::{finished, json, specification, start_error, timeout, value_error};
use file_extents::extents;
use json_schema::schema;
use metadata::MetadataLoad;
#[cfg(feature = "model")]
use model::{Model, check_simulated_load, drive_sizes, time_tunables_ns, unread_keys};
use probes::Probes;
use pyo3::prelude::*;
use rows::toml_lines::Name;
use sums::{IoLog, LogDirection, RowGroups};
use traces::{TraceJob, TraceRows, TraceSchedule, TraceWatch, trace_columns, unzstd, zstd};
use workload::steady;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        IoLog, Load, LogDirection, Memory, MetadataLoad, Probes, RowGroups, Sort, TraceJob, TraceRows, TraceSchedule,
        TraceWatch, build_profile, calibrate_clock, check_load, extents, features, format_bytes, format_duration_ns,
        parse_bytes, parse_duration_ns, parse_rate, schema, steady_cut, toml_lines, trace_columns, unzstd, zstd,
    };
    #[cfg(feature = "model")]
    #[pymodule_export]
    use super::{Model, check_simulated_load, drive_sizes, time_tunables_ns, unread_keys};
}

/// What verification remembers between the phases of one trial.
#[pyclass(frozen)]
struct Memory(Arc<engine::Memory>);

#[pymethods]
impl Memory {
    #[new]
    fn new() -> Memory {
        Memory(Arc::default())
    }
}

/// A phase under way.
#[pyclass(frozen)]
struct Load(engine::Handle);

#[pymethods]
impl Load {
    #[staticmethod]
    fn start(py: Python<'_>, phase_json: &str, memory: &Memory) -> PyResult<Load> {
        let phase = specification("phase specification", phase_json)?;
        let memory = Arc::clone(&memory.0);
        py.detach(|| engine::start(phase, memory)).map(Load).map_err(start_error)
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

/// A sort under way.
#[pyclass(frozen)]
struct Sort(engine::Sort);

#[pymethods]
impl Sort {
    #[staticmethod]
    fn start(spec_json: &str) -> PyResult<Sort> {
        let spec = specification("sort specification", spec_json)?;
        engine::Sort::start(spec).map(Sort).map_err(start_error)
    }

    fn snapshot(&self) -> PyResult<String> {
        json(&self.0.snapshot())
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        let timeout = timeout(timeout_s)?;
        py.detach(|| self.0.wait(timeout)).map(|record| json(&record)).transpose()
    }
}

/// What this kernel lets the engine use, as JSON.
#[pyfunction]
fn features(py: Python<'_>) -> PyResult<String> {
    json(&py.detach(engine::features))
}

/// Measures the rate of the time stamp counter, for this process and those that it forks later.
#[pyfunction]
fn calibrate_clock(py: Python<'_>) {
    py.detach(engine::calibrate_clock);
}

/// Checks a load phase without opening anything; ValueError names what no machine can run.
#[pyfunction]
fn check_load(phase_json: &str) -> PyResult<()> {
    let phase = specification("phase specification", phase_json)?;
    workload::check_phase::check_phase(&phase).map_err(value_error)
}

/// "release" or "debug".
#[pyfunction]
fn build_profile() -> &'static str {
    engine::BUILD_PROFILE
}

#[pyfunction]
fn parse_bytes(text: &str) -> PyResult<u64> {
    units::parse_bytes(text).map_err(value_error)
}

#[pyfunction]
fn parse_duration_ns(text: &str) -> PyResult<u64> {
    units::parse_duration_ns(text).map_err(value_error)
}

/// Bytes per second.
#[pyfunction]
fn parse_rate(text: &str) -> PyResult<f64> {
    units::parse_rate(text).map(|rate| rate as f64).map_err(value_error)
}

#[pyfunction]
fn format_bytes(n: u64) -> String {
    units::format_bytes(n)
}

#[pyfunction]
fn format_duration_ns(n: u64) -> String {
    units::format_duration_ns(n)
}

/// A key, or the number of an element.
#[derive(IntoPyObject)]
enum TomlName {
    Key(String),
    Element(usize),
}

/// The keys and array elements of a TOML file: the number of the node around each (None: the file), its name, its line.
/// ValueError for a text that is no TOML.
#[pyfunction]
fn toml_lines(py: Python<'_>, text: &str) -> PyResult<Vec<(Option<usize>, TomlName, usize)>> {
    let nodes = py.detach(|| rows::toml_lines::nodes(text)).map_err(value_error)?;
    let named = nodes.into_iter().map(|node| {
        let name = match node.name {
            Name::Key(key) => TomlName::Key(key),
            Name::Element(number) => TomlName::Element(number),
        };
        (node.parent, name, node.line)
    });
    Ok(named.collect())
}

/// How many leading intervals are a transient, and whether the rest is steady.
#[pyfunction]
fn steady_cut(rates: Vec<f64>) -> (usize, bool) {
    let cut = steady::transient(&rates);
    (cut.intervals, cut.steady)
}
