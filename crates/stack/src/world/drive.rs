//! A device behind its request queue.

use crate::block::{Bio, Direction, RequestId, RequestQueue, Submitted, TaskId};
use crate::device::{Command, Completion, Device};
use crate::station::Broken;
use crate::time::Time;

pub(super) struct Drive {
    queue: RequestQueue,
    device: Box<dyn Device>,
    /// Requests at the device, by tag.
    sent: Vec<Option<RequestId>>,
    free_tags: Vec<u32>,
    completions: Vec<Completion>,
    was_congested: [bool; 2],
    /// Writes that have found no request: who submits them sleeps.
    waiting_writes: u32,
    pub(super) write_bio_sectors_max: u32,
    /// When the world has been asked to come back.
    pub(super) called_at: Option<Time>,
}

impl Drive {
    pub(super) fn new(
        queue: RequestQueue,
        device: Box<dyn Device>,
        write_bio_sectors_max: u32,
    ) -> Drive {
        let depth = device.queue_depth();
        Drive {
            queue,
            device,
            sent: vec![None; depth as usize],
            free_tags: (0..depth).rev().collect(),
            completions: Vec::new(),
            was_congested: [false; 2],
            waiting_writes: 0,
            write_bio_sectors_max,
            called_at: None,
        }
    }

    pub(super) fn submit(&mut self, now: Time, bio: Bio) -> Submitted {
        self.queue.submit(now, bio)
    }

    /// The bio has to wait for a request.
    pub(super) fn waits(&mut self, bio: &Bio) {
        self.waiting_writes += u32::from(bio.direction == Direction::Write);
    }

    /// It waits no more.
    pub(super) fn waits_no_more(&mut self, bio: &Bio) {
        self.waiting_writes -= u32::from(bio.direction == Direction::Write);
    }

    /// Somebody waits.
    pub(super) fn unplug(&mut self) {
        self.queue.unplug();
    }

    /// Does what is due: collects completions, wakes the scheduler, sends what may go. Completed bios and who may try
    /// again to get a request are appended.
    pub(super) fn run(&mut self, now: Time, done: &mut Vec<Bio>, may_retry: &mut Vec<TaskId>) {
        if self.device.next_event().is_some_and(|at| at <= now) {
            self.device.advance(now, &mut self.completions);
            for completion in self.completions.drain(..) {
                let request = self.sent[completion.tag as usize]
                    .take()
                    .expect("a device completes what it was sent");
                self.free_tags.push(completion.tag);
                may_retry.extend(self.queue.completed(now, request, done));
            }
        }
        if self.queue.next_wakeup().is_some_and(|at| at <= now) {
            self.queue.wake(now);
        }
        while let Some(&tag) = self.free_tags.last()
            && let Some(id) = self.queue.dispatch(now)
        {
            self.free_tags.pop();
            let request = self.queue.request(id);
            let command = Command {
                tag,
                direction: request.direction,
                start: request.start,
                sectors: request.sectors,
                force_unit_access: false,
            };
            self.sent[tag as usize] = Some(id);
            self.device.submit(now, command);
        }
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        let device = self.device.next_event();
        // With every tag taken, only the device can change anything.
        let queue = self
            .queue
            .next_wakeup()
            .filter(|_| !self.free_tags.is_empty());
        [device, queue].into_iter().flatten().min()
    }

    pub(super) fn queue(&self) -> &RequestQueue {
        &self.queue
    }

    pub(super) fn queue_mut(&mut self) -> &mut RequestQueue {
        &mut self.queue
    }

    /// The task submits nothing any more.
    pub(super) fn exited(&mut self, now: Time, task: TaskId) {
        self.queue.exited(now, task);
    }

    /// Whether its state of congestion in a direction has changed since it was asked last, and what it is now.
    pub(super) fn turned_congested(&mut self, direction: Direction) -> Option<bool> {
        let waits = direction == Direction::Write && self.waiting_writes > 0;
        let is = waits
            || self
                .queue
                .is_congested(direction, direction == Direction::Read);
        let was = std::mem::replace(&mut self.was_congested[direction as usize], is);
        (is != was).then_some(is)
    }

    pub(super) fn check(&self, name: &str, now: Time) -> Result<(), Broken> {
        self.queue.check(name, now)?;
        self.device.check(now)
    }
}
