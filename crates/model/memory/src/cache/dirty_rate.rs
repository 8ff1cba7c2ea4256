//! Writers held to the rate at which the device writes back (IO-less throttling): they sleep and write nothing back
//! themselves.
//!
//! Source: `mm/page-writeback.c` of 6.1 (`balance_dirty_pages`, `wb_max_pause`, `wb_min_pause`, `wb_position_ratio`,
//! `__wb_update_bandwidth`, `do_writepages`) and `fs/fs-writeback.c` (`writeback_chunk_size`). Each drive has its own.
//! Simplified: kernels before 6.1 are taken as it; 3.2 has no `wb_min_pause`, and others update rates elsewhere.

use std::collections::BTreeMap;

use block_layer::TaskId;
use events::time::{MILLISECOND, SECOND, Time};

/// Rates are in pages a second.
#[derive(Clone, Debug)]
pub(super) struct DirtyRate {
    write_rate: u64,
    /// The same, smoothed.
    average_write_rate: u64,
    /// The rate at which one writer may dirty pages when their number is as it should be.
    limit: u64,
    balanced: u64,
    written: u64,
    dirtied: u64,
    /// When rates were updated last, and the counts then.
    updated: (Time, u64, u64),
    /// When the write rate is updated although nobody looks (`bw_dwork`).
    updates_at: Option<Time>,
    /// More was dirty than both limits when a writer looked last.
    exceeded: bool,
    tasks: BTreeMap<TaskId, Dirtier>,
}

#[derive(Clone, Copy, Debug)]
struct Dirtier {
    dirtied: u64,
    /// With this many it looks at how much is dirty.
    looks_at: u64,
    /// When its last pause ended, or would have ended: what it has dirtied since then took this long (`dirty_paused_when`).
    paused: Tick,
    /// The pages of a pause after which it looks again: its rate was 0.
    looks_again: Option<u64>,
}

/// Ticks since the machine began. 0: never.
type Tick = u64;

/// Numbers of dirty pages, and their limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// Dirty, or being written.
    pub(super) dirty: u64,
    pub(super) background: u64,
    pub(super) limit: u64,
    /// With as many nobody may dirty anything: the limit, or what it was before and falls from (`hard_dirty_limit`).
    pub(super) hard_limit: u64,
    /// The part of them on the drive in question, and the limit of that drive.
    pub(super) of_device: u64,
    pub(super) device_limit: u64,
}

/// What it is taken to be until something is known: 100 MB/s (`INIT_BW`).
const FIRST_RATE: u64 = 100 << 8;
/// Between two updates of the rates (`BANDWIDTH_INTERVAL`).
pub(super) const UPDATE_NS: Time = 200 * MILLISECOND;
/// The period of the mean of the write rate: 3 s, as a power of two of ticks.
const MEAN_NS: u128 = 4_096 * 1_000_000;
/// Ticks in a second, as Debian and Ubuntu have it (`CONFIG_HZ`).
const HZ: u64 = 250;
const TICK_NS: Time = SECOND / HZ;
/// The longest sleep (`MAX_PAUSE`), in ticks.
const PAUSE_MAX: u64 = HZ / 5;
/// A pause for fewer pages than these is as long as it may be (`DIRTY_POLL_THRESH`), and a new task looks with so many.
const POLL_PAGES: u64 = 32;
/// 1.0 of the control.
const ONE: i64 = 1024;
/// The least that a flusher writes of an inode in one go: 4 MiB.
const CHUNK_PAGES_MIN: u64 = 1024;

impl Level {
    /// Below it no task is held (`dirty_freerun_ceiling`).
    pub(super) fn free_run(&self) -> u64 {
        (self.background + self.limit) / 2
    }

    fn set_point(&self) -> u64 {
        (self.free_run() + self.hard_limit) / 2
    }

    /// How much faster or slower than the balanced rate, of `ONE`, with a drive that writes this many pages a second
    /// (`bdi_position_ratio`).
    fn control(&self, write_rate: u64) -> u64 {
        if self.dirty >= self.hard_limit {
            return 0;
        }
        self.control_of_drive(self.control_of_all(), write_rate)
    }

    /// A cubic curve through 1 at the set point and 0 at the limit (the first half of `bdi_position_ratio`).
    fn control_of_all(&self) -> u64 {
        let set_point = self.set_point() as i64;
        let x = (set_point - self.dirty as i64) * ONE / (self.hard_limit as i64 - set_point + 1);
        let cubed = x * x / ONE * x / ONE;
        (cubed + ONE).clamp(0, 2 * ONE) as u64
    }

