//! Why a plan ends early.

use std::io;

use engine::StartError;
use serde::Serialize;

/// Why the plan ended early.
#[derive(Serialize)]
pub struct Failed {
    pub what: String,
    pub errno: Option<i32>,
    pub step: Option<usize>,
    /// Whether the plan asks for something impossible, as opposed to a kernel that refuses.
    pub of_plan: bool,
}

impl Failed {
    /// In a line.
    pub fn what(what: String) -> Failed {
        Failed {
            what,
            errno: None,
            step: None,
            of_plan: true,
        }
    }

    /// Something went wrong in the machine.
    pub fn of_machine(what: String) -> Failed {
        Failed {
            of_plan: false,
            ..Failed::what(what)
        }
    }

    /// The kernel refused something about `path`.
    pub fn os(path: &str, error: &io::Error) -> Failed {
        Failed {
            what: format!("{path}: {error}"),
            errno: error.raw_os_error(),
            step: None,
            of_plan: false,
        }
    }

    /// At this step.
    pub fn at(self, step: usize) -> Failed {
        Failed {
            step: Some(step),
            ..self
        }
    }

    /// A load can't begin.
    pub fn to_start(error: StartError) -> Failed {
        match error {
            StartError::Spec(what) => Failed::what(what),
            StartError::Os { errno, .. } => Failed {
                what: error.to_string(),
                errno: Some(errno),
                step: None,
                of_plan: false,
            },
        }
    }
}
