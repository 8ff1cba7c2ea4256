//! Queues that wait for one another's requests: a task that syncs waits for the journal's. Once BFQ has found out, it serves
//! the one while it idles for the other, without a limit.
//!
//! Source: `bfq_check_waker`, `bfq_completed_request` and `bfq_select_queue` in `block/bfq-iosched.c` of 6.1.

use crate::Requests;
use crate::scheduler::bfq::{Bfq, QueueId};
use events::time::{MILLISECOND, Time};

/// A request that comes this soon after another queue's completion may have waited for it.
const SOON_NS: Time = 4 * MILLISECOND;
/// So many times in a row.
const DETECTIONS: u32 = 3;
/// Of `slice_idle`: all of them within this.
const IDLES: Time = 128;

/// What a queue is known to wait for.
#[derive(Clone, Debug, Default)]
pub(super) struct Waker {
    waker: Option<QueueId>,
    /// The one that may be, how often it was, and since when.
    tentative: Option<QueueId>,
    detections: u32,
    since: Time,
    /// The queues that wait for this one, the last that was found out first.
    woken: Vec<QueueId>,
}

impl Bfq {
    /// The queue's task sends a request while it has no other.
    pub(super) fn look_for_waker(&mut self, id: QueueId) {
        let (completed, at) = self.last_completed;
        let Some(before) = completed.filter(|&before| before != id) else {
            return;
        };
        if self.queues[id].short_think || self.now >= at + SOON_NS {
            return;
        }
        let window = IDLES * self.tunables.slice_idle_ns;
        let found = &mut self.queues[id].waker;
        if found.tentative != Some(before) || self.now > found.since + window {
            (found.tentative, found.detections, found.since) = (Some(before), 1, self.now);
        } else {
            found.detections += 1;
        }
        if found.detections != DETECTIONS {
            return;
        }
        found.tentative = None;
        let was = found.waker.replace(before);
        if let Some(was) = was {
            self.queues[was].waker.woken.retain(|&woken| woken != id);
        }
        self.queues[before].waker.woken.insert(0, id);
    }

    /// A request of the queue has completed.
    pub(super) fn note_completion(&mut self, id: QueueId) {
        let is_shared = self.queues[id].tasks > 1;
        self.last_completed = ((!is_shared).then_some(id), self.now);
    }

    /// While the active queue is idled for: the one that it waits for, or that waits for it, if that has a request.
    pub(super) fn waker_or_woken(&self, requests: &Requests, active: QueueId) -> Option<QueueId> {
        let waker = &self.queues[active].waker;
        let mut candidates = [waker.waker, waker.woken.first().copied()].into_iter().flatten();
        candidates.find(|&id| {
            let queue = &self.queues[id];
            queue.busy && queue.next.is_some() && self.charge_of_next(requests, id) <= self.budget_left(id)
        })
    }

    /// Its task has ended: nobody waits for it any more.
    pub(super) fn forget_waker(&mut self, id: QueueId) {
        for woken in std::mem::take(&mut self.queues[id].waker.woken) {
            self.queues[woken].waker.waker = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction::Read;
    use crate::invariants::bench::{Bench, bio};
    use crate::scheduler::Scheduler;
    use crate::scheduler::bfq::BfqTunables;
    use crate::{Bio, TaskId};

    /// The task's request goes to the device and completes: when.
    fn serve(bench: &mut Bench<Bfq>, mut now: Time, task: TaskId) -> Time {
        let start = u64::from(task) * 1_000_000;
        bench.add_bio(now, &Bio { task, ..bio(now, Read, start) });
        let id = loop {
            if let Some(id) = bench.scheduler.dispatch(now, &bench.requests) {
                break id;
            }
            now = bench.scheduler.next_wakeup().expect("a timer").max(now);
            bench.scheduler.wake(now, &bench.requests);
        };
        bench.scheduler.completed(now + MILLISECOND, &bench.requests, id);
        bench.requests.take(id);
        now + MILLISECOND
    }

    #[test]
    fn who_sends_soon_after_the_same_completion_three_times_waits_for_that_queue() {
        let waker_after = |pause_ns: Time| {
            let tunables = BfqTunables { low_latency: false, ..BfqTunables::default() };
            let mut bench = Bench::new(Bfq::new(tunables, false, &[1000]));
            let mut now = 0;
            for _ in 0..20 {
                now = serve(&mut bench, now + 30 * MILLISECOND, 2);
                now = serve(&mut bench, now + pause_ns, 1);
            }
            let bfq = &bench.scheduler;
            let [one, two] = [1, 2].map(|task| *bfq.sync_queues.get(task).expect("it sent"));
            (bfq.queues[one].waker.waker == Some(two), bfq.queues[two].waker.woken == [one])
        };
        assert_eq!(waker_after(MILLISECOND), (true, true));
        assert_eq!(waker_after(10 * MILLISECOND), (false, false));
    }
}
