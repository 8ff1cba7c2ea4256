//! What the workers of the allocation workqueue do for their callers.

use super::allocation::Space;
use super::machine::Timer;
use super::site::Site;
use super::switches::Comm;
use super::workers::{Item, Job};
use super::{Actor, Xfs};
use events::smp::Context;

impl Xfs {
    /// Puts it in line on the CPU where its caller runs, who sleeps.
    pub(super) fn hand_over(&mut self, item: Item, cpu: u16, site: Site) {
        let task = self.task_of(item.caller);
        self.machine.sleeps_in(task, site);
        self.workers.put(cpu, item);
        self.start_worker(cpu, cpu);
    }

    /// A worker has done its piece of work.
    pub(super) fn worker_done(&mut self, worker: u32, cpu: u16) {
        let Item { caller, job } = self.item(worker);
        match (job, caller) {
            (Job::Call { request, group }, _) => {
                if let Some(group) = group {
                    self.run_allocator(caller, &request, group, Some(cpu));
                }
                self.complete(worker, cpu);
            }
            (Job::Mapping, caller) => self.caller_goes_on(caller, Some(cpu)),
        }
    }

    /// The caller has its answer, and the worker the next item, if there is one.
    pub(super) fn complete(&mut self, worker: u32, cpu: u16) {
        let caller = self.item(worker).caller;
        match self.volume.spec().call_stall_ns {
            0 => self.caller_goes_on(caller, Some(cpu)),
            stall_ns => self.machine.call_back(stall_ns, Timer::Answered(caller)),
        }
        let task = self.workers.worker(worker).task;
        self.machine.sleeps_in(task, Site::WorkerIdle);
        if self.workers.finish(worker).is_some() {
            self.begin_item(worker, cpu);
        }
    }

    /// A worker that waited for a free-space header has it.
    pub(super) fn worker_got_space(&mut self, worker: u32, by: Option<u16>) {
        self.workers.goes_on(worker);
        let Item { caller, job } = self.item(worker);
        match job {
            Job::Call { .. } => self.work_off(worker, by),
            Job::Mapping => self.caller_goes_on(caller, by),
        }
    }

    /// It waits for a free-space header: another one of its CPU may begin.
    pub(super) fn worker_blocks(&mut self, worker: u32, by: u16) {
        let state = self.workers.worker(worker);
        let (task, cpu) = (state.task, state.cpu);
        let site = match self.item(worker).job {
            Job::Call { .. } => Site::WorkerSpaceLock,
            Job::Mapping => Site::MappingSpaceLock,
        };
        self.machine.sleeps_in(task, site);
        self.workers.blocks(worker);
        self.start_worker(cpu, by);
    }

    /// `by`: the CPU that does so.
    fn start_worker(&mut self, cpu: u16, by: u16) {
        let started = self.workers.start(cpu, |of_cpu| {
            let name = Comm::kworker(cpu, of_cpu + 1);
            self.machine.add_kernel_thread(Some(cpu), name, Site::WorkerIdle)
        });
        if let Some(worker) = started {
            self.begin_item(worker, by);
        }
    }

    fn begin_item(&mut self, worker: u32, by: u16) {
        let Item { caller, job } = self.item(worker);
        let Job::Call { request, .. } = job else {
            let cycles = self.volume.spec().cycles.hand_over;
            self.mapping_moves_to(caller, worker);
            return self.give_worker(worker, Some(by), cycles);
        };
        let space = self.lock_space(caller, &request, Actor::Worker(worker));
        let group = match space {
            Space::Locked(group) | Space::Awaited(group) => Some(group),
            Space::Nowhere => None,
        };
        let job = Job::Call { request, group };
        self.workers.set_item(worker, Item { caller, job });
        if matches!(space, Space::Awaited(_)) {
            self.worker_blocks(worker, by);
        } else {
            self.work_off(worker, Some(by));
        }
    }

    fn work_off(&mut self, worker: u32, by: Option<u16>) {
        let hand_over = self.volume.spec().cycles.hand_over;
        let allocates = match self.item(worker).job {
            Job::Call { group: Some(group), .. } => self.volume.allocate_cycles(group),
            _ => self.volume.spec().cycles.allocate,
        };
        self.give_worker(worker, by, allocates + hand_over);
    }

    pub(super) fn give_worker(&mut self, worker: u32, by: Option<u16>, cycles: u32) {
        let task = self.workers.worker(worker).task;
        let actor = Actor::Worker(worker);
        self.give(task, by, (cycles, 0), Context::KernelThread, actor);
    }

    fn item(&self, worker: u32) -> Item {
        self.workers.worker(worker).item.expect("it has work")
    }
}
