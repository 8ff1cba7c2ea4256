//! The threads of pdflush: how many there are, and which of them is given work.
//!
//! Source: `mm/pdflush.c` of 2.6.20.

use crate::cache::device::{FLUSHER, task_of};
use block_layer::TaskId;
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

impl Default for Pdflush {
    fn default() -> Pdflush {
        let mut threads = [Thread::Absent; THREADS_MAX];
        threads[..THREADS_MIN].fill(Thread::Asleep(0));
        Pdflush { threads, ran_out_at: 0 }
    }
}

impl Pdflush {
    /// Gives work to the one that has gone to sleep last (`pdflush_operation`).
    pub(super) fn take(&mut self, now: Time) -> Option<TaskId> {
        let asleep = self.asleep().rev().max_by_key(|&(_, since)| since);
        let (number, _) = asleep?;
        self.threads[number] = Thread::AtWork;
        if self.asleep().next().is_none() {
            self.ran_out_at = now;
        }
        Some(task_of(FLUSHER, number))
    }

    /// It has done its work (the end of the loop of `__pdflush`).
    pub(super) fn finished(&mut self, now: Time, task: TaskId) {
        let of_task = |number: &usize| task_of(FLUSHER, *number) == task;
        let number = (0..THREADS_MAX).find(of_task).expect("one of them");
        let longest_asleep = self.asleep().min_by_key(|&(_, since)| since);
        let count = self.threads.iter().filter(|&&thread| thread != Thread::Absent);
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
