//! One program for all tests of the crate that need more than a function.

mod detailed_cpus;
mod fuzz;
mod queues;
