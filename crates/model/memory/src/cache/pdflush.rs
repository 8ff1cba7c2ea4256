//! pdflush: threads that write back on whatever drive has something to write (2.5 to 2.6.31).
//!
//! In rounds of 1024 pages, each walks over the filesystems from the one that was mounted last on, here over the drives. It
//! leaves out a drive whose queue is congested, also half-way through an inode, and one where another of them is at work. After
//! a round in which it was congestion that kept it from writing, it sleeps until any queue has room, at most 100 ms.
//!
//! Sources: `mm/pdflush.c` of 2.6.20; of 2.6.18 `mm/page-writeback.c` (`background_writeout`, `wb_kupdate`) and
//! `fs/fs-writeback.c` (`writeback_inodes`, `sync_sb_inodes`).

use crate::cache::Effect;
use crate::cache::device::{DeviceId, task_of};
use crate::cache::flushers::{FLUSHER, Flusher, Purpose};
use crate::cache::page_cache::PageCache;
use crate::cache::spec::CONGESTION_WAIT;
use block_layer::{Direction, TaskId};
use events::time::{SECOND, Time};

/// The threads.
#[derive(Clone, Debug)]
pub(super) struct Pdflush {
    threads: [Thread; THREADS_MAX],
    /// When the last that slept was given work.
    ran_out_at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Absent,
    /// Since then.
    Asleep(Time),
    AtWork,
}

/// `MIN_PDFLUSH_THREADS`, `MAX_PDFLUSH_THREADS`.
const THREADS_MIN: usize = 2;
pub(super) const THREADS_MAX: usize = 8;
/// With none asleep for this time there is one more, with one asleep for this time one less.
const PATIENCE: Time = SECOND;
/// With none asleep, `wb_timer_fn` tries again after it; old data that takes longer than the interval leaves as much.
const RETRY: Time = SECOND;

/// How far a thread is in its round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// Drives that it has not done with, from the first one on.
    drives: usize,
    found_congestion: bool,
}

impl Walk {
    fn over(drives: usize) -> Walk {
        Walk {
            drives,
            found_congestion: false,
        }
    }
}

impl Default for Pdflush {
    fn default() -> Pdflush {
        let mut threads = [Thread::Absent; THREADS_MAX];
        threads[..THREADS_MIN].fill(Thread::Asleep(0));
        Pdflush {
            threads,
            ran_out_at: 0,
        }
    }
}

impl Pdflush {
    /// Gives work to the one that has gone to sleep last (`pdflush_operation`).
    fn take(&mut self, now: Time) -> Option<TaskId> {
        let asleep = self.asleep().rev().max_by_key(|&(_, since)| since);
        let (number, _) = asleep?;
        self.threads[number] = Thread::AtWork;
        if self.asleep().next().is_none() {
            self.ran_out_at = now;
        }
        Some(task_of(FLUSHER, number))
    }

    /// It has done its work (the end of the loop of `__pdflush`).
    fn finished(&mut self, now: Time, task: TaskId) {
        let of_task = |number: &usize| task_of(FLUSHER, *number) == task;
        let number = (0..THREADS_MAX).find(of_task).expect("one of them");
        let longest_asleep = self.asleep().min_by_key(|&(_, since)| since);
        let count = self
            .threads
            .iter()
            .filter(|&&thread| thread != Thread::Absent);
        let count = count.count();
        self.threads[number] = Thread::Asleep(now);
        match longest_asleep {
            None if now > self.ran_out_at + PATIENCE => {
                let absent = self.threads.iter_mut().find(|one| **one == Thread::Absent);
                if let Some(absent) = absent {
                    *absent = Thread::Asleep(now);
                }
            }
            Some((sleepiest, since)) if count > THREADS_MIN && now > since + PATIENCE => {
                self.threads[sleepiest] = Thread::Asleep(now);
                self.threads[number] = Thread::Absent;
            }
            _ => {}
        }
    }

    fn asleep(&self) -> impl DoubleEndedIterator<Item = (usize, Time)> {
        let threads = self.threads.iter().enumerate();
        threads.filter_map(|(number, thread)| match thread {
            Thread::Asleep(since) => Some((number, *since)),
            _ => None,
        })
    }
}

impl PageCache {
    /// Someone finds too much dirty who writes to the drive: work for one more, unless one is at work there already.
    pub(super) fn start_pdflush(&mut self, device: DeviceId) {
        if !self.has_pdflush(device) {
            self.give_pdflush(Purpose::Background);
        }
    }

    /// It is time to look for old data (`wb_timer_fn`, `wb_kupdate`). When to do so again.
    pub(super) fn pdflush_old_data(&mut self, before: Time) -> Time {
        let is_under_way = self
            .pdflush_at_work()
            .any(|flusher| flusher.purpose != Purpose::Background);
        if !is_under_way && self.give_pdflush(Purpose::OldData(before)) {
            self.now + self.rules.interval
        } else {
            self.now + RETRY
        }
    }

