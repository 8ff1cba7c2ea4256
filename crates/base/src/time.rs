//! Time as a number: 64-bit nanoseconds.

/// Simulated or real time since the start of the phase, in nanoseconds.
pub type Time = u64;

/// 1000 ns.
pub const MICROSECOND: Time = 1_000;
/// 10^6 ns.
pub const MILLISECOND: Time = 1_000_000;
/// 10^9 ns.
pub const SECOND: Time = 1_000_000_000;
