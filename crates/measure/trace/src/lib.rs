#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! Kernel traces: bytes in, events and their analysis out; and events in, traces as the kernel writes them out. Pure: time
//! and bytes are arguments.

pub mod block;
pub mod decode;
pub mod distribution;
pub mod event;
pub mod extents;
pub mod format;
pub mod ftrace;
pub mod input;
pub mod intervals;
pub mod output;
pub mod page;
pub mod profile;
mod recent;
pub mod recording;
pub mod request;
pub mod sample;
pub mod sched;
pub mod schedule;
pub mod study;
pub mod tracepoints;
pub mod watch;
