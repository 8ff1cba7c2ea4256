//! Times that vary round a mean.

use base::rng::{Stream, stream};

use events::time::Time;

/// One component's stream, and how much its times vary.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    stream: Stream,
    spread: f64,
}

impl Draw {
    pub(super) fn new(seed: u64, component: u64, spread: f64) -> Draw {
        Draw { stream: stream(seed, component), spread }
    }

    /// `mean * (1 - spread + spread * E)`, E exponential with mean 1.
    #[inline]
    pub(super) fn around(&mut self, mean_ns: Time) -> Time {
        if self.spread == 0.0 || mean_ns == 0 {
            return mean_ns;
        }
        let exponential = -libm::log(self.stream.unit());
        (mean_ns as f64 * (1.0 - self.spread + self.spread * exponential)) as Time
    }
}
