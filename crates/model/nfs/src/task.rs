//! A call on its way through the client.

use super::call::{Call, Placement};
use events::slab::Id;
use events::time::Time;

pub(super) type TaskId = Id<Task>;

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Until a worker runs it.
    Start,
    /// Waiting for a slot.
    Backlog,
    Encode,
    /// In the transmit queue, or being marshalled.
    Transmit,
    /// Posted, until the receive worker finds the request for its reply.
    RoundTrip,
    /// The reply's handling.
    Reply,
    /// The reply was handled, and the Send is still mapped.
    SendWait,
    /// Woken, decoded and released.
    Finish,
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) call: Call,
    pub(super) stage: Stage,
    /// Since when it has been in this stage.
    pub(super) since: Time,
    pub(super) started_at: Time,
    /// When the call was about to be posted.
    pub(super) stamped_at: Time,
    /// From there to finding the request for the reply.
    pub(super) rtt_ns: Time,
    /// While it has one.
    pub(super) slot: Option<u16>,
    pub(super) placement: Placement,
    pub(super) halves: Halves,
}

/// What has to come together before a call is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Halves {
    pub(super) reply_handled: bool,
    /// The Send is done and nothing of it is mapped any more.
    pub(super) send_unmapped: bool,
}

impl Task {
    pub(super) fn new(call: Call, now: Time) -> Task {
        Task {
            call,
            stage: Stage::Start,
            since: now,
            started_at: now,
            stamped_at: now,
            rtt_ns: 0,
            slot: None,
            placement: Placement::PulledUp { copied_bytes: 0 },
            halves: Halves { reply_handled: false, send_unmapped: true },
        }
    }
}

impl Halves {
    #[inline]
    pub(super) fn are_both(self) -> bool {
        self.reply_handled && self.send_unmapped
    }
}
