//! The kernel thread that runs a hardware queue for completions (`kblockd`), where its time on the CPU counts.

use events::time::Time;

/// A completion calls it, it waits while an interrupt has the CPU, and then it runs the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueThread {
    is_called: bool,
    runs_at: Option<Time>,
    /// What it still needed before it would have run, when an interrupt took the CPU from it.
    left_ns: Option<Time>,
}

impl QueueThread {
    /// A completion calls it (`blk_mq_sched_restart`). It runs when the interrupt is over.
    pub(crate) fn call(&mut self) {
        self.is_called = true;
    }

    pub(crate) fn is_called(&self) -> bool {
        self.is_called
    }

    pub(crate) fn runs_at(&self) -> Option<Time> {
        self.runs_at
    }

    /// An interrupt takes the CPU.
    pub(crate) fn hold(&mut self, now: Time) {
        let left_ns = self.runs_at.take().map(|at| at.saturating_sub(now));
        self.left_ns = left_ns.or(self.left_ns);
    }

    /// The interrupt is over: when it runs the queue, `switch_ns` from now if it is new; None: nobody has called it.
    pub(crate) fn release(&mut self, now: Time, switch_ns: Time) -> Option<Time> {
        if self.is_called {
            self.runs_at = Some(now + self.left_ns.take().unwrap_or(switch_ns));
        }
        self.runs_at
    }

    /// Whether it runs the queue now.
    pub(crate) fn take_due(&mut self, now: Time) -> bool {
        let is_due = self.runs_at.is_some_and(|at| at <= now);
        if is_due {
            *self = QueueThread::default();
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_behind_the_interrupt_that_calls_it_and_those_that_come_meanwhile() {
        let mut thread = QueueThread::default();
        thread.hold(100);
        assert_eq!(thread.release(200, 30), None);
        thread.hold(1_000);
        thread.call();
        assert_eq!(thread.release(1_200, 30), Some(1_230));
        thread.hold(1_210);
        thread.call();
        assert!(!thread.take_due(1_230), "an interrupt has the CPU");
        assert_eq!(thread.release(1_300, 30), Some(1_320));
        assert!(!thread.take_due(1_319));
        assert!(thread.take_due(1_320) && !thread.is_called());
        assert!(!thread.take_due(1_320));
    }
}
