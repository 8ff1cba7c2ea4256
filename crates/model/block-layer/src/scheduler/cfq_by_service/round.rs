//! What a round moves to the driver, in which order, and what that counts.

use super::{CfqByService, DEEP_DEVICE, QueueId};
use crate::{RequestId, Requests};

impl CfqByService {
    /// One request of each queue, in a first pass only of those that have nothing in flight (`cfq_dispatch_requests`).
    pub(super) fn round(&mut self, requests: &Requests, now: u64) {
        let (mut count, mut first_pass) = (0, true);
        loop {
            let mut more = false;
            for id in self.line.clone() {
                if first_pass && self.queues[id].in_flight > 0 {
                    continue;
                }
                self.send_one(requests, id, now);
                more |= self.queues[id].queued > 0;
                count += 1;
            }
            if count >= self.tunables.quantum || !(more || first_pass) {
                return;
            }
            first_pass = false;
        }
    }

    /// `cfq_dispatch_request`.
    fn send_one(&mut self, requests: &Requests, queue: QueueId, now: u64) {
        let best = match self.tunables.find_best {
            true => self.queues[queue].next,
            false => self.fifos.lowest(queue),
        };
        let expired = self.expired(queue, now);
        let id = expired.or(best).expect("a queue in the line has requests");
        self.last_position = requests[id].end();
        if self.queues[queue].next == Some(id) {
            let (before, after) = self.fifos.around_cyclically(requests, id);
            self.queues[queue].next = self.backwards.nearer(requests, self.last_position, after, before);
        }
        self.fifos.remove(requests, id);
        self.arrivals.remove(requests, id);
        self.count_out(queue);
        self.queues[queue].in_flight += 1;
        let place = self.place(requests, id);
        self.dispatch_list.insert(place, id);
    }

    /// The oldest that has waited too long, async ones first (`cfq_check_fifo`); one in a while.
    fn expired(&mut self, queue: QueueId, now: u64) -> Option<RequestId> {
        if now < self.queues[queue].expired_at + self.ticks.batch_expire {
            return None;
        }
        let oldest = |class| self.arrivals.overdue(2 * queue + class, now);
        let id = oldest(0).or_else(|| oldest(1))?;
        self.queues[queue].expired_at = now;
        Some(id)
    }

    /// The kernel's walk from the end (`cfq_dispatch_sort`): it stops at what lies before the request, and also at what
    /// lies beyond it, from where the next search then starts.
    fn place(&mut self, requests: &Requests, id: RequestId) -> usize {
        let start = requests[id].start;
        let (mut place, mut last) = (0, self.last_position);
        for (index, other) in self.dispatch_list.iter().enumerate().rev() {
            let other = requests[other].start;
            if start > other {
                place = index + 1;
                break;
            }
            if other > last && start < last {
                place = index + 1;
                last = start;
                break;
            }
        }
        self.last_position = last;
        place
    }

    /// `cfq_del_crq_rb`.
    pub(super) fn count_out(&mut self, queue: QueueId) {
        self.queues[queue].queued -= 1;
        if self.queues[queue].queued == 0 {
            self.line.retain(|&other| other != queue);
        }
    }

    /// The driver takes it (`cfq_account_dispatch`).
    pub(super) fn took(&mut self, id: RequestId, now: u64) {
        let queue_id = self.fifos.fifo_of(id);
        let is_new_second = self.is_new_second(queue_id, now);
        let queue = &mut self.queues[queue_id];
        if queue.service_start.is_none() {
            queue.service_start = Some(now);
        } else if self.counts_requests && is_new_second {
            queue.service_start = Some(now);
            queue.service /= 10;
        }
        if self.counts_requests {
            queue.service += 1;
            self.stand_if_busy(queue_id);
        }
        self.taken_at[id.number() as usize] = now;
        self.in_driver += 1;
        self.counts_requests |= self.in_driver >= DEEP_DEVICE;
    }

    pub(super) fn stand_if_busy(&mut self, id: QueueId) {
        if self.queues[id].queued > 0 {
            self.stand(id);
        }
    }
}
