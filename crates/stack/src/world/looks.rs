//! Whoever runs the machine looks at it now and then.

use super::{Event, World};
use events::time::Time;

/// How often somebody looks, and when next.
#[derive(Default)]
pub(super) struct Looks {
    every_ns: Option<Time>,
    at: Option<Time>,
}

impl Looks {
    /// One that was planned for then is not out of date.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.at == Some(now)
    }
}

impl World {
    /// From now on `run` asks that often, to the nanosecond, whether to go on, beside its own now and then. None: only then.
    pub fn look_every(&mut self, interval_ns: Option<Time>) {
        self.looks.every_ns = interval_ns;
        self.looks.at = None;
        self.look_again();
    }

    /// That time has come.
    pub(super) fn look(&mut self, now: Time) {
        if self.looks.is_due(now) && self.has_events() {
            self.look_again();
        }
    }

    fn look_again(&mut self) {
        let Some(interval_ns) = self.looks.every_ns else {
            return;
        };
        let at = self.now + interval_ns;
        self.looks.at = Some(at);
        self.events.put(at, Event::Look);
    }
}
