//! Who turns what is committed into a checkpoint when there is enough of it: the task that committed last, or a worker
//! to which that is handed over, so that no other task waits for the log's buffers.
//!
//! Source: `fs/xfs/xfs_log_cil.c` of 3.4 (`xlog_cil_push` at the end of `xfs_log_commit_cil`), 3.6
//! (`xlog_cil_push_background`, `xlog_cil_push_work`; 4c2d542f, taken as 3.5) and 5.14 (`xlog_cil_init`: `WQ_UNBOUND`).

use std::collections::{BTreeMap, VecDeque};

use super::super::site::Site;
use super::super::switches::Comm;
use super::super::{Actor, BLOCK_BYTES, Xfs};
use super::waits::BufferWaiter;
use crate::effect::Submitter;
use events::smp::{Context, TaskNumber};
pub use kernels::filesystems::Checkpoints;

/// The work item that writes checkpoints: it is in line once at most, and done by one worker at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckpointWork {
    form: Checkpoints,
    /// By the CPU that a worker is bound to; None: to none.
    tasks: BTreeMap<Option<u16>, TaskNumber>,
    /// In line, on that CPU: what is committed belongs to the checkpoint that it will write.
    queued: Option<u16>,
    /// Who is at it, and how far.
    worker: Option<(TaskNumber, Stage)>,
    /// Who waits for checkpoints that are put together for a sync, in their order; the worker, and who sends them.
    forced: VecDeque<Submitter>,
    forces: Option<(TaskNumber, TaskNumber)>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Begins,
    /// The checkpoint is being put together; then it goes into the log's buffers.
    PutsTogether(u64),
    /// For the buffers.
    Waits,
}

impl Xfs {
    /// The kernel's way to write checkpoints.
    pub fn with_checkpoints(mut self, form: Checkpoints) -> Xfs {
        self.log.work.form = form;
        self
    }

    /// Enough is committed for a checkpoint, and no worker writes it: its number, and the cycles of that.
    pub(in crate::xfs) fn checkpoint_if_due(&mut self) -> Option<(u64, u32)> {
        let by_worker = self.log.work.form != Checkpoints::ByCommitter;
        if by_worker || !self.log.space.is_checkpoint_due(self.volume.spec()) {
            return None;
        }
        let cycles = self.checkpoint_cycles();
        Some((self.log.space.begin_checkpoint()?, cycles))
    }

    /// Of putting what is committed now into the log's buffers.
    pub(in crate::xfs) fn checkpoint_cycles(&self) -> u32 {
        let blocks = self.log.space.pending_bytes() / u64::from(BLOCK_BYTES);
        let cycles = blocks * u64::from(self.volume.spec().cycles.checkpoint_block);
        cycles.min(CHECKPOINT_CYCLES_MAX) as u32
    }

    /// After a commit on that CPU: a worker is to write a checkpoint, if there is enough for one.
    pub(in crate::xfs) fn queue_checkpoint_if_due(&mut self, cpu: Option<u16>) {
        let work = &mut self.log.work;
        let by_worker = work.form != Checkpoints::ByCommitter;
        if !by_worker || !self.log.space.is_checkpoint_due(self.volume.spec()) || work.queued.is_some() {
            return;
        }
        work.queued = Some(cpu.unwrap_or(0));
        if work.worker.is_none() {
            self.begin_checkpoint_work(cpu);
        }
    }

