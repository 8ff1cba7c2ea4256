//! What probes see on the simulated machine, in the shapes that the host's have.
//!
//! [`block::BlockProbe`] takes the queues' events and makes of them what the host's probe makes of the kernel's, and on
//! request a trace that blktrace's and ftrace's tools read.

pub mod block;
pub mod counters;
pub mod cpu;
pub mod extents;
pub mod io_cost;
mod line;
pub mod nfs;
pub mod sampled;
mod trace_files;

pub use trace_files::TraceFormat;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tools;
