//! Freeing pages: the daemon, and tasks that find too few free.

use super::{NAP_NS, REST_NS, SortProcesses};
use crate::swap::reclaim::ReclaimStep;
use crate::swap::task::Wait;
use block_layer::{Direction, TaskId};
use events::time::Time;

impl SortProcesses {
    /// The daemon: frees until enough is free. Returns the CPU time.
    pub(super) fn balance(&mut self, now: Time) -> Time {
        let daemon = self.daemon();
        if self.memory.free() >= self.watermarks.high && self.task(daemon).effort.is_none() {
            self.unplug();
            self.task(daemon).wait = Wait::Work;
            return 0;
        }
        let (took_ns, freed) = self.free_some(now, daemon);
        if freed == Some(false) {
            self.doze(daemon, Wait::Rest(now + REST_NS));
        }
        self.task(daemon).usage.cpu_system_ns += took_ns;
        took_ns
    }

    /// Goes on freeing. None: the task has to wait; else whether it was of any use.
    pub(super) fn free_some(&mut self, now: Time, task: TaskId) -> (Time, Option<bool>) {
        let mut effort = match self.task(task).effort.take() {
            Some(effort) => effort,
            None => self.reclaim.begin(),
        };
        let freed = match self.reclaim.step(&mut self.memory, &mut effort) {
            ReclaimStep::Freed => Some(true),
            ReclaimStep::Failed => Some(false),
            ReclaimStep::Write(number) => {
                let slot = self.memory.page(number).slot.expect("a slot to write to");
                self.submit(task, Direction::Write, slot, 1);
                // It continues as soon as the page is in the queue: `granted`.
                self.task(task).wait = Wait::Requests;
                None
            }
            ReclaimStep::Wait(number) => {
                self.unplug();
                self.wait_for(task, number);
                None
            }
            ReclaimStep::Nap => {
                self.unplug();
                self.doze(task, Wait::Nap(now + NAP_NS));
                None
            }
        };
        let took_ns = effort.take_scanned() * self.swap.scan_ns;
        if freed.is_none() {
            self.task(task).effort = Some(effort);
        }
        (took_ns, freed)
    }

    pub(super) fn wake_daemon(&mut self) {
        let daemon = self.daemon();
        if self.task(daemon).wait == Wait::Work {
            self.wake(daemon);
        }
    }
}
