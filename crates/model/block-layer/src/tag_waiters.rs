//! Who waits for a tag of blk-mq: tasks sleep on several wait queues in turn, and are woken in batches. Whoever is woken
//! tries again, beside all others: no tag is kept for anybody.
//!
//! Sources: `lib/percpu_ida.c` of 3.13; `block/blk-mq-tag.c` of 3.18, 4.9, 4.14 and 5.x (`bt_get`, `blk_mq_get_tag`);
//! `lib/sbitmap.c` of 4.9, 5.2 and 6.x (`sbq_calc_wake_batch`, `sbq_wake_up`, `__sbitmap_queue_wake_up`). The versions in
//! which one followed the other are 3.16, and, inferred, 4.18 and 6.2.

use std::collections::VecDeque;

use crate::TaskId;
use crate::tag_bits::WAIT_QUEUES;
use kernels::hardware_queue::TagWakeRule;

const QUEUES: usize = WAIT_QUEUES as usize;

#[derive(Clone, Debug)]
pub(super) struct TagWaiters {
    waking: TagWakeRule,
    /// This many tags have to be freed before a task is woken.
    batch: u32,
    /// Freed since the last batch, while a task waited. Kernels until 6.1 count for each wait queue by itself; the one
    /// whose turn it is stays in use until its batch is complete, so that one count is the same.
    freed: u32,
    queues: [VecDeque<TaskId>; QUEUES],
    /// Who is next to sleep does so there (`wait_index`).
    sleeps_on: usize,
    /// Whose turn to be woken it is (`wake_index`).
    wakes_from: usize,
}

impl TagWaiters {
    /// Nobody waits. `batch`: of free tags for which a task is woken (`wake_batch`).
    pub(super) fn new(waking: TagWakeRule, batch: u32) -> TagWaiters {
        let batch = match waking {
            TagWakeRule::All => 1,
            _ => batch,
        };
        TagWaiters { waking, batch, freed: 0, queues: Default::default(), sleeps_on: 0, wakes_from: 0 }
    }

    /// How often the task is among those that wait: a ring's workers wait by its number.
    pub(super) fn count(&self, task: TaskId) -> usize {
        let waiting = self.queues.iter().flatten();
        waiting.filter(|&&waiting| waiting == task).count()
    }

    /// The task sleeps until it is woken. One that was woken in vain has lost its place.
    pub(super) fn sleeps(&mut self, task: TaskId) {
        self.queues[self.sleeps_on].push_back(task);
        if self.waking != TagWakeRule::All {
            self.sleeps_on = (self.sleeps_on + 1) % QUEUES;
        }
    }

    /// Who is woken chooses the next wait queue before it looks for a tag (`bt_wait_ptr` in `blk_mq_get_tag`), and has
    /// found one: the next to sleep does so one queue further on.
    pub(super) fn has_looked_again(&mut self) {
        if self.waking != TagWakeRule::All {
            self.sleeps_on = (self.sleeps_on + 1) % QUEUES;
        }
    }

    /// A tag is free: appends who is woken.
    pub(super) fn freed(&mut self, woken: &mut Vec<TaskId>) {
        if self.queues.iter().all(VecDeque::is_empty) {
            return;
        }
        self.freed += 1;
        if self.freed < self.batch {
            return;
        }
        self.freed -= self.batch;
        let mut left = self.batch as usize;
        for _ in 0..QUEUES {
            let queue = &mut self.queues[self.wakes_from];
            self.wakes_from = (self.wakes_from + 1) % QUEUES;
            if queue.is_empty() {
                continue;
            }
            match self.waking {
                TagWakeRule::All | TagWakeRule::AllOfOne => {
                    return woken.extend(queue.drain(..).rev());
                }
                TagWakeRule::BatchOfOne => {
                    return woken.extend(queue.drain(..left.min(queue.len())));
                }
                TagWakeRule::Batch => {
                    let count = left.min(queue.len());
                    woken.extend(queue.drain(..count));
                    left -= count;
                    if left == 0 {
                        return;
                    }
                }
            }
        }
    }

    /// The task waits no more.
    pub(super) fn leaves(&mut self, task: TaskId) {
        for queue in &mut self.queues {
            queue.retain(|&waiting| waiting != task);
        }
    }

    /// Who is woken next, one alone.
    pub(super) fn next(&mut self) -> Option<TaskId> {
        (0..QUEUES).find_map(|_| {
            let next = self.queues[self.wakes_from].pop_front();
            self.wakes_from = (self.wakes_from + 1) % QUEUES;
            next
        })
    }

