//! Placement handles: the host names the lifetime of what it writes, and each handle's data have blocks of their own
//! (Flexible Data Placement, TP4146 of the NVM Express base specification; streams before it).

use serde::Deserialize;

use events::SpecError;
use events::spec_error::within;

/// The handles of a device; a machine file's table `placement`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Kinds of data that have blocks of their own.
    #[schemars(range(min = 1, max = HANDLES_MAX))]
    pub handles: u32,
    /// What becomes of data that garbage collection moves.
    pub isolation: Isolation,
}

/// The type of a reclaim unit handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Data of different handles may share a block once they have been moved.
    Initially,
    /// They never do.
    Persistently,
}

const HANDLES_MAX: u64 = 128;

/// Names one of a device's handles.
pub(super) type Handle = u8;

impl Placement {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        within("handles", u64::from(self.handles), 1, HANDLES_MAX)
    }

    pub(super) fn is_persistent(&self) -> bool {
        self.isolation == Isolation::Persistently
    }
}

/// Of a write stream, of which 0 is none. One that is beyond the handles goes where data without a stream go
/// (`nvme_setup_rw` of 6.16 names the handle of stream s by the (s - 1)th placement identifier, and the block layer names
/// no stream that the drive does not have).
pub(super) fn handle_of(stream: u8, handles: u32) -> Handle {
    match u32::from(stream) <= handles {
        true => stream.saturating_sub(1),
        false => 0,
    }
}
