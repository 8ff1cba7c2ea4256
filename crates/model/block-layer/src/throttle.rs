//! Limits of control groups (`io.max`): a bio above its group's rate waits here, before it comes into any plug or queue.
//!
//! Source: `block/blk-throttle.c` of 6.1.192 (docs/model/sources/blk-mq.md), without its experimental low limits. Rates
//! are kept over slices of time, counted in clock ticks. A group that has waited dispatches at most 6 reads and 2 writes
//! at a time, and all groups 32, until the next group's time is in the future.

use std::collections::{BTreeSet, VecDeque};

use crate::{Bio, Direction, SECTOR_BYTES};
use events::station::Violation;
use events::time::Time;

/// What a group may do a second, by direction: reads, writes; None: anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleLimits {
    /// Bytes.
    pub bytes: [Option<u64>; 2],
    /// Bios.
    pub bios: [Option<u64>; 2],
}

/// What a drive's throttling goes by.
#[derive(Clone, Debug)]
pub struct ThrottleRules {
    /// Clock ticks per second.
    pub hz: u64,
    /// Over how many ticks a rate is kept (`throtl_slice`).
    pub slice_ticks: u64,
    /// By group, the root first.
    pub groups: Vec<ThrottleLimits>,
}

/// Bios that a group dispatches at once: 6 reads and 2 writes (`THROTL_GRP_QUANTUM`), and all together (`THROTL_QUANTUM`).
const GROUP_QUANTUM: [usize; 2] = [6, 2];
const QUANTUM: usize = 32;
/// The timer comes after so many slices at the latest (`throtl_schedule_pending_timer`).
const SLICES_ASLEEP_MAX: u64 = 8;

/// The throttling of one drive.
#[derive(Debug)]
pub struct Throttle {
    rules: ThrottleRules,
    groups: Vec<Group>,
    /// The groups that have bios waiting: when the first of them may go, in the order in which that was found.
    pending: BTreeSet<(u64, u64, usize)>,
    found: u64,
    timer: Option<u64>,
    entered: u64,
    left: u64,
}

#[derive(Debug, Default)]
struct Group {
    by_direction: [RateQueue; 2],
    /// Its entry in `pending`.
    place: Option<(u64, u64)>,
}

/// Reads or writes of a group.
#[derive(Debug, Default)]
struct RateQueue {
    waiting: VecDeque<Bio>,
    /// What has been dispatched since the slice began.
    bytes: u64,
    bios: u64,
    slice_begin: u64,
    slice_end: u64,
}

impl Throttle {
    /// A throttle in which nothing waits.
    pub fn new(rules: ThrottleRules) -> Throttle {
        let groups = rules.groups.iter().map(|_| Group::default()).collect();
        Throttle { rules, groups, pending: BTreeSet::new(), found: 0, timer: None, entered: 0, left: 0 }
    }

    /// The bio, if it may go on at once; else it waits here.
    pub fn admit(&mut self, now: Time, bio: Bio) -> Option<Bio> {
        let (group, direction) = (usize::from(bio.group), index_of(&bio));
        if !self.is_limited(group, direction) {
            return Some(bio);
        }
        let tick = self.tick_of(now);
        if self.groups[group].by_direction[direction].waiting.is_empty()
            && self.wait_ticks(group, direction, &bio, tick) == 0
        {
            self.charge(group, direction, &bio, tick);
            return Some(bio);
        }
        let queue = &mut self.groups[group].by_direction[direction];
        let was_empty = queue.waiting.is_empty();
        queue.waiting.push_back(bio);
        self.entered += 1;
        if was_empty {
            self.find_time(group, tick);
            self.plan(tick);
        }
        None
    }

    /// When bios may go next.
    pub fn next_event(&self) -> Option<Time> {
        self.timer.map(|tick| self.time_of(tick))
    }