    /// A line through 1 at the drive's part of the set point (the second half of `bdi_position_ratio`); it is the steeper,
    /// the smaller its part. A drive that would soon have nothing to write is let go faster.
    fn control_of_drive(&self, control: u64, write_rate: u64) -> u64 {
        let device_limit = self.device_limit.min(self.limit);
        let device_limit = device_limit.max((self.hard_limit - self.dirty) / 8);
        let part = (device_limit << 16) / (self.limit + 1);
        let set_point = (self.set_point() * part) >> 16;
        let span = ((self.limit + 8 * write_rate).saturating_sub(device_limit) * part) >> 16;
        let end = set_point + span;
        let control = match self.of_device < end - span / 4 {
            true => control * (end - self.of_device) / (span + 1),
            false => control / 4,
        };
        let reserve = device_limit / 2;
        if self.of_device >= reserve {
            control
        } else if self.of_device > reserve / 8 {
            control * reserve / self.of_device
        } else {
            control * 8
        }
    }
}

impl DirtyRate {
    pub(super) fn new() -> DirtyRate {
        DirtyRate {
            write_rate: FIRST_RATE,
            average_write_rate: FIRST_RATE,
            limit: FIRST_RATE,
            balanced: FIRST_RATE,
            written: 0,
            dirtied: 0,
            updated: (0, 0, 0),
            updates_at: None,
            exceeded: false,
            tasks: BTreeMap::new(),
        }
    }

    pub(super) fn written(&mut self, pages: u64) {
        self.written += pages;
    }

    /// An inode has no page any more that is being written (`wb_inode_writeback_end`).
    pub(super) fn inode_is_written(&mut self, now: Time) {
        self.updates_at.get_or_insert(now + UPDATE_NS);
    }

    /// When the write rate is updated next, whoever looks.
    pub(super) fn next_event(&self) -> Option<Time> {
        self.updates_at
    }

    pub(super) fn update_if_due(&mut self, now: Time) {
        if self.updates_at.is_some_and(|at| at <= now) {
            self.updates_at = None;
            self.update_write_rate(now);
        }
    }

    /// Somebody begins to write an inode back. Of a time in which nothing was written there is no rate
    /// (`wb_bandwidth_estimate_start`).
    pub(super) fn begins_inode(&mut self, now: Time, is_writing: bool) {
        if !is_writing && now / TICK_NS > self.updated.0 / TICK_NS + HZ {
            self.updated = (now, self.written, self.dirtied);
        }
    }

    /// Somebody has written an inode back (`do_writepages`). If the rates are due, it updates the write rate, and begins
    /// a new interval; writers that look before its end leave `limit` as it is.
    pub(super) fn ends_inode(&mut self, now: Time) {
        if self.is_due(now) {
            self.update_write_rate(now);
        }
    }

    /// Whether the next who looks updates the rates.
    pub(super) fn is_due(&self, now: Time) -> bool {
        now / TICK_NS > (self.updated.0 + UPDATE_NS) / TICK_NS
    }

    /// What the flusher writes of one inode before the next (`writeback_chunk_size`): half a second's worth.
    pub(super) fn chunk_pages(&self, limit: u64) -> u64 {
        let pages = (self.average_write_rate / 2).min(limit / 8);
        (pages + CHUNK_PAGES_MIN) / CHUNK_PAGES_MIN * CHUNK_PAGES_MIN
    }

    /// The task has dirtied this many pages (`balance_dirty_pages_ratelimited`): how many since it last looked at what is
    /// dirty, if it looks now.
    ///
    /// Args:
    ///     on_cpu: what its CPU has dirtied since a task looked there in its turn (`bdp_ratelimits`).
    ///     on_cpu_max: with this many, whoever dirties next there has to look.
    pub(super) fn looks(&mut self, task: TaskId, pages: u64, on_cpu: &mut u64, on_cpu_max: u64) -> Option<u64> {
        self.dirtied += pages;
        let exceeded = self.exceeded;
        let dirtier = self.tasks.entry(task).or_insert(Dirtier {
            dirtied: 0,
            looks_at: POLL_PAGES,
            paused: 0,
            looks_again: None,
        });
        dirtier.dirtied += pages;
        let looks_at = match exceeded {
            true => dirtier.looks_at.min(8),
            false => dirtier.looks_at,
        };
        if dirtier.dirtied < looks_at && *on_cpu < on_cpu_max {
            return None;
        }
        *on_cpu = 0;
        Some(dirtier.dirtied)
    }

