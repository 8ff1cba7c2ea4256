//! The anticipatory scheduler: deadline with batches of time, which after a read waits a moment for the reader's next
//! one instead of seeking away.
//!
//! Source: note on the anticipatory scheduler (`block/as-iosched.c` of 2.6.32.9 and of its first merge in July 2003).

mod anticipate;
mod habits;
mod tunables;

use std::collections::BTreeMap;

use crate::block::{Bio, Request, RequestId, Requests, Sector, Side, TaskId};
use crate::scheduler::Scheduler;
use crate::scheduler::line::{Backwards, Fifo, Sorted};
use crate::time::{Tick, Time};
use anticipate::Waiting;
use habits::{Habits, Strangers};
pub use tunables::{Tunables, Version};

#[derive(Clone, Debug)]
pub struct Anticipatory {
    version: Version,
    tick: Tick,
    /// In ticks, async and sync.
    expire: [u64; 2],
    batch_expire: [u64; 2],
    antic_expire: u64,
    second: u64,

    of: [OfClass; 2],
    class: Class,
    batch_end: u64,
    /// Waiting for what the device has of the other class.
    changed_batch: bool,
    /// A sync batch has begun, and nothing of it has completed: its time has not begun.
    new_batch: bool,
    write_count_max: u64,
    write_count_left: u64,
    write_batch_idled: bool,

    waiting: Waiting,
    /// Whose next request would be waited for.
    target: Option<TaskId>,
    /// What the target had at the device has completed.
    target_finished: bool,
    waiting_since: u64,
    timer: Option<u64>,

    habits: BTreeMap<TaskId, Habits>,
    strangers: Strangers,
    in_flight: u32,
    kicked: Option<Time>,
    now: Time,
}

/// Reads and writes that somebody waits for, and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Async,
    Sync,
}

#[derive(Clone, Debug, Default)]
struct OfClass {
    sorted: Sorted,
    fifo: Fifo,
    next: Option<RequestId>,
    /// Where what was dispatched last ended.
    last_sector: Sector,
    checked_at: u64,
}

const BACKWARDS: Backwards = Backwards {
    sectors_max: 1024 * 1024,
    penalty: 2,
};

impl Anticipatory {
    pub fn new(version: Version, tunables: Tunables, hz: u32) -> Anticipatory {
        let ticks = |ns: Time| (ns * u64::from(hz)).div_ceil(1_000_000_000);
        let write_batch = ticks(tunables.write_batch_expire_ns);
        Anticipatory {
            version,
            tick: Tick::of_hz(hz),
            expire: [
                ticks(tunables.write_expire_ns),
                ticks(tunables.read_expire_ns),
            ],
            batch_expire: [write_batch, ticks(tunables.read_batch_expire_ns)],
            antic_expire: ticks(tunables.antic_expire_ns),
            second: u64::from(hz),
            of: Default::default(),
            class: Class::Sync,
            batch_end: ticks(tunables.read_batch_expire_ns),
            changed_batch: false,
            new_batch: false,
            write_count_max: (write_batch / 10).max(2),
            write_count_left: 0,
            write_batch_idled: false,
            waiting: Waiting::Off,
            target: None,
            target_finished: false,
            waiting_since: 0,
            timer: None,
            habits: BTreeMap::new(),
            strangers: Strangers::default(),
            in_flight: 0,
            kicked: None,
            now: 0,
        }
    }

    /// Whether it holds requests back in hope of the target's next one.
    pub fn is_anticipating(&self) -> bool {
        matches!(self.waiting, Waiting::ForCompletion | Waiting::ForRequest)
    }

    fn jiffies(&self) -> u64 {
        self.tick.count(self.now)
    }

    fn of(&self, class: Class) -> &OfClass {
        &self.of[class as usize]
    }

    fn has(&self, class: Class) -> bool {
        !self.of(class).sorted.is_empty()
    }

