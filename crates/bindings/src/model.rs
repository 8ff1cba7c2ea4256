//! A simulated machine.

use std::collections::BTreeMap;

use base::{SECTOR_BYTES, SpecError};
use engine::extents::Bounds;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::Value;
use stack::machine::MachineSpec;
use stack::model::{self, ObservedPhase};

use crate::border::{json, specification, timeout};
use crate::simulation::{NoPhase, Simulation};

/// Switched on; its phases run one after the other.
#[pyclass(frozen)]
pub struct Model(Simulation);

#[pymethods]
impl Model {
    #[new]
    fn new(py: Python<'_>, machine_json: &str) -> PyResult<Model> {
        let machine: Value = specification("machine", machine_json)?;
        py.detach(|| Simulation::new(&MachineSpec::from_json(machine)?)).map(Model).map_err(to_value_error)
    }

    fn start(&self, py: Python<'_>, phase_json: &str) -> PyResult<()> {
        let phase: Value = specification("phase", phase_json)?;
        let phase = ObservedPhase::from_json(phase).map_err(to_value_error)?;
        py.detach(|| self.0.start(phase)).map_err(|error| match error {
            NoPhase::SpecError(error) => to_value_error(error),
            NoPhase::Wrong(what) => PyRuntimeError::new_err(what),
        })
    }

    fn snapshot(&self) -> PyResult<String> {
        json(&self.0.snapshot())
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        let timeout = timeout(timeout_s)?;
        py.detach(|| self.0.wait(timeout)).map_err(runtime_error)?.map(|record| json(&record)).transpose()
    }

    /// The trace files of the last phase by their names.
    fn take_traces(&self) -> PyResult<BTreeMap<String, Vec<u8>>> {
        self.0.take_traces().map_err(runtime_error)
    }

    /// As the function `extents`, of the model's files.
    fn extents(&self, paths: Vec<String>, bounds_json: &str) -> PyResult<String> {
        let bounds: Bounds = specification("bounds of extents", bounds_json)?;
        let examined = self.0.between_phases(|model| model.examine(paths, bounds)).map_err(runtime_error)?;
        json(&examined)
    }

    fn check(&self) -> PyResult<()> {
        self.0.between_phases(|model| model.check()).map_err(runtime_error)?.map_err(runtime_error)
    }
}

/// The keys of a machine's file that nothing reads while any of the phases runs, each with when it would be read.
#[pyfunction]
pub fn unread_keys(
    py: Python<'_>,
    machine_json: &str,
    phases_json: &str,
    keys: Vec<String>,
) -> PyResult<Vec<(String, Option<String>)>> {
    let machine: Value = specification("machine", machine_json)?;
    let phases: Vec<Value> = specification("phases", phases_json)?;
    let unread = py.detach(|| model::unread(&MachineSpec::from_json(machine)?, &phases, &keys));
    Ok(unread.map_err(to_value_error)?.into_iter().map(|found| (found.key, found.read_when)).collect())
}

/// Whether a machine can be asked a load, without switching it on.
#[pyfunction]
pub fn check_simulated_load(py: Python<'_>, machine_json: &str, load_json: &str) -> PyResult<()> {
    let machine: Value = specification("machine", machine_json)?;
    let load: Value = specification("load", load_json)?;
    py.detach(|| model::check_load(&MachineSpec::from_json(machine)?, load)).map_err(to_value_error)
}

/// What one unit of each scheduler tunable that is a time is in nanoseconds, as JSON.
#[pyfunction]
pub fn time_tunables_ns() -> PyResult<String> {
    json(&stack::time_tunables_ns())
}

/// How many bytes each drive of a machine has.
#[pyfunction]
pub fn drive_sizes(machine_json: &str) -> PyResult<Vec<u64>> {
    let machine: Value = specification("machine", machine_json)?;
    let machine = MachineSpec::from_json(machine).map_err(to_value_error)?;
    let drives = (0..machine.drive_count()).filter_map(|drive| machine.drive_sectors(drive));
    Ok(drives.map(|sectors| sectors * SECTOR_BYTES).collect())
}

/// Key and reason.
fn to_value_error(error: SpecError) -> PyErr {
    PyValueError::new_err((error.key, error.what))
}

fn runtime_error(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