    /// A sleeper's time is over: for how long it sleeps on. Only who had no rate at all looks again.
    pub(super) fn holds_on(&mut self, now: Time, task: TaskId, level: Level) -> Option<Time> {
        let pages = self.tasks.get_mut(&task)?.looks_again.take()?;
        self.pause(now, task, pages, level)
    }

    /// One look at what is dirty (the loop of `balance_dirty_pages`): for how long the task sleeps.
    pub(super) fn pause(&mut self, now: Time, task: TaskId, pages: u64, level: Level) -> Option<Time> {
        let tick = now / TICK_NS;
        self.exceeded = level.dirty > level.limit && level.of_device > level.device_limit;
        if level.dirty <= level.free_run() {
            let looks_at = poll_interval(level);
            self.tasks.insert(task, Dirtier { dirtied: 0, looks_at, paused: tick, looks_again: None });
            return None;
        }
        self.update(now, level);
        let rate = self.limit * level.control(self.average_write_rate) / ONE as u64;
        let longest = self.pause_max(level);
        let (shortest, looks_at) = self.pause_min(longest, rate);
        let dirtier = self.tasks.get_mut(&task)?;
        let mut paused = tick;
        let pause = match rate {
            0 => longest,
            rate => {
                let period = HZ * pages / rate;
                let since = match dirtier.paused {
                    0 => 0,
                    paused => tick as i64 - paused as i64,
                };
                let pause = period as i64 - since;
                if pause < shortest as i64 {
                    dirtier.goes_on(tick, pages, period, pause);
                    return None;
                }
                let pause = pause as u64;
                paused += pause.saturating_sub(longest).min(longest);
                pause.min(longest)
            }
        };
        *dirtier = Dirtier { dirtied: 0, looks_at, paused: paused + pause, looks_again: (rate == 0).then_some(pages) };
        // Never early: it ends with the tick after the last (`calc_index` of kernel/time/timer.c, 6.1).
        Some((tick + pause + 1) * TICK_NS - now)
    }

    /// In ticks. No longer than an eighth of the time that what is dirty on the drive lasts (`wb_max_pause`).
    fn pause_max(&self, level: Level) -> u64 {
        let in_eighth = self.average_write_rate / (1 + HZ / 8).next_power_of_two();
        (level.of_device / (1 + in_eighth) + 1).min(PAUSE_MAX)
    }

    /// Ticks below which a task goes on and pauses later for longer, and with how many pages it looks next: so many that
    /// a pause takes 10 ms, longer the more writers there are, and at most half of the longest (`wb_min_pause`).
    fn pause_min(&self, longest: u64, rate: u64) -> (u64, u64) {
        let of_ticks = |rate: u64, ticks: u64| rate * ticks / HZ.next_power_of_two();
        let (high, low) = (self.average_write_rate.max(1), self.limit.max(1));
        let more = u64::from(high.ilog2().saturating_sub(low.ilog2()));
        let mut target = (HZ / 100 + more * 10 * HZ / 1024).min(1 + longest / 2);
        let mut pages = of_ticks(self.limit, target);
        if pages < POLL_PAGES {
            target = longest;
            pages = of_ticks(self.limit, target);
            if pages > POLL_PAGES {
                pages = POLL_PAGES;
                target = HZ * POLL_PAGES / low;
            }
        }
        if HZ * pages / (rate + 1) > longest {
            target = longest;
            pages = of_ticks(rate, target);
        }
        match pages >= POLL_PAGES {
            true => (1 + target / 2, pages),
            false => (target, pages),
        }
    }

    /// A writer that is held updates both rates if they are due.
    fn update(&mut self, now: Time, level: Level) {
        if self.is_due(now) {
            let (since, _, dirtied) = self.updated;
            self.update_dirty_rate(rate_of(self.dirtied - dirtied, now - since), level);
            self.update_write_rate(now);
        }
    }