    /// Takes out what may go now: reads first, one of each group in turn.
    pub fn advance(&mut self, now: Time, into: &mut Vec<Bio>) {
        let tick = self.tick_of(now);
        if self.timer.is_none_or(|at| tick < at) {
            return;
        }
        self.timer = None;
        let mut going: [VecDeque<(usize, VecDeque<Bio>)>; 2] = Default::default();
        while self.pending.first().is_some_and(|(at, ..)| *at <= tick) {
            self.dispatch_some(tick, &mut going);
        }
        self.plan(tick);
        for mut of_groups in going {
            while let Some((group, mut bios)) = of_groups.pop_front() {
                into.extend(bios.pop_front());
                if !bios.is_empty() {
                    of_groups.push_back((group, bios));
                }
            }
        }
    }

    /// Every bio that waited has gone or waits still.
    pub fn check(&self) -> Result<(), Violation> {
        let waiting = self.groups.iter().flat_map(|group| &group.by_direction);
        let waiting: usize = waiting.map(|queue| queue.waiting.len()).sum();
        Violation::unless(self.entered == self.left + waiting as u64, "throttle", || {
            let (entered, left) = (self.entered, self.left);
            format!("{entered} bios came, {left} left and {waiting} wait")
        })
    }

    fn is_limited(&self, group: usize, direction: usize) -> bool {
        let limits = self.rules.groups.get(group);
        limits.is_some_and(|limits| limits.bytes[direction].or(limits.bios[direction]).is_some())
    }

    fn tick_of(&self, now: Time) -> u64 {
        (u128::from(now) * u128::from(self.rules.hz) / 1_000_000_000) as u64
    }

    /// When that tick begins.
    fn time_of(&self, tick: u64) -> Time {
        (u128::from(tick) * 1_000_000_000).div_ceil(u128::from(self.rules.hz)) as Time
    }

    /// `throtl_select_dispatch`.
    fn dispatch_some(&mut self, tick: u64, going: &mut [VecDeque<(usize, VecDeque<Bio>)>; 2]) {
        let mut dispatched = 0;
        while let Some(&(at, _, group)) = self.pending.first() {
            if tick < at {
                break;
            }
            for (direction, into) in going.iter_mut().enumerate() {
                let bios = self.dispatch_queue(group, direction, tick);
                dispatched += bios.len();
                match into.iter_mut().find(|(other, _)| *other == group) {
                    Some((_, others)) => others.extend(bios),
                    None if bios.is_empty() => {}
                    None => into.push_back((group, bios.into())),
                }
            }
            self.find_time(group, tick);
            if dispatched >= QUANTUM {
                break;
            }
        }
    }

    fn dispatch_queue(&mut self, group: usize, direction: usize, tick: u64) -> Vec<Bio> {
        let mut bios = Vec::new();
        while bios.len() < GROUP_QUANTUM[direction] {
            let Some(bio) = self.groups[group].by_direction[direction].waiting.pop_front() else {
                break;
            };
            // That one waits says that its slice is active.
            if self.wait_ticks_of_queued(group, direction, &bio, tick) > 0 {
                self.groups[group].by_direction[direction].waiting.push_front(bio);
                break;
            }
            self.charge(group, direction, &bio, tick);
            self.left += 1;
            bios.push(bio);
        }
        bios
    }

    /// `tg_update_disptime`: when the group's first bio may go.
    fn find_time(&mut self, group: usize, tick: u64) {
        if let Some((at, order)) = self.groups[group].place.take() {
            self.pending.remove(&(at, order, group));
        }
        let wait = (0..2).filter_map(|direction| {
            let bio = self.groups[group].by_direction[direction].waiting.pop_front()?;
            let wait = self.wait_ticks_of_queued(group, direction, &bio, tick);
            self.groups[group].by_direction[direction].waiting.push_front(bio);
            Some(wait)
        });
        if let Some(wait) = wait.min() {
            let place = (tick + wait, self.found);
            self.found += 1;
            self.groups[group].place = Some(place);
            self.pending.insert((place.0, place.1, group));
        }
    }

    /// `throtl_schedule_next_dispatch`, and a timer that is due comes with the next tick.
    fn plan(&mut self, tick: u64) {
        let latest = tick + SLICES_ASLEEP_MAX * self.rules.slice_ticks;
        let first = self.pending.first();
        self.timer = first.map(|(at, ..)| (*at).min(latest).max(tick + 1));
    }