    /// Appends everybody, who is woken.
    pub(super) fn wake_all(&mut self, woken: &mut Vec<TaskId>) {
        for queue in &mut self.queues {
            woken.extend(queue.drain(..));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag_bits::TagCounts;
    use kernels::hardware_queue::TagLimit;

    fn batch_of(tags: u32) -> u32 {
        TagCounts::of(tags, TagLimit::OfWord).wake_batch(u32::MAX)
    }

    /// Tasks 1 to 20 wait for one of 16 tags; who is woken for each of the first tags that are freed.
    fn woken_of_twenty(waking: TagWakeRule, fewest: u32, freed: usize) -> Vec<Vec<TaskId>> {
        let mut waiters = TagWaiters::new(waking, batch_of(fewest));
        (1..=20).for_each(|task| waiters.sleeps(task));
        let mut one = || {
            let mut woken = Vec::new();
            waiters.freed(&mut woken);
            woken
        };
        (0..freed).map(|_| one()).collect()
    }

    #[test]
    fn each_kernel_wakes_as_its_source_says() {
        // Eight wait queues in turn: 1, 9 and 17 sleep on the first, 2, 10 and 18 on the second.
        let woken = |waking| woken_of_twenty(waking, 16, 4);
        let none = Vec::new();
        assert_eq!(woken(TagWakeRule::AllOfOne), [none.clone(), vec![17, 9, 1], none.clone(), vec![18, 10, 2]]);
        assert_eq!(woken(TagWakeRule::BatchOfOne), [none.clone(), vec![1, 9], none.clone(), vec![2, 10]]);
        let all = woken(TagWakeRule::All);
        assert_eq!(all[0], (1..=20).rev().collect::<Vec<TaskId>>());
    }

    #[test]
    fn from_6_2_on_a_batch_is_woken_though_one_wait_queue_has_fewer() {
        let wakes = |waking| {
            let mut waiters = TagWaiters::new(waking, batch_of(64));
            (1..=10).for_each(|task| waiters.sleeps(task));
            let mut woken = Vec::new();
            (0..8).for_each(|_| waiters.freed(&mut woken));
            woken
        };
        assert_eq!(wakes(TagWakeRule::BatchOfOne), [1, 9]);
        assert_eq!(wakes(TagWakeRule::Batch), [1, 9, 2, 10, 3, 4, 5, 6]);
    }

    #[test]
    fn a_batch_is_an_eighth_of_the_tags_and_eight_at_most() {
        let first_woken = |fewest| {
            let woken = woken_of_twenty(TagWakeRule::Batch, fewest, 20);
            woken.iter().position(|woken| !woken.is_empty())
        };
        let tags = [1, 8, 16, 32, 64, 1024];
        assert_eq!(tags.map(first_woken), [0, 0, 1, 3, 7, 7].map(Some));
    }

    #[test]
    fn who_was_woken_in_vain_sleeps_on_the_next_wait_queue_behind_others() {
        let mut waiters = TagWaiters::new(TagWakeRule::Batch, batch_of(8));
        (1..=9).for_each(|task| waiters.sleeps(task));
        let mut woken = Vec::new();
        waiters.freed(&mut woken);
        waiters.sleeps(1);
        (0..9).for_each(|_| waiters.freed(&mut woken));
        assert_eq!(woken, [1, 2, 3, 4, 5, 6, 7, 8, 9, 1]);
    }

    #[test]
    fn a_wait_that_ends_well_takes_two_places() {
        let mut waiters = TagWaiters::new(TagWakeRule::Batch, batch_of(8));
        let mut woken = Vec::new();
        waiters.sleeps(1);
        waiters.freed(&mut woken);
        waiters.has_looked_again();
        waiters.sleeps(2);
        assert!(waiters.queues[2].contains(&2), "1 slept on the first");
    }

    #[test]
    fn tags_that_are_freed_while_nobody_waits_do_not_count() {
        let mut waiters = TagWaiters::new(TagWakeRule::Batch, batch_of(16));
        let mut woken = Vec::new();
        waiters.freed(&mut woken);
        waiters.sleeps(1);
        waiters.freed(&mut woken);
        assert!(woken.is_empty());
        waiters.freed(&mut woken);
        assert_eq!(woken, [1]);
    }
}
