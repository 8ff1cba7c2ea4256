//! The I/Os of a trace that a job offers once more, and how they are to be offered: the replay does so.

mod schedule;
mod spec;

pub use schedule::{Process, Schedule, ScheduleSummary, ScheduledIo, TracedDevice};
pub use spec::{Mapping, ReplaySpec, Side, Timing, TraceChoice, TraceTable};
