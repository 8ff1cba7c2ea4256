//! Latencies of control groups (`io.latency`): while a group misses its target, those with a higher one, or none, may have
//! fewer bios in flight.
//!
//! Source: `block/blk-iolatency.c` of 6.1.192 (docs/model/sources/blk-mq.md), one level of groups below the root. A group
//! with a target judges a window of its completions when it ends. All groups follow one cookie: each step down halves
//! their depth as soon as they submit again, each step up gives a sixteenth of the queue's requests back. Left out: the
//! delay of tasks whose I/O goes out as the root's (metadata, swap); such I/O waits for nothing, as in the kernel.

use std::collections::VecDeque;

use crate::Bio;
use crate::qos::{Granted, Policy, Waiter, waiter};
use events::station::Violation;
use events::time::{MILLISECOND, SECOND, Time};

/// What a drive's protection of latencies goes by.
#[derive(Clone, Debug)]
pub struct LatencyRules {
    /// By group, the root first, whose target is not looked at; None: the group has no target.
    pub targets_ns: Vec<Option<Time>>,
    /// `nr_requests` of the queue.
    pub requests: u32,
    /// The drive seeks: a window is good if its mean is; else if fewer than a tenth of it missed the target.
    pub rotational: bool,
}

/// Where nothing is held back (`DEFAULT_SCALE_COOKIE`).
const COOKIE_DEFAULT: u32 = 1_000_000;
/// As shifts of the queue's requests (`SCALE_DOWN_FACTOR`, `SCALE_UP_FACTOR`).
const DOWN_SHIFT: u32 = 2;
const UP_SHIFT: u32 = 4;
/// A window is 16 times the target, within these (`BLKIOLATENCY_MIN_WIN_SIZE`, `BLKIOLATENCY_MAX_WIN_SIZE`).
const WINDOW_NS: (Time, Time) = (100 * MILLISECOND, SECOND);
/// From one step to the next (`BLKIOLATENCY_MIN_ADJUST_TIME`).
const ADJUST_NS: Time = 500 * MILLISECOND;
/// Fewer show nothing good (`BLKIOLATENCY_MIN_GOOD_SAMPLES`).
const GOOD_SAMPLES_MIN: u64 = 5;
/// Who misses its target and has had no larger part of the I/O is not held back further, in percent.
const SMALL_PART_PERCENT: u64 = 5;
/// The timer comes so long after the first bio (`HZ`), and a group that asked for steps is forgotten after so long.
const TIMER_NS: Time = SECOND;
const FORGOTTEN_NS: Time = 5 * SECOND;

/// The protection of latencies before one drive.
#[derive(Debug)]
pub(crate) struct IoLatency {
    requests: u32,
    rotational: bool,
    groups: Vec<Group>,
    scale: Scale,
    timer: Option<Time>,
    granted: Vec<Granted>,
    came: u64,
    done: u64,
}

/// What the groups follow (`child_latency_info` of the root).
#[derive(Debug)]
struct Scale {
    cookie: u32,
    /// None: never, and the machine has run for longer than from one step to the next.
    changed_at: Option<Time>,
    /// The lowest target that was missed.
    target_ns: Option<Time>,
    /// Whose steps these are.
    group: Option<usize>,
    /// Of all groups, in their last windows.
    samples: u64,
}

#[derive(Debug)]
struct Group {
    target_ns: Option<Time>,
    window_ns: Time,
    /// None: long before the machine's time began, when the group was made (`iolatency_pd_init`).
    window_began: Option<Time>,
    /// Of the window, and of the windows since the last step.
    window: Sample,
    since_step: Sample,
    samples: u64,
    /// The one that it has followed.
    cookie: u32,
    /// Bios in flight at most; None: any.
    depth: Option<u32>,
    /// Steps down that it could not take (`use_delay`).
    below: u32,
    in_flight: u32,
    waiting: VecDeque<Waiter>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    count: u64,
    missed: u64,
    sum_ns: u64,
}

impl IoLatency {
    pub(crate) fn new(rules: LatencyRules) -> IoLatency {
        IoLatency {
            requests: rules.requests,
            rotational: rules.rotational,
            groups: rules.targets_ns.into_iter().map(Group::new).collect(),
            scale: Scale { cookie: COOKIE_DEFAULT, changed_at: None, target_ns: None, group: None, samples: 0 },
            timer: None,
            granted: Vec::new(),
            came: 0,
            done: 0,
        }
    }

