//! Who leaves a CPU, where, for how long, and why so long: the scheduler's tracepoints (include/trace/events/sched.h) and
//! stack samples taken at context switches.

mod analysis;
mod event;
mod rates;
mod report;
mod site;
mod stalls;
mod tables;
mod waits;

pub use analysis::Analysis;
pub use event::{Comm, EVENTS, SchedDecoder, SchedEvent, SchedKind, State};
pub use report::{SiteReport, Stall, SwitchReport, TaskReport};
pub use site::site_of;
