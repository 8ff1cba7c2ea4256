//! XFS: allocation groups, inodes in chunks, directories, the delayed log, the allocation workqueue, and what of all that
//! goes to the drive.
//!
//! A component of the machine: it is informed of what has happened (`worked`, `completed`, `flushed`) and hands over what is to be done
//! as `Effect`s, in their order.
//!
//! Sources: `fs/xfs` of c999a223, 3.4.113 and 3.6.0 (docs/model/sources/xfs.md). docs/model/xfs.md has equations, parameters
//! and limits.

mod allocation;
mod call;
mod data;
mod deferral;
mod directory;
mod filesystem;
mod flusher;
mod free_list;
mod free_space;
mod group;
mod io;
mod loads;
mod locks;
mod log;
mod machine;
mod phase;
mod release;
mod site;
mod spec;
mod step;
mod switches;
mod sync;
mod test_access;
mod thread;
mod transaction;
mod volume;
mod workers;
mod writeback;

#[cfg(test)]
mod tests;

use base::rng;
use trace::event::Device;

use crate::actor::{Actor, Caller};
use crate::effect::{Effect, FlushNumber};
use crate::filesystem::{Progress, Results};
use crate::switches::SwitchesOptions;
use data::Files;
use events::smp::{Context, SchedulerEvent, TaskNumber, TaskUsage};
use events::station::Violation;
use events::time::{SECOND, Time};
use events::{Component, SpecError};
use flusher::Flusher;
use io::Io;
pub use io::SentBlocks;
use loads::LoadFiles;
use locks::Locks;
pub use log::Checkpoints;
use log::{Log, Waiter};
use machine::{Machine, Timer};
use site::Site;
pub use spec::{Allocation, Cycles, Daemons, XfsSpec};
use switches::{Comm, flusher_name, pusher_name};
#[doc(hidden)]
pub use test_access::{FileInside, small_filesystem, some_drive};
use thread::Threads;
use volume::Volume;
use workers::{Item, Workers};
pub use writeback::{Writeback, WritebackCycles};

pub(super) const BLOCK_BYTES: u32 = 4096;

/// A mounted filesystem. Phases run one after the other.
pub struct Xfs {
    drive: String,
    device: Device,
    machine: Machine,
    volume: Volume,
    locks: Locks<Actor>,
    log: Log,
    workers: Workers<Item>,
    daemons: Vec<TaskNumber>,
    files: Files,
    loads: LoadFiles,
    flushers: Vec<Flusher>,
    io: Io,
    draws: rng::Stream,
    threads: Threads,
}

const COMPONENT_DRAWS: u64 = 0x0078_6673;

/// The machine and the drive under a filesystem.
#[derive(Clone, Copy, Debug)]
pub struct Platform<'a> {
    /// How many CPUs there are.
    pub cpus: u16,
    /// Their cycles a second.
    pub clock_hz: u64,
    /// What the kernel calls the drive.
    pub drive: &'a str,
    /// The drive's number.
    pub device: Device,
    /// Whether the drive has a cache that is to be emptied before the log counts as written.
    pub flushes: bool,
    /// Whether it takes writes that are on the medium when they complete: then no flush follows the log's.
    pub fua: bool,
}

impl Component for Xfs {
    type Effect = Effect;

    fn next_event(&self) -> Option<Time> {
        self.machine.next_event()
    }

    fn advance(&mut self, now: Time) {
        while let Some(timer) = self.machine.take_due(now) {
            self.ring(timer);
        }
        self.machine.set_now(now);
    }

    fn take_effects(&mut self, into: &mut Vec<Effect>) {
        self.machine.take_effects(into);
    }

    /// Nobody sleeps for ever, no lock is kept, and blocks and inodes add up.
    fn check(&self, _now: Time) -> Result<(), Violation> {
        let is_busy = self.machine.is_busy();
        let holds = |holds, what: &str| Violation::unless(holds, "xfs", || what.to_owned());
        holds(is_busy || !self.log.has_waiting_for_room(), "a thread waits for room in the log for ever")?;
        if is_busy {
            // Work that continues after a phase's end is not complete.
            return self.files.check().map(|_| ());
        }
        holds(
            !self.threads.are_active(),
            "a thread sleeps for ever: the workers of a CPU all wait for a lock whose holder waits for one of them",
        )?;
        let flushers_are_idle = self.flushers.iter().all(Flusher::is_idle);
        holds(flushers_are_idle, "a flusher sleeps for ever")?;
        holds(self.locks.all_free(), "a lock was kept")?;
        self.volume.check(self.files.check()? + self.loads.blocks())
    }
}

