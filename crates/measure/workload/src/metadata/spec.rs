//! What one thread of a metadata load does, as Python describes it.

use serde::Deserialize;

use super::names::NameSpec;
use super::walk::WalkSpec;

/// What one thread of a metadata load does, as Python describes it.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetadataSpec {
    /// The thread's name in the record.
    pub name: String,
    /// How many files it creates.
    pub files: u64,
    /// The size of each file in bytes.
    pub file_bytes: u64,
    /// Bytes of one write call; a file's last call writes what is left.
    pub write_bytes: u32,
    /// When its files become durable.
    pub sync: SyncMethod,
    /// Leave the files where they are.
    pub keep: bool,
    /// A full filesystem is where the writing is to end, and no failure; `files` is then the most.
    pub until_full: bool,
    /// None: all files lie directly in the thread's directory.
    pub subdirectories: Option<WalkSpec>,
    /// How its files are named.
    pub names: NameSpec,
    /// Seeds the random parts of the names.
    pub seed: u64,
}

/// When files become durable. "Again" is: opened once more by name, fsynced, closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncMethod {
    /// Never: the kernel's writeback decides.
    None,
    /// Each file by fsync before it is closed.
    BeforeClose,
    /// One sync of the whole system after all files are written, then the first file again.
    SystemThenFirst,
    /// After all files are written, each again, the last one first.
    Reverse,
    /// One sync of the whole system after all files are written, then each again, the last one first.
    SystemThenReverse,
    /// After all files are written, each again, in the order of writing.
    InOrder,
    /// One sync of the whole system after all files are written, then each again, in the order of writing.
    SystemThenInOrder,
}

impl SyncMethod {
    pub(super) fn syncs_system(self) -> bool {
        matches!(self, SyncMethod::SystemThenFirst | SyncMethod::SystemThenReverse | SyncMethod::SystemThenInOrder)
    }

    /// How many of `files` written are synced again.
    pub(super) fn again_count(self, files: u64) -> u64 {
        match self {
            SyncMethod::None | SyncMethod::BeforeClose => 0,
            SyncMethod::SystemThenFirst => 1,
            _ => files,
        }
    }
}
