//! The anticipatory scheduler: deadline with batches of time, which after a read waits a moment for the reader's next
//! one instead of seeking away.
//!
//! Source: `as-iosched.c` of 2.6.0, 2.6.11, 2.6.12-rc2, 2.6.18, 2.6.20, 2.6.24, 2.6.27 and 2.6.32
//! (docs/model/sources/anticipatory.md).

mod anticipate;
mod batch;
mod io_context;
mod tunables;

use crate::scheduler::Scheduler;
use crate::scheduler::backward_seeks::BackwardSeekRule;
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::scheduler::task_map::TaskMap;
use crate::{Bio, Direction, Request, RequestId, Requests, Sector, TaskId};
use events::time::{Tick, Time};
use io_context::{IoContext, UnknownTaskStatistics};
pub use tunables::{AnticipatoryTunables, Version};

/// The state of one queue's anticipatory scheduler.
#[derive(Clone, Debug)]
pub struct Anticipatory {
    version: Version,
    tick: Tick,
    /// In ticks, async and sync.
    expire: [u64; 2],
    batch_expire: [u64; 2],
    antic_expire: u64,
    second: u64,

    /// A FIFO for each class.
    fifos: RequestFifos,
    of: [ClassState; 2],
    class: Class,
    batch_end: u64,
    /// Waiting for what the device has of the other class.
    changed_batch: bool,
    /// A sync batch has begun, and nothing of it has completed: its time has not begun.
    new_batch: bool,
    write_count_max: u64,
    write_count_left: u64,
    write_batch_idled: bool,

    waiting: Anticipation,
    /// Whose next request would be waited for.
    target: Option<TaskId>,
    /// What the target had at the device has completed.
    target_finished: bool,
    waiting_since: u64,
    timer: Option<u64>,

    io_contexts: TaskMap<IoContext>,
    strangers: UnknownTaskStatistics,
    in_flight: u32,
    kicked: Option<Time>,
    now: Time,
}

/// Reads and writes that a task waits for, and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Async,
    Sync,
}

#[derive(Clone, Debug, Default)]
struct ClassState {
    next: Option<RequestId>,
    /// Where what was dispatched last ended.
    last_sector: Sector,
    checked_at: u64,
}

const BACKWARDS: BackwardSeekRule = BackwardSeekRule { sectors_max: 1024 * 1024, penalty: 2 };

/// Stands for a target that has exited and whose number is another task's. No task has it.
const DEPARTED: TaskId = TaskId::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anticipation {
    Off,
    /// The target's requests are still at the device.
    ForCompletion,
    /// They have completed: its next one is due within `antic_expire`.
    ForRequest,
    /// It was waited for long enough, or need not be.
    Finished,
}

impl Anticipatory {
    /// An empty scheduler of a kernel with `hz` ticks per second.
    pub fn new(version: Version, tunables: AnticipatoryTunables, hz: u32) -> Anticipatory {
        let ticks = |ns: Time| (ns * u64::from(hz)).div_ceil(1_000_000_000);
        let write_batch = ticks(tunables.write_batch_expire_ns);
        Anticipatory {
            version,
            tick: Tick::of_hz(hz),
            expire: [ticks(tunables.write_expire_ns), ticks(tunables.read_expire_ns)],
            batch_expire: [write_batch, ticks(tunables.read_batch_expire_ns)],
            antic_expire: ticks(tunables.antic_expire_ns),
            second: u64::from(hz),
            fifos: RequestFifos::default(),
            of: Default::default(),
            class: Class::Sync,
            batch_end: ticks(tunables.read_batch_expire_ns),
            changed_batch: false,
            new_batch: false,
            write_count_max: match version {
                Version::Draft => u64::MAX,
                _ => (write_batch / 10).max(2),
            },
            write_count_left: 0,
            write_batch_idled: false,
            waiting: Anticipation::Off,
            target: None,
            target_finished: false,
            waiting_since: 0,
            timer: None,
            io_contexts: TaskMap::default(),
            strangers: UnknownTaskStatistics::default(),
            in_flight: 0,
            kicked: None,
            now: 0,
        }
    }

