//! A machine on which tasks wait for I/O that nothing will ever do: clocks that tick keep its event queue from running
//! empty, so that a run would have no end. It is a defect of the model, and reported as one.

use super::World;
use events::time::{SECOND, Time};

/// So long, in simulated time, no I/O ends while a task waits for some: far beyond the slowest request of any device.
pub(super) const STANDSTILL_NS: Time = 3600 * SECOND;

impl World {
    /// Before what happens at that time.
    ///
    /// # Panics
    /// If the machine stands still: reports what waits.
    #[inline]
    pub(super) fn check_standstill(&mut self, at: Time) {
        if self.clock.without_progress(at) > STANDSTILL_NS {
            self.look_for_standstill(at);
        }
    }

    #[cold]
    fn look_for_standstill(&mut self, at: Time) {
        // Between phases the machine itself waits, for what it syncs.
        let syncs = self.phase.is_over();
        let waiting = self.tasks.iter().filter(|task| task.has_outstanding() || task.is_blocked());
        let count = waiting.count();
        if count == 0 && !syncs {
            self.clock.progressed(at);
            return;
        }
        let who = match count {
            _ if syncs => "a sync waits".to_owned(),
            1 => "1 task waits".to_owned(),
            _ => format!("{count} tasks wait"),
        };
        let requests: Vec<String> = self.io.drives().map(|drive| drive.queue().outstanding().to_string()).collect();
        let late = self.io.late();
        panic!(
            "the simulated machine stands still: no I/O has ended for {} s of its time and {who}; \
             requests outstanding by drive: {}; bios that wait for a request: {late}",
            STANDSTILL_NS / SECOND,
            requests.join(", "),
        );
    }
}
