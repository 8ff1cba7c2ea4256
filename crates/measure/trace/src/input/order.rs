//! Events in the order of time, from files that have them almost so.

use std::collections::VecDeque;

use crate::event::{Step, TraceEvent};

/// Holds back the newest events until what may still belong before them has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    /// As they came; a whole batch goes through without being copied.
    held: VecDeque<Vec<TraceEvent>>,
    held_events: usize,
    /// Empty batches, to be filled again.
    spare: Vec<Vec<TraceEvent>>,
    /// The time of the last of them; None if they are not in order.
    in_order_until_ns: Option<u64>,
    /// The time of the last event that was released.
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
const SPARE: usize = 4;
/// A clock that goes back further than that is another recording's.
const RESTART_NS: u64 = 1_000_000_000;

impl Order {
    /// Takes events as they come and appends those whose turn has come to `out`; all of them at the end. Leaves no
    /// event in `events`.
    pub(crate) fn pass(&mut self, events: &mut Vec<TraceEvent>, end: bool, out: &mut Vec<TraceEvent>) {
        let sorted = is_sorted(events);
        while let Some(restart) = self.restart(events, sorted) {
            let rest = events.split_off(restart);
            self.hold(std::mem::replace(events, rest), sorted);
            self.begin_again(events[0].at_ns, out);
        }
        let empty = self.spare.pop().unwrap_or_default();
        self.hold(std::mem::replace(events, empty), sorted);
        if end {
            self.let_go(0, out);
        } else if self.in_order_until_ns.is_some() {
            self.let_go(WINDOW, out);
        } else if self.held_events >= 2 * WINDOW {
            // Rarely enough that sorting costs little for each.
            self.let_go(WINDOW, out);
        }
    }

    fn hold(&mut self, events: Vec<TraceEvent>, sorted: bool) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return self.spare.push(events);
        };
        let follows = match self.held.is_empty() {
            true => true,
            false => self.in_order_until_ns.is_some_and(|until_ns| until_ns <= first.at_ns),
        };
        self.in_order_until_ns = (sorted && follows).then_some(last.at_ns);
        self.held_events += events.len();
        self.held.push_back(events);
    }

    /// All but the newest `keep`.
    fn let_go(&mut self, keep: usize, out: &mut Vec<TraceEvent>) {
        if self.in_order_until_ns.is_none() {
            self.sort();
        }
        while let Some(batch) = self.held.front_mut() {
            let leave = self.held_events.saturating_sub(keep);
            if batch.len() <= leave {
                let whole = std::mem::take(batch);
                self.held.pop_front();
                self.held_events -= whole.len();
                self.emit(whole, out);
            } else if leave > 0 && batch.len() > WINDOW {
                let rest = batch.split_off(leave);
                let part = std::mem::replace(batch, rest);
                self.held_events -= part.len();
                return self.emit(part, out);
            } else {
                return;
            }
        }
    }

    fn sort(&mut self) {
        let mut all = Vec::with_capacity(self.held_events);
        self.held.drain(..).for_each(|batch| all.extend(batch));
        all.sort_by_key(|event| event.at_ns);
        self.in_order_until_ns = all.last().map(|event| event.at_ns);
        if !all.is_empty() {
            self.held.push_back(all);
        }
    }

    fn emit(&mut self, mut events: Vec<TraceEvent>, out: &mut Vec<TraceEvent>) {
        if self.shift_ns > 0 {
            for event in &mut events {
                event.at_ns = event.at_ns.saturating_add(self.shift_ns);
                if event.step == Step::Lost {
                    event.argument = event.argument.saturating_add(self.shift_ns);
                }
            }
        }
        if let (Some(first), Some(last)) = (events.first(), events.last()) {
            // They are in order.
            match first.at_ns >= self.reached_ns {
                true => self.reached_ns = last.at_ns,
                false => self.drop_late(&mut events),
            }
        }
        match out.is_empty() {
            true => std::mem::swap(out, &mut events),
            false => out.append(&mut events),
        }
        if self.spare.len() < SPARE {
            self.spare.push(events);
        }
    }

    /// An event that comes after its time is left out: it would be paired with a wrong one.
    fn drop_late(&mut self, events: &mut [TraceEvent]) {
        for event in events {
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
    fn restart(&mut self, events: &[TraceEvent], sorted: bool) -> Option<usize> {
        let mut newest_ns = self.newest_ns;
        let goes_back = |event: &TraceEvent, newest_ns: u64| {
            event.at_ns.saturating_add(RESTART_NS) < newest_ns && event.step != Step::Lost
        };
        let restart = match (sorted, events.first()) {
            (true, Some(first)) if first.at_ns.saturating_add(RESTART_NS) >= newest_ns => {
                newest_ns = newest_ns.max(events[events.len() - 1].at_ns);
                None
            }
            _ => events.iter().position(|event| {
                let back = goes_back(event, newest_ns);
                newest_ns = newest_ns.max(event.at_ns);
                back
            }),
        };
        self.newest_ns = newest_ns;
        restart
    }

    /// All that is held leaves; the next recording begins at that time of its own clock.
    fn begin_again(&mut self, began_ns: u64, out: &mut Vec<TraceEvent>) {
        self.let_go(0, out);
        self.restarts += 1;
        self.newest_ns = began_ns;
        out.push(TraceEvent::new(self.reached_ns, Step::Restart));
        // A second later, so that nobody takes the two for one.
        self.shift_ns = (self.reached_ns.saturating_add(RESTART_NS)).saturating_sub(began_ns);
    }
}

fn is_sorted(events: &[TraceEvent]) -> bool {
    events.is_sorted_by_key(|event| event.at_ns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ordered(times: &[u64], batch: usize) -> (Vec<TraceEvent>, Order) {
        let mut order = Order::default();
        let mut out = Vec::new();
        for part in times.chunks(batch) {
            let mut events: Vec<_> = part.iter().map(|&at_ns| TraceEvent::new(at_ns, Step::Queue)).collect();
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
        assert_eq!(out.iter().filter(|event| event.step == Step::Lost).count(), 1);
    }
}
