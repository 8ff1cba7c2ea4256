//! What tasks wait for: pages on their way, requests, the clock.

use super::{Event, Sorting};
use crate::block::{Direction, TaskId};
use crate::swap::area::Done;
use crate::swap::pages::{PageNumber, PageState};
use crate::swap::task::{State, Wait};
use crate::time::Time;

impl Sorting {
    pub(super) fn wait_for(&mut self, task: TaskId, number: PageNumber) {
        self.task(task).wait = Wait::Page(number);
        self.waiting.entry(number).or_default().push(task);
    }

    pub(super) fn doze(&mut self, task: TaskId, wait: Wait) {
        if let Wait::Nap(until) | Wait::Rest(until) = wait {
            self.events.put(until, Event::Alarm(task));
        }
        self.task(task).wait = wait;
    }

    pub(super) fn alarm(&mut self, now: Time, task: TaskId) {
        if matches!(self.task(task).wait, Wait::Nap(until) | Wait::Rest(until) if until <= now) {
            self.wake(now, task);
        }
    }

    /// The task needs nothing but a CPU; it may still be on one.
    pub(super) fn wake(&mut self, now: Time, task: TaskId) {
        self.task(task).wait = Wait::Nothing;
        if self.task(task).state == State::Asleep {
            self.wants_cpu(now, task);
        }
    }

    /// Collects what the drive has completed and sends it what may go.
    pub(super) fn run_area(&mut self, now: Time) {
        let (mut done, mut granted) = (
            std::mem::take(&mut self.done),
            std::mem::take(&mut self.granted),
        );
        self.area.run(now, &mut done, &mut granted);
        if let Some(at) = self.area.next_event()
            && self.area_called_at.is_none_or(|called| at < called)
        {
            let at = at.max(now);
            self.area_called_at = Some(at);
            self.events.put(at, Event::Area);
        }
        for moved in done.drain(..) {
            self.moved(now, moved);
        }
        for task in granted.drain(..) {
            self.granted(now, task);
        }
        (self.done, self.granted) = (done, granted);
    }

    fn moved(&mut self, now: Time, moved: Done) {
        for slot in moved.first..moved.first + moved.slots {
            let number = self
                .memory
                .slots
                .owner(slot)
                .expect("a page keeps its slot on its way");
            match moved.direction {
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
                self.wake(now, task);
            }
        }
        if moved.direction == Direction::Write {
            for task in 0..self.tasks.len() as TaskId {
                if matches!(self.task(task).wait, Wait::Nap(_)) {
                    self.wake(now, task);
                }
            }
        }
    }

    /// All of the task's requests are on their way: a reader waits for its page, a writer goes on.
    fn granted(&mut self, now: Time, task: TaskId) {
        let running = self.task(task);
        if running.wait != Wait::Requests {
            return;
        }
        let reads = running.effort.is_none();
        let number = running.first_page + running.touch.map_or(0, |touch| touch.page);
        if reads && self.memory.page(number).place == PageState::Reading {
            self.area.unplug();
            self.wait_for(task, number);
        } else {
            self.wake(now, task);
        }
    }
}
