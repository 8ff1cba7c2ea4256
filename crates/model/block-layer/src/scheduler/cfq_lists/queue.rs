//! A queue of the first CFQ with slices, and the lists in which queues wait.

use std::collections::VecDeque;

use crate::scheduler::task_queues::QueueId;
use crate::{IoClass, Priority, RequestId};

/// Levels of the best-effort class.
pub(super) const LEVELS: usize = 8;

/// A task's requests, or everybody's async ones of a priority.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// A task's own queue, whose first request the task waited for.
    pub(super) is_tasks: bool,
    pub(super) priority: Priority,
    pub(super) queued: u32,
    /// Async and sync requests on the dispatch list or at the device.
    pub(super) dispatched: [u32; 2],
    pub(super) next: Option<RequestId>,
    /// None: nothing is queued.
    pub(super) list: Option<List>,
    /// None: nothing of the slice was dispatched yet.
    pub(super) slice_end: Option<u64>,
    /// When it was last done with what it had at the device; 0: never.
    pub(super) served_at: u64,
    pub(super) idle_window: bool,
    pub(super) waits_for_request: bool,
    /// Its slice does not end before it has dispatched once more.
    pub(super) must_dispatch: bool,
    pub(super) has_exceeded_pool: bool,
    /// It has served one in this slice that had waited too long.
    pub(super) has_served_expired: bool,
    pub(super) has_task: bool,
    pub(super) is_free: bool,
}

impl Queue {
    pub(super) fn new(is_tasks: bool, priority: Priority) -> Queue {
        Queue {
            is_tasks,
            priority,
            queued: 0,
            dispatched: [0; 2],
            next: None,
            list: None,
            slice_end: None,
            served_at: 0,
            idle_window: priority.class != IoClass::Idle,
            waits_for_request: false,
            must_dispatch: false,
            has_exceeded_pool: false,
            has_served_expired: false,
            has_task: true,
            is_free: false,
        }
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.dispatched != [0; 2]
    }

    /// It has the slice of sync queues: a task's own queue, or one with sync requests in flight.
    pub(super) fn is_sync(&self) -> bool {
        self.is_tasks || self.dispatched[1] > 0
    }

    pub(super) fn slice_is_over(&self, jiffies: u64) -> bool {
        !self.must_dispatch && jiffies > self.slice_end.unwrap_or(0)
    }

    /// Its task is gone, and nothing is left of its requests.
    pub(super) fn is_over(&self) -> bool {
        !self.has_task && !self.is_free && self.queued == 0 && !self.is_in_flight()
    }
}

/// Where a queue with requests waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// For its level's turn.
    Level(u8),
    /// Until what it has at the device is done.
    InFlight,
    /// Its turn is now.
    Current,
    /// The idle class, until nobody else wants the device.
    Idle,
}

/// All lists, and whose turn it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    levels: [VecDeque<QueueId>; LEVELS],
    in_flight: VecDeque<QueueId>,
    current: VecDeque<QueueId>,
    idle: VecDeque<QueueId>,
    /// The next level, and the last one of this sweep over the levels.
    level: usize,
    last_level: usize,
}

impl Lists {
    pub(super) fn of(&mut self, list: List) -> &mut VecDeque<QueueId> {
        match list {
            List::Level(level) => &mut self.levels[usize::from(level)],
            List::InFlight => &mut self.in_flight,
            List::Current => &mut self.current,
            List::Idle => &mut self.idle,
        }
    }

    pub(super) fn remove(&mut self, list: List, id: QueueId) {
        self.of(list).retain(|&other| other != id);
    }

    /// The first whose turn it is; None: of those that may have one now, none has requests. `moved` gets the queues of a
    /// level whose turn has come.
    pub(super) fn next(&mut self, moved: &mut Vec<QueueId>) -> Option<QueueId> {
        if self.current.is_empty() {
            self.turn(moved);
        }
        self.current.front().copied()
    }

    pub(super) fn first_in_flight(&self) -> Option<QueueId> {
        self.in_flight.front().copied()
    }

    pub(super) fn first_idle(&self) -> Option<QueueId> {
        self.idle.front().copied()
    }

    pub(super) fn current(&self) -> impl Iterator<Item = QueueId> + '_ {
        self.current.iter().copied()
    }

    /// Levels have their turns in sweeps that each go one further (`cfq_get_next_prio_level`): 0, then 0 and 1, then 0 to
    /// 2, up to all eight.
    fn turn(&mut self, moved: &mut Vec<QueueId>) {
        let mut has_wrapped = false;
        let level = loop {
            let sweep = self.level..=self.last_level;
            let found = sweep.into_iter().find(|&at| !self.levels[at].is_empty());
            if let Some(found) = found {
                break found;
            }
            self.level = 0;
            self.last_level += 1;
            if self.last_level == LEVELS {
                self.last_level = 0;
                if has_wrapped {
                    return;
                }
                has_wrapped = true;
            }
        };
        moved.extend(self.levels[level].iter().copied());
        self.current = std::mem::take(&mut self.levels[level]);
        self.level = level + 1;
        if self.level > self.last_level {
            self.last_level = self.level;
            self.level = 0;
        }
        if self.last_level == LEVELS {
            (self.level, self.last_level) = (0, 0);
        }
    }
}
