//! Who waits for a file to be written.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::FileId;
use block_layer::TaskId;

/// Who waits for a file to be written.
#[derive(Clone, Debug, Default)]
pub(super) struct Syncs {
    pub(super) waiting: BTreeMap<TaskId, Sync>,
    pub(super) done: BTreeSet<TaskId>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sync {
    pub(super) file: FileId,
    /// Pages had been dirtied while they were written: after that they are written again.
    pub(super) again: bool,
    /// The journal commits as well.
    pub(super) commit: bool,
}