    /// `check_scale_change`.
    fn follow(&mut self, number: usize) {
        let scale = &self.scale;
        let group = &mut self.groups[number];
        let is_down = scale.cookie < group.cookie;
        if scale.cookie == group.cookie {
            return;
        }
        group.cookie = scale.cookie;
        if is_down && let Some(target_ns) = group.target_ns {
            let small = (scale.samples * SMALL_PART_PERCENT / 100).max(1);
            if scale.target_ns.is_none_or(|missed| target_ns <= missed) || group.samples <= small {
                return;
            }
        }
        if is_down && group.depth == Some(1) {
            group.below += 1;
        } else if scale.cookie == COOKIE_DEFAULT {
            group.below = 0;
            group.depth = None;
            group.let_go(&mut self.granted, usize::MAX);
        } else {
            group.step(self.requests, is_down, &mut self.granted);
        }
    }

    /// `iolatency_check_latencies`: the window of the group has ended.
    fn judge(&mut self, now: Time, number: usize) {
        let rotational = self.rotational;
        let group = &mut self.groups[number];
        let target_ns = group.target_ns.expect("only those with a target judge");
        let window = std::mem::take(&mut group.window);
        let is_good = window.is_good(target_ns, rotational);
        if is_good && self.scale.cookie == COOKIE_DEFAULT {
            return;
        }
        group.since_step.add(window, rotational);
        let since_step = group.since_step;
        self.scale.samples = self.scale.samples - group.samples + since_step.count;
        group.samples = since_step.count;
        if self.scale.changed_before(now).is_some_and(|ns| ns < ADJUST_NS) {
            return;
        }
        if is_good && since_step.is_good(target_ns, rotational) {
            if since_step.count < GOOD_SAMPLES_MIN {
                return;
            }
            if self.scale.group == Some(number) {
                self.scale.changed_at = Some(now);
                self.scale.step(self.requests, false);
            }
        } else if self.scale.target_ns.is_none_or(|other| other >= target_ns) {
            self.scale.changed_at = Some(now);
            let is_lower = self.scale.target_ns.is_some_and(|other| other > target_ns);
            if self.scale.group.is_none() || is_lower {
                self.scale.target_ns = Some(target_ns);
                self.scale.group = Some(number);
            }
            self.scale.step(self.requests, true);
        }
        self.groups[number].since_step = Sample::default();
    }
}

impl Policy for IoLatency {
    /// `blkcg_iolatency_throttle`.
    fn throttle(&mut self, now: Time, bio: &Bio) -> Option<u64> {
        let number = usize::from(bio.group);
        if number == 0 {
            return Some(0);
        }
        self.came += 1;
        self.follow(number);
        self.timer.get_or_insert(now + TIMER_NS);
        let group = &mut self.groups[number];
        if bio.metadata || group.waiting.is_empty() && group.has_room() {
            group.in_flight += 1;
            return Some(0);
        }
        group.waiting.push_back(waiter(bio));
        None
    }

    /// `blkcg_iolatency_done_bio`.
    fn done_bio(&mut self, now: Time, bio: &Bio) {
        let number = usize::from(bio.group);
        if number == 0 || bio.qos.passed_at.is_none() {
            return;
        }
        self.done += 1;
        let group = &mut self.groups[number];
        group.in_flight -= 1;
        if let Some(target_ns) = group.target_ns {
            let as_root = bio.metadata && group.depth.is_some();
            if now > bio.qos.submitted_at && !as_root {
                let took_ns = now - bio.qos.submitted_at;
                group.window.count += 1;
                group.window.sum_ns += took_ns;
                group.window.missed += u64::from(took_ns >= target_ns);
            }
            let window_ended = |began: Time| now >= began + group.window_ns;
            if group.window_began.is_none_or(window_ended) {
                group.window_began = Some(now);
                self.judge(now, number);
            }
        }
        self.groups[number].let_go(&mut self.granted, 1);
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.timer
    }

    /// `blkiolatency_timer_fn`.
    fn wake(&mut self, now: Time) {
        self.timer = None;
        let scale = &mut self.scale;
        let before_ns = scale.changed_before(now);
        if scale.cookie >= COOKIE_DEFAULT || before_ns == Some(0) {
            return;
        }
        if scale.group.is_none() {
            scale.step(self.requests, false);
        } else if before_ns.is_none_or(|ns| ns >= FORGOTTEN_NS) {
            scale.group = None;
        }
    }

