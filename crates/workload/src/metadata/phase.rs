//! A metadata load as a whole: threads, each with a directory of its own.

use serde::Deserialize;

use super::MetadataSpec;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetadataPhase {
    pub name: String,
    pub threads: Vec<ThreadSpec>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadSpec {
    /// Where the files go. It is made when it isn't there, but not its parents.
    pub directory: String,
    pub paths: PathForm,
    /// CPUs the thread may run on; null leaves it to the scheduler.
    pub cpus: Option<Vec<u32>>,
    pub job: MetadataSpec,
}

/// How a call names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathForm {
    /// By `directory` and all that it says, as most programs do; the kernel walks it anew in each call.
    Full,
    /// From a descriptor of `directory`.
    Relative,
}
