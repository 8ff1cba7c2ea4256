//! Writeback throttling: what is written back gets few requests at a time, so that reads do not wait behind it.
//!
//! Source: `block/blk-wbt.c` and `block/blk-rq-qos.c` of 6.x (from 4.10 on, with the block layer's hardware queues). A
//! window of 100 ms is examined when it ends: if its fastest read took longer than the target, half as many requests
//! are allowed from then on and windows get shorter; if reads are fast, twice as many. Left out: discards, and what
//! swapping writes. Simpler than the kernel's: a bio that waits for a tag as well is counted when it has both,
//! unless its task was handed a place.

use std::collections::VecDeque;

use crate::{Direction, Request, RequestId, TaskId};
use events::time::{MILLISECOND, SECOND, Time};

/// What a queue's throttling goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WbtRules {
    /// `wbt_lat_usec`: reads are to take no longer.
    pub target_ns: Time,
    /// Commands that the device takes at once (`blk_queue_depth`).
    pub queue_depth: u32,
    /// The device acknowledges writes from a volatile cache.
    pub write_cache: bool,
    /// Who is woken has its place (`rq_qos_wait`); else it tries again, and another may be faster.
    pub hands_over: bool,
}

impl WbtRules {
    /// The default target (`wbt_default_latency_nsec`): 75 ms with seeks, 2 ms without.
    pub fn default_target_ns(rotational: bool) -> Time {
        match rotational {
            true => 75 * MILLISECOND,
            false => 2 * MILLISECOND,
        }
    }
}

/// Requests of writeback at the centre of the scale (`RWB_DEF_DEPTH`).
const DEPTH: u32 = 16;
/// From one look to the next (`RWB_WINDOW_NSEC`).
const WINDOW_NS: Time = 100 * MILLISECOND;
/// With fewer writes, a window shows nothing about reads beside writes (`RWB_MIN_WRITE_SAMPLES`).
const WRITES_MIN: u32 = 3;
/// After this many windows without a result, one step back to the centre (`RWB_UNKNOWN_BUMP`).
const UNKNOWN_MAX: u32 = 5;
/// A writer that was held this recently makes writeback have all of its depth (`wb_recent_wait`).
const HELD_NS: Time = SECOND;

/// The state of one queue's throttling.
#[derive(Clone, Debug)]
pub(super) struct Wbt {
    rules: WbtRules,
    /// The step of the scale: each step above 0 halves the depth, each below doubles it.
    step: i32,
    is_at_most: bool,
    depth: u32,
    normal: u32,
    background: u32,
    /// Requests of writeback, queued or at the device.
    in_use: u32,
    waiting: VecDeque<WaitingWriter>,
    /// Who was woken with a place that counts as in use, and has no request yet.
    handed: Vec<TaskId>,
    window_ns: Time,
    window_ends: Option<Time>,
    unknown: u32,
    /// The fastest read of the window.
    fastest_read_ns: Option<Time>,
    /// The writes of the window.
    writes: u32,
    /// A read at the device, and since when.
    waited_read: Option<(RequestId, Time)>,
    last_held: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WaitingWriter {
    task: TaskId,
    sync: bool,
}

/// The result of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    Fast,
    Slow,
    WritesOnly,
    Nothing,
}

impl Wbt {
    pub(super) fn new(rules: WbtRules) -> Wbt {
        let mut wbt = Wbt {
            rules,
            step: 0,
            is_at_most: false,
            depth: DEPTH,
            normal: 0,
            background: 0,
            in_use: 0,
            waiting: VecDeque::new(),
            handed: Vec::new(),
            window_ns: WINDOW_NS,
            window_ends: None,
            unknown: 0,
            fastest_read_ns: None,
            writes: 0,
            waited_read: None,
            last_held: None,
        };
        wbt.rescale();
        wbt
    }

    /// Whether writeback may have another request now (`wbt_wait`). False: the task waits until `completed` or `look`
    /// names it. `sync`: a task waits for what is written (fsync).
    pub(super) fn allows(&mut self, now: Time, task: TaskId, sync: bool) -> bool {
        if self.handed.contains(&task) {
            return true;
        }
        let may = self.waiting.is_empty() && self.in_use < self.limit(now, sync);
        if !may && !self.waiting.iter().any(|waiting| waiting.task == task) {
            self.waiting.push_back(WaitingWriter { task, sync });
        }
        may
    }

    /// Writeback has got a request.
    pub(super) fn took(&mut self, now: Time, task: TaskId) {
        if !self.takes_handed(task) {
            self.in_use += 1;
        }
        if self.window_ends.is_none() {
            self.begin_window(now);
        }
    }

    /// Uses up the place that the task was handed. False: it was handed none.
    fn takes_handed(&mut self, task: TaskId) -> bool {
        let place = self.handed.iter().position(|&one| one == task);
        place.map(|place| self.handed.swap_remove(place)).is_some()
    }

    /// The request has gone to the device (`wbt_issue`).
    pub(super) fn issued(&mut self, now: Time, id: RequestId, request: &Request) {
        if request.direction == Direction::Read && self.waited_read.is_none() {
            self.waited_read = Some((id, now));
        }
    }

    /// The device has completed the request (`wbt_done`): who may try again is appended.
    pub(super) fn completed(&mut self, now: Time, id: RequestId, request: &Request, may_retry: &mut Vec<TaskId>) {
        let took = now - request.issued_at.unwrap_or(now);
        match request.direction {
            Direction::Read => {
                self.fastest_read_ns = Some(self.fastest_read_ns.unwrap_or(took).min(took));
                self.waited_read.take_if(|(read, _)| *read == id);
            }
            Direction::Write => self.writes += 1,
        }
        if request.writeback {
            self.gave_back(now, may_retry);
        }
    }

