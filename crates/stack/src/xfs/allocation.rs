//! Calls of the allocator: who runs it, and which group's free-space header it has to lock first.

use super::locks::LockName;
use super::site::Site;
use super::switches::Comm;
use super::thread::Stage;
use super::volume::Request;
use super::{Actor, Mounted, Timer, bound};
use crate::smp::Work;

/// What a worker is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) thread: u32,
    request: Request,
    /// The group whose header is locked; None: none had room.
    group: Option<u32>,
}

/// How the header of a group that has room could be locked.
pub(super) enum Space {
    Locked(u32),
    /// Asleep until that group's is handed over.
    Awaited(u32),
    Nowhere,
}

impl Mounted {
    /// A thread calls the allocator; what it does next for that.
    pub(super) fn calls_allocator(&mut self, thread: u32, request: Request) -> Stage {
        self.allocator_calls += 1;
        self.threads[thread as usize].transaction.answer = None;
        Stage::HandsOver(request)
    }

    pub(super) fn is_deferred(&self) -> bool {
        self.allocation.defers_metadata()
    }

    /// Puts a thread's request in line on the CPU where it runs.
    pub(super) fn hand_over(&mut self, thread: u32, request: Request, cpu: u16) {
        let group = None;
        self.workers.put(
            cpu,
            Item {
                thread,
                request,
                group,
            },
        );
        self.start_worker(cpu, cpu);
    }

    /// `try_take` of the first group that has room, as the passes of `__xfs_alloc_vextent` do: without waiting first, then
    /// in the order of groups only, which keeps two transactions from waiting for each other.
    pub(super) fn lock_space(&mut self, thread: u32, request: &Request, waiter: Actor) -> Space {
        if !request.elsewhere {
            if !self.volume.may_fit(request.group, request) {
                return Space::Nowhere;
            }
            return self.wait_for_space(thread, request.group, waiter);
        }
        for group in self.volume.around(request.group) {
            if self.volume.may_fit(group, request)
                && self.locks.try_take(LockName::Space(group), thread)
            {
                self.keep_space(thread, group);
                return Space::Locked(group);
            }
        }
        let highest = self.threads[thread as usize]
            .transaction
            .spaces
            .iter()
            .max()
            .copied();
        let found = self.volume.around(request.group).find(|&group| {
            highest.is_none_or(|held| group > held) && self.volume.may_fit(group, request)
        });
        match found {
            Some(group) => self.wait_for_space(thread, group, waiter),
            None => Space::Nowhere,
        }
    }

    /// The transaction has it to its end.
    pub(super) fn keep_space(&mut self, thread: u32, group: u32) {
        let spaces = &mut self.threads[thread as usize].transaction.spaces;
        if !spaces.contains(&group) {
            spaces.push(group);
        }
    }

    /// With the header locked, and its time spent.
    pub(super) fn allocate(&mut self, thread: u32, request: &Request, group: u32) {
        let block = self.volume.allocate(group, request);
        self.threads[thread as usize].transaction.answer = block.map(|block| (group, block));
    }

    /// A worker has done what it was given.
    pub(super) fn allocated(&mut self, worker: u32, cpu: u16) {
        let Item {
            thread,
            request,
            group,
        } = self.item(worker);
        if let Some(group) = group {
            self.allocate(thread, &request, group);
        }
        match self.volume.spec().call_stall_ns {
            0 => self.go_on(thread, Some(cpu)),
            stall_ns => self
                .agenda
                .put(self.now + stall_ns, Timer::Answered(thread)),
        }
        let task = self.workers.worker(worker).task;
        self.scheduling.sleeps_in(task, Site::WorkerIdle);
        if self.workers.finish(worker).is_some() {
            self.begin_item(worker, cpu);
        }
    }

    /// A worker that waited for a free-space header has it.
    pub(super) fn worker_got_space(&mut self, worker: u32, by: Option<u16>) {
        self.workers.goes_on(worker);
        let Item { thread, group, .. } = self.item(worker);
        self.keep_space(thread, group.expect("it waited for one"));
        self.work_off(worker, by);
    }

    /// `by`: the CPU that does so.
    fn start_worker(&mut self, cpu: u16, by: u16) {
        let (smp, scheduling) = (&mut self.smp, &mut self.scheduling);
        let started = self.workers.start(cpu, |of_cpu| {
            scheduling.add(Comm::kworker(cpu, of_cpu + 1), Site::WorkerIdle);
            smp.add_task(bound(smp.cpus(), cpu))
        });
        if let Some(worker) = started {
            self.begin_item(worker, by);
        }
    }

    fn begin_item(&mut self, worker: u32, by: u16) {
        let Item {
            thread, request, ..
        } = self.item(worker);
        match self.lock_space(thread, &request, Actor::Worker(worker)) {
            Space::Locked(group) => {
                self.workers.set_item(
                    worker,
                    Item {
                        thread,
                        request,
                        group: Some(group),
                    },
                );
                self.work_off(worker, Some(by));
            }
            Space::Nowhere => self.work_off(worker, Some(by)),
            Space::Awaited(group) => {
                self.workers.set_item(
                    worker,
                    Item {
                        thread,
                        request,
                        group: Some(group),
                    },
                );
                let state = self.workers.worker(worker);
                let (task, cpu) = (state.task, state.cpu);
                self.scheduling.sleeps_in(task, Site::WorkerSpaceLock);
                self.workers.blocks(worker);
                self.start_worker(cpu, by);
            }
        }
    }

    fn work_off(&mut self, worker: u32, by: Option<u16>) {
        let cycles = self.volume.spec().cycles;
        let work = Work::of(cycles.allocate + cycles.hand_over).of_kernel_thread();
        let task = self.workers.worker(worker).task;
        self.smp
            .wake(self.now, task, by, work.tagged(Actor::Worker(worker)));
    }

    fn wait_for_space(&mut self, thread: u32, group: u32, waiter: Actor) -> Space {
        if self.locks.take(LockName::Space(group), thread, waiter) {
            self.keep_space(thread, group);
            Space::Locked(group)
        } else {
            Space::Awaited(group)
        }
    }

    fn item(&self, worker: u32) -> Item {
        self.workers.worker(worker).item.expect("it has work")
    }
}
