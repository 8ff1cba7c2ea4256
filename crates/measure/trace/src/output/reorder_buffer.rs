//! Lines that report when an I/O ended, as events in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::event::{NO_DETAIL, Step, TraceEvent};

/// Holds back the events of lines of I/Os until nothing can come before them.
#[derive(Clone, Debug, Default)]
pub(super) struct ReorderBuffer {
    /// By time, and then as they came.
    held: BinaryHeap<Reverse<(u64, u64, HeldEvent)>>,
    count: u64,
    reached_ns: u64,
}

/// No longer than an I/O that a task waits for.
const HELD_NS: u64 = 60_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeldEvent(TraceEvent);

impl PartialOrd for HeldEvent {
    fn partial_cmp(&self, other: &HeldEvent) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HeldEvent {
    fn cmp(&self, _: &HeldEvent) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl ReorderBuffer {
    /// The next event; `each` gets those whose turn it is. If an I/O took longer than anything is held back,
    /// its beginning comes as late as it can.
    pub(super) fn pass<E>(
        &mut self,
        event: &TraceEvent,
        mut each: impl FnMut(&TraceEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        let lines = matches!(event.step, Step::DeviceDone | Step::WholeDone);
        if !lines && self.held.is_empty() {
            return each(event);
        }
        if lines {
            let began_ns = event.began_ns();
            let at = |at_ns: u64, step: Step| TraceEvent { at_ns, argument: 0, detail: NO_DETAIL, step, ..*event };
            let queued_ns = match (event.step, event.waited_us()) {
                (Step::WholeDone, _) => Some(began_ns),
                (_, waited) => waited.map(|waited_us| began_ns.saturating_sub(u64::from(waited_us) * 1000)),
            };
            if let Some(queued_ns) = queued_ns {
                self.hold(at(queued_ns, Step::Queue));
            }
            if event.step == Step::DeviceDone {
                self.hold(at(began_ns, Step::Issue));
            }
            self.hold(at(event.at_ns, Step::Complete));
        } else {
            self.hold(*event);
        }
        self.let_go(event.at_ns.saturating_sub(HELD_NS), &mut each)
    }

    /// All that is left.
    pub(super) fn finish<E>(&mut self, mut each: impl FnMut(&TraceEvent) -> Result<(), E>) -> Result<(), E> {
        self.let_go(u64::MAX, &mut each)
    }

    fn hold(&mut self, mut event: TraceEvent) {
        event.at_ns = event.at_ns.max(self.reached_ns);
        self.count += 1;
        self.held.push(Reverse((event.at_ns, self.count, HeldEvent(event))));
    }

    fn let_go<E>(&mut self, until_ns: u64, each: &mut impl FnMut(&TraceEvent) -> Result<(), E>) -> Result<(), E> {
        while let Some(Reverse((at_ns, _, HeldEvent(event)))) = self.held.peek().copied() {
            if at_ns > until_ns {
                return Ok(());
            }
            self.held.pop();
            self.reached_ns = at_ns;
            each(&event)?;
        }
        Ok(())
    }
}
