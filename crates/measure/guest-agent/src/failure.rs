//! Why a plan ends early.

use std::io;

use engine::StartError;
use serde::Serialize;

/// Why the plan ended early.
#[derive(Serialize)]
pub struct Failure {
    pub what: String,
    pub errno: Option<i32>,
    pub step: Option<usize>,
    /// Whether the plan asks for something impossible, as opposed to a kernel that refuses.
    pub of_plan: bool,
}

impl Failure {
    /// In a line.
    pub fn what(what: String) -> Failure {
        Failure { what, errno: None, step: None, of_plan: true }
    }

    /// Something went wrong in the machine.
    pub fn of_machine(what: String) -> Failure {
        Failure { of_plan: false, ..Failure::what(what) }
    }

    /// The kernel refused something about `path`.
    pub fn os(path: &str, error: &io::Error) -> Failure {
        Failure { what: format!("{path}: {error}"), errno: error.raw_os_error(), step: None, of_plan: false }
    }

    /// At this step.
    pub fn at(self, step: usize) -> Failure {
        Failure { step: Some(step), ..self }
    }

    /// A load can't begin.
    pub fn to_start(error: StartError) -> Failure {
        match error {
            StartError::Spec(what) => Failure::what(what),
            StartError::Os { errno, .. } => {
                Failure { what: error.to_string(), errno: Some(errno), step: None, of_plan: false }
            }
        }
    }
}
