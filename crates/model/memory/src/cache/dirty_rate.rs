//! Writers held to the rate at which the device writes back (IO-less throttling): they sleep and write nothing back
//! themselves.
//!
//! Source: `mm/page-writeback.c` of 3.2 (`balance_dirty_pages`, `bdi_position_ratio`, `bdi_update_bandwidth`) and
//! `fs/fs-writeback.c` (`writeback_chunk_size`). Each drive has its own. Simplified: rates are updated when somebody looks, not
//! by the flusher.

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
    tasks: BTreeMap<TaskId, Dirtier>,
}

#[derive(Clone, Copy, Debug)]
struct Dirtier {
    dirtied: u64,
    /// With this many it looks at how much is dirty.
    looks_at: u64,
}

/// Numbers of dirty pages, and their limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// Dirty, or being written.
    pub(super) dirty: u64,
    pub(super) background: u64,
    pub(super) limit: u64,
    /// The part of them on the drive in question, and the limit of that drive.
    pub(super) of_device: u64,
    pub(super) device_limit: u64,
}

/// What it is taken to be until something is known: 100 MB/s (`INIT_BW`).
const FIRST_RATE: u64 = 100 << 8;
/// Between two updates of the rates (`BANDWIDTH_INTERVAL`).
const UPDATE_NS: Time = 200 * MILLISECOND;
/// The period of the mean of the write rate: 3 s, as a power of two of ticks.
const MEAN_NS: u128 = 4_096 * 1_000_000;
/// The longest sleep (`MAX_PAUSE`).
const PAUSE_NS_MAX: Time = 200 * MILLISECOND;
/// A tick of 250 a second: shorter sleeps are none.
const TICK_NS: Time = 4 * MILLISECOND;
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
        (self.free_run() + self.limit) / 2
    }

    /// How much faster or slower than the balanced rate, of `ONE`, with a drive that writes this many pages a second
    /// (`bdi_position_ratio`).
    fn control(&self, write_rate: u64) -> u64 {
        if self.dirty >= self.limit {
            return 0;
        }
        self.control_of_drive(self.control_of_all(), write_rate)
    }

    /// A cubic curve through 1 at the set point and 0 at the limit (the first half of `bdi_position_ratio`).
    fn control_of_all(&self) -> u64 {
        let set_point = self.set_point() as i64;
        let x = (set_point - self.dirty as i64) * ONE / (self.limit as i64 - set_point + 1);
        let cubed = x * x / ONE * x / ONE;
        (cubed + ONE).clamp(0, 2 * ONE) as u64
    }

    /// A line through 1 at the drive's part of the set point (the second half of `bdi_position_ratio`); it is the steeper,
    /// the smaller its part. A drive that would soon have nothing to write is let go faster.
    fn control_of_drive(&self, control: u64, write_rate: u64) -> u64 {
        let device_limit = self.device_limit.min(self.limit);
        let device_limit = device_limit.max((self.limit - self.dirty) / 8);
        let part = (device_limit << 16) / (self.limit + 1);
        let set_point = (self.set_point() * part) >> 16;
        let span = ((self.limit - device_limit + 8 * write_rate) * part) >> 16;
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
            tasks: BTreeMap::new(),
        }
    }

    pub(super) fn written(&mut self, pages: u64) {
        self.written += pages;
    }

    /// What the flusher writes of one inode before the next (`writeback_chunk_size`): half a second's worth.
    pub(super) fn chunk_pages(&self, limit: u64) -> u64 {
        let pages = (self.average_write_rate / 2).min(limit / 8);
        (pages + CHUNK_PAGES_MIN) / CHUNK_PAGES_MIN * CHUNK_PAGES_MIN
    }

    /// The task has dirtied this many pages (`balance_dirty_pages`); for how long it sleeps.
    pub(super) fn holds(
        &mut self,
        now: Time,
        task: TaskId,
        pages: u64,
        level: Level,
    ) -> Option<Time> {
        self.dirtied += pages;
        let dirtier = self.tasks.entry(task).or_insert(Dirtier {
            dirtied: 0,
            looks_at: 32,
        });
        dirtier.dirtied += pages;
        let exceeded = level.dirty > level.limit && level.of_device > level.device_limit;
        let looks_at = match exceeded {
            true => dirtier.looks_at.min(8),
            false => dirtier.looks_at,
        };
        if dirtier.dirtied < looks_at {
            return None;
        }
        let dirtier = *dirtier;
        self.update(now, level);
        let pause_ns_max = self.pause_ns_max(level);
        let next = if level.dirty <= level.free_run() {
            (0, poll_interval(level))
        } else {
            let rate = self.limit * level.control(self.average_write_rate) / ONE as u64;
            let wanted_ns = match rate {
                0 => pause_ns_max,
                rate => (dirtier.dirtied * SECOND / rate).min(pause_ns_max),
            };
            let pause_ns = wanted_ns / TICK_NS * TICK_NS;
            (
                pause_ns,
                self.next_look(dirtier, pause_ns, pause_ns_max, level),
            )
        };
        let (pause_ns, looks_at) = next;
        let dirtied = match pause_ns > 0 || level.dirty <= level.free_run() {
            true => 0,
            // No sleep worth the name yet: what it has dirtied counts on.
            false => dirtier.dirtied,
        };
        self.tasks.insert(task, Dirtier { dirtied, looks_at });
        (pause_ns > 0).then_some(pause_ns)
    }

    /// The limit is still exceeded: for how long a sleeper sleeps on.
    pub(super) fn holds_on(&mut self, now: Time, level: Level) -> Time {
        self.update(now, level);
        PAUSE_NS_MAX
    }

    /// A sleep is longer the more writers there are, and no longer than an eighth of the time that what is dirty on the
    /// drive lasts (`bdi_max_pause`).
    fn pause_ns_max(&self, level: Level) -> Time {
        let (high, low) = (self.average_write_rate.max(1), self.limit.max(1));
        let more = u64::from(high.ilog2().saturating_sub(low.ilog2()));
        let wanted = 20 * MILLISECOND + more * 20 * SECOND / 1024;
        let lasts = level.of_device * SECOND / (8 * self.average_write_rate + 1);
        wanted.min(lasts).clamp(TICK_NS, PAUSE_NS_MAX)
    }

    fn next_look(&self, dirtier: Dirtier, pause_ns: Time, most_ns: Time, level: Level) -> u64 {
        let pages = dirtier.dirtied;
        let in_half = self.limit * (most_ns / 2) / SECOND;
        if pause_ns == 0 {
            dirtier.dirtied + poll_interval(level)
        } else if pause_ns <= most_ns / 4 && pages >= dirtier.looks_at {
            in_half.clamp(pages + pages / 8, pages * 4)
        } else if pause_ns >= most_ns {
            1 | in_half.clamp(pages / 4, pages - pages / 8)
        } else {
            dirtier.looks_at
        }
    }

    /// Five times a second (`bdi_update_bandwidth`): what the device has written, and with it what a writer may dirty.
    fn update(&mut self, now: Time, level: Level) {
        let (since, written, dirtied) = self.updated;
        let elapsed = now - since;
        if elapsed < UPDATE_NS {
            return;
        }
        self.updated = (now, self.written, self.dirtied);
        let rate_of =
            |pages: u64| (u128::from(pages) * u128::from(SECOND) / u128::from(elapsed)) as u64;
        // After a pause nothing is known of how fast things go.
        if elapsed > SECOND {
            return;
        }
        if level.dirty > level.free_run() {
            self.update_dirty_rate(rate_of(self.dirtied - dirtied), level);
        }
        let weight = u128::from(elapsed);
        let old = self.write_rate;
        let new = rate_of(self.written - written);
        self.write_rate = ((u128::from(new) * weight
            + u128::from(old) * MEAN_NS.saturating_sub(weight))
            / MEAN_NS) as u64;
        let average = self.average_write_rate;
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
        let balanced =
            u128::from(task_limit) * u128::from(self.average_write_rate) / u128::from(dirtied | 1);
        let balanced = (balanced as u64).min(self.average_write_rate);
        let step = if level.dirty < level.set_point() {
            let least = self.balanced.min(balanced).min(task_limit);
            least.saturating_sub(self.limit)
        } else {
            let most = self.balanced.max(balanced).max(task_limit);
            self.limit.saturating_sub(most)
        };
        let shift = self.limit / (2 * step + 1);
        let step = step
            .checked_shr(shift.min(63) as u32)
            .unwrap_or(0)
            .div_ceil(8);
        if self.limit < balanced {
            self.limit += step;
        } else {
            self.limit = self.limit.saturating_sub(step);
        }
        self.limit = self.limit.max(1);
        self.balanced = balanced;
    }
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

    /// All on one drive, which has the whole limit.
    fn level(dirty: u64) -> Level {
        Level {
            dirty,
            background: 10_000,
            limit: 20_000,
            of_device: dirty,
            device_limit: 20_000,
        }
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
        let of_device = |of_device| Level {
            of_device,
            device_limit: 10_000,
            ..level(17_500)
        };
        let control = |dirty| of_device(dirty).control(500);
        assert!(
            (1020..=1024).contains(&control(8_750)),
            "{}",
            control(8_750)
        );
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
        assert_eq!(rate.holds(0, 1, 1_000, level(15_000)), None);
        assert!(rate.holds(0, 1, 10_000, level(19_900)).is_some());
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
                    pause = rate.holds(now, task, 64, level(dirty));
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
                } else if level(dirty).dirty < level(dirty).limit {
                    awake.push(task);
                } else {
                    sleeping.push((now + rate.holds_on(now, level(dirty)), task));
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
