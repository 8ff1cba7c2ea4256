//! Faults: a page that is not in the page table is found, made or read.

use super::{NAP_NS, SortProcesses};
use crate::swap::PageNumber;
use crate::swap::pages::PageState;
use crate::swap::task::Wait;
use block_layer::{Direction, TaskId};
use events::time::Time;

impl SortProcesses {
    /// A touch of a page that is not in the page table. Returns the CPU time; afterwards the page may be touched again, or
    /// the task waits.
    pub(super) fn fault(&mut self, now: Time, task: TaskId, number: PageNumber) -> Time {
        let page = *self.memory.page(number);
        let mut took_ns = self.swap.fault_ns;
        match page.place {
            PageState::Mapped => unreachable!("a page in the page table is no fault"),
            PageState::Reading => self.wait_for(task, number),
            PageState::Cached if page.writing && self.reclaim.locks_written_pages() => {
                self.unplug();
                self.wait_for(task, number);
            }
            PageState::Cached => {
                self.memory.map_again(number);
                self.memory.mark_accessed(number);
                self.task(task).usage.faults_minor += 1;
            }
            PageState::Nowhere | PageState::Swapped => {
                let (scanned_ns, has_frame) = self.make_sure_of_a_frame(now, task);
                took_ns += scanned_ns;
                if !has_frame {
                    took_ns -= self.swap.fault_ns;
                } else if page.place == PageState::Nowhere {
                    self.memory.map_new(number);
                    self.reclaim.mapped_first(&mut self.memory, number);
                    self.task(task).usage.faults_minor += 1;
                } else {
                    self.read_around(task, number);
                    self.task(task).usage.faults_major += 1;
                }
            }
        }
        self.task(task).usage.cpu_system_ns += took_ns;
        took_ns
    }

    /// `swapin_readahead`: the page with those whose slots lie around its own, as long as there are frames.
    fn read_around(&mut self, task: TaskId, number: PageNumber) {
        let slot = self.memory.page(number).slot.expect("where it was swapped to");
        let around: Vec<u32> = self.memory.slots.around(slot, self.swap.page_cluster).collect();
        self.memory.begin_read(number);
        let mut run: Option<(u32, u32)> = None;
        for other in around {
            let owner = self.memory.slots.owner(other).expect("only slots in use");
            let is_wanted = owner == number
                || self.memory.page(owner).place == PageState::Swapped && self.memory.free() > self.watermarks.min;
            if !is_wanted {
                continue;
            }
            if owner != number {
                self.memory.begin_read(owner);
            }
            run = match run {
                Some((first, slots)) if first + slots == other => Some((first, slots + 1)),
                Some((first, slots)) => {
                    self.submit(task, Direction::Read, first, slots);
                    Some((other, 1))
                }
                None => Some((other, 1)),
            };
        }
        let (first, slots) = run.expect("its own slot is among them");
        self.submit(task, Direction::Read, first, slots);
        // It waits for the page as soon as all of it is in the queue: `granted`.
        self.task(task).wait = Wait::Requests;
    }

    /// Whether there is a frame for the task: it may have to free some itself, and wait. And the CPU time of looking.
    fn make_sure_of_a_frame(&mut self, now: Time, task: TaskId) -> (Time, bool) {
        if self.memory.free() < self.watermarks.low {
            self.wake_daemon();
        }
        if self.memory.free() > self.watermarks.min && self.task(task).effort.is_none() {
            return (0, true);
        }
        let (took_ns, freed) = self.free_some(now, task);
        match freed {
            None => (took_ns, false),
            Some(true) => (took_ns, self.memory.free() > 0),
            Some(false) => {
                self.doze(task, Wait::Nap(now + NAP_NS));
                (took_ns, false)
            }
        }
    }
}
