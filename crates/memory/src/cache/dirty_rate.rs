//! Writers held to the rate at which the device writes back (IO-less throttling): they sleep and write nothing back
//! themselves.
//!
//! Source: `mm/page-writeback.c` of 3.2 (`balance_dirty_pages`, `bdi_position_ratio`, `bdi_update_bandwidth`) and
//! `fs/fs-writeback.c` (`writeback_chunk_size`). Simplified: one device has the whole limit, so that the part of the control
//! that shares it out among devices is left out; rates are updated when somebody looks, not by the flusher.

use std::collections::{BTreeMap, BTreeSet};

use block_layer::TaskId;
use events::time::{MILLISECOND, SECOND, Time};

/// Rates are in pages a second.
#[derive(Clone, Debug)]
pub(super) struct DirtyRate {
    write_rate: u64,
    /// The same, smoothed.
    average_write_rate: u64,
    /// What one writer may dirty where the number of dirty pages is as it should be.
    limit: u64,
    balanced: u64,
    written: u64,
    dirtied: u64,
    /// When rates were updated last, and the counts then.
    updated: (Time, u64, u64),
    tasks: BTreeMap<TaskId, Dirtier>,
    sleeping: BTreeSet<(Time, TaskId)>,
}

#[derive(Clone, Copy, Debug)]
struct Dirtier {
    dirtied: u64,
    /// With so many it looks at how much is dirty.
    looks_at: u64,
}

/// Where dirty pages stand, in pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// Dirty, or being written.
    pub(super) dirty: u64,
    pub(super) background: u64,
    pub(super) limit: u64,
}

