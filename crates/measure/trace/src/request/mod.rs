//! From events to requests: each with the time at which it was where, as far as the events determine it.
//!
//! The tracepoints name no request: what an event is about is found by its sectors, its operation and, while the
//! submitter still runs, its task. If two could be meant, neither's time is reported from there on; if events are
//! missing, nothing that could have ended in them is paired with what comes after. So every reported time is exact.
//!
//! ```text
//! bio:      queue ─┬─ split ─┐
//!                  │ ◄───────┘
//!                  ├─ back or front merge ──────► part of a request
//!                  └─ get request ─► request ─ insert ─ issue ─ complete
//!                                       └─ merged into the request before it
//! ```

mod change;
mod device_items;
mod device_step;
mod in_flight;
mod io;
mod losses;
mod merges;
mod request_tracker;
mod unknown;

pub use change::{Change, JoinedBio, State};
pub use io::{Io, Stage, Stages};
pub use request_tracker::RequestTracker;
pub use unknown::Unknown;
