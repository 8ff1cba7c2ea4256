//! What bios carry for the policies of their queue (`qos`).

use events::time::Time;

/// What the policies of its queue know of a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosTicket {
    /// When it was first submitted (`bi_issue`).
    pub submitted_at: Time,
    /// When it had passed all policies (`BIO_QOS_THROTTLED`); None: it joined a request.
    pub passed_at: Option<Time>,
    /// When it got its request.
    pub allocated_at: Time,
    /// What io.cost has charged for it (`bi_iocost_cost`).
    pub cost: u64,
}
