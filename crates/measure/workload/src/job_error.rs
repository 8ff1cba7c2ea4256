//! What is wrong with a job's specification.

use thiserror::Error;

/// A job that cannot be run: which one, which key, what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("job \"{job}\": {key}: {message}")]
pub struct JobError {
    /// The job's name.
    pub job: String,
    /// The field of `JobSpec`.
    pub key: &'static str,
    /// What was found and what was expected.
    pub message: String,
}
