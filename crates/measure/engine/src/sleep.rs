//! Waking when an operation is due, not when the kernel gets round to it.

use std::time::Duration;

use base::time::Time;

use crate::clock::Clock;

/// Sleeps short of the target by as much as it usually oversleeps, and spins the rest.
#[derive(Debug, Default)]
pub struct Sleeper {
    lateness_ns: Time,
}

/// A timer's own lateness is less; more is other work on the CPU, and spinning against that only burns CPU time that is
/// counted as the workload's.
const LATENESS_MAX_NS: Time = 20_000;

impl Sleeper {
    /// How much earlier than due to wake.
    pub fn lateness_ns(&self) -> Time {
        self.lateness_ns
    }

    pub fn sleep_until<C: Clock>(&mut self, clock: C, target: Time) {
        let wake_at = target.saturating_sub(self.lateness_ns);
        let before = clock.now();
        if wake_at > before {
            std::thread::sleep(Duration::from_nanos(wake_at - before));
            let late = clock.now().saturating_sub(wake_at);
            if late <= LATENESS_MAX_NS {
                self.lateness_ns = (self.lateness_ns * 7 + late) / 8;
            }
        }
        while clock.now() < target {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Origin;

    #[test]
    fn never_wakes_early() {
        let clock = Origin::now().monotonic();
        let mut sleeper = Sleeper::default();
        for _ in 0..20 {
            let target = clock.now() + 300_000;
            sleeper.sleep_until(clock, target);
            assert!(clock.now() >= target);
            assert!(sleeper.lateness_ns() <= LATENESS_MAX_NS);
        }
    }
}
