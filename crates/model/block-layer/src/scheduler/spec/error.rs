//! What can be wrong with the choice of a scheduler.

/// Why a scheduler can't be had; `known` lists what can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadScheduler {
    /// The name is missing.
    #[error("scheduler: the name is missing, expected one of {}", list(.known))]
    Nameless {
        /// The names that the kernel has.
        known: Vec<&'static str>,
    },
    /// The kernel has no scheduler of this name.
    #[error("scheduler {name:?} is not in kernel {kernel}, which has {}", list(.known))]
    Unknown {
        /// The name.
        name: String,
        /// The kernel.
        kernel: String,
        /// The names that it has.
        known: Vec<&'static str>,
    },
    /// The scheduler has no such version.
    #[error("scheduler {name} has no version {version:?}, expected one of {}", list(.known))]
    Version {
        /// The scheduler's name.
        name: String,
        /// The version.
        version: String,
        /// The versions that there are.
        known: Vec<&'static str>,
    },
    /// The kernel never had that version of the scheduler.
    #[error("scheduler {name} has version {version:?} in kernels {kernels}, and none such in {kernel}")]
    NotThen {
        /// The scheduler's name.
        name: String,
        /// The version.
        version: String,
        /// The kernel.
        kernel: String,
        /// Those that have it, in words.
        kernels: String,
    },
    /// The kernel's version can't be read.
    #[error("kernel {kernel:?} is no version, expected one like 2.6.35, 2.5.59-mm2 or 6.x")]
    Kernel {
        /// What was given.
        kernel: String,
    },
    /// The scheduler has no such tunable.
    #[error("scheduler {scheduler} has no tunable {tunable:?}, it has {}", list(.known))]
    Tunable {
        /// The scheduler's name.
        scheduler: String,
        /// The tunable.
        tunable: String,
        /// The tunables that it has.
        known: Vec<&'static str>,
    },
    /// The tunable has a value that is not accepted.
    #[error("scheduler {scheduler}: {tunable} is {value:?}, expected {expected}")]
    Value {
        /// The scheduler's name.
        scheduler: String,
        /// The tunable.
        tunable: String,
        /// The value.
        value: String,
        /// What is accepted.
        expected: String,
    },
}

impl BadScheduler {
    /// The tunable that is wrong; None: the scheduler itself.
    pub fn tunable(&self) -> Option<&str> {
        match self {
            BadScheduler::Tunable { tunable, .. } | BadScheduler::Value { tunable, .. } => Some(tunable),
            _ => None,
        }
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
