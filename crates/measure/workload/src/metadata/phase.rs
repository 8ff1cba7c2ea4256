//! A metadata load as a whole: threads, each with a directory of its own.

use serde::Deserialize;

use super::spec::MetadataSpec;
use crate::location::Directory;

/// A metadata load as Python hands it to the engine and to the simulated machine.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetadataPhase {
    /// The phase's name in the record.
    pub name: String,
    /// Threads that start together, at least one.
    pub threads: Vec<ThreadSpec>,
}

/// One thread: its directory, its CPUs and what it does.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadSpec {
    /// Where the files go. It is made when it isn't there, but not its parents.
    pub directory: String,
    /// The directory in or below which it lies; null: its path is followed wherever it leads.
    pub beneath: Option<Directory>,
    /// How its calls name files.
    pub paths: PathForm,
    /// CPUs the thread may run on; null leaves it to the scheduler.
    pub cpus: Option<Vec<u32>>,
    /// What it creates, writes, syncs and unlinks.
    pub job: MetadataSpec,
}

/// How a call names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathForm {
    /// By the whole path `directory`, as most programs do; the kernel walks it anew in each call.
    Full,
    /// From a descriptor of `directory`.
    Relative,
}
