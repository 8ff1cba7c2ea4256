//! How long a run of a hardware queue takes the CPU that does it.

use events::time::Time;

/// What each request costs that a run sends (`blk_mq_dispatch_rq_list` of block/blk-mq.c, 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRunCosts {
    /// To take it from the scheduler, with its tag.
    pub dequeue_ns: Time,
    /// To hand it to the driver, which starts its timer.
    pub issue_ns: Time,
}

impl QueueRunCosts {
    /// When each of these requests is at the device, if the first would be there at `now` alone. One that is single is taken
    /// and sent; of others, all that follow each other are taken before the first of them is sent.
    pub(super) fn times(self, now: Time, are_single: &[bool]) -> Vec<Time> {
        let mut at = now;
        let mut times = Vec::with_capacity(are_single.len());
        for batch in are_single.chunk_by(|one, next| !one && !next) {
            at += self.dequeue_ns * batch.len() as Time;
            for _ in batch {
                at += self.issue_ns;
                times.push(at - self.dequeue_ns - self.issue_ns);
            }
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_taken_before_its_first_request_is_sent() {
        let costs = QueueRunCosts { dequeue_ns: 800, issue_ns: 1_300 };
        assert_eq!(costs.times(10_000, &[false]), [10_000]);
        assert_eq!(costs.times(10_000, &[true, true]), [10_000, 12_100]);
        assert_eq!(costs.times(10_000, &[false, false, false]), [11_600, 12_900, 14_200]);
        assert_eq!(costs.times(10_000, &[true, false, false]), [10_000, 12_900, 14_200]);
    }
}
