//! What tasks wait for: pages on their way, requests, the clock.

use super::SortProcesses;
use crate::swap::PageNumber;
use crate::swap::effect::Effect;
use crate::swap::pages::PageState;
use crate::swap::slots::SlotNumber;
use crate::swap::task::{State, Wait};
use block_layer::{Direction, TaskId};
use events::time::Time;

impl SortProcesses {
    pub(super) fn wait_for(&mut self, task: TaskId, number: PageNumber) {
        self.task(task).wait = Wait::Page(number);
        self.waiting.entry(number).or_default().push(task);
    }

    pub(super) fn doze(&mut self, task: TaskId, wait: Wait) {
        if let Wait::Nap(until) | Wait::Rest(until) = wait {
            self.alarms.put(until, task);
        }
        self.task(task).wait = wait;
    }

    pub(super) fn alarm(&mut self, now: Time, task: TaskId) {
        self.now = now;
        if matches!(self.task(task).wait, Wait::Nap(until) | Wait::Rest(until) if until <= now) {
            self.wake(task);
        }
    }

    /// The task needs nothing but a CPU; it may still be on one.
    pub(super) fn wake(&mut self, task: TaskId) {
        self.task(task).wait = Wait::Nothing;
        if self.task(task).state == State::Asleep {
            self.wants_cpu(task);
        }
    }

    /// Slots in a row have been read or written.
    pub fn moved(&mut self, now: Time, direction: Direction, first: SlotNumber, slots: u32) {
        self.now = now;
        for slot in first..first + slots {
            let number = self.memory.slots.owner(slot).expect("a page keeps its slot on its way");
            match direction {
                Direction::Read => {
                    self.memory.end_read(number);
                }
                Direction::Write => {
                    if self.memory.end_write(number) {
                        self.reclaim.written(&mut self.memory, number);
                    }
                }
            }
            for task in self.waiting.remove(&number).unwrap_or_default() {
                self.wake(task);
            }
        }
        if direction == Direction::Write {
            for task in 0..self.tasks.len() as TaskId {
                if matches!(self.task(task).wait, Wait::Nap(_)) {
                    self.wake(task);
                }
            }
        }
    }

    /// All of the task's requests are on their way: a reader waits for its page, a writer continues.
    pub fn granted(&mut self, now: Time, task: TaskId) {
        self.now = now;
        let running = self.task(task);
        if running.wait != Wait::Requests {
            return;
        }
        let reads = running.effort.is_none();
        let number = running.first_page + running.touch.map_or(0, |touch| touch.page);
        if reads && self.memory.page(number).place == PageState::Reading {
            self.unplug();
            self.wait_for(task, number);
        } else {
            self.wake(task);
        }
    }

    pub(super) fn submit(&mut self, task: TaskId, direction: Direction, first: SlotNumber, slots: u32) {
        self.effects.push(Effect::Io { task, direction, first, slots });
    }

    /// A task waits for what is queued.
    pub(super) fn unplug(&mut self) {
        self.effects.push(Effect::Unplug);
    }
}
