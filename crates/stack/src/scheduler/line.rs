//! What schedulers keep requests in: sorted by sector, and in line by arrival with a time by which to be served.

use std::collections::{BTreeMap, BTreeSet};

use crate::block::{Bio, Request, RequestId, Requests, Sector, Side};
use crate::time::Time;

/// Requests by sector.
#[derive(Clone, Debug, Default)]
pub struct Sorted(BTreeSet<(Sector, RequestId)>);

impl Sorted {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn insert(&mut self, start: Sector, id: RequestId) {
        self.0.insert((start, id));
    }

    /// `start`: the one that it was inserted with.
    pub fn remove(&mut self, start: Sector, id: RequestId) {
        let was_there = self.0.remove(&(start, id));
        debug_assert!(was_there, "{id:?} at {start}");
    }

    pub fn first(&self) -> Option<RequestId> {
        self.0.first().map(|&(_, id)| id)
    }

    pub fn last(&self) -> Option<RequestId> {
        self.0.last().map(|&(_, id)| id)
    }

    /// The one that starts at or behind the sector.
    pub fn from(&self, start: Sector) -> Option<RequestId> {
        self.0
            .range((start, RequestId::FIRST)..)
            .next()
            .map(|&(_, id)| id)
    }

    /// The one that starts before the sector.
    pub fn before(&self, start: Sector) -> Option<RequestId> {
        self.0
            .range(..(start, RequestId::FIRST))
            .next_back()
            .map(|&(_, id)| id)
    }

    /// The one after a request that is in here, or was.
    pub fn after(&self, request: &Request, id: RequestId) -> Option<RequestId> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.0
            .range((Excluded((request.start, id)), Unbounded))
            .next()
            .map(|&(_, id)| id)
    }

    pub fn neighbour(&self, requests: &Requests, id: RequestId, side: Side) -> Option<RequestId> {
        let key = (requests[id].start, id);
        match side {
            Side::Back => self.after(&requests[id], id),
            Side::Front => self.0.range(..key).next_back().map(|&(_, id)| id),
        }
    }

    /// The request that begins where the bio ends.
    pub fn front_merge(&self, requests: &Requests, bio: &Bio) -> Option<RequestId> {
        self.from(bio.end())
            .filter(|&id| requests[id].start == bio.end())
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = RequestId> {
        self.0.iter().map(|&(_, id)| id)
    }
}

/// How far back schedulers that serve the nearest go, and what that costs.
#[derive(Clone, Copy, Debug)]
pub struct Backwards {
    pub sectors_max: u64,
    /// How many times as far a step backwards counts.
    pub penalty: u64,
}

impl Backwards {
    /// Whether, from a position, the first of two sectors is to be gone to before the second: the nearer, the higher of
    /// equally near ones. Too far back is after all that lies ahead, and then the lower comes first.
    pub fn first_comes_first(self, from: Sector, first: Sector, second: Sector) -> bool {
        let cost = |start: Sector| {
            if start >= from {
                Some(start - from)
            } else if from - start <= self.sectors_max {
                Some((from - start) * self.penalty)
            } else {
                None
            }
        };
        match (cost(first), cost(second)) {
            (Some(x), Some(y)) if x != y => x < y,
            (Some(_), Some(_)) => first >= second,
            (x, None) if x.is_some() => true,
            (None, Some(_)) => false,
            _ => first <= second,
        }
    }
}

/// Requests in line, each with its deadline.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    line: BTreeMap<u64, (Time, RequestId)>,
    /// By the request's number: its place in line.
    places: Vec<u64>,
    next_place: u64,
}

impl Fifo {
    pub fn push(&mut self, id: RequestId, deadline: Time) {
        let number = id.number() as usize;
        if self.places.len() <= number {
            self.places.resize(number + 1, 0);
        }
        self.places[number] = self.next_place;
        self.line.insert(self.next_place, (deadline, id));
        self.next_place += 1;
    }

    pub fn remove(&mut self, id: RequestId) {
        let gone = self.line.remove(&self.places[id.number() as usize]);
        debug_assert!(gone.is_some_and(|(_, other)| other == id));
    }

    /// The one that is first in line, and its deadline.
    pub fn first(&self) -> Option<(Time, RequestId)> {
        self.line.values().next().copied()
    }

    /// By when a request that is in line is to be served.
    pub fn deadline(&self, id: RequestId) -> Time {
        self.line[&self.place(id)].0
    }

    /// `absorbed` has become part of `survivor`, which takes the earlier deadline and, with it, the place.
    pub fn absorb(&mut self, survivor: RequestId, absorbed: RequestId) {
        let (own, other) = (self.place(survivor), self.place(absorbed));
        let (deadline, _) = self.line[&other];
        if deadline < self.line[&own].0 {
            self.line.remove(&own);
            self.line.insert(other, (deadline, survivor));
            self.places[survivor.number() as usize] = other;
        } else {
            self.line.remove(&other);
        }
    }

    fn place(&self, id: RequestId) -> u64 {
        self.places[id.number() as usize]
    }
}
