#![forbid(unsafe_code)]
//! What a job does next. Pure: time, seed and bytes are arguments.

pub mod check;
pub mod histogram;
pub mod job;
pub mod metadata;
pub mod pattern;
pub mod rng;
pub mod spec;
pub mod steady;
pub mod timeline;
pub mod units;
pub mod verify;

mod exclusion;
mod files;
mod mix;
mod op;
mod pacing;
mod permutation;
mod syncs;
mod zipf;
