//! The task that writes files back: it has the allocator find blocks for what was written without any (delayed allocation,
//! `xfs_iomap_write_allocate`), one extent for each transaction, and then gives up the pages as clean.

use super::allocation::{CallNext, CallStage, HeldGroups};
use super::io::Purpose;
use super::machine::Timer;
use super::site::Site;
use super::switches::Comm;
use super::workers::{Item, Job};
use super::{Actor, Caller, Xfs};
use crate::effect::Submitter;
use events::smp::{Context, TaskNumber};

#[derive(Debug)]
pub(super) struct Flusher {
    pub(super) task: TaskNumber,
    /// The thread as which it writes back one file that the thread syncs; None: a task of its own.
    thread: Option<u32>,
    stage: Stage,
    /// The file that it writes back, by its inode.
    inode: u64,
    pub(super) held: HeldGroups,
    /// The worker in which its mapping is done.
    worker: Option<u32>,
    /// Blocks that the current call requests.
    asked: u32,
    /// Transactions for the present file that came to nothing.
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    /// Log space is reserved and the place in the file looked up.
    Begun,
    /// The mapping goes to a worker.
    HandsOver,
    /// Blocks for the data, or for the map of the file's extents.
    Maps(Target, MapStep),
    /// The mapping is over, by the flusher or a worker.
    Mapped,
    Committed,
    /// The pages are clean.
    Submitted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Data,
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapStep {
    Calls,
    Call(CallStage),
    Answered,
}

/// What becomes of a flusher that has got to a stage.
enum FlusherOutcome {
    Stage(Stage),
    Work(Stage, u32),
    Sleep(Stage, Site),
    /// Another task wakes it.
    Waits(Stage),
    /// The worker is done with the mapping.
    Completes(u32),
}

impl Flusher {
    fn new(task: TaskNumber, thread: Option<u32>) -> Flusher {
        Flusher {
            task,
            thread,
            stage: Stage::Idle,
            inode: 0,
            held: HeldGroups::default(),
            worker: None,
            asked: 0,
            failures: 0,
        }
    }

    pub(super) fn is_a_thread(&self) -> bool {
        self.thread.is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }
}

impl Xfs {
    /// The drive's flusher, and as many more as the filesystem's table has: from the first phase on that writes.
    pub(super) fn start_flushers(&mut self) {
        let wanted = self.volume.spec().writeback.flushers as usize;
        let own = |flusher: &&Flusher| flusher.thread.is_none();
        for _ in self.flushers.iter().filter(own).count()..wanted {
            let name = Comm::flusher(self.device);
            let task = self.machine.add_kernel_thread(None, name, Site::FlusherIdle);
            self.flushers.push(Flusher::new(task, None));
        }
        self.arm_writeback();
    }

    /// While files are made or something is dirty.
    pub(super) fn arm_writeback(&mut self) {
        let is_needed = self.files.has_dirty() || self.threads.are_active();
        if is_needed && !self.flushers.is_empty() {
            let period_ns = self.volume.spec().writeback.period_ns;
            self.machine.arm(period_ns, Timer::WriteBack);
        }
    }

    /// The thread itself writes back the file, which it has claimed.
    pub(super) fn write_back_for(&mut self, thread: u32, inode: u64, cpu: Option<u16>) {
        let known = self.flushers.iter().position(|flusher| flusher.thread == Some(thread));
        let number = known.unwrap_or_else(|| {
            let task = self.threads[thread].task;
            self.flushers.push(Flusher::new(task, Some(thread)));
            self.flushers.len() - 1
        });
        let flusher = &mut self.flushers[number];
        flusher.task = self.threads[thread].task;
        (flusher.inode, flusher.failures) = (inode, 0);
        if let FlusherOutcome::Work(stage, cycles) = self.next_of_file(number as u32) {
            self.flushers[number].stage = stage;
            self.give_flusher(number as u32, cpu, cycles);
        }
    }

    /// Those that have nothing to do, if something is due. `by`: the CPU that wakes them.
    pub(super) fn wake_flushers(&mut self, by: Option<u16>) {
        for number in 0..self.flushers.len() as u32 {
            let flusher = &self.flushers[number as usize];
            if flusher.is_idle() && flusher.thread.is_none() {
                self.flusher_goes_on(number, by);
            }
        }
    }

    /// The mapping that was handed over is done in that worker.
    pub(super) fn mapping_moves_to(&mut self, caller: Caller, worker: u32) {
        let Caller::Flusher(number) = caller else {
            unreachable!("threads map nothing");
        };
        self.flushers[number as usize].worker = Some(worker);
    }

