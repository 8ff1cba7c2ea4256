//! Block requests on their way through the kernel, from the block tracepoints (include/trace/events/block.h).
//!
//! ```text
//! bio:      queue ─┬─ split ─┐
//!                  │ ◄───────┘
//!                  ├─ back or front merge ──────► part of a request
//!                  └─ get request ─► request ─ insert ─ issue ─ complete
//!                                       └─ merged into the request before it
//! ```

mod analysis;
mod device;
mod event;
pub(crate) mod in_flight;
mod levels;
mod line;
mod measures;
mod report;
mod timing;
mod under_way;

pub use analysis::Analysis;
pub use event::{BIO_COMPLETE, BlockDecoder, BlockEvent, Device, EVENTS, GET_REQUEST, Kind, Op};
pub use line::{Flags, Rwbs, TraceLine, What};
pub use report::{Activities, Activity, BlockReport, Columns, Conservation, DeviceReport, Series};
