//! What becomes of bios, one by one and counted.

use crate::{RequestId, Side};

/// What became of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// It joined that queued request at that end.
    Merged(RequestId, Side),
    /// A new request was made for it.
    Queued(RequestId),
    /// There is no request for it: its task sleeps until `take_woken` names it, and submits it again.
    MustWait,
}

/// What a queue has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bios taken in; one that had to wait counts when it is submitted again.
    pub bios: u64,
    /// Bios that joined a request at its end.
    pub merges_back: u64,
    /// Bios that joined a request at its start.
    pub merges_front: u64,
    /// Requests that became part of another.
    pub merges_of_requests: u64,
    /// Requests sent to the device.
    pub issued: u64,
    /// Requests that the device has completed.
    pub completed: u64,
}