    /// As threads do in `go_on`; during a mapping, its worker does.
    pub(super) fn flusher_goes_on(&mut self, number: u32, cpu: Option<u16>) {
        loop {
            let next = match self.flushers[number as usize].stage {
                Stage::Idle => self.flusher_looks(number),
                Stage::Begun => self.flusher_begins(),
                Stage::HandsOver => {
                    let cpu = cpu.expect("it has just run there");
                    let caller = Caller::Flusher(number);
                    let job = Job::Mapping;
                    self.hand_over(Item { caller, job }, cpu, Site::Mapping);
                    FlusherOutcome::Waits(Stage::Maps(Target::Data, MapStep::Calls))
                }
                Stage::Maps(target, step) => self.maps(number, target, step, cpu),
                Stage::Mapped => match self.flushers[number as usize].worker.take() {
                    Some(worker) => FlusherOutcome::Completes(worker),
                    None => FlusherOutcome::Work(Stage::Committed, self.volume.spec().cycles.commit),
                },
                Stage::Committed => self.flusher_committed(number, cpu),
                Stage::Submitted => {
                    self.submit_pages(number);
                    FlusherOutcome::Stage(Stage::Idle)
                }
            };
            match next {
                FlusherOutcome::Stage(stage) => self.flushers[number as usize].stage = stage,
                FlusherOutcome::Waits(stage) => {
                    self.flushers[number as usize].stage = stage;
                    return;
                }
                FlusherOutcome::Work(stage, cycles) => {
                    self.flushers[number as usize].stage = stage;
                    return self.give_flusher(number, cpu, cycles);
                }
                FlusherOutcome::Sleep(stage, site) => {
                    self.flushers[number as usize].stage = stage;
                    return self.flusher_sleeps(number, site, cpu);
                }
                FlusherOutcome::Completes(worker) => {
                    let cpu = self.workers.worker(worker).cpu;
                    return self.complete(worker, cpu);
                }
            }
        }
    }

    /// For a file that is due.
    fn flusher_looks(&mut self, number: u32) -> FlusherOutcome {
        if self.flushers[number as usize].thread.is_some() {
            return FlusherOutcome::Waits(Stage::Idle);
        }
        let due = self.files.take_due(self.machine.now(), &self.volume.spec().writeback);
        let flusher = &mut self.flushers[number as usize];
        let Some(inode) = due else {
            return FlusherOutcome::Sleep(Stage::Idle, Site::FlusherIdle);
        };
        flusher.inode = inode;
        flusher.failures = 0;
        self.next_of_file(number)
    }

    /// Its next transaction, or, when it has all blocks, its pages.
    fn next_of_file(&mut self, number: u32) -> FlusherOutcome {
        let writeback = self.volume.spec().writeback;
        let file = self.files.file(self.flushers[number as usize].inode);
        if file.delayed > 0 {
            return FlusherOutcome::Work(Stage::Begun, writeback.cycles.map);
        }
        FlusherOutcome::Work(Stage::Submitted, writeback.cycles.of_write_back(file.dirty))
    }

    fn flusher_begins(&self) -> FlusherOutcome {
        if self.volume.defers_mapping() {
            FlusherOutcome::Work(Stage::HandsOver, self.volume.spec().cycles.hand_over)
        } else {
            FlusherOutcome::Stage(Stage::Maps(Target::Data, MapStep::Calls))
        }
    }

    /// Blocks for as much as goes into one extent, then for the map if that needs one.
    fn maps(&mut self, number: u32, target: Target, step: MapStep, cpu: Option<u16>) -> FlusherOutcome {
        let caller = Caller::Flusher(number);
        let flusher = &self.flushers[number as usize];
        let (inode, worker) = (flusher.inode, flusher.worker);
        let next = match step {
            MapStep::Calls => {
                let request = match target {
                    Target::Data => self.volume.data_request(inode, self.files.file(inode)),
                    Target::Map => self.volume.map_request(self.files.file(inode)),
                };
                let Some(request) = request else {
                    return self.finds_no_room(number, target);
                };
                self.flushers[number as usize].asked = request.blocks;
                self.begin_call(caller, request)
            }
            MapStep::Call(stage) => {
                let runner = worker.map_or(Actor::Caller(caller), Actor::Worker);
                self.continue_call(caller, runner, stage, cpu)
            }
            MapStep::Answered => return self.takes_answer(number, target),
        };
        match next {
            CallNext::Stage(stage) => FlusherOutcome::Stage(Stage::Maps(target, MapStep::Call(stage))),
            CallNext::Work(stage, cycles) => FlusherOutcome::Work(Stage::Maps(target, MapStep::Call(stage)), cycles),
            CallNext::Sleep(stage, site) => FlusherOutcome::Sleep(Stage::Maps(target, MapStep::Call(stage)), site),
            CallNext::Deferred => FlusherOutcome::Waits(Stage::Maps(target, MapStep::Answered)),
            CallNext::Answered => FlusherOutcome::Stage(Stage::Maps(target, MapStep::Answered)),
        }
    }