impl Xfs {
    /// `allocation`: the kernel's, if the filesystem's table has none.
    pub fn new(below: &Platform<'_>, xfs: &XfsSpec, allocation: Allocation) -> Result<Xfs, SpecError> {
        xfs.check().map_err(|error| error.within("filesystem"))?;
        let cpus = below.cpus;
        let mut machine = Machine::new(cpus, below.clock_hz);
        let mut daemon = |cpu| machine.add_kernel_thread(Some(cpu), Comm::kworker(cpu, 0), Site::WorkerIdle);
        let daemons = (0..cpus).map(&mut daemon).collect();
        let mut locks = Locks::new(xfs.ag_count);
        locks.add_directory();
        let pusher = machine.add_kernel_thread(None, Comm::pusher(below.drive), Site::PusherIdle);
        Ok(Xfs {
            drive: below.drive.to_owned(),
            device: below.device,
            machine,
            volume: Volume::new(xfs, allocation),
            locks,
            log: Log::new(xfs, pusher),
            workers: Workers::new(cpus, xfs.workers_max),
            daemons,
            files: Files::default(),
            loads: LoadFiles::default(),
            flushers: Vec::new(),
            io: Io::new(below.flushes && xfs.barrier, below.fua),
            draws: rng::stream(0, COMPONENT_DRAWS),
            threads: Threads::default(),
        })
    }

    /// Written and not placed yet, of all files.
    fn reserved_blocks(&self) -> u64 {
        self.files.delayed_blocks() + self.loads.delayed_blocks()
    }

    /// Calls of `xfs_alloc_vextent` until now.
    pub fn allocator_calls(&self) -> u64 {
        self.volume.allocator_calls()
    }

    /// What has gone to the drive until now.
    pub fn blocks_written(&self) -> SentBlocks {
        self.io.written()
    }

    /// If CPUs keep no trace of switches: the task's switches.
    pub fn count_switches(&mut self, task: TaskNumber, used: &TaskUsage) {
        let scheduling = self.machine.scheduling();
        scheduling.set_switches(task, used.slept, used.gave_way);
    }

    /// How often a thread or a worker slept for a lock.
    pub fn lock_waits(&self) -> u64 {
        self.locks.waits()
    }

    /// Of making written blocks a file's.
    pub fn conversion_cycles(&self) -> u32 {
        self.volume.spec().cycles.convert
    }

    /// Threads of a phase have something to do, and an event that lets them continue is pending.
    pub fn is_active(&self) -> bool {
        self.threads.are_active() && self.machine.is_busy()
    }

    /// Of those that submit I/O.
    pub fn task_names(&self) -> impl Iterator<Item = (TaskNumber, String)> {
        let threads = self.threads.iter().map(|thread| (thread.task, thread.name.clone()));
        let own = [(self.log.pusher_task(), pusher_name(&self.drive))];
        let flushers = self.flushers.iter().filter(|flusher| !flusher.is_a_thread());
        threads.chain(own).chain(flushers.map(|flusher| (flusher.task, flusher_name(self.device))))
    }

    /// Who has left a CPU for whom, in the filesystem's own numbers of tasks.
    pub fn scheduled(&mut self, event: &SchedulerEvent) {
        self.machine.scheduling().look(event);
    }

    /// A piece of work is done, on that CPU.
    pub fn worked(&mut self, now: Time, actor: Actor, cpu: u16) {
        self.machine.set_now(now);
        self.machine.worked(actor);
        match actor {
            Actor::Caller(caller) => self.caller_goes_on(caller, Some(cpu)),
            Actor::Worker(number) => self.worker_done(number, cpu),
            Actor::Pusher => self.push(),
            Actor::Checkpoints => self.checkpoint_worker_done(cpu),
            Actor::Forces => self.forced_is_put_together(),
            Actor::Sends => self.forced_is_sent(),
            Actor::Daemon(_) => {}
        }
    }

    /// It is the timer's time.
    fn ring(&mut self, timer: Timer) {
        match timer {
            Timer::Answered(caller) => self.caller_goes_on(caller, None),
            Timer::WriteBack => {
                self.wake_flushers(None);
                self.arm_writeback();
            }
            Timer::Daemon => self.wake_daemon(),
            Timer::Sync => self.sync_log(),
            Timer::Push => self.pusher_looks(None),
        }
    }

    /// While threads make files, a daemon on a CPU drawn at random.
    fn wake_daemon(&mut self) {
        let daemons = self.volume.spec().daemons;
        if !self.threads.are_active() {
            return;
        }
        let cpu = self.draws.below(u64::from(self.machine.cpus())) as u16;
        let task = self.daemons[usize::from(cpu)];
        let cycles = (daemons.cycles.max(1), 0);
        let of = Some(Actor::Daemon(cpu));
        self.machine.give(task, None, cycles, Context::KernelThread, of);
        let mean_ns = SECOND as f64 / f64::from(daemons.wakeups_per_s);
        let pause_ns = -libm::log(1.0 - self.draws.unit()) * mean_ns;
        self.machine.arm(pause_ns as Time, Timer::Daemon);
    }
}
