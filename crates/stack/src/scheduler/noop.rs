//! noop: in order of arrival. Merging is the queue's; nothing else is done.

use std::collections::VecDeque;

use crate::block::{RequestId, Requests};
use crate::scheduler::Scheduler;
use crate::time::Time;

/// A single FIFO.
#[derive(Clone, Debug, Default)]
pub struct Noop {
    fifo: VecDeque<RequestId>,
}

impl Scheduler for Noop {
    fn merged_requests(&mut self, _: Time, _: &Requests, _survivor: RequestId, merged: RequestId) {
        self.fifo.retain(|&id| id != merged);
    }

    fn add(&mut self, _: Time, _: &Requests, request: RequestId) {
        self.fifo.push_back(request);
    }

    fn dispatch(&mut self, _: Time, _: &Requests) -> Option<RequestId> {
        self.fifo.pop_front()
    }

    fn queued(&self) -> usize {
        self.fifo.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::invariants;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..8) {
            let served = invariants::serve(Box::new(Noop::default()), &load, depth, 1_000_000);
            invariants::completes_each_once(&served);
        }
    }
}
