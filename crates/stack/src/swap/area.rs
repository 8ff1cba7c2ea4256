//! The swap area on its drive: slots to bios and back.

use std::collections::{BTreeMap, VecDeque};

use super::slots::SlotNumber;
use crate::block::{Bio, Direction, Priority, Sector, Submitted, TaskId};
use crate::time::Time;
use crate::world::Drive;

const PAGE_SECTORS: u32 = 8;

/// Slots in a row that have been read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) direction: Direction,
    pub(super) first: SlotNumber,
    pub(super) slots: u32,
}

pub(super) struct Area {
    drive: Drive,
    begin: Sector,
    /// Bios that found no request, by task.
    waiting: BTreeMap<TaskId, VecDeque<Bio>>,
    /// Of requests that the device has done.
    tags: Vec<u32>,
    done: Vec<Bio>,
    may_retry: Vec<TaskId>,
}

impl Area {
    pub(super) fn new(drive: Drive, begin: Sector) -> Area {
        Area {
            drive,
            begin,
            waiting: BTreeMap::new(),
            tags: Vec::new(),
            done: Vec::new(),
            may_retry: Vec::new(),
        }
    }

    /// Reads or writes slots in a row. False: the task has to wait for a request, until `run` names it.
    pub(super) fn submit(
        &mut self,
        now: Time,
        task: TaskId,
        direction: Direction,
        first: SlotNumber,
        slots: u32,
    ) -> bool {
        let bio = Bio {
            direction,
            sync: direction == Direction::Read,
            metadata: false,
            read_ahead: false,
            no_idle: false,
            writeback: false,
            workers: 0,
            start: self.begin + Sector::from(first) * Sector::from(PAGE_SECTORS),
            sectors: slots * PAGE_SECTORS,
            segments: slots as u16,
            task,
            group: 0,
            priority: Priority::default(),
            cpu: 0,
            submitted_at: now,
            tag: first,
            next: None,
        };
        if let Some(waiting) = self.waiting.get_mut(&task) {
            waiting.push_back(bio);
            return false;
        }
        if self.drive.submit(now, bio.clone()) == Submitted::MustWait {
            self.waiting.insert(task, VecDeque::from([bio]));
            return false;
        }
        true
    }

    /// Somebody waits for what is queued.
    pub(super) fn unplug(&mut self) {
        self.drive.unplug();
    }

    /// Does what is due. What is done and who has all his requests now are appended.
    pub(super) fn run(&mut self, now: Time, done: &mut Vec<Done>, granted: &mut Vec<TaskId>) {
        loop {
            self.run_drive(now);
            done.extend(self.done.drain(..).map(|bio| Done {
                direction: bio.direction,
                first: bio.tag,
                slots: bio.sectors / PAGE_SECTORS,
            }));
            if self.may_retry.is_empty() {
                return;
            }
            for task in std::mem::take(&mut self.may_retry) {
                if self.retry(now, task) {
                    granted.push(task);
                }
            }
        }
    }

    fn run_drive(&mut self, now: Time) {
        self.drive.collect(now, &mut self.tags);
        for tag in self.tags.drain(..) {
            self.drive
                .complete(now, tag, None, &mut self.done, &mut self.may_retry);
        }
        self.drive.wake(now, &mut self.may_retry);
        while self.drive.send(now).is_some() {}
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        self.drive.next_event()
    }

    pub(super) fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Whether nothing of the task's waits any more.
    fn retry(&mut self, now: Time, task: TaskId) -> bool {
        let Some(mut waiting) = self.waiting.remove(&task) else {
            return false;
        };
        while let Some(mut bio) = waiting.pop_front() {
            bio.submitted_at = now;
            if self.drive.submit(now, bio.clone()) == Submitted::MustWait {
                waiting.push_front(bio);
                self.waiting.insert(task, waiting);
                return false;
            }
        }
        true
    }
}