    /// Whether it holds requests back in hope of the target's next one.
    pub fn is_anticipating(&self) -> bool {
        matches!(self.waiting, Anticipation::ForCompletion | Anticipation::ForRequest)
    }

    fn jiffies(&self) -> u64 {
        self.tick.count(self.now)
    }

    fn of(&self, class: Class) -> &ClassState {
        &self.of[class as usize]
    }

    fn has(&self, class: Class) -> bool {
        !self.fifos.is_empty(class as usize)
    }

    /// `as_dispatch_request`.
    fn dispatch_one(&mut self, requests: &Requests) -> Option<RequestId> {
        let (sync, writes) = (self.has(Class::Sync), self.has(Class::Async));
        if self.class == Class::Async && !sync && (self.write_count_left == 0 || !writes) {
            self.write_batch_idled = true;
        }
        if !(sync || writes) || self.is_anticipating() || self.changed_batch {
            return None;
        }
        if !(sync && writes && self.batch_expired()) {
            let candidate = self.of(self.class).next;
            if self.class == Class::Sync && self.antic_expire > 0 {
                if let Some(expired) = self.expired(Class::Sync) {
                    return Some(self.send(requests, expired));
                }
                if self.can_anticipate(requests, candidate) {
                    self.wait();
                    return None;
                }
            }
            if let Some(next) = candidate {
                if sync && !writes {
                    self.batch_end = self.jiffies() + self.batch_expire[Class::Sync as usize];
                }
                let id = self.expired(self.class).unwrap_or(next);
                return Some(self.send(requests, id));
            }
        }
        self.begin_batch(requests, sync, writes)
    }

    /// `as_move_to_dispatch`.
    fn send(&mut self, requests: &Requests, id: RequestId) -> RequestId {
        let request = &requests[id];
        self.waiting = Anticipation::Off;
        self.timer = None;
        let class = self.class_of(request);
        self.of[class as usize].last_sector = request.end();
        self.of[class as usize].next = self.next_after(requests, id);
        self.take_out(requests, id);
        self.target_finished = false;
        if self.is_awaited(request) {
            self.target = Some(request.task);
        } else {
            self.target = None;
            self.write_count_left = self.write_count_left.saturating_sub(1);
        }
        self.in_flight += 1;
        id
    }

    /// `as_remove_queued_request`.
    fn take_out(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        self.fifos.remove(requests, id);
        self.io_context_of(request.task).queued -= 1;
    }

    /// What is best in its class once a request has gone (`as_find_next_rq`): one of its neighbours, or the first of all.
    fn next_after(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let (before, after) = self.fifos.around_cyclically(requests, id);
        self.better(requests, self.class_of(&requests[id]), after, before)
    }

    /// The nearer of two of a class (`as_choose_req`): backwards counts twice, and far back is after all that lies ahead.
    fn better(
        &self,
        requests: &Requests,
        class: Class,
        one: Option<RequestId>,
        other: Option<RequestId>,
    ) -> Option<RequestId> {
        BACKWARDS.nearer(requests, self.of(class).last_sector, one, other)
    }

    fn first_in_line(&self, class: Class) -> Option<RequestId> {
        self.fifos.oldest(class as usize)
    }

    /// The class's oldest request if it has waited too long (`as_fifo_expired`); looked at once in the time that requests
    /// have.
    fn expired(&mut self, class: Class) -> Option<RequestId> {
        let (now, expire) = (self.jiffies(), self.expire[class as usize]);
        let of = &mut self.of[class as usize];
        if now < of.checked_at + expire {
            return None;
        }
        of.checked_at = now;
        self.fifos.overdue(class as usize, now)
    }

    fn note_end(&mut self, request: &Request) {
        if self.is_awaited(request) {
            let now = self.jiffies();
            self.io_context_of(request.task).last_end = Some(now);
        }
    }

    /// `as_add_request`.
    fn enqueue(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let class = self.class_of(request);
        if self.is_awaited(request) {
            self.begin_anew_if_exited(request.task);
            self.learn(request.task, request);
        }
        self.io_context_of(request.task).queued += 1;
        let deadline = self.jiffies() + self.expire[class as usize];
        self.fifos.add(requests, id, class as usize, deadline);
        let next = self.of(class).next;
        self.of[class as usize].next = self.better(requests, class, Some(id), next);
        if self.is_anticipating() && self.can_break(requests, Some(id)) {
            self.stop_waiting();
        }
    }

