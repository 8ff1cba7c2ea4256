//! A device behind its request queue.

use std::collections::VecDeque;

use super::DriveParts;
use super::bios::BIO_SECTORS_MAX;
use super::polling::Polling;
use block_layer::{Bio, Direction, Request, RequestId, RequestQueue, Sector, Submitted, TaskId};
use devices::{Command, Completion, Device};
use events::station::Violation;
use events::time::Time;
use filesystems::allocator::Allocator;

/// A device with its request queue, and the requests between the two.
pub struct Drive {
    queue: RequestQueue,
    device: Box<dyn Device>,
    /// Requests at the device, by tag.
    sent: Vec<Option<RequestId>>,
    free_tags: Vec<u32>,
    peek: bool,
    /// The request that has left the queue and found no room at the device.
    taken_ahead: Option<RequestId>,
    completions: Vec<Completion>,
    was_congested: [bool; 2],
    /// The largest bio of direct I/O and of reading through the page cache.
    pub(super) bio_sectors_max: u32,
    pub(super) write_bio_sectors_max: u32,
    /// fsync waits until the device's cache is on the medium.
    flushes: bool,
    /// Who waits for the flush that is under way, and who came since.
    flush_waiters: [Vec<TaskId>; 2],
    /// For whom one has ended, until `take_flushed`.
    flushed: Vec<TaskId>,
    /// Discards in the order in which they came; the first is under way.
    discards: VecDeque<(TaskId, Sector, Sector)>,
    /// Whether tasks can poll for its completions, and how.
    pub(super) polling: Option<Polling>,
    /// When the world has been asked to come back.
    pub(super) called_at: Option<Time>,
    /// Who gives its blocks to files; None: nobody does, or a filesystem on it.
    pub(super) allocator: Option<Box<dyn Allocator>>,
}

impl Drive {
    pub(crate) fn new(parts: DriveParts) -> Drive {
        let queues = match parts.device.has_depth_by_queue() {
            true => u32::from(parts.queue.hardware_queues()),
            false => 1,
        };
        let depth = parts.device.queue_depth() * queues;
        let bio_sectors_max = BIO_SECTORS_MAX.min(parts.queue.bio_sectors_max());
        Drive {
            queue: parts.queue,
            device: parts.device,
            sent: vec![None; depth as usize],
            free_tags: (0..depth).rev().collect(),
            peek: parts.peek,
            taken_ahead: None,
            completions: Vec::new(),
            was_congested: [false; 2],
            bio_sectors_max,
            write_bio_sectors_max: parts.write_bio_sectors_max.min(bio_sectors_max),
            flushes: false,
            flush_waiters: Default::default(),
            flushed: Vec::new(),
            discards: VecDeque::new(),
            polling: parts.polling.map(Polling::new),
            called_at: None,
            allocator: parts.filesystem,
        }
    }

    pub(crate) fn submit(&mut self, now: Time, bio: Bio) -> Submitted {
        self.queue.submit(now, bio)
    }

    /// Somebody waits.
    pub(crate) fn unplug(&mut self) {
        self.queue.unplug();
    }

    /// Appends the tags of what the device has done.
    pub(crate) fn collect(&mut self, now: Time, tags: &mut Vec<u32>) {
        if self.device.next_event().is_some_and(|at| at <= now) {
            self.device.advance(now, &mut self.completions);
            let (flush_tag, discard_tag) = (self.flush_tag(), self.discard_tag());
            let (mut has_flushed, mut has_discarded) = (false, false);
            for completion in self.completions.drain(..) {
                match completion.tag {
                    tag if tag == flush_tag => has_flushed = true,
                    tag if tag == discard_tag => has_discarded = true,
                    tag => tags.push(tag),
                }
            }
            if has_flushed {
                self.end_flush(now);
            }
            if has_discarded {
                self.end_discard(now);
            }
        }
    }

    /// From now on fsync waits for the device's cache.
    pub(super) fn set_flushes(&mut self, flushes: bool) {
        self.flushes = flushes;
    }

    /// The task's fsync waits until what the device has acknowledged is on the medium. False: it is. Those who come while a
    /// flush is under way share the next (`blk-flush.c`).
    pub(super) fn flush_for(&mut self, now: Time, task: TaskId) -> bool {
        if !self.flushes {
            return false;
        }
        let [under_way, next] = &mut self.flush_waiters;
        if !under_way.is_empty() {
            next.push(task);
            return true;
        }
        let waits = self.device.flush(now, self.sent.len() as u32);
        if waits {
            under_way.push(task);
        }
        waits
    }

