//! What an event changes of what is in flight.

use super::io::Io;

/// A bio that joined a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinedBio {
    /// When it was queued; None if the trace does not determine it.
    pub queued_ns: Option<u64>,
    /// Where it was queued.
    pub cpu: u16,
}

/// How far a bio or a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A bio; nothing shows that it became a request.
    Bio,
    /// A request that waits.
    Waiting,
    /// With the driver.
    Issued,
}

/// What became of bios and requests. Among all changes since the beginning, those that bring something in flight
/// (`Queued`, `Split`, `Unqueued`, and `Merged` of what was not seen) are as many as those that end it (`Merged`,
/// `Ended`, `GivenUp`) and what is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A bio entered the block layer.
    Queued,
    /// A bio is two bios from now on.
    Split,
    /// A request of which no bio was seen.
    Unqueued,
    /// A bio or a request became part of a request.
    Merged {
        /// Whether it was known; if not, it begins and ends here.
        seen: bool,
    },
    /// The driver got a request.
    Issued {
        /// For the first time if `requeues` is 0.
        io: &'a Io,
        /// What joined it.
        joined: &'a [JoinedBio],
    },
    /// The driver gave a request back.
    Requeued,
    /// The first sectors of a request completed.
    Part,
    /// A request completed, or a bio of a device without requests.
    Ended {
        /// With the times that are determined.
        io: &'a Io,
        /// What had joined it; nothing of a request that events were lost of.
        joined: &'a [JoinedBio],
        /// How far it was.
        from: State,
    },
    /// The flush after a write with FUA completed, on a device without FUA; the write had ended with its data.
    Flushed,
    /// It should long have ended: its end was probably lost.
    GivenUp {
        /// How far it was.
        from: State,
    },
    /// The event is about something that is not known.
    Unmatched,
}
