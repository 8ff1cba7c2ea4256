//! Merging of queues that come soon after one another: their tasks are taken for the threads of one application.
//!
//! Source: `bfq_do_or_sched_stable_merge`, `bfq_setup_stable_merge` and `bfq_merge_bfqqs` in `block/bfq-iosched.c` of
//! 6.x (stable merges since 5.13). If seeking is free and the device takes several commands, a queue that comes within
//! 180 ms of the first is merged into it at once; else after 600 ms, and only if idling for it would not pay. Left out:
//! merging of queues whose requests are near one another (`bfq_find_close_cooperator`), which the kernel tries in the
//! first 100 ms of a queue.

use crate::scheduler::bfq::hierarchy::GroupId;
use crate::scheduler::bfq::{Bfq, QueueId};
use crate::{Priority, TaskId};
use events::time::{MILLISECOND, Time};

/// How long the first of a group of queues counts as such (`bfq_activation_stable_merging`).
const FIRST_FOR_NS: Time = 600 * MILLISECOND;
/// Others that come within this time of it are merged into it (`bfq_burst_interval`).
const TOGETHER_NS: Time = 180 * MILLISECOND;
/// On devices for which idling may pay, not before (`bfq_late_stable_merging`).
const LATE_NS: Time = 600 * MILLISECOND;

impl Bfq {
    /// A sync queue has been made for the task (`bfq_do_or_sched_stable_merge`): the queue that it goes to.
    pub(super) fn merge_if_soon(&mut self, id: QueueId, task: TaskId) -> QueueId {
        if !self.merges_queues {
            return id;
        }
        let (group, priority) = (self.queues[id].group, self.queues[id].priority);
        let Some(first) = self.first_to_merge_with(group, priority) else {
            self.last_made.insert(group, id);
            return id;
        };
        if self.now > self.queues[first].made_at + TOGETHER_NS {
            return id;
        }
        if self.orders_by_itself() {
            self.merge(id, first, task);
            return first;
        }
        self.queues[id].merges_into = Some(first);
        id
    }

    /// A task sends a request (`bfq_setup_stable_merge`): its queue is merged now if that was put off.
    pub(super) fn merge_late(&mut self, id: QueueId, task: TaskId) -> QueueId {
        let queue = &self.queues[id];
        let Some(first) = queue.merges_into else {
            return id;
        };
        if self.now <= queue.made_at + LATE_NS {
            return id;
        }
        self.queues[id].merges_into = None;
        if self.boosts_throughput(id) || self.queues[first].exited {
            return id;
        }
        self.merge(id, first, task);
        first
    }

    /// Seeking is free, and the device takes several commands, as far as is known: it finds a good order by itself.
    pub(super) fn orders_by_itself(&self) -> bool {
        !self.rotational && self.depth.known != Some(false)
    }

    fn first_to_merge_with(&self, group: GroupId, priority: Priority) -> Option<QueueId> {
        let first = *self.last_made.get(&group)?;
        let queue = &self.queues[first];
        let is_first = self.now <= queue.made_at + FIRST_FOR_NS;
        (is_first && !queue.exited && queue.priority == priority).then_some(first)
    }

    /// From now on the task's requests go to the other queue (`bfq_merge_bfqqs`); what the one has is still served.
    fn merge(&mut self, from: QueueId, into: QueueId, task: TaskId) {
        *self.sync_queues.get_or_insert_with(task, || into) = into;
        self.queues[from].exited = true;
        let judged = self.tunables.slice_idle_ns;
        self.queues[from].judge_think(judged);
        self.leave_line(from);
        self.queues[into].tasks += 1;
        let io_bound = self.queues[from].io_bound;
        self.queues[into].io_bound |= io_bound;
        // It takes the other's raised weight over.
        if let Some(raised) = self.queues[from].raised {
            if self.queues[into].raised.is_none() {
                self.raise(into, raised);
            }
            self.lower(from);
        }
    }
}
