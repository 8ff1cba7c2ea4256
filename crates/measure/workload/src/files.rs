//! Whose turn it is: which of a job's files the next operation goes to.

use crate::spec::FileOrder;
use base::rng::Stream;

/// Files are numbered as slots, their places in the job's own list.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    slot: usize,
    slots: usize,
    order: FileOrder,
    stream: Stream,
}

impl Turn {
    pub fn new(slots: usize, order: FileOrder, stream: Stream) -> Turn {
        // The first round-robin turn then falls to slot 0.
        let slot = if order == FileOrder::RoundRobin { slots - 1 } else { 0 };
        Turn { slot, slots, order, stream }
    }

    #[inline]
    pub fn take(&mut self) -> usize {
        if self.slots > 1 {
            match self.order {
                FileOrder::Sequential => {}
                FileOrder::RoundRobin => self.advance(),
                FileOrder::Random => self.slot = self.stream.below(self.slots as u64) as usize,
            }
        }
        self.slot
    }

    /// The range of the file whose turn it is has been finished: who begins a range now?
    #[inline]
    pub fn range_finished(&mut self) -> usize {
        if self.order == FileOrder::Sequential {
            self.advance();
        }
        self.slot
    }

    fn advance(&mut self) {
        self.slot += 1;
        if self.slot == self.slots {
            self.slot = 0;
        }
    }
}
