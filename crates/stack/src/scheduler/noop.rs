//! noop: in order of arrival. Merging is the queue's; nothing else is done.

use std::collections::VecDeque;

use crate::block::{RequestId, Requests};
use crate::scheduler::Scheduler;
use crate::time::Time;

#[derive(Clone, Debug, Default)]
pub struct Noop {
    line: VecDeque<RequestId>,
}

impl Scheduler for Noop {
    fn absorbed(&mut self, _: Time, _: &Requests, _survivor: RequestId, absorbed: RequestId) {
        self.line.retain(|&id| id != absorbed);
    }

    fn add(&mut self, _: Time, _: &Requests, request: RequestId) {
        self.line.push_back(request);
    }

    fn dispatch(&mut self, _: Time, _: &Requests) -> Option<RequestId> {
        self.line.pop_front()
    }

    fn queued(&self) -> usize {
        self.line.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::laws;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in laws::arrivals(4), depth in 1u32..8) {
            let served = laws::serve(Box::new(Noop::default()), &load, depth, 1_000_000);
            laws::completes_each_once(&served);
        }
    }
}
