//! Arrivals in their order, although many traces have a line per I/O, written when it ends.

use crate::event::{Device, Op, TraceEvent};
use std::collections::VecDeque;

/// What an I/O asked for when it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at_ns: u64,
    /// Where its device is in the study.
    pub(super) place: usize,
    pub(super) device: Device,
    pub(super) op: Op,
    pub(super) sector: u64,
    pub(super) sectors: u32,
}

/// Those of I/Os that ended, until none that ended later can have arrived before them.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals(VecDeque<Arrival>);

/// As many I/Os as may end before an earlier one. Chosen: more than most drives take at once.
const HELD: usize = 1024;

impl Arrival {
    pub(super) fn of(event: &TraceEvent, place: usize) -> Arrival {
        Arrival {
            at_ns: event.began_ns(),
            place,
            device: event.device,
            op: event.op,
            sector: event.sector,
            sectors: event.sectors,
        }
    }
}

impl Arrivals {
    /// Takes one in, and yields the first if there are too many.
    pub(super) fn add(&mut self, arrival: Arrival) -> Option<Arrival> {
        let later = self.0.iter().rev();
        let later = later.take_while(|one| one.at_ns > arrival.at_ns).count();
        self.0.insert(self.0.len() - later, arrival);
        if self.0.len() > HELD { self.first() } else { None }
    }

    /// The first of those that are held.
    pub(super) fn first(&mut self) -> Option<Arrival> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, Arrivals, HELD};
    use crate::event::{Step, TraceEvent};

    #[test]
    fn each_comes_out_once_in_the_order_of_arrival() {
        let mut arrivals = Arrivals::default();
        let mut out = Vec::new();
        let count = 3 * HELD as u64;
        for number in 0..count {
            // The later of each two ends first, and each fifth ends 400 others late.
            let (at, late) = (number ^ 1, if number % 5 == 0 { 400 } else { 0 });
            let event = TraceEvent::new(1000 * at.saturating_sub(late), Step::Arrival);
            out.extend(arrivals.add(Arrival::of(&event, 0)));
        }
        out.extend(std::iter::from_fn(|| arrivals.first()));
        assert_eq!(out.len() as u64, count);
        assert!(out.is_sorted_by_key(|one| one.at_ns));
    }
}