    /// The worker has done its piece of work.
    pub(in crate::xfs) fn checkpoint_worker_done(&mut self, cpu: u16) {
        let (task, stage) = self.log.work.worker.expect("it is at work");
        match stage {
            Stage::Begins => {
                // What is committed from here on belongs to the next.
                self.log.work.queued = None;
                let cycles = self.checkpoint_cycles();
                match self.log.space.begin_checkpoint() {
                    // A force has taken it meanwhile.
                    None => self.end_checkpoint_work(Some(cpu)),
                    Some(number) => {
                        self.log.work.worker = Some((task, Stage::PutsTogether(number)));
                        self.give_checkpoint_worker(task, Some(cpu), cycles);
                    }
                }
            }
            Stage::PutsTogether(number) => {
                self.fill_buffers(Submitter::Own(task));
                if self.log.space.is_in_buffers(number) {
                    return self.end_checkpoint_work(Some(cpu));
                }
                self.log.work.worker = Some((task, Stage::Waits));
                self.machine.sleeps_in(task, Site::WorkerLogBuffers);
                self.log.waits.for_buffers(number, BufferWaiter::Worker);
            }
            Stage::Waits => unreachable!("it sleeps"),
        }
    }

    /// All of its checkpoint is in the log's buffers: it may be in line again.
    pub(in crate::xfs) fn end_checkpoint_work(&mut self, by: Option<u16>) {
        if let Some((task, _)) = self.log.work.worker.take() {
            self.machine.sleeps_in(task, Site::WorkerIdle);
        }
        if self.log.work.queued.is_some() {
            self.begin_checkpoint_work(by);
        }
    }

    /// The newest checkpoint, for which a sync waits, is put together by a worker; then a thread sends it on account of who
    /// syncs (`xlog_cil_push_now` and `xlog_force_lsn` of 6.1; `blk_mq_run_work_fn`).
    pub(super) fn put_together(&mut self, by: Submitter) {
        let cycles = self.volume.spec().cycles;
        if cycles.force + cycles.flush == 0 || self.log.work.form == Checkpoints::ByCommitter {
            return self.fill_buffers(by);
        }
        self.log.space.hold_newest();
        self.log.work.forced.push_back(by);
        let (worker, _) = self.threads_of_forces();
        self.give(worker, None, (cycles.force, 0), Context::KernelThread, Actor::Forces);
    }

    fn threads_of_forces(&mut self) -> (TaskNumber, TaskNumber) {
        *self.log.work.forces.get_or_insert_with(|| {
            let worker = self.machine.add_kernel_thread(None, Comm::unbound_kworker(), Site::WorkerIdle);
            (worker, self.machine.add_urgent_thread(Comm::kworker(0, KBLOCKD), Site::WorkerIdle))
        })
    }

    pub(in crate::xfs) fn forced_is_put_together(&mut self) {
        let (_, sender) = self.threads_of_forces();
        let cycles = self.volume.spec().cycles.flush;
        self.give(sender, None, (cycles, 0), Context::KernelThread, Actor::Sends);
    }

    pub(in crate::xfs) fn forced_is_sent(&mut self) {
        self.log.space.release_oldest();
        let by = self.log.work.forced.pop_front().expect("it was put together for a sync");
        self.fill_buffers(by);
    }

    fn begin_checkpoint_work(&mut self, by: Option<u16>) {
        let work = &mut self.log.work;
        let cpu = work.queued.expect("it is in line");
        let bound_to = (work.form == Checkpoints::ByBoundWorker).then_some(cpu);
        let task = *work.tasks.entry(bound_to).or_insert_with(|| {
            let name = match bound_to {
                Some(cpu) => Comm::kworker(cpu, CHECKPOINTS),
                None => Comm::unbound_kworker(),
            };
            self.machine.add_kernel_thread(bound_to, name, Site::WorkerIdle)
        });
        work.worker = Some((task, Stage::Begins));
        let cycles = self.volume.spec().cycles.hand_over;
        self.give_checkpoint_worker(task, by, cycles);
    }

    fn give_checkpoint_worker(&mut self, task: TaskNumber, by: Option<u16>, cycles: u32) {
        let actor = Actor::Checkpoints;
        self.give(task, by, (cycles, 0), Context::KernelThread, actor);
    }
}

/// A number that no worker of the allocation workqueue has.
const CHECKPOINTS: u32 = 1 << 16;
const KBLOCKD: u32 = CHECKPOINTS + 1;
const CHECKPOINT_CYCLES_MAX: u64 = 1_000_000_000;
