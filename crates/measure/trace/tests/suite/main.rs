//! One program for all tests of the crate that need more than a function.

mod blktrace;
mod block;
mod block_cpus;
mod format;
mod ftrace;
mod fuzz;
mod iolog;
mod known_truth;
mod page;
mod recordings;
mod sched;
mod schedule;
mod support;
mod watch;