    /// The task waits until the device no longer wants those sectors. False: it takes no discards.
    pub(super) fn discard_for(
        &mut self,
        now: Time,
        task: TaskId,
        start: Sector,
        sectors: Sector,
    ) -> bool {
        let is_taken = !self.discards.is_empty()
            || self.device.discard(now, self.discard_tag(), start, sectors);
        if is_taken {
            self.discards.push_back((task, start, sectors));
        }
        is_taken
    }

    fn end_discard(&mut self, now: Time) {
        let ended = self.discards.pop_front();
        self.flushed.extend(ended.map(|(task, ..)| task));
        if let Some(&(_, start, sectors)) = self.discards.front() {
            self.device.discard(now, self.discard_tag(), start, sectors);
        }
    }

    /// Appends who has waited for flushes or discards that have ended.
    pub(super) fn take_flushed(&mut self, into: &mut Vec<TaskId>) {
        into.append(&mut self.flushed);
    }

    /// No command has it.
    fn flush_tag(&self) -> u32 {
        self.sent.len() as u32
    }

    /// Nor this one.
    fn discard_tag(&self) -> u32 {
        self.sent.len() as u32 + 1
    }

    fn end_flush(&mut self, now: Time) {
        let [under_way, next] = &mut self.flush_waiters;
        self.flushed.append(under_way);
        std::mem::swap(under_way, next);
        if !under_way.is_empty() && !self.device.flush(now, self.sent.len() as u32) {
            self.flushed.append(&mut self.flush_waiters[0]);
        }
    }

    /// The request with that tag is completed, by a CPU if those are detailed: its bios and who may try again to get a
    /// request are appended.
    pub(crate) fn complete(
        &mut self,
        now: Time,
        tag: u32,
        cpu: Option<u16>,
        done: &mut Vec<Bio>,
        may_retry: &mut Vec<TaskId>,
    ) {
        let request = self.sent[tag as usize]
            .take()
            .expect("a device completes what it was sent");
        self.free_tags.push(tag);
        if let Some(polling) = &mut self.polling {
            polling.completed(now, self.queue.request(request));
        }
        may_retry.extend(match cpu {
            Some(cpu) => self.queue.completed_on(now, request, cpu, done),
            None => self.queue.completed(now, request, done),
        });
        self.queue.take_woken(may_retry);
    }

    /// Wakes queue and scheduler if they wanted to be: who may try again to get a request is appended.
    pub(crate) fn wake(&mut self, now: Time, may_retry: &mut Vec<TaskId>) {
        let wanted = [self.queue.next_wakeup(), self.queue.next_look()];
        if wanted.into_iter().flatten().any(|at| at <= now) {
            self.queue.wake(now);
            self.queue.take_woken(may_retry);
        }
    }

    /// Sends the device a request, if one may go: its tag.
    pub(crate) fn send(&mut self, now: Time) -> Option<u32> {
        if self.taken_ahead.is_none() && (self.peek || !self.free_tags.is_empty()) {
            self.taken_ahead = self.queue.dispatch(now);
        }
        let &tag = self.free_tags.last()?;
        let id = self.taken_ahead.take()?;
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
        Some(tag)
    }

    /// The request that was sent under that tag.
    pub(super) fn request(&self, tag: u32) -> &Request {
        let id = self.sent[tag as usize].expect("it was sent");
        self.queue.request(id)
    }

    pub(crate) fn next_event(&self) -> Option<Time> {
        let device = self.device.next_event();
        // With every tag taken, only the device can change anything, but for what is taken ahead.
        let may_dispatch = !self.free_tags.is_empty() || self.peek && self.taken_ahead.is_none();
        let queue = self.queue.next_wakeup().filter(|_| may_dispatch);
        [device, queue, self.queue.next_look()]
            .into_iter()
            .flatten()
            .min()
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
        let sync = direction == Direction::Read;
        let is = self.queue.is_congested(direction, sync);
        let was = std::mem::replace(&mut self.was_congested[direction as usize], is);
        (is != was).then_some(is)
    }

    pub(crate) fn check(&self, name: &str, now: Time) -> Result<(), Violation> {
        self.queue.check(name, now)?;
        self.device.check(now)
    }
}
