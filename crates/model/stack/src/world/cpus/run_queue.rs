//! Who waits for a simple CPU, and in which order.

use super::deadline_queue::DeadlineQueue;
use super::time_queue::{StartSpec, TimeQueue};
use block_layer::TaskId;
use events::time::Time;
use kernels::scheduling::TaskOrder;

#[derive(Clone, Debug)]
pub(super) enum RunQueue {
    OfTimes(TimeQueue),
    OfDeadlines(DeadlineQueue),
}

impl RunQueue {
    pub(super) fn new(order: TaskOrder, slice_ns: Time) -> RunQueue {
        match order {
            TaskOrder::InLine => RunQueue::OfTimes(TimeQueue::new(false)),
            TaskOrder::ByTimeHad => RunQueue::OfTimes(TimeQueue::new(true)),
            TaskOrder::ByDeadline { delays } => RunQueue::OfDeadlines(DeadlineQueue::new(slice_ns, delays)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            RunQueue::OfTimes(queue) => queue.is_empty(),
            RunQueue::OfDeadlines(queue) => queue.is_empty(),
        }
    }

    /// Tasks of these depths are made, one after the other, while who makes them continues. On several CPUs each new task
    /// goes to one that is idle.
    pub(super) fn fork(&mut self, depths: &[u32], start: &StartSpec) {
        if let RunQueue::OfTimes(queue) = self {
            for (before, &depth) in (0..).zip(depths) {
                queue.forks(before, before + start.beside, start.op_ns * Time::from(depth));
            }
            queue.leads(start.lead_ns);
        }
    }

    /// The task wakes up and waits for a CPU.
    pub(super) fn wakes(&mut self, now: Time, task: TaskId) {
        match self {
            RunQueue::OfTimes(queue) => {
                queue.wakes(task);
                queue.push(task);
            }
            RunQueue::OfDeadlines(queue) => queue.wakes(now, task),
        }
    }

    /// Who is next, if somebody waits.
    pub(super) fn pop(&mut self) -> Option<TaskId> {
        match self {
            RunQueue::OfTimes(queue) => queue.pop(),
            RunQueue::OfDeadlines(queue) => queue.pop(),
        }
    }

    /// The task has been given a CPU.
    pub(super) fn begins(&mut self, now: Time, task: TaskId) {
        match self {
            RunQueue::OfTimes(_) => {}
            RunQueue::OfDeadlines(queue) => queue.begins(now, task),
        }
    }

    /// The task has its CPU for so long from now on.
    pub(super) fn runs_for(&mut self, now: Time, task: TaskId, ns: Time) {
        match self {
            RunQueue::OfTimes(queue) => queue.runs_for(task, ns),
            RunQueue::OfDeadlines(queue) => queue.runs_for(now, task, ns),
        }
    }

    /// An interrupt has the task's CPU for so long, which counts as the task's time.
    pub(super) fn is_interrupted_for(&mut self, task: TaskId, ns: Time) {
        if let RunQueue::OfTimes(queue) = self {
            queue.runs_for(task, ns);
        }
    }

    /// Whether the task has to give its CPU to one that waits. The slice that it was given ends at `slice_ends_at`.
    pub(super) fn is_over(&mut self, now: Time, task: TaskId, slice_ends_at: Time) -> bool {
        match self {
            RunQueue::OfTimes(queue) => now >= slice_ends_at || queue.preempts(task),
            RunQueue::OfDeadlines(queue) => queue.is_over(now, task),
        }
    }

    /// The task has no CPU any more, and waits for one.
    pub(super) fn gives_way(&mut self, now: Time, task: TaskId) {
        match self {
            RunQueue::OfTimes(queue) => queue.push(task),
            RunQueue::OfDeadlines(queue) => queue.gives_way(now, task),
        }
    }

    /// The task has no CPU any more, and sleeps.
    pub(super) fn sleeps(&mut self, now: Time, task: TaskId) {
        match self {
            RunQueue::OfTimes(_) => {}
            RunQueue::OfDeadlines(queue) => queue.sleeps(now, task),
        }
    }
}