    /// What the device has written in a second, since it was asked last (`wb_update_write_bandwidth`).
    fn update_write_rate(&mut self, now: Time) {
        let (since, written, _) = self.updated;
        let elapsed = (now - since).max(TICK_NS);
        self.updated = (now, self.written, self.dirtied);
        let (new, old) = (rate_of(self.written - written, elapsed), self.write_rate);
        let (weight, average) = (u128::from(elapsed), self.average_write_rate);
        if weight > MEAN_NS {
            (self.write_rate, self.average_write_rate) = (new, new.max(1));
            return;
        }
        self.write_rate = ((u128::from(new) * weight + u128::from(old) * (MEAN_NS - weight)) / MEAN_NS) as u64;
        if average > old && old >= self.write_rate {
            self.average_write_rate -= (average - old) / 8;
        } else if average < old && old <= self.write_rate {
            self.average_write_rate += (old - average) / 8;
        }
    }

    /// Towards the rate at which all writers together dirty as much as is written, in steps that get smaller near it
    /// (`bdi_update_dirty_ratelimit`).
    fn update_dirty_rate(&mut self, dirtied: u64, level: Level) {
        let control = level.control(self.average_write_rate);
        let task_limit = self.limit * control / ONE as u64 + 1;
        let balanced = u128::from(task_limit) * u128::from(self.average_write_rate) / u128::from(dirtied | 1);
        let balanced = (balanced as u64).min(self.average_write_rate);
        let step = if level.dirty < level.set_point() {
            let least = self.balanced.min(balanced).min(task_limit);
            least.saturating_sub(self.limit)
        } else {
            let most = self.balanced.max(balanced).max(task_limit);
            self.limit.saturating_sub(most)
        };
        let shift = self.limit / (2 * step + 1);
        let step = step.checked_shr(shift.min(63) as u32).unwrap_or(0).div_ceil(8);
        if self.limit < balanced {
            self.limit += step;
        } else {
            self.limit = self.limit.saturating_sub(step);
        }
        self.limit = self.limit.max(1);
        self.balanced = balanced;
    }
}

impl Dirtier {
    /// It goes on, since its pause would be too short: the time is taken off its next one. Who has dirtied so little that a
    /// pause would be none looks later; who had time for much more begins anew.
    fn goes_on(&mut self, tick: Tick, pages: u64, period: u64, pause: i64) {
        if pause < -(HZ as i64) {
            (self.paused, self.dirtied) = (tick, 0);
        } else if period > 0 {
            (self.paused, self.dirtied) = (self.paused + period, 0);
        } else if self.looks_at <= pages {
            self.looks_at += pages;
        }
    }
}

fn rate_of(pages: u64, time: Time) -> u64 {
    (u128::from(pages) * u128::from(SECOND) / u128::from(time)) as u64
}

