#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! What measuring and simulating have in common. Pure: time and seeds are arguments.

pub mod histogram;
pub mod permutation;
pub mod rng;
pub mod spec_error;
pub mod time;
pub mod units;
pub mod usage;

pub use spec_error::SpecError;

/// Bytes of a sector, whatever the device's own block size: what kernels count in.
pub const SECTOR_BYTES: u64 = 512;
