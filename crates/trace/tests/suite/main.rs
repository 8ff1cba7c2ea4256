//! One program for all tests of the crate that need more than a function.

mod block;
mod format;
mod fuzz;
mod page;
mod recorded;
mod sched;
mod support;
