//! What becomes of bios, one by one and counted.

use crate::{Bio, RequestId, Side};

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

/// What became of a bio that came into its task's plug.
#[derive(Clone, Debug)]
pub enum AllocateOutcome {
    /// It joined a queued request.
    Merged,
    /// It has a request, and the plug holds it.
    Plugged(Bio),
    /// There is no request for it: its task sleeps.
    MustWait(Bio),
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
