//! What schedulers keep requests in: lines, in each of which they are sorted by sector, and by arrival with a time by
//! which to be served.

use crate::block::{Bio, RequestId, Requests, Sector, Side};
use crate::scheduler::sorted::Sorted;
use crate::time::Time;

/// A scheduler's lines, by numbers of its own.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    lines: Vec<Line>,
    /// By the request's number. Links between requests instead of a container in each line: lines are many and short.
    places: Vec<Place>,
    len: usize,
}

pub type LineId = usize;

#[derive(Clone, Debug, Default)]
struct Line {
    sorted: Sorted<(Sector, RequestId)>,
    oldest: Option<RequestId>,
    newest: Option<RequestId>,
}

/// A request's place by arrival.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    line: LineId,
    deadline: Time,
    older: Option<RequestId>,
    newer: Option<RequestId>,
}

impl Lines {
    /// Puts the request into its place by sector and at the end by arrival.
    pub fn add(&mut self, requests: &Requests, id: RequestId, line: LineId, deadline: Time) {
        let number = id.number() as usize;
        if self.places.len() <= number {
            self.places.resize(number + 1, Place::default());
        }
        if self.lines.len() <= line {
            self.lines.resize_with(line + 1, Line::default);
        }
        let into = &mut self.lines[line];
        into.sorted.insert((requests[id].start, id));
        self.len += 1;
        let older = into.newest.replace(id);
        into.oldest.get_or_insert(id);
        self.places[number] = Place {
            line,
            deadline,
            older,
            newer: None,
        };
        if let Some(older) = older {
            self.place_mut(older).newer = Some(id);
        }
    }

    /// Takes the request out of its line; it is still known which that was.
    pub fn remove(&mut self, requests: &Requests, id: RequestId) {
        self.leave_order(requests[id].start, id);
        self.leave_line(id);
        self.len -= 1;
    }

    /// The line that the request is in, or was in last.
    #[inline]
    pub fn line_of(&self, id: RequestId) -> LineId {
        self.place(id).line
    }

    /// The request has grown at that side; before, it started at `was`.
    pub fn grown(&mut self, requests: &Requests, id: RequestId, side: Side, was: Sector) {
        if side == Side::Front {
            self.leave_order(was, id);
            let line = self.line_of(id);
            self.lines[line].sorted.insert((requests[id].start, id));
        }
    }

    /// `absorbed` has become part of `survivor`, which takes the earlier deadline and, with it, the place by arrival.
    pub fn absorbed(&mut self, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        self.leave_order(requests[absorbed].start, absorbed);
        self.len -= 1;
        if self.place(absorbed).deadline < self.place(survivor).deadline {
            self.leave_line(survivor);
            let place = *self.place(absorbed);
            *self.place_mut(survivor) = place;
            self.link(place.line, place.older, Some(survivor));
            self.link(place.line, Some(survivor), place.newer);
        } else {
            self.leave_line(absorbed);
        }
    }

    pub fn neighbour(&self, requests: &Requests, id: RequestId, side: Side) -> Option<RequestId> {
        let (before, after) = self.around(requests, id);
        match side {
            Side::Back => after,
            Side::Front => before,
        }
    }

    /// The request behind this one, which is in line or has just left.
    #[inline]
    pub fn after(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        self.around(requests, id).1
    }

    /// Between which the request lies: the one before it, and the one behind it or else the first of all.
    #[inline]
    pub fn around_cyclically(
        &self,
        requests: &Requests,
        id: RequestId,
    ) -> (Option<RequestId>, Option<RequestId>) {
        let (before, after) = self.around(requests, id);
        let first = || self.lowest(self.line_of(id)).filter(|&first| first != id);
        (before, after.or_else(first))
    }

    /// The line's request that begins where the bio ends.
    pub fn front_merge(&self, requests: &Requests, line: LineId, bio: &Bio) -> Option<RequestId> {
        let sorted = &self.lines.get(line)?.sorted;
        let (_, id) = sorted.from(&(bio.end(), RequestId::FIRST))?;
        (requests[id].start == bio.end()).then_some(id)
    }

    /// The one of the lowest sector.
    #[inline]
    pub fn lowest(&self, line: LineId) -> Option<RequestId> {
        self.lines.get(line)?.sorted.first().map(|(_, id)| id)
    }

    /// The first by arrival.
    #[inline]
    pub fn oldest(&self, line: LineId) -> Option<RequestId> {
        self.lines.get(line)?.oldest
    }

    /// By when a request that is in line is to be served.
    #[inline]
    pub fn deadline(&self, id: RequestId) -> Time {
        self.place(id).deadline
    }

