//! The kernel's dispatch list: requests that have left a scheduler's queues and that the driver has not taken yet.

use std::collections::VecDeque;

use crate::{RequestId, Requests, Sector};

/// In the order in which the driver takes them. None of them accepts another bio.
#[derive(Clone, Debug, Default)]
pub struct DispatchList {
    list: VecDeque<RequestId>,
    /// By the request's number.
    is_member: Vec<bool>,
}

impl DispatchList {
    /// The request has come to the scheduler: it is not on the list yet.
    pub fn came(&mut self, id: RequestId) {
        let number = id.number() as usize;
        if self.is_member.len() <= number {
            self.is_member.resize(number + 1, false);
        }
        self.is_member[number] = false;
    }

    /// Puts the request behind the first `place` of the list.
    pub fn insert(&mut self, place: usize, id: RequestId) {
        self.is_member[id.number() as usize] = true;
        self.list.insert(place, id);
    }

    /// The next for the driver.
    pub fn pop_front(&mut self) -> Option<RequestId> {
        self.list.pop_front()
    }

    /// Whether the request is on the list, or was when the driver took it.
    pub fn has(&self, id: RequestId) -> bool {
        self.is_member[id.number() as usize]
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = RequestId> + ExactSizeIterator + '_ {
        self.list.iter().copied()
    }

    /// Where the request belongs in two ascending sweeps from that position (`elv_dispatch_sort`): behind the last that comes
    /// before it. `by_direction`: nothing passes a request of the other direction, as from 2.6.19 on.
    pub fn place_in_sweeps(&self, requests: &Requests, id: RequestId, from: Sector, by_direction: bool) -> usize {
        let request = &requests[id];
        let sweep = |start: Sector| start < from;
        let comes_before = |other: RequestId| {
            let other = &requests[other];
            by_direction && other.direction != request.direction
                || (sweep(other.start), other.start) <= (sweep(request.start), request.start)
        };
        let last = self.iter().rposition(comes_before);
        last.map_or(0, |last| last + 1)
    }
}
