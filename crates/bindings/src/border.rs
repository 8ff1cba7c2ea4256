//! What crosses the border: JSON, durations, errors.

use std::time::Duration;

use engine::{RunError, StartError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub fn timeout(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("timeout_s = {seconds}: {error}")))
}

pub fn specification<T: DeserializeOwned>(what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}

pub fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(value_error)
}

pub fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// OSError takes its errno, message and file name apart, so that Python picks the right subclass.
pub fn start_error(error: StartError) -> PyErr {
    match error {
        StartError::Spec(message) => PyValueError::new_err(message),
        StartError::Os { errno, ref path, .. } => PyOSError::new_err((errno, error.message(), path.clone())),
    }
}

/// The record as JSON, if the work is over.
pub fn finished<R: Serialize>(outcome: Option<Result<R, RunError>>) -> PyResult<Option<String>> {
    match outcome {
        None => Ok(None),
        Some(Ok(record)) => json(&record).map(Some),
        Some(Err(error)) => Err(run_error(&error)),
    }
}

fn run_error(error: &RunError) -> PyErr {
    PyOSError::new_err((error.errno, error.to_string()))
}