/// The nearer to the limit, the sooner a writer looks again (`dirty_poll_interval`).
fn poll_interval(level: Level) -> u64 {
    match level.limit.checked_sub(level.dirty) {
        Some(left) if left > 0 => 1 << (left.ilog2() / 2),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What has dirtied so many pages sleeps, if it looks.
    fn holds(
        rate: &mut DirtyRate,
        now: Time,
        task: TaskId,
        pages: u64,
        level: Level,
        on_cpu: &mut u64,
        on_cpu_max: u64,
    ) -> Option<Time> {
        let pages = rate.looks(task, pages, on_cpu, on_cpu_max)?;
        rate.pause(now, task, pages, level)
    }

    /// All on one drive, which has the whole limit.
    fn level(dirty: u64) -> Level {
        Level { dirty, background: 10_000, limit: 20_000, hard_limit: 20_000, of_device: dirty, device_limit: 20_000 }
    }

    #[test]
    fn the_control_of_all_is_1_at_the_set_point_and_0_at_the_limit() {
        // Free run at 15,000, set point at 17,500.
        assert_eq!(level(17_500).control_of_all(), 1024);
        assert_eq!(level(20_000).control(5000), 0);
        assert!(level(19_000).control_of_all() < 1024 && level(16_000).control_of_all() > 1024);
        assert!((2_040..=2_048).contains(&level(15_000).control_of_all()));
    }

    #[test]
    fn a_drive_with_more_than_its_part_is_slower_and_one_with_less_is_faster() {
        // Two drives that may have half each, at the set point of all: 8,750 is each one's.
        let of_device = |of_device| Level { of_device, device_limit: 10_000, ..level(17_500) };
        let control = |dirty| of_device(dirty).control(500);
        assert!((1020..=1024).contains(&control(8_750)), "{}", control(8_750));
        assert!(control(11_000) < 800 && control(6_000) > 1200);
        // Far beyond: a quarter. Nearly nothing to write: eight times what the line gives.
        assert_eq!(control(17_000), 256);
        assert!(control(500) > 8 * 1024);
        // One drive alone: a line of eight times what it writes in a second.
        let alone = level(17_500).control(500);
        assert!((1020..=1024).contains(&alone), "{alone}");
    }

    #[test]
    fn nobody_sleeps_below_the_middle_of_both_thresholds() {
        let mut rate = DirtyRate::new();
        assert_eq!(holds(&mut rate, 0, 1, 1_000, level(15_000), &mut 0, 625), None);
        assert!(holds(&mut rate, 0, 1, 10_000, level(19_900), &mut 0, 625).is_some());
    }

    /// Four writers to a drive of 16,000 pages a second, with 8 MiB that may be dirty.
    fn small_limit(dirty: u64) -> (DirtyRate, Level) {
        let rate = DirtyRate { average_write_rate: 16_000, limit: 4_000, ..DirtyRate::new() };
        let level =
            Level { dirty, background: 1_000, limit: 2_000, hard_limit: 2_000, of_device: dirty, device_limit: 2_000 };
        (rate, level)
    }

    #[test]
    fn with_little_that_may_be_dirty_pauses_are_short_and_many() {
        // A pause of 20 ms at most, so 3 ticks wanted, in which a writer has 46 pages.
        let (rate, level) = small_limit(1_900);
        assert_eq!(rate.pause_max(level), 4);
        assert_eq!(rate.pause_min(4, 4_000), (2, 46));
        // With fewer than 32 pages in a pause, it is as long as it may be.
        assert_eq!(rate.pause_min(4, 1_000), (4, 15));
    }

    #[test]
    fn a_pause_ends_with_a_tick_and_never_early() {
        let (mut rate, level) = small_limit(1_750);
        let now = SECOND + MILLISECOND;
        let pause_ns = holds(&mut rate, now, 1, 64, level, &mut 0, 1_000).unwrap();
        assert_eq!((now + pause_ns) % TICK_NS, 0);
        // 64 pages at the rate of the set point, 4,000 a second: 4 ticks.
        assert!((4 * TICK_NS..=5 * TICK_NS).contains(&pause_ns), "{pause_ns}");
        assert_eq!(rate.holds_on(now + pause_ns, 1, level), None);
    }

    #[test]
    fn the_time_of_a_pause_too_short_is_taken_off_the_next() {
        let (mut rate, level) = small_limit(1_750);
        let (now, later) = (SECOND, SECOND + 4 * TICK_NS);
        let pause_ns = holds(&mut rate, now, 1, 64, level, &mut 0, 1_000).unwrap();
        // It has dirtied one page since: not enough for the half of a pause, and it goes on.
        assert_eq!(holds(&mut rate, now + pause_ns, 1, 1, level, &mut 1_000, 1_000), None);
        assert_eq!(rate.tasks[&1].dirtied, 1, "a pause of no tick counts on");
        // After 4 ticks without any, another 64 pages have taken their time.
        assert_eq!(holds(&mut rate, later + pause_ns, 1, 63, level, &mut 0, 1_000), None);
        assert_eq!(rate.tasks[&1].dirtied, 0);
    }

    #[test]
    fn who_has_no_rate_at_the_limit_looks_again_after_its_pause() {
        let (mut rate, level) = small_limit(2_000);
        let pause_ns = holds(&mut rate, SECOND, 1, 64, level, &mut 0, 1_000).unwrap();
        let now = SECOND + pause_ns;
        assert!(rate.holds_on(now, 1, level).is_some());
        let (_, below) = small_limit(1_000);
        assert_eq!(rate.holds_on(now + SECOND, 1, below), None);
    }

    #[test]
    fn a_cpu_that_has_dirtied_much_has_its_task_look_early() {
        let (mut rate, level) = small_limit(2_000);
        let mut on_cpu = 61;
        assert_eq!(holds(&mut rate, SECOND, 1, 2, level, &mut on_cpu, 62), None);
        on_cpu = 62;
        assert!(holds(&mut rate, SECOND, 1, 2, level, &mut on_cpu, 62).is_some());
        assert_eq!(on_cpu, 0);
    }

    /// Writers dirty more than is written, and rates are due at `now`.
    fn due(now: Time) -> (DirtyRate, Level) {
        let (mut rate, level) = small_limit(1_990);
        (rate.balanced, rate.dirtied) = (1_000, 100_000);
        rate.written(100);
        assert!(rate.is_due(now) && !rate.is_due(UPDATE_NS));
        (rate, level)
    }

    #[test]
    fn a_writer_that_is_held_updates_both_rates() {
        let now = SECOND / 2;
        let (mut rate, level) = due(now);
        rate.pause(now, 1, 64, level);
        assert!(rate.limit < 4_000 && rate.write_rate < FIRST_RATE);
        assert!(!rate.is_due(now + UPDATE_NS));
    }

    #[test]
    fn who_has_written_an_inode_back_takes_the_update_from_writers() {
        let now = SECOND / 2;
        let (mut rate, level) = due(now);
        rate.ends_inode(now);
        assert!(rate.write_rate < FIRST_RATE);
        rate.pause(now + UPDATE_NS / 2, 1, 64, level);
        assert_eq!(rate.limit, 4_000, "the interval has begun anew");
        // Each inode that ends when the rates are due keeps the limit as it was, for ever.
        for at in (1..100).map(|n| now + n * (UPDATE_NS + TICK_NS)) {
            rate.ends_inode(at);
            rate.pause(at, 1, 64, level);
        }
        assert_eq!(rate.limit, 4_000);
    }

    #[test]
    fn after_the_last_page_of_an_inode_the_write_rate_is_updated_once() {
        let (mut rate, _) = due(SECOND / 2);
        rate.inode_is_written(0);
        rate.inode_is_written(UPDATE_NS / 2);
        assert_eq!(rate.next_event(), Some(UPDATE_NS), "the first of them");
        rate.update_if_due(UPDATE_NS);
        assert_eq!(rate.next_event(), None);
        assert_eq!(rate.updated, (UPDATE_NS, 100, 100_000));
    }

    #[test]
    fn of_a_second_without_writes_there_is_no_rate() {
        let (now, of_all) = (3 * SECOND, |rate: &DirtyRate| rate.updated.0);
        let (mut rate, _) = due(now);
        rate.begins_inode(now, true);
        assert_eq!(of_all(&rate), 0, "another is being written");
        rate.begins_inode(SECOND, false);
        assert_eq!(of_all(&rate), 0, "no longer than a second");
        rate.begins_inode(now, false);
        assert_eq!((of_all(&rate), rate.write_rate), (now, FIRST_RATE));
    }

    #[test]
    fn writers_together_come_to_dirty_what_is_written() {
        // A device of 5,000 pages a second and four writers that dirty 64 pages at a time as fast as they may.
        let (mut rate, mut now, mut dirty) = (DirtyRate::new(), 0, 0u64);
        let mut awake = vec![0, 1, 2, 3];
        let mut sleeping: Vec<(Time, TaskId)> = Vec::new();
        let mut dirtied = [0u64; 4];
        while now < 60 * SECOND {
            for task in std::mem::take(&mut awake) {
                // A page takes 2 us to dirty; a task that is not held continues at once.
                let mut pause = None;
                for _ in 0..64 {
                    dirty += 64;
                    if now > 30 * SECOND {
                        dirtied[task as usize] += 64;
                    }
                    pause = holds(&mut rate, now, task, 64, level(dirty), &mut 0, 625);
                    if pause.is_some() {
                        break;
                    }
                }
                match pause {
                    Some(pause_ns) => sleeping.push((now + pause_ns, task)),
                    None => awake.push(task),
                }
            }
            now += 10 * MILLISECOND;
            let written = dirty.min(50);
            dirty -= written;
            rate.written(written);
            for (at, task) in std::mem::take(&mut sleeping) {
                if at > now {
                    sleeping.push((at, task));
                } else if let Some(pause_ns) = rate.holds_on(now, task, level(dirty)) {
                    sleeping.push((now + pause_ns, task));
                } else {
                    awake.push(task);
                }
            }
        }
        let total: u64 = dirtied.iter().sum();
        assert!((140_000..160_000).contains(&total), "{total}");
        assert!((15_000..20_500).contains(&dirty), "{dirty}");
        let (least, most) = (dirtied.iter().min().unwrap(), dirtied.iter().max().unwrap());
        assert!(most * 10 < least * 15, "{dirtied:?}");
    }
}
