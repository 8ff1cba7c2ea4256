//! The clock of a phase.

/// Simulated or real time since the start of the phase, in nanoseconds.
pub type Time = u64;
