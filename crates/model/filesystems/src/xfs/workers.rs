//! The allocation workqueue: per CPU, work in line and workers of which one runs at a time (`kernel/workqueue.c` of 3.4:
//! bound, and another worker starts when the one that runs goes to sleep).

use std::collections::VecDeque;

use super::volume::Request;
use crate::actor::Caller;
use events::smp::TaskNumber;

/// `I`: what a worker is to do.
#[derive(Clone, Debug)]
pub(super) struct Workers<I> {
    pools: Vec<Pool<I>>,
    workers: Vec<Worker<I>>,
    active_max: u32,
}

#[derive(Clone, Debug)]
struct Pool<I> {
    waiting: VecDeque<I>,
    idle: Vec<u32>,
    running: u32,
    /// Items that are begun and not done, of sleeping workers too.
    active: u32,
    made: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Worker<I> {
    pub(super) cpu: u16,
    pub(super) task: TaskNumber,
    pub(super) item: Option<I>,
}

/// What a worker is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) caller: Caller,
    pub(super) job: Job,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Job {
    /// One call of the allocator. The group whose header is locked; None: none had room.
    Call { request: Request, group: Option<u32> },
    /// A flusher's mapping, with all its calls (`xfs_bmapi_allocate`).
    Mapping,
}

impl<I: Copy> Workers<I> {
    /// `active_max`: items of a CPU that are active at once (`max_active`).
    pub(super) fn new(cpus: u16, active_max: u32) -> Workers<I> {
        let pool = Pool { waiting: VecDeque::new(), idle: Vec::new(), running: 0, active: 0, made: 0 };
        Workers { pools: vec![pool; usize::from(cpus)], workers: Vec::new(), active_max }
    }

    /// In line there.
    pub(super) fn put(&mut self, cpu: u16, item: I) {
        self.pools[usize::from(cpu)].waiting.push_back(item);
    }

    /// A worker that is to begin there: work waits, and none of the CPU's workers runs, nor do too many sleep. `make` makes another one's task.
    pub(super) fn start(&mut self, cpu: u16, make: impl FnOnce(u32) -> TaskNumber) -> Option<u32> {
        let pool = &mut self.pools[usize::from(cpu)];
        if pool.running > 0 || pool.active >= self.active_max {
            return None;
        }
        let item = pool.waiting.pop_front()?;
        let number = pool.idle.pop().unwrap_or_else(|| {
            let of_cpu = pool.made;
            pool.made += 1;
            self.workers.push(Worker { cpu, task: make(of_cpu), item: None });
            self.workers.len() as u32 - 1
        });
        pool.running += 1;
        pool.active += 1;
        self.workers[number as usize].item = Some(item);
        Some(number)
    }

    /// It goes to sleep in the middle of its work, or continues.
    pub(super) fn blocks(&mut self, number: u32) {
        self.pool(number).running -= 1;
    }

    pub(super) fn goes_on(&mut self, number: u32) {
        self.pool(number).running += 1;
    }

    /// Its work is done; Some: it has the next.
    pub(super) fn finish(&mut self, number: u32) -> Option<I> {
        let pool = self.pool(number);
        let next = pool.waiting.pop_front();
        if next.is_none() {
            pool.running -= 1;
            pool.active -= 1;
            pool.idle.push(number);
        }
        self.workers[number as usize].item = next;
        next
    }

    pub(super) fn set_item(&mut self, number: u32, item: I) {
        self.workers[number as usize].item = Some(item);
    }

    pub(super) fn worker(&self, number: u32) -> &Worker<I> {
        &self.workers[number as usize]
    }

    fn pool(&mut self, number: u32) -> &mut Pool<I> {
        let cpu = self.workers[number as usize].cpu;
        &mut self.pools[usize::from(cpu)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_runs_at_a_time_and_another_begins_when_it_sleeps() {
        let mut workers: Workers<char> = Workers::new(2, 3);
        ['a', 'b', 'c'].into_iter().for_each(|item| workers.put(1, item));
        assert_eq!(workers.start(0, |_| 7), None, "nothing to do there");
        let first = workers.start(1, |_| 7).unwrap();
        assert_eq!(workers.start(1, |_| 8), None);
        workers.blocks(first);
        let second = workers.start(1, |of_cpu| 7 + of_cpu).unwrap();
        assert_eq!((workers.worker(second).task, workers.worker(second).item), (8, Some('b')));
        workers.goes_on(first);
        assert_eq!(workers.finish(first), Some('c'));
        assert_eq!(workers.finish(first), None);
        assert_eq!(workers.finish(second), None);
        let mut few: Workers<char> = Workers::new(1, 1);
        ['a', 'b'].into_iter().for_each(|item| few.put(0, item));
        let only = few.start(0, |_| 7).unwrap();
        few.blocks(only);
        assert_eq!(few.start(0, |_| 8), None, "one is the most");
        few.goes_on(only);
        assert_eq!(few.finish(only), Some('b'));
        workers.put(1, 'd');
        assert!(workers.start(1, |_| unreachable!("two are idle")).is_some());
    }
}
