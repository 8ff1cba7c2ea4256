//! What schedulers keep requests in: request FIFOs, in each of which they are sorted by sector, and by arrival with a time by
//! which to be served.

use crate::scheduler::sorted_set::SortedSet;
use crate::{Bio, RequestId, Requests, Sector, Side};
use events::time::Time;

/// A scheduler's FIFOs, by numbers of its own.
#[derive(Clone, Debug, Default)]
pub struct RequestFifos {
    fifos: Vec<RequestFifo>,
    /// By the request's number. Links between requests instead of a container in each FIFO: fifos are many and short.
    places: Vec<Position>,
    len: usize,
}

pub type FifoId = usize;

#[derive(Clone, Debug, Default)]
struct RequestFifo {
    sorted: SortedSet<(Sector, RequestId)>,
    oldest: Option<RequestId>,
    newest: Option<RequestId>,
}

/// A request's place by arrival.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    fifo: FifoId,
    deadline: Time,
    older: Option<RequestId>,
    newer: Option<RequestId>,
}

impl RequestFifos {
    /// Puts the request into its place by sector and at the end by arrival.
    pub fn add(&mut self, requests: &Requests, id: RequestId, fifo: FifoId, deadline: Time) {
        let number = id.number() as usize;
        if self.places.len() <= number {
            self.places.resize(number + 1, Position::default());
        }
        if self.fifos.len() <= fifo {
            self.fifos.resize_with(fifo + 1, RequestFifo::default);
        }
        let into = &mut self.fifos[fifo];
        into.sorted.insert((requests[id].start, id));
        self.len += 1;
        let older = into.newest.replace(id);
        into.oldest.get_or_insert(id);
        self.places[number] = Position { fifo, deadline, older, newer: None };
        if let Some(older) = older {
            self.place_mut(older).newer = Some(id);
        }
    }

    /// Takes the request out of its FIFO; it is still known which that was.
    pub fn remove(&mut self, requests: &Requests, id: RequestId) {
        self.leave_order(requests[id].start, id);
        self.leave_line(id);
        self.len -= 1;
    }

    /// The FIFO that the request is in, or was in last.
    #[inline]
    pub fn fifo_of(&self, id: RequestId) -> FifoId {
        self.place(id).fifo
    }

    /// A bio was merged in front of the request, which started at `was` before.
    pub fn front_merged(&mut self, requests: &Requests, id: RequestId, was: Sector) {
        self.leave_order(was, id);
        let fifo = self.fifo_of(id);
        self.fifos[fifo].sorted.insert((requests[id].start, id));
    }

    /// `merged` has become part of `survivor`, which takes the earlier deadline and, with it, the place by arrival.
    pub fn merged_requests(&mut self, requests: &Requests, survivor: RequestId, merged: RequestId) {
        self.leave_order(requests[merged].start, merged);
        self.len -= 1;
        if self.place(merged).deadline < self.place(survivor).deadline {
            self.leave_line(survivor);
            let place = *self.place(merged);
            *self.place_mut(survivor) = place;
            self.link(place.fifo, place.older, Some(survivor));
            self.link(place.fifo, Some(survivor), place.newer);
        } else {
            self.leave_line(merged);
        }
    }

    pub fn neighbour(&self, requests: &Requests, id: RequestId, side: Side) -> Option<RequestId> {
        let (before, after) = self.around(requests, id);
        match side {
            Side::Back => after,
            Side::Front => before,
        }
    }

    /// The request behind this one, which is queued or has just left.
    #[inline]
    pub fn after(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        self.around(requests, id).1
    }

    /// Between which the request lies: the one before it, and the one behind it or else the first of all.
    #[inline]
    pub fn around_cyclically(&self, requests: &Requests, id: RequestId) -> (Option<RequestId>, Option<RequestId>) {
        let (before, after) = self.around(requests, id);
        let first = || self.lowest(self.fifo_of(id)).filter(|&first| first != id);
        (before, after.or_else(first))
    }

    /// The FIFO's request that begins where the bio ends.
    pub fn front_merge(&self, requests: &Requests, fifo: FifoId, bio: &Bio) -> Option<RequestId> {
        let sorted = &self.fifos.get(fifo)?.sorted;
        let (_, id) = sorted.from(&(bio.end(), RequestId::FIRST))?;
        (requests[id].start == bio.end()).then_some(id)
    }

    /// The one of the lowest sector that is not before that.
    pub fn at_or_after(&self, fifo: FifoId, sector: Sector) -> Option<RequestId> {
        let sorted = &self.fifos.get(fifo)?.sorted;
        sorted.from(&(sector, RequestId::FIRST)).map(|(_, id)| id)
    }

    /// The one of the lowest sector.
    #[inline]
    pub fn lowest(&self, fifo: FifoId) -> Option<RequestId> {
        self.fifos.get(fifo)?.sorted.first().map(|(_, id)| id)
    }

