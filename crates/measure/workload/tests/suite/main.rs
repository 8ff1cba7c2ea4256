//! One program for all tests of the crate that need more than a function.

mod check;
mod fixture;
mod fuzz;
mod job;
mod metadata;
mod queueing;
mod replay;
mod simulator;
