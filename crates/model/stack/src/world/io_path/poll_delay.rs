//! How long a task sleeps before it polls.
//!
//! Source: `block/blk-mq.c` (`blk_mq_poll_hybrid_sleep`, `blk_mq_poll_nsecs`) of 4.10 to 6.3.

use block_layer::{Direction, Request};
use events::time::{MICROSECOND, MILLISECOND, Time};

/// How tasks poll a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollRules {
    /// They sleep before they look.
    pub delay: PollDelay,
}

/// `io_poll_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollDelay {
    /// -1: not at all.
    Never,
    /// 0: half the mean time that such requests took of late.
    HalfTheMean,
    /// So long.
    Ns(Time),
}

impl PollDelay {
    /// The tunable's value, in microseconds; None: there is no such.
    pub fn of(io_poll_delay: i64) -> Option<PollDelay> {
        match io_poll_delay {
            -1 => Some(PollDelay::Never),
            0 => Some(PollDelay::HalfTheMean),
            usec => u64::try_from(usec).ok().map(|usec| PollDelay::Ns(usec * MICROSECOND)),
        }
    }
}

/// Of a drive that can be polled.
#[derive(Clone, Debug)]
pub(super) struct Polling {
    rules: PollRules,
    /// By direction.
    took: [RequestTimes; 2],
}

/// How long requests of a direction take, in windows of 100 ms (`blk_mq_poll_stats_start`).
#[derive(Clone, Copy, Debug, Default)]
struct RequestTimes {
    window_ends_at: Time,
    sum_ns: Time,
    count: u64,
    mean_ns_before: Time,
}

const WINDOW_NS: Time = 100 * MILLISECOND;

impl Polling {
    pub(super) fn new(rules: PollRules) -> Polling {
        Polling { rules, took: Default::default() }
    }

    pub(super) fn completed(&mut self, now: Time, request: &Request) {
        let Some(issued_at) = request.issued_at.filter(|_| request.polled) else {
            return;
        };
        let took = &mut self.took[request.direction as usize];
        if took.window_ends_at == 0 {
            took.window_ends_at = now + WINDOW_NS;
        }
        took.sum_ns += now - issued_at;
        took.count += 1;
        if now >= took.window_ends_at {
            *took = RequestTimes { mean_ns_before: took.sum_ns / took.count, ..RequestTimes::default() };
        }
    }

    /// How long a task sleeps before it looks for an operation of that direction.
    pub(super) fn nap_ns(&self, direction: Direction) -> Time {
        match self.rules.delay {
            PollDelay::Never => 0,
            PollDelay::HalfTheMean => self.took[direction as usize].mean_ns_before.div_ceil(2),
            PollDelay::Ns(ns) => ns,
        }
    }
}