    /// The first by arrival.
    #[inline]
    pub fn oldest(&self, fifo: FifoId) -> Option<RequestId> {
        self.fifos.get(fifo)?.oldest
    }

    /// By when a request that is queued is to be served.
    #[inline]
    pub fn deadline(&self, id: RequestId) -> Time {
        self.place(id).deadline
    }

    /// The first by arrival, if its deadline has passed, or is now.
    pub fn due(&self, fifo: FifoId, now: Time) -> Option<RequestId> {
        self.oldest(fifo).filter(|&id| now >= self.deadline(id))
    }

    /// The same with a deadline that has passed strictly.
    pub fn overdue(&self, fifo: FifoId, now: Time) -> Option<RequestId> {
        self.oldest(fifo).filter(|&id| now > self.deadline(id))
    }

    pub fn is_empty(&self, fifo: FifoId) -> bool {
        self.oldest(fifo).is_none()
    }

    /// Requests in all FIFOs.
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn around(&self, requests: &Requests, id: RequestId) -> (Option<RequestId>, Option<RequestId>) {
        let sorted = &self.fifos[self.fifo_of(id)].sorted;
        let (before, after) = sorted.around(&(requests[id].start, id));
        (before.map(|(_, id)| id), after.map(|(_, id)| id))
    }

    fn leave_order(&mut self, start: Sector, id: RequestId) {
        let fifo = self.fifo_of(id);
        let was_there = self.fifos[fifo].sorted.remove(&(start, id));
        debug_assert!(was_there, "{id:?} at {start}");
    }

    fn leave_line(&mut self, id: RequestId) {
        let Position { fifo, older, newer, .. } = *self.place(id);
        self.link(fifo, older, newer);
    }

    /// These two follow one another from now on; with nothing on one side, the other is the FIFO's end.
    fn link(&mut self, fifo: FifoId, older: Option<RequestId>, newer: Option<RequestId>) {
        match older {
            Some(older) => self.place_mut(older).newer = newer,
            None => self.fifos[fifo].oldest = newer,
        }
        match newer {
            Some(newer) => self.place_mut(newer).older = older,
            None => self.fifos[fifo].newest = older,
        }
    }

    #[inline]
    fn place(&self, id: RequestId) -> &Position {
        &self.places[id.number() as usize]
    }

    fn place_mut(&mut self, id: RequestId) -> &mut Position {
        &mut self.places[id.number() as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::bench::bio;
    use crate::{Direction, Request};
    use events::slab::Slab;
    use proptest::prelude::*;

    proptest! {
        /// Against a list of what is queued: add, remove, become part of another.
        #[test]
        fn keeps_both_orders(steps in prop::collection::vec((0u8..4, 0usize..2, 0u64..50, any::<prop::sample::Index>()), 1..120)) {
            let (mut requests, mut fifos): (Requests, RequestFifos) = (Slab::new(), RequestFifos::default());
            let mut expected: [Vec<(Time, RequestId)>; 2] = Default::default();
            for (now, (step, fifo, start, index)) in (0..).zip(steps) {
                let in_line = &mut expected[fifo];
                if step < 2 || in_line.len() < 2 {
                    let deadline = now + 10;
                    let id = requests.put(Request::like(&bio(0, Direction::Read, start * 8)));
                    fifos.add(&requests, id, fifo, deadline);
                    in_line.push((deadline, id));
                } else if step == 2 {
                    let (_, id) = in_line.remove(index.index(in_line.len()));
                    fifos.remove(&requests, id);
                } else {
                    // The earlier place is kept, whichever of the two it was.
                    let one = index.index(in_line.len() - 1);
                    let (survivor, merged) = if start % 2 == 0 { (one, one + 1) } else { (one + 1, one) };
                    fifos.merged_requests(&requests, in_line[survivor].1, in_line[merged].1);
                    in_line[one].1 = in_line[survivor].1;
                    in_line.remove(one + 1);
                }
                for (fifo, in_line) in expected.iter().enumerate() {
                    prop_assert_eq!(fifos.oldest(fifo), in_line.first().map(|&(_, id)| id));
                    prop_assert_eq!(fifos.is_empty(fifo), in_line.is_empty());
                    let due = in_line.first().filter(|&&(deadline, _)| now >= deadline);
                    prop_assert_eq!(fifos.due(fifo, now), due.map(|&(_, id)| id));
                    let mut sorted: Vec<_> = in_line.iter().map(|&(_, id)| (requests[id].start, id)).collect();
                    sorted.sort_unstable();
                    prop_assert_eq!(fifos.lowest(fifo), sorted.first().map(|&(_, id)| id));
                    for pair in sorted.windows(2) {
                        prop_assert_eq!(fifos.after(&requests, pair[0].1), Some(pair[1].1));
                        prop_assert_eq!(fifos.neighbour(&requests, pair[1].1, Side::Front), Some(pair[0].1));
                    }
                }
                prop_assert_eq!(fifos.len(), expected[0].len() + expected[1].len());
            }
        }
    }
}