    /// Another task may have the number of one that has exited. What is still waited for is not this one's request.
    fn begin_anew_if_exited(&mut self, task: TaskId) {
        let io_context = self.io_context_of(task);
        if !io_context.exited {
            return;
        }
        let mut gone = std::mem::take(io_context);
        io_context.queued = std::mem::take(&mut gone.queued);
        // While it has something at the device, only its number shows when that is done.
        if self.target == Some(task) && self.target_finished {
            *self.io_context_of(DEPARTED) = gone;
            self.target = Some(DEPARTED);
        }
    }

    /// The request counts as the task's, which thinks no longer than a fiftieth of a second (`as_update_iohist`).
    fn learn(&mut self, task: TaskId, request: &Request) {
        if !self.version.learns() {
            return;
        }
        let (now, cap) = (self.jiffies(), (self.second / 50).saturating_sub(1));
        let io_context = self.io_contexts.get_or_insert_with(task, IoContext::default);
        io_context.learn(request, now, cap, &mut self.strangers);
    }

    fn io_context_of(&mut self, task: TaskId) -> &mut IoContext {
        self.io_contexts.get_or_insert_with(task, IoContext::default)
    }

    /// Whether a task waits for the request, as far as the scheduler sees: the draft looks at the direction only.
    fn is_awaited(&self, request: &Request) -> bool {
        self.class_of(request) == Class::Sync
    }

    fn class_of(&self, request: &Request) -> Class {
        self.class_for(request.direction, request.sync)
    }

    fn class_for(&self, direction: Direction, sync: bool) -> Class {
        let is_awaited = match self.version {
            Version::Draft => direction == Direction::Read,
            _ => sync,
        };
        match is_awaited {
            true => Class::Sync,
            false => Class::Async,
        }
    }

    fn kick(&mut self) {
        self.kicked = Some(self.now);
    }
}

impl Scheduler for Anticipatory {
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        Some(&mut self.fifos)
    }

    /// `as_merge`.
    fn fifo_before(&self, bio: &Bio) -> Option<FifoId> {
        Some(self.class_for(bio.direction, bio.sync) as usize)
    }

    /// The task that is waited for (`as_may_queue`).
    fn may_exceed_pool(&mut self, bio: &Bio) -> bool {
        self.is_anticipating() && self.target == Some(bio.task)
    }

    /// `as_merged_requests`.
    fn merged_requests(&mut self, now: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        self.now = now;
        let gone = &requests[merged];
        let class = self.class_of(gone) as usize;
        if self.of[class].next == Some(merged) {
            self.of[class].next = self.next_after(requests, merged);
        }
        // To the kernel a request that has become part of another has ended.
        self.note_end(gone);
        self.io_context_of(gone.task).queued -= 1;
        self.fifos.merged_requests(requests, survivor, merged);
    }

    fn add(&mut self, now: Time, requests: &Requests, request: RequestId) {
        self.now = now;
        self.enqueue(requests, request);
    }

    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        self.now = now;
        self.kicked = None;
        self.dispatch_one(requests)
    }

    fn completed(&mut self, now: Time, requests: &Requests, request: RequestId) {
        self.now = now;
        self.complete(requests, request);
    }

    fn next_wakeup(&self) -> Option<Time> {
        let timer = self.timer.map(|tick| self.tick.at(tick));
        [self.kicked, timer].into_iter().flatten().min()
    }

    fn wake(&mut self, now: Time, _: &Requests) {
        self.now = now;
        self.kicked = None;
        if self.timer.is_some_and(|tick| self.tick.at(tick) <= now) {
            self.waited_in_vain();
        }
    }

    fn exited(&mut self, now: Time, task: TaskId) {
        self.now = now;
        self.io_context_of(task).exited = true;
    }

    fn queued(&self) -> usize {
        self.fifos.len()
    }
}

#[cfg(test)]
mod tests;
