//! What a phase's threads came back with, and when it began.

use workload::assemble::Circumstances;

use crate::BUILD_PROFILE;
use crate::clock::{Origin, monotonic_ns, unix_ns};

#[derive(Debug)]
pub struct Outcome<M> {
    pub start: Start,
    pub stopped: bool,
    /// By thread; None for one that never came back.
    pub results: Vec<Option<M>>,
    pub start_notes: Vec<String>,
}

impl<M> Outcome<M> {
    pub fn circumstances(&self) -> Circumstances {
        Circumstances {
            started_unix_ns: self.start.unix_ns,
            wall_clock_shift_ns: self.start.wall_clock_shift_ns(),
            clock: self.start.origin.kind(),
            stopped: self.stopped,
            build_profile: BUILD_PROFILE,
        }
    }
}

/// When the phase began, on each clock.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub origin: Origin,
    pub monotonic_ns: u64,
    pub unix_ns: u64,
}

impl Start {
    /// By how much the wall clock has moved against the monotonic clock since.
    fn wall_clock_shift_ns(&self) -> i64 {
        let wall_ns = unix_ns() as i64 - self.unix_ns as i64;
        wall_ns - (monotonic_ns() - self.monotonic_ns) as i64
    }
}
