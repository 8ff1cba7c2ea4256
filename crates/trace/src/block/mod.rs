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
mod levels;
mod measures;
mod report;
mod timing;

pub use analysis::Analysis;
pub use event::{BIO_COMPLETE, BlockDecoder, BlockEvent, Device, EVENTS, Kind, Op};
pub use report::{Activities, Activity, BlockReport, Columns, Conservation, DeviceReport, Series};