    /// One step of its round.
    pub(super) fn step_pdflush(&mut self, mut flusher: Flusher) {
        if std::mem::take(&mut flusher.has_waited) && !self.starts_round(&mut flusher) {
            return self.end_pdflush(flusher);
        }
        let mut left = self.rules.step.min(flusher.turn);
        while left > 0 {
            if !self.walks_to_drive(&mut flusher) {
                return self.end_round(flusher);
            }
            let most = left.min(self.rules.io_pages_max);
            if let Some((file, page, pages)) = self.next_of_inodes(&mut flusher, most) {
                self.submit_write(flusher.task, file, page, pages, false);
                flusher.turn -= pages;
                left -= pages;
            }
        }
        if flusher.turn == 0 {
            self.return_inode(&mut flusher);
            if !self.starts_round(&mut flusher) {
                return self.end_pdflush(flusher);
            }
        }
        self.flushers.running.push_back(flusher);
    }

    /// Whether one of them writes something of the drive now (`writeback_in_progress`).
    fn has_pdflush(&self, device: DeviceId) -> bool {
        let is_there = |flusher: &Flusher| flusher.of == device && flusher.inode.is_some();
        self.pdflush_at_work().any(is_there)
    }

    fn pdflush_at_work(&self) -> impl Iterator<Item = &Flusher> {
        let paused = self.flushers.paused.iter().map(|(_, flusher)| flusher);
        let all = self.flushers.running.iter().chain(paused);
        all.filter(|flusher| flusher.walk.is_some())
    }

    /// `pdflush_operation`. False: there is none that could do it.
    fn give_pdflush(&mut self, purpose: Purpose) -> bool {
        let Some(task) = self.flushers.pdflush.take(self.now) else {
            return false;
        };
        let drives = self.devices.len();
        let flusher = self
            .flushers
            .start(purpose, task, 0, u64::MAX, self.rules.turn);
        flusher.walk = Some(Walk::over(drives));
        true
    }

    /// `background_writeout`. False: enough has been written.
    fn starts_round(&mut self, flusher: &mut Flusher) -> bool {
        let goes_on = flusher.purpose != Purpose::Background || self.goes_on(flusher.of);
        flusher.turn = self.rules.turn;
        flusher.walk = Some(Walk::over(self.devices.len()));
        goes_on
    }

    /// To where there is something for it to write (`writeback_inodes`); it may be there. False: the round has come to its
    /// end.
    fn walks_to_drive(&mut self, flusher: &mut Flusher) -> bool {
        let mut walk = flusher.walk.expect("it walks");
        while walk.drives > 0 {
            let device = walk.drives - 1;
            let on_drive = &self.devices[device];
            let is_congested = on_drive.congested[Direction::Write as usize];
            // Seen before whether another has the inode, or whether it is of age.
            walk.found_congestion |= is_congested && on_drive.dirty > 0;
            let has_work = flusher.inode.is_some() || self.has_inode_for(flusher.purpose, device);
            let is_free = flusher.inode.is_some() || !self.has_pdflush(device);
            if has_work && !is_congested && is_free {
                flusher.of = device;
                flusher.walk = Some(walk);
                return true;
            }
            self.return_inode(flusher);
            walk.drives -= 1;
        }
        flusher.walk = Some(walk);
        false
    }

    /// It could write less than a round's pages.
    fn end_round(&mut self, flusher: Flusher) {
        if flusher.walk.is_some_and(|walk| walk.found_congestion) {
            self.effects.push(Effect::Unplug);
            self.flushers.pause(self.now + CONGESTION_WAIT, flusher);
        } else {
            self.end_pdflush(flusher);
        }
    }

    fn end_pdflush(&mut self, flusher: Flusher) {
        self.effects.push(Effect::Unplug);
        self.flushers.pdflush.finished(self.now, flusher.task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::time::MILLISECOND;

    fn count(pdflush: &Pdflush) -> usize {
        let threads = pdflush.threads.iter();
        threads.filter(|&&thread| thread != Thread::Absent).count()
    }

    #[test]
    fn there_are_two_and_one_more_after_each_second_without_one_asleep() {
        let mut pdflush = Pdflush::default();
        let first = pdflush.take(0).unwrap();
        let second = pdflush.take(0).unwrap();
        assert!(first != second && pdflush.take(0).is_none());
        // Not a second yet.
        pdflush.finished(SECOND, first);
        assert_eq!(count(&pdflush), 2);
        pdflush.take(SECOND).unwrap();
        pdflush.finished(2 * SECOND + 1, second);
        assert_eq!(count(&pdflush), 3);
    }

    #[test]
    fn there_are_never_more_than_eight_and_idle_ones_go_down_to_two() {
        let mut pdflush = Pdflush::default();
        let mut now = 0;
        for _ in 0..20 {
            let mut last = None;
            while let Some(task) = pdflush.take(now) {
                last = Some(task);
            }
            now += 2 * SECOND;
            pdflush.finished(now, last.unwrap());
        }
        assert_eq!(count(&pdflush), THREADS_MAX);
        for number in 0..THREADS_MAX {
            if pdflush.threads[number] == Thread::AtWork {
                pdflush.finished(now, task_of(FLUSHER, number));
            }
        }
        for _ in 0..20 {
            now += 2 * SECOND;
            let task = pdflush.take(now).unwrap();
            pdflush.finished(now + MILLISECOND, task);
        }
        assert_eq!(count(&pdflush), THREADS_MIN);
    }
}
