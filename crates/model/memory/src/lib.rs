#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! What the simulated machine's memory holds: pages of files (`cache`), and pages of processes that it is too small for (`swap`).

pub mod cache;
pub mod swap;
