#![forbid(unsafe_code)]
//! Kernel traces: bytes in, events and their analysis out. Pure: time and bytes are arguments.

pub mod format;
pub mod merge;
pub mod page;