    /// `tg_may_dispatch` of a bio that comes to an empty queue: in how many ticks it may go, 0 for now.
    fn wait_ticks(&mut self, group: usize, direction: usize, bio: &Bio, tick: u64) -> u64 {
        let slice = self.rules.slice_ticks;
        let queue = &mut self.groups[group].by_direction[direction];
        if queue.has_used_slice(tick) {
            *queue = RateQueue {
                waiting: std::mem::take(&mut queue.waiting),
                slice_begin: tick,
                slice_end: tick + slice,
                ..RateQueue::default()
            };
        }
        self.wait_ticks_of_queued(group, direction, bio, tick)
    }

    /// The same of a bio that waits, or whose slice is active.
    fn wait_ticks_of_queued(&mut self, group: usize, direction: usize, bio: &Bio, tick: u64) -> u64 {
        let slice = self.rules.slice_ticks;
        let limits = self.rules.groups[group];
        let hz = self.rules.hz;
        let queue = &mut self.groups[group].by_direction[direction];
        queue.extend_slice(tick + slice, slice);
        let for_bytes = limits.bytes[direction].map_or(0, |limit| queue.wait_for_bytes(limit, bio, tick, slice, hz));
        let for_bios = limits.bios[direction].map_or(0, |limit| queue.wait_for_bios(limit, tick, slice, hz));
        let wait = for_bytes.max(for_bios);
        if wait > 0 {
            queue.extend_slice(tick + wait, slice);
        }
        wait
    }

    /// `throtl_charge_bio` and `throtl_trim_slice`.
    fn charge(&mut self, group: usize, direction: usize, bio: &Bio, tick: u64) {
        let slice = self.rules.slice_ticks;
        let limits = self.rules.groups[group];
        let hz = self.rules.hz;
        let queue = &mut self.groups[group].by_direction[direction];
        queue.bytes += bytes_of(bio);
        queue.bios += 1;
        if queue.has_used_slice(tick) {
            return;
        }
        queue.slice_end = (tick + slice).next_multiple_of(slice);
        let elapsed = (tick - queue.slice_begin) / slice * slice;
        let trimmed = |limit: Option<u64>, so_far: u64| {
            limit.map_or(0, |limit| so_far.saturating_sub(allowed(limit, elapsed, hz)))
        };
        if elapsed > 0 {
            queue.bytes = trimmed(limits.bytes[direction], queue.bytes);
            queue.bios = trimmed(limits.bios[direction], queue.bios);
            queue.slice_begin += elapsed;
        }
    }
}

impl RateQueue {
    fn has_used_slice(&self, tick: u64) -> bool {
        !(self.slice_begin..=self.slice_end).contains(&tick)
    }

    fn extend_slice(&mut self, end: u64, slice: u64) {
        if self.slice_end < end {
            self.slice_end = end.next_multiple_of(slice);
        }
    }

    /// `tg_within_bps_limit`.
    fn wait_for_bytes(&self, limit: u64, bio: &Bio, tick: u64, slice: u64, hz: u64) -> u64 {
        let elapsed = tick - self.slice_begin;
        let rounded = elapsed.max(1).next_multiple_of(slice);
        let wanted = self.bytes + bytes_of(bio);
        match wanted.saturating_sub(allowed(limit, rounded, hz)) {
            0 => 0,
            extra => (u128::from(extra) * u128::from(hz) / u128::from(limit)).max(1) as u64 + (rounded - elapsed),
        }
    }

    /// `tg_within_iops_limit`.
    fn wait_for_bios(&self, limit: u64, tick: u64, slice: u64, hz: u64) -> u64 {
        let elapsed = tick - self.slice_begin;
        let rounded = (elapsed + 1).next_multiple_of(slice);
        match self.bios < allowed(limit, rounded, hz) {
            true => 0,
            false => rounded - elapsed,
        }
    }
}

fn allowed(limit: u64, ticks: u64, hz: u64) -> u64 {
    (u128::from(limit) * u128::from(ticks) / u128::from(hz)) as u64
}

fn index_of(bio: &Bio) -> usize {
    match bio.direction {
        Direction::Read => 0,
        Direction::Write => 1,
    }
}

fn bytes_of(bio: &Bio) -> u64 {
    u64::from(bio.sectors) * SECTOR_BYTES
}

#[cfg(test)]
mod tests;