    fn dispatch_one(&mut self, requests: &Requests) -> Option<RequestId> {
        let (sync, writes) = (self.has(Class::Sync), self.has(Class::Async));
        if self.class == Class::Async && !sync && (self.write_count_left == 0 || !writes) {
            self.write_batch_idled = true;
        }
        if !(sync || writes) || self.is_anticipating() || self.changed_batch {
            return None;
        }
        if !(sync && writes && self.batch_expired()) {
            let mut candidate = self.of(self.class).next;
            if self.class == Class::Sync && self.antic_expire > 0 {
                if self.fifo_expired(Class::Sync) {
                    candidate = self.first_in_line(Class::Sync);
                    return candidate.map(|id| self.send(requests, id));
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
                let id = self.expired_or(next);
                return Some(self.send(requests, id));
            }
        }
        self.begin_batch(requests, sync, writes)
    }

    /// A new batch: of the other class where it has anything, else of the same.
    fn begin_batch(&mut self, requests: &Requests, sync: bool, writes: bool) -> Option<RequestId> {
        let to_sync = sync && !(writes && self.class == Class::Sync);
        let class = if to_sync { Class::Sync } else { Class::Async };
        if self.class != class {
            self.changed_batch = true;
        }
        if class == Class::Async {
            if self.class == Class::Sync {
                self.new_batch = false;
            }
            self.write_count_left = self.write_count_max;
            self.write_batch_idled = false;
        }
        self.class = class;
        let now = self.jiffies();
        self.of[class as usize].checked_at = now;
        let id = self.first_in_line(class)?;
        if self.changed_batch {
            if self.in_flight > 0 {
                return None;
            }
            if class == Class::Async {
                self.batch_end = now + self.batch_expire[Class::Async as usize];
            } else {
                self.new_batch = true;
            }
            self.changed_batch = false;
        }
        Some(self.send(requests, id))
    }

    fn send(&mut self, requests: &Requests, id: RequestId) -> RequestId {
        let request = &requests[id];
        self.waiting = Waiting::Off;
        self.timer = None;
        let class = class_of(request);
        self.of[class as usize].last_sector = request.end();
        self.of[class as usize].next = self.next_after(requests, id);
        self.take_out(requests, id);
        self.target_finished = false;
        if request.sync {
            self.target = Some(request.task);
        } else {
            self.target = None;
            self.write_count_left = self.write_count_left.saturating_sub(1);
        }
        self.in_flight += 1;
        id
    }

    fn take_out(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let of = &mut self.of[class_of(request) as usize];
        of.sorted.remove(request.start, id);
        of.fifo.remove(id);
        self.habits.entry(request.task).or_default().queued -= 1;
    }

    /// What is best in its class once a request has gone: one of its neighbours, or the first of all.
    fn next_after(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let request = &requests[id];
        let class = class_of(request);
        let sorted = &self.of(class).sorted;
        let first = || sorted.first().filter(|&first| first != id);
        let after = sorted.after(request, id).or_else(first);
        let before = sorted.neighbour(requests, id, Side::Front);
        self.better(requests, class, after, before)
    }

    /// The nearer of two of a class: backwards counts twice, and far back is after all that lies ahead.
    fn better(
        &self,
        requests: &Requests,
        class: Class,
        one: Option<RequestId>,
        other: Option<RequestId>,
    ) -> Option<RequestId> {
        let (Some(a), Some(b)) = (one, other) else {
            return one.or(other);
        };
        let (from, first, second) = (
            self.of(class).last_sector,
            requests[a].start,
            requests[b].start,
        );
        if BACKWARDS.first_comes_first(from, first, second) {
            one
        } else {
            other
        }
    }

    fn first_in_line(&self, class: Class) -> Option<RequestId> {
        self.of(class).fifo.first().map(|(_, id)| id)
    }

    /// The oldest request of the batch's class if it has waited too long, else this one.
    fn expired_or(&mut self, id: RequestId) -> RequestId {
        let expired = self.fifo_expired(self.class);
        let oldest = self.first_in_line(self.class).filter(|_| expired);
        oldest.unwrap_or(id)
    }

    /// Whether the class's oldest request has waited too long; looked at once in the time that requests have.
    fn fifo_expired(&mut self, class: Class) -> bool {
        let (now, expire) = (self.jiffies(), self.expire[class as usize]);
        let of = &mut self.of[class as usize];
        if now < of.checked_at + expire {
            return false;
        }
        of.checked_at = now;
        of.fifo.first().is_some_and(|(deadline, _)| now > deadline)
    }

    fn batch_expired(&self) -> bool {
        if self.changed_batch || self.new_batch {
            return false;
        }
        let over = self.jiffies() > self.batch_end;
        over || (self.class == Class::Async && self.write_count_left == 0)
    }

    fn complete(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let now = self.jiffies();
        self.in_flight -= 1;
        if self.changed_batch && self.in_flight == 0 {
            self.batch_end = now + self.batch_expire[self.class as usize];
            self.kick();
            self.changed_batch = false;
            if self.class == Class::Sync {
                self.new_batch = true;
            }
        }
        if self.new_batch && self.class == Class::Sync && request.sync {
            self.retune_writes();
            self.batch_end = now + self.batch_expire[Class::Sync as usize];
            self.new_batch = false;
        }
        self.note_end(request);
        if self.target == Some(request.task) {
            self.waiting_since = now;
            self.target_finished = true;
            if self.waiting == Waiting::ForCompletion {
                // The wait has begun already: now its end is known.
                self.waiting = Waiting::ForRequest;
                self.timer = Some(now + self.antic_expire);
            }
        }
    }

    /// How many writes the next batch of them may have, so that it takes about its time.
    fn retune_writes(&mut self) {
        let batch = self.batch_expire[Class::Async as usize];
        let took = (self.jiffies() + batch).saturating_sub(self.batch_end);
        let used_up = self.write_count_left == 0;
        if took > batch && !self.write_batch_idled {
            self.write_count_max = if took > 3 * batch {
                self.write_count_max / 2
            } else {
                self.write_count_max - 1
            };
        } else if took < batch && used_up {
            self.write_count_max = if batch > 3 * took {
                self.write_count_max * 2
            } else {
                self.write_count_max + 1
            };
        }
        self.write_count_max = self.write_count_max.max(1);
    }

    fn note_end(&mut self, request: &Request) {
        if request.sync {
            let now = self.jiffies();
            self.habits.entry(request.task).or_default().last_end = Some(now);
        }
    }

    fn enqueue(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let class = class_of(request);
        if request.sync {
            self.learn(request.task, request);
        }
        self.habits.entry(request.task).or_default().queued += 1;
        let deadline = self.jiffies() + self.expire[class as usize];
        let of = &mut self.of[class as usize];
        of.sorted.insert(request.start, id);
        of.fifo.push(id, deadline);
        let next = of.next;
        self.of[class as usize].next = self.better(requests, class, Some(id), next);
        if self.is_anticipating() && self.can_break(requests, Some(id)) {
            self.stop_waiting();
        }
    }

    /// The request counts as the task's, which thinks no longer than a fiftieth of a second.
    fn learn(&mut self, task: TaskId, request: &Request) {
        let (now, cap) = (self.jiffies(), (self.second / 50).saturating_sub(1));
        let habits = self.habits.entry(task).or_default();
        habits.learn(self.version, request, now, cap, &mut self.strangers);
    }

    fn kick(&mut self) {
        self.kicked = Some(self.now);
    }
}

impl Scheduler for Anticipatory {
    fn front_merge(&self, requests: &Requests, bio: &Bio) -> Option<RequestId> {
        let class = if bio.sync { Class::Sync } else { Class::Async };
        self.of(class).sorted.front_merge(requests, bio)
    }