    fn take_granted(&mut self, into: &mut Vec<Granted>) {
        into.append(&mut self.granted);
    }

    /// Bios that came wait, are in flight or are done; nobody waits who may go; all depths are within the queue's.
    fn check(&self) -> Result<(), Violation> {
        let inside = |group: &Group| group.waiting.len() as u64 + u64::from(group.in_flight);
        let inside: u64 = self.groups.iter().map(inside).sum();
        let (came, done) = (self.came, self.done);
        Violation::unless(came == done + inside, "io.latency", || {
            format!("{came} bios came, {done} are done and {inside} wait or are in flight")
        })?;
        for (number, group) in self.groups.iter().enumerate() {
            let depth = group.depth.unwrap_or(1);
            let idle = group.in_flight == 0 && !group.waiting.is_empty();
            let is_right = (1..=self.requests.max(1)).contains(&depth) && !idle;
            Violation::unless(is_right, "io.latency", || {
                let (in_flight, waiting) = (group.in_flight, group.waiting.len());
                format!("group {number}: depth {depth}, {in_flight} in flight, {waiting} wait")
            })?;
        }
        Ok(())
    }
}

impl Scale {
    /// How long ago the last step was.
    fn changed_before(&self, now: Time) -> Option<Time> {
        self.changed_at.map(|at| now.saturating_sub(at))
    }

    /// `scale_cookie_change`. Beyond the depth of the queue steps are of one, and there are twice as many at most.
    fn step(&mut self, requests: u32, is_down: bool) {
        let size = step_size(requests, is_down);
        let below = COOKIE_DEFAULT.saturating_sub(self.cookie);
        let is_deep = below > requests;
        self.cookie = match (is_down, is_deep) {
            (false, _) if size + self.cookie > COOKIE_DEFAULT => COOKIE_DEFAULT,
            (false, true) => self.cookie + 1,
            (false, false) => self.cookie + size,
            (true, true) if below < 2 * requests => self.cookie - 1,
            (true, true) => self.cookie,
            (true, false) => self.cookie - size,
        };
    }
}

impl Group {
    fn new(target_ns: Option<Time>) -> Group {
        let window_ns = target_ns.map_or(0, |target_ns| target_ns << 4);
        Group {
            target_ns,
            window_ns: window_ns.clamp(WINDOW_NS.0, WINDOW_NS.1),
            window_began: None,
            window: Sample::default(),
            since_step: Sample::default(),
            samples: 0,
            cookie: COOKIE_DEFAULT,
            depth: None,
            below: 0,
            in_flight: 0,
            waiting: VecDeque::new(),
        }
    }

    fn has_room(&self) -> bool {
        self.depth.is_none_or(|depth| self.in_flight < depth)
    }

    /// `scale_change`.
    fn step(&mut self, requests: u32, is_down: bool, granted: &mut Vec<Granted>) {
        let old = self.depth.map_or(requests, |depth| depth.min(requests));
        if is_down {
            self.depth = Some((old / 2).max(1));
        } else if old == 1 && self.below > 0 {
            self.below -= 1;
        } else if old < requests {
            self.depth = Some((old + step_size(requests, false)).min(requests));
            self.let_go(granted, usize::MAX);
        }
    }

    /// So many of those that wait, if there is room.
    fn let_go(&mut self, granted: &mut Vec<Granted>, most: usize) {
        for _ in 0..most {
            if !self.has_room() {
                return;
            }
            let Some(waiter) = self.waiting.pop_front() else {
                return;
            };
            self.in_flight += 1;
            granted.push(Granted { waiter, cost: 0 });
        }
    }
}

impl Sample {
    /// `latency_sum_ok`.
    fn is_good(self, target_ns: Time, rotational: bool) -> bool {
        match rotational {
            true => self.sum_ns / self.count.max(1) <= target_ns,
            false => self.missed < (self.count / 10).max(1),
        }
    }

    /// `latency_stat_sum`. The mean of several windows is 0 in the kernel: `blk_rq_stat_sum` takes a batch for the sum,
    /// which a sum has none of.
    fn add(&mut self, other: Sample, rotational: bool) {
        self.count += other.count;
        self.missed += other.missed;
        self.sum_ns += if rotational { 0 } else { other.sum_ns };
    }
}

/// `scale_amount`.
fn step_size(requests: u32, is_down: bool) -> u32 {
    (requests >> if is_down { DOWN_SHIFT } else { UP_SHIFT }).max(1)
}

#[cfg(test)]
mod tests;
