//! When the next operation may start.

use crate::spec::{Arrival, JobSpec, Spacing};
use base::rng::Stream;
use base::time::Time;

/// The gate before the next operation.
#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    opens_at: Time,
    arrival: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Closed,
    Thinking {
        think_ns: u64,
        every: u64,
        completions_left: u64,
    },
    Constant {
        due: FixedTime,
        period: FixedTime,
    },
    Poisson {
        due: FixedTime,
        mean_gap_ns: f64,
        stream: Stream,
    },
    /// Of reads, and of writes.
    EachDirection(Box<[Clock; 2]>),
}

/// When the next operation of one direction is due.
#[derive(Clone, Copy, Debug)]
struct Clock {
    due: FixedTime,
    period: FixedTime,
}

/// Nanoseconds in units of 2^-64, so that the rounding of a period does not add up to a drift.
type FixedTime = u128;

impl Pacing {
    /// Nothing before `start`.
    pub fn new(spec: &JobSpec, start: Time, stream: Stream) -> Pacing {
        let first_due = FixedTime::from(start) << 64;
        let arrival = match spec.arrival {
            Arrival::Closed { think_ns: 0, .. } => Kind::Closed,
            Arrival::Closed { think_ns, think_every } => {
                Kind::Thinking { think_ns, every: think_every, completions_left: think_every }
            }
            Arrival::Open { rate_per_s, spacing: Spacing::Constant } => {
                Kind::Constant { due: first_due, period: fixed(1e9 / rate_per_s) }
            }
            Arrival::Open { rate_per_s, spacing: Spacing::Poisson } => {
                Kind::Poisson { due: first_due, mean_gap_ns: 1e9 / rate_per_s, stream }
            }
            Arrival::Open { rate_per_s, spacing: Spacing::ConstantEach } => Kind::EachDirection(Box::new(
                [spec.read_share, 1.0 - spec.read_share]
                    .map(|share| Clock { due: first_due, period: fixed(1e9 / (rate_per_s * share)) }),
            )),
        };
        let mut pacing = Pacing { opens_at: start, arrival };
        if matches!(pacing.arrival, Kind::Poisson { .. }) {
            // A Poisson process has no arrival at its origin.
            pacing.started();
        }
        pacing
    }

    #[inline]
    pub fn opens_at(&self) -> Time {
        self.opens_at
    }

    /// From when the latency of an operation started at `now` counts.
    #[inline]
    pub fn due(&self, now: Time) -> Time {
        if self.is_open_loop() { self.opens_at } else { now }
    }

    #[inline]
    pub fn is_open_loop(&self) -> bool {
        matches!(self.arrival, Kind::Constant { .. } | Kind::Poisson { .. } | Kind::EachDirection(_))
    }

    /// Whether the next operation is a read if each direction has a rate of its own. As in `rate_ddir()` of fio
    /// (io_u.c, 3.33), the direction that is due first goes first.
    #[inline]
    pub fn reads_are_due(&self) -> bool {
        matches!(&self.arrival, Kind::EachDirection(clocks) if clocks[0].due <= clocks[1].due)
    }

    #[inline]
    pub fn started(&mut self) {
        let reads_are_due = self.reads_are_due();
        match &mut self.arrival {
            Kind::Closed | Kind::Thinking { .. } => {}
            Kind::Constant { due, period } => {
                *due = due.saturating_add(*period);
                self.opens_at = whole_ns(*due);
            }
            Kind::Poisson { due, mean_gap_ns, stream } => {
                *due = due.saturating_add(fixed(-libm::log(stream.unit()) * *mean_gap_ns));
                self.opens_at = whole_ns(*due);
            }
            Kind::EachDirection(clocks) => {
                let clock = &mut clocks[usize::from(!reads_are_due)];
                clock.due = clock.due.saturating_add(clock.period);
                self.opens_at = whole_ns(clocks[0].due.min(clocks[1].due));
            }
        }
    }

    #[inline]
    pub fn completed(&mut self, now: Time) {
        if let Kind::Thinking { think_ns, every, completions_left } = &mut self.arrival {
            *completions_left -= 1;
            if *completions_left == 0 {
                *completions_left = *every;
                self.opens_at = now.saturating_add(*think_ns);
            }
        }
    }
}

fn fixed(ns: f64) -> FixedTime {
    (ns * 2f64.powi(64)) as FixedTime
}

fn whole_ns(time: FixedTime) -> Time {
    (time >> 64) as Time
}