    /// The task that is waited for.
    fn may_exceed_pool(&mut self, task: TaskId, _: bool) -> bool {
        self.is_anticipating() && self.target == Some(task)
    }

    fn neighbour(&self, requests: &Requests, id: RequestId, side: Side) -> Option<RequestId> {
        let of = self.of(class_of(&requests[id]));
        of.sorted.neighbour(requests, id, side)
    }

    fn grown(&mut self, now: Time, requests: &Requests, id: RequestId, side: Side, was: Sector) {
        self.now = now;
        if side == Side::Front {
            let sorted = &mut self.of[class_of(&requests[id]) as usize].sorted;
            sorted.remove(was, id);
            sorted.insert(requests[id].start, id);
        }
    }

    fn absorbed(
        &mut self,
        now: Time,
        requests: &Requests,
        survivor: RequestId,
        absorbed: RequestId,
    ) {
        self.now = now;
        let gone = &requests[absorbed];
        let class = class_of(gone) as usize;
        if self.of[class].next == Some(absorbed) {
            self.of[class].next = self.next_after(requests, absorbed);
        }
        // To the kernel a request that has become part of another has ended.
        self.note_end(gone);
        self.habits.entry(gone.task).or_default().queued -= 1;
        let of = &mut self.of[class];
        of.fifo.absorb(survivor, absorbed);
        of.sorted.remove(gone.start, absorbed);
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
        self.habits.entry(task).or_default().exited = true;
    }

    fn queued(&self) -> usize {
        self.of.iter().map(|of| of.sorted.len()).sum()
    }
}

fn class_of(request: &Request) -> Class {
    if request.sync {
        Class::Sync
    } else {
        Class::Async
    }
}

#[cfg(test)]
mod tests;