    /// The first by arrival, if its deadline has passed, or is now.
    pub fn due(&self, line: LineId, now: Time) -> Option<RequestId> {
        self.oldest(line).filter(|&id| now >= self.deadline(id))
    }

    /// The same with a deadline that has passed strictly.
    pub fn overdue(&self, line: LineId, now: Time) -> Option<RequestId> {
        self.oldest(line).filter(|&id| now > self.deadline(id))
    }

    pub fn is_empty(&self, line: LineId) -> bool {
        self.oldest(line).is_none()
    }

    /// Requests in all lines.
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn around(&self, requests: &Requests, id: RequestId) -> (Option<RequestId>, Option<RequestId>) {
        let sorted = &self.lines[self.line_of(id)].sorted;
        let (before, after) = sorted.around(&(requests[id].start, id));
        (before.map(|(_, id)| id), after.map(|(_, id)| id))
    }

    fn leave_order(&mut self, start: Sector, id: RequestId) {
        let line = self.line_of(id);
        let was_there = self.lines[line].sorted.remove(&(start, id));
        debug_assert!(was_there, "{id:?} at {start}");
    }

    fn leave_line(&mut self, id: RequestId) {
        let Place {
            line, older, newer, ..
        } = *self.place(id);
        self.link(line, older, newer);
    }

    /// These two follow one another from now on; with nothing on one side, the other is the line's end.
    fn link(&mut self, line: LineId, older: Option<RequestId>, newer: Option<RequestId>) {
        match older {
            Some(older) => self.place_mut(older).newer = newer,
            None => self.lines[line].oldest = newer,
        }
        match newer {
            Some(newer) => self.place_mut(newer).older = older,
            None => self.lines[line].newest = older,
        }
    }

    #[inline]
    fn place(&self, id: RequestId) -> &Place {
        &self.places[id.number() as usize]
    }

    fn place_mut(&mut self, id: RequestId) -> &mut Place {
        &mut self.places[id.number() as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Direction, Request};
    use crate::scheduler::laws::bench::bio;
    use crate::slab::Slab;
    use proptest::prelude::*;

    proptest! {
        /// Against a list of what is in line: add, remove, become part of another.
        #[test]
        fn keeps_both_orders(steps in prop::collection::vec((0u8..4, 0usize..2, 0u64..50, any::<prop::sample::Index>()), 1..120)) {
            let (mut requests, mut lines): (Requests, Lines) = (Slab::new(), Lines::default());
            let mut expected: [Vec<(Time, RequestId)>; 2] = Default::default();
            for (now, (step, line, start, index)) in (0..).zip(steps) {
                let in_line = &mut expected[line];
                if step < 2 || in_line.len() < 2 {
                    let deadline = now + 10;
                    let id = requests.put(Request::like(&bio(0, Direction::Read, start * 8)));
                    lines.add(&requests, id, line, deadline);
                    in_line.push((deadline, id));
                } else if step == 2 {
                    let (_, id) = in_line.remove(index.index(in_line.len()));
                    lines.remove(&requests, id);
                } else {
                    // The earlier place is kept, whichever of the two it was.
                    let one = index.index(in_line.len() - 1);
                    let (survivor, absorbed) = if start % 2 == 0 { (one, one + 1) } else { (one + 1, one) };
                    lines.absorbed(&requests, in_line[survivor].1, in_line[absorbed].1);
                    in_line[one].1 = in_line[survivor].1;
                    in_line.remove(one + 1);
                }
                for (line, in_line) in expected.iter().enumerate() {
                    prop_assert_eq!(lines.oldest(line), in_line.first().map(|&(_, id)| id));
                    prop_assert_eq!(lines.is_empty(line), in_line.is_empty());
                    let due = in_line.first().filter(|&&(deadline, _)| now >= deadline);
                    prop_assert_eq!(lines.due(line, now), due.map(|&(_, id)| id));
                    let mut sorted: Vec<_> = in_line.iter().map(|&(_, id)| (requests[id].start, id)).collect();
                    sorted.sort_unstable();
                    prop_assert_eq!(lines.lowest(line), sorted.first().map(|&(_, id)| id));
                    for pair in sorted.windows(2) {
                        prop_assert_eq!(lines.after(&requests, pair[0].1), Some(pair[1].1));
                        prop_assert_eq!(lines.neighbour(&requests, pair[1].1, Side::Front), Some(pair[0].1));
                    }
                }
                prop_assert_eq!(lines.len(), expected[0].len() + expected[1].len());
            }
        }
    }
}