    /// The task's bio has joined a request, and needs no place of its own.
    pub(super) fn joined(&mut self, task: TaskId) {
        if self.takes_handed(task) {
            self.in_use -= 1;
        }
    }

    /// Two requests have become one; who waits is woken later.
    pub(super) fn merged(&mut self) {
        self.in_use -= 1;
    }

    /// `wbt_rqw_done`.
    fn gave_back(&mut self, now: Time, may_retry: &mut Vec<TaskId>) {
        self.in_use -= 1;
        // A volatile cache takes a few writes at once and then is slow: it gets time to write.
        let limit = match self.rules.write_cache && !self.was_held(now) {
            true => 0,
            false => self.normal,
        };
        let wakes = self.in_use == 0 || self.in_use < limit && limit - self.in_use >= self.background / 2;
        if wakes {
            self.wake(now, may_retry);
        }
    }

    /// `wake_up_all`: of those that are handed a place, as many as there are places.
    fn wake(&mut self, now: Time, may_retry: &mut Vec<TaskId>) {
        while let Some(&WaitingWriter { task, sync }) = self.waiting.front() {
            if self.rules.hands_over {
                if self.in_use >= self.limit(now, sync) {
                    return;
                }
                self.in_use += 1;
                self.handed.push(task);
            }
            self.waiting.pop_front();
            may_retry.push(task);
        }
    }

    /// A writer sleeps because too much is dirty.
    pub(super) fn held_a_writer(&mut self, now: Time) {
        self.last_held = Some(now);
    }

    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.window_ends
    }

    /// The window has ended (`wb_timer_fn`): who may try again is appended.
    pub(super) fn look(&mut self, now: Time, may_retry: &mut Vec<TaskId>) {
        let before = self.step;
        match self.finding(now) {
            Finding::Slow => self.scale_down(true),
            Finding::Fast | Finding::WritesOnly => self.scale_up(),
            Finding::Nothing => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN_MAX && self.step > 0 {
                    self.scale_up();
                } else if self.unknown >= UNKNOWN_MAX && self.step < 0 {
                    self.scale_down(false);
                }
            }
        }
        if self.step < before || self.in_use == 0 {
            self.wake(now, may_retry);
        }
        self.window_ends = None;
        if self.step != 0 || self.in_use > 0 {
            self.begin_window(now);
        }
    }

    /// `latency_exceeded`.
    fn finding(&self, now: Time) -> Finding {
        let waits_ns = self.waited_read.map_or(0, |(_, since)| now - since);
        let target_ns = self.rules.target_ns;
        let no_reads = self.fastest_read_ns.is_none();
        if waits_ns > self.window_ns || waits_ns > target_ns && no_reads {
            return Finding::Slow;
        }
        match self.fastest_read_ns {
            // The kernel's time of a read begins before the driver has it and ends after the interrupt
            // (`blk_mq_start_request`, `blk_stat_add`): it is longer than the device's own, which is this one.
            Some(fastest_ns) if self.writes >= WRITES_MIN => match fastest_ns >= target_ns {
                true => Finding::Slow,
                false => Finding::Fast,
            },
            _ if self.writes > 0 || self.was_held(now) || self.in_use > 0 => Finding::WritesOnly,
            _ => Finding::Nothing,
        }
    }

    /// `scale_up`.
    fn scale_up(&mut self) {
        if self.is_at_most {
            return;
        }
        self.step -= 1;
        self.rescale();
        self.unknown = 0;
    }

    /// `scale_down`. `hard`: from what only writes were allowed, at once to the centre.
    fn scale_down(&mut self, hard: bool) {
        if self.depth == 1 {
            return;
        }
        self.step = match self.step < 0 && hard {
            true => 0,
            false => self.step + 1,
        };
        self.rescale();
        self.unknown = 0;
    }

    /// `rq_depth_calc_max_depth`, `calc_wb_limits`.
    fn rescale(&mut self) {
        let queue_depth = self.rules.queue_depth;
        self.is_at_most = false;
        if queue_depth == 1 {
            self.depth = if self.step > 0 { 1 } else { 2 };
            self.is_at_most = self.step <= 0;
        } else {
            let centre = DEPTH.min(queue_depth) - 1;
            let most = 3 * queue_depth / 4;
            let shift = self.step.unsigned_abs().min(16);
            self.depth = match self.step > 0 {
                true => 1 + (centre >> shift),
                false => 1 + (centre << shift),
            };
            if self.step < 0 && self.depth > most {
                self.depth = most.max(1);
                self.is_at_most = true;
            }
        }
        (self.normal, self.background) = match self.depth {
            ..=2 => (self.depth, 1),
            depth => (depth.div_ceil(2), depth.div_ceil(4)),
        };
    }

    /// `get_limit`.
    fn limit(&self, now: Time, sync: bool) -> u32 {
        match sync || self.was_held(now) {
            true => self.depth,
            // All that is not for fsync is in the background, from 3.2 on: writers do not write back themselves.
            false => self.background,
        }
    }

    fn was_held(&self, now: Time) -> bool {
        self.last_held.is_some_and(|since| now < since + HELD_NS)
    }

    /// `rwb_arm_timer`.
    fn begin_window(&mut self, now: Time) {
        // 16.16 to the root of 256 times the steps: 1 / sqrt(step + 1).
        self.window_ns = match u64::try_from(self.step) {
            Ok(step) if step > 0 => (WINDOW_NS << 4) / ((step + 1) << 8).isqrt(),
            _ => WINDOW_NS,
        };
        self.window_ends = Some(now + self.window_ns);
        self.fastest_read_ns = None;
        self.writes = 0;
    }
}

#[cfg(test)]
mod tests;
