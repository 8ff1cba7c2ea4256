//! How often the caller of the machine is asked whether to stop.

use super::World;
use super::clock::Event;
use events::time::Time;

/// The interval between two questions, and the time of the next.
#[derive(Default)]
pub(super) struct StopPoll {
    every_ns: Option<Time>,
    at: Option<Time>,
}

impl StopPoll {
    /// Whether the question planned for now is still wanted.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.at == Some(now)
    }
}

impl World {
    /// From now on `run` also asks at this interval, to the nanosecond, whether to continue. None: only after its own
    /// number of events.
    pub fn poll_every(&mut self, interval_ns: Option<Time>) {
        self.stop_poll.every_ns = interval_ns;
        self.stop_poll.at = None;
        self.plan_poll();
    }

    /// The time of a question has come.
    pub(super) fn poll_stop(&mut self, now: Time) {
        if self.stop_poll.is_due(now) && self.has_events() {
            self.plan_poll();
        }
    }

    fn plan_poll(&mut self) {
        let Some(interval_ns) = self.stop_poll.every_ns else {
            return;
        };
        let at = self.clock.now() + interval_ns;
        self.stop_poll.at = Some(at);
        self.clock.put(at, Event::StopPoll);
    }
}