/// What it is taken to be until something is known: 100 MB/s (`INIT_BW`).
const FIRST_RATE: u64 = 100 << 8;
/// Between two updates of the rates (`BANDWIDTH_INTERVAL`).
const UPDATE_NS: Time = 200 * MILLISECOND;
/// Of the mean of the write rate: 3 s, as a power of two of ticks.
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
    /// Below it nobody is held.
    fn free_run(&self) -> u64 {
        (self.background + self.limit) / 2
    }

    fn set_point(&self) -> u64 {
        (self.free_run() + self.limit) / 2
    }

    /// How much faster or slower than the balanced rate, of `ONE`: a cubic curve through 1 at the set point and 0 at the
    /// limit.
    fn control(&self) -> u64 {
        if self.dirty >= self.limit {
            return 0;
        }
        let set_point = self.set_point() as i64;
        let x = (set_point - self.dirty as i64) * ONE / (self.limit as i64 - set_point + 1);
        let cubed = x * x / ONE * x / ONE;
        (cubed + ONE).clamp(0, 2 * ONE) as u64
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
            sleeping: BTreeSet::new(),
        }
    }

    pub(super) fn written(&mut self, pages: u64) {
        self.written += pages;
    }

    /// What the flusher writes of one inode before the next: half a second's worth.
    pub(super) fn chunk_pages(&self, limit: u64) -> u64 {
        let pages = (self.average_write_rate / 2).min(limit / 8);
        (pages + CHUNK_PAGES_MIN) / CHUNK_PAGES_MIN * CHUNK_PAGES_MIN
    }

    /// The task has dirtied so many pages. True: it sleeps until `due` names it.
    pub(super) fn holds(&mut self, now: Time, task: TaskId, pages: u64, level: Level) -> bool {
        self.dirtied += pages;
        let dirtier = self.tasks.entry(task).or_insert(Dirtier {
            dirtied: 0,
            looks_at: 32,
        });
        dirtier.dirtied += pages;
        let looks_at = match level.dirty > level.limit {
            true => dirtier.looks_at.min(8),
            false => dirtier.looks_at,
        };
        if dirtier.dirtied < looks_at {
            return false;
        }
        let dirtier = *dirtier;
        self.update(now, level);
        let pause_ns_max = self.pause_ns_max(level);
        let next = if level.dirty <= level.free_run() {
            (0, poll_interval(level))
        } else {
            let rate = self.limit * level.control() / ONE as u64;
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
        if pause_ns > 0 {
            self.sleeping.insert((now + pause_ns, task));
        }
        pause_ns > 0
    }

    /// A sleeper whose time is over. While the limit is exceeded, each sleeps on.
    pub(super) fn due(&mut self, now: Time, level: Level) -> Option<TaskId> {
        while let Some(&(at, task)) = self.sleeping.first()
            && at <= now
        {
            self.sleeping.pop_first();
            if level.dirty < level.limit {
                return Some(task);
            }
            self.update(now, level);
            self.sleeping.insert((now + PAUSE_NS_MAX, task));
        }
        None
    }

    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.sleeping.first().map(|&(at, _)| at)
    }

    /// A sleep is longer the more writers there are, and no longer than an eighth of the time that what is dirty lasts.
    fn pause_ns_max(&self, level: Level) -> Time {
        let (high, low) = (self.average_write_rate.max(1), self.limit.max(1));
        let more = u64::from(high.ilog2().saturating_sub(low.ilog2()));
        let wanted = 20 * MILLISECOND + more * 20 * SECOND / 1024;
        let lasts = level.dirty * SECOND / (8 * self.average_write_rate + 1);
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

    /// Five times a second: what the device has written, and with it what a writer may dirty.
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
        self.update_dirty_rate(rate_of(self.dirtied - dirtied), level);
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

    /// Towards the rate at which all writers together dirty as much as is written, in steps that get smaller near it.
    fn update_dirty_rate(&mut self, dirtied: u64, level: Level) {
        let task_limit = self.limit * level.control() / ONE as u64 + 1;
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

/// The nearer to the limit, the sooner a writer looks again.
fn poll_interval(level: Level) -> u64 {
    match level.limit.checked_sub(level.dirty) {
        Some(left) if left > 0 => 1 << (left.ilog2() / 2),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(dirty: u64) -> Level {
        Level {
            dirty,
            background: 10_000,
            limit: 20_000,
        }
    }

    #[test]
    fn the_control_is_1_at_the_set_point_and_0_at_the_limit() {
        // Free run at 15,000, set point at 17,500.
        assert_eq!(level(17_500).control(), 1024);
        assert_eq!(level(20_000).control(), 0);
        assert!(level(19_000).control() < 1024 && level(16_000).control() > 1024);
        assert!((2_040..=2_048).contains(&level(15_000).control()));
    }

    #[test]
    fn nobody_sleeps_below_the_middle_of_both_thresholds() {
        let mut rate = DirtyRate::new();
        assert!(!rate.holds(0, 1, 1_000, level(15_000)));
        assert!(rate.holds(0, 1, 10_000, level(19_900)));
        assert_eq!(rate.due(SECOND, level(19_000)), Some(1));
    }

    #[test]
    fn writers_together_come_to_dirty_what_is_written() {
        // A device of 5,000 pages a second and four writers that dirty 64 pages at a time as fast as they may.
        let (mut rate, mut now, mut dirty) = (DirtyRate::new(), 0, 0u64);
        let mut awake = vec![0, 1, 2, 3];
        let mut dirtied = [0u64; 4];
        while now < 60 * SECOND {
            for task in std::mem::take(&mut awake) {
                // A page takes 2 us to dirty; whoever is not held goes on at once.
                for _ in 0..64 {
                    dirty += 64;
                    if now > 30 * SECOND {
                        dirtied[task as usize] += 64;
                    }
                    if rate.holds(now, task, 64, level(dirty)) {
                        break;
                    }
                }
                if !rate.sleeping.iter().any(|&(_, sleeper)| sleeper == task) {
                    awake.push(task);
                }
            }
            now += 10 * MILLISECOND;
            let written = dirty.min(50);
            dirty -= written;
            rate.written(written);
            while let Some(task) = rate.due(now, level(dirty)) {
                awake.push(task);
            }
        }
        let total: u64 = dirtied.iter().sum();
        assert!((140_000..160_000).contains(&total), "{total}");
        assert!((15_000..20_500).contains(&dirty), "{dirty}");
        let (least, most) = (dirtied.iter().min().unwrap(), dirtied.iter().max().unwrap());
        assert!(most * 10 < least * 15, "{dirtied:?}");
    }
}
