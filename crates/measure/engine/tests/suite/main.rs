//! One program for all tests of the crate that need more than a function.

mod common;
mod ends;
mod engines;
mod faults;
mod fuzz;
mod measurement;
mod metadata;
mod probes;
mod stops;