    fn takes_answer(&mut self, number: u32, target: Target) -> FlusherOutcome {
        let flusher = &mut self.flushers[number as usize];
        let (inode, blocks) = (flusher.inode, flusher.asked);
        let inode_bytes = self.volume.spec().inode_bytes;
        let Some((group, start)) = flusher.held.answer.take() else {
            return self.finds_no_room(number, target);
        };
        self.volume.count_data_blocks(blocks);
        match target {
            Target::Map => self.files.add_map_block(inode, (group, start)),
            Target::Data => self.files.place(inode, (group, start), blocks),
        }
        if self.files.file(inode).needs_map_block(inode_bytes) {
            FlusherOutcome::Stage(Stage::Maps(Target::Map, MapStep::Calls))
        } else {
            FlusherOutcome::Stage(Stage::Mapped)
        }
    }

    /// No room where it looked: once more in the same transaction, with its locks, for as much as there is anywhere; then in
    /// others. What cannot be placed is thrown away in the end, as the kernel does with pages that it finds no room for.
    fn finds_no_room(&mut self, number: u32, target: Target) -> FlusherOutcome {
        let flusher = &mut self.flushers[number as usize];
        let inode = flusher.inode;
        if target == Target::Map {
            self.files.waive_map_block(inode);
            return FlusherOutcome::Stage(Stage::Mapped);
        }
        flusher.failures += 1;
        if flusher.failures % 2 == 1 && self.volume.longest() > 0 {
            return FlusherOutcome::Stage(Stage::Maps(Target::Data, MapStep::Calls));
        }
        if flusher.failures > 2 * self.volume.spec().ag_count || self.volume.longest() == 0 {
            self.files.discard(inode);
        }
        FlusherOutcome::Stage(Stage::Mapped)
    }

    fn flusher_committed(&mut self, number: u32, cpu: Option<u16>) -> FlusherOutcome {
        let flusher = &self.flushers[number as usize];
        let mut changed = self.volume.inode_blocks(flusher.inode).to_vec();
        for &group in &flusher.held.spaces {
            changed.extend(self.volume.space_headers(group));
        }
        self.commit_to_log(changed);
        self.queue_checkpoint_if_due(cpu);
        self.release_spaces(Caller::Flusher(number), cpu);
        self.next_of_file(number)
    }

    /// The file's pages go to the drive; no task waits for them here.
    fn submit_pages(&mut self, number: u32) {
        let flusher = &self.flushers[number as usize];
        let (inode, task) = (flusher.inode, flusher.task);
        let extents = self.files.file(inode).dirty_extents();
        self.files.begin_writes(inode, extents.len() as u32);
        for extent in &extents {
            let block = self.volume.absolute(extent.group, extent.start);
            self.write(Purpose::Data(inode), Submitter::Own(task), block, extent.blocks);
        }
        if extents.is_empty() {
            // It has got no place: its pages are thrown away.
            self.file_is_written(inode);
        }
    }

    fn give_flusher(&mut self, number: u32, by: Option<u16>, cycles: u32) {
        let flusher = &self.flushers[number as usize];
        if let Some(worker) = flusher.worker {
            return self.give_worker(worker, by, cycles);
        }
        let commit_locked = self.volume.spec().cycles.commit_locked;
        let commits = flusher.stage == Stage::Committed && cycles > commit_locked;
        let locked = if commits { commit_locked } else { 0 };
        let (task, thread) = (flusher.task, flusher.thread);
        let context = match thread {
            Some(_) => Context::System,
            None => Context::KernelThread,
        };
        if let Some(thread) = thread {
            self.threads[thread].system_ns += self.machine.time_of(cycles);
        }
        let actor = Actor::Caller(Caller::Flusher(number));
        self.give(task, by, (cycles, locked), context, actor);
    }

    fn flusher_sleeps(&mut self, number: u32, site: Site, cpu: Option<u16>) {
        let flusher = &self.flushers[number as usize];
        match flusher.worker {
            Some(worker) => {
                let own = self.workers.worker(worker).cpu;
                self.worker_blocks(worker, cpu.unwrap_or(own));
            }
            None => self.machine.sleeps_in(flusher.task, site),
        }
    }
}
