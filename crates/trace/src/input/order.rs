//! Events in the order of time, where files have them almost so.

use crate::event::{Step, TraceEvent};

/// Holds back the newest events until what may still belong before them has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    held: Vec<TraceEvent>,
    /// Of what was let go.
    reached_ns: u64,
    /// The newest event that came, on its own clock.
    newest_ns: u64,
    /// Added to all times: what a further recording in the same file begins after.
    shift_ns: u64,
    pub(crate) late: u64,
    pub(crate) restarts: u64,
}

/// How many events are held back: what a reader of several CPUs' buffers may mix up.
const WINDOW: usize = 1 << 15;
/// A clock that goes back further than that is another recording's.
const RESTART_NS: u64 = 1_000_000_000;

impl Order {
    /// Takes events as they come and appends those whose turn has come to `out`; all of them at the end.
    pub(crate) fn pass(
        &mut self,
        events: &mut Vec<TraceEvent>,
        end: bool,
        out: &mut Vec<TraceEvent>,
    ) {
        let mut taken = 0;
        while let Some(restart) = self.restart(&events[taken..]) {
            self.held.extend_from_slice(&events[taken..taken + restart]);
            taken += restart;
            self.begin_again(events[taken].at_ns, out);
        }
        if self.held.is_empty() && taken == 0 {
            std::mem::swap(&mut self.held, events);
        } else {
            self.held.extend_from_slice(&events[taken..]);
        }
        if self.held.len() < 2 * WINDOW && !end {
            return;
        }
        self.sort();
        let keep = if end { 0 } else { WINDOW };
        let leave = self.held.len().saturating_sub(keep);
        self.let_go(leave, out);
    }

    fn sort(&mut self) {
        if !self.held.is_sorted_by_key(|event| event.at_ns) {
            self.held.sort_by_key(|event| event.at_ns);
        }
    }

    fn let_go(&mut self, count: usize, out: &mut Vec<TraceEvent>) {
        if out.is_empty() && count == self.held.len() && self.shift_ns == 0 {
            std::mem::swap(&mut self.held, out);
            self.drop_late(out, 0);
            return;
        }
        let begin = out.len();
        out.extend_from_slice(&self.held[..count]);
        self.held.drain(..count);
        for event in &mut out[begin..] {
            event.at_ns = event.at_ns.saturating_add(self.shift_ns);
            if event.step == Step::Lost {
                event.argument = event.argument.saturating_add(self.shift_ns);
            }
        }
        self.drop_late(out, begin);
    }

    /// What comes after its time is not told any more: it would pair with what is not its own.
    fn drop_late(&mut self, out: &mut [TraceEvent], begin: usize) {
        for event in &mut out[begin..] {
            if event.at_ns >= self.reached_ns {
                self.reached_ns = event.at_ns;
                continue;
            }
            if event.step != Step::Lost {
                self.late += 1;
                *event = TraceEvent::lost(event.at_ns, self.reached_ns, 1, event.cpu);
            }
            event.at_ns = self.reached_ns;
        }
    }

    /// Where the clock goes back for good.
    fn restart(&mut self, events: &[TraceEvent]) -> Option<usize> {
        let mut newest_ns = self.newest_ns;
        let restart = events.iter().position(|event| {
            let back = event.at_ns.saturating_add(RESTART_NS) < newest_ns;
            newest_ns = newest_ns.max(event.at_ns);
            back && event.step != Step::Lost
        });
        self.newest_ns = newest_ns;
        restart
    }

    /// All that is held leaves; the next recording begins at that time of its own clock.
    fn begin_again(&mut self, began_ns: u64, out: &mut Vec<TraceEvent>) {
        self.sort();
        self.let_go(self.held.len(), out);
        self.restarts += 1;
        self.newest_ns = began_ns;
        out.push(TraceEvent::new(self.reached_ns, Step::Restart));
        // A second later, so that nobody takes the two for one.
        self.shift_ns = (self.reached_ns.saturating_add(RESTART_NS)).saturating_sub(began_ns);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ordered(times: &[u64], batch: usize) -> (Vec<TraceEvent>, Order) {
        let mut order = Order::default();
        let mut out = Vec::new();
        for part in times.chunks(batch) {
            let mut events: Vec<_> = part
                .iter()
                .map(|&at_ns| TraceEvent::new(at_ns, Step::Queue))
                .collect();
            order.pass(&mut events, false, &mut out);
        }
        order.pass(&mut Vec::new(), true, &mut out);
        (out, order)
    }

    proptest! {
        #[test]
        fn what_is_mixed_up_comes_in_order(times in prop::collection::vec(0..900_000_000u64, 0..300), batch in 1..50usize) {
            let (out, order) = ordered(&times, batch);
            let mut expected = times.clone();
            expected.sort_unstable();
            prop_assert_eq!(out.iter().map(|event| event.at_ns).collect::<Vec<_>>(), expected);
            prop_assert_eq!((order.late, order.restarts), (0, 0));
        }
    }

    #[test]
    fn a_second_recording_in_the_file_begins_after_the_first() {
        let (out, order) = ordered(&[5_000_000_000, 5_000_000_100, 7, 9], 2);
        assert_eq!(order.restarts, 1);
        let steps: Vec<_> = out.iter().map(|event| event.step).collect();
        assert_eq!(steps[2], Step::Restart);
        assert!(out.is_sorted_by_key(|event| event.at_ns));
        assert_eq!(out[4].at_ns - out[3].at_ns, 2);
    }

    #[test]
    fn what_comes_too_late_is_lost_and_counted() {
        let mut times: Vec<u64> = (1000..1000 + 3 * WINDOW as u64).collect();
        times.push(1);
        let (out, order) = ordered(&times, WINDOW);
        assert_eq!(order.late, 1);
        assert_eq!(
            out.iter().filter(|event| event.step == Step::Lost).count(),
            1
        );
    }
}
