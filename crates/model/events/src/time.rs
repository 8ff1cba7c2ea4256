//! Simulated time: 64-bit nanoseconds since the start of the simulation.

pub use base::time::{MICROSECOND, MILLISECOND, SECOND, Time};

/// A kernel's clock tick. Kernels before 2.6.16 and many after keep timeouts in whole ticks, and round accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Time from one tick to the next, in nanoseconds.
    pub length: Time,
}

impl Tick {
    /// `hz` ticks a second: 100 in 2.4, 1000 in 2.5 and later unless configured otherwise.
    pub fn of_hz(hz: u32) -> Tick {
        Tick { length: SECOND / Time::from(hz) }
    }

    /// How many ticks have passed: the kernel's `jiffies`.
    #[inline]
    pub fn count(self, now: Time) -> u64 {
        now / self.length
    }

    /// When that tick comes.
    #[inline]
    pub fn at(self, count: u64) -> Time {
        count * self.length
    }
}
