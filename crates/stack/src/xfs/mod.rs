//! XFS under a metadata load: allocation groups, inodes in chunks, directories, the delayed log, and the allocation
//! workqueue on simulated processors.
//!
//! Sources: the note on XFS (`fs/xfs` of c999a223, 3.4.113 and 3.6.0). docs/model/xfs.md has equations, parameters and limits.

mod allocation;
mod call;
mod data;
mod deferral;
mod directory;
mod flusher;
mod free_space;
mod group;
mod locks;
mod phase;
mod release;
mod site;
mod spec;
mod step;
mod switches;
#[cfg(test)]
mod tests;
mod thread;
mod transaction;
mod volume;
mod workers;
mod writeback;

use std::collections::BTreeMap;

use workload::rng;

use crate::SpecError;
use crate::event_queue::EventQueue;
use crate::smp::{Done, Kind, ObjectId, Processors, SmpSpec, TaskNumber, TaskSpec, Work};
use crate::station::Violation;
use crate::time::{SECOND, Time};
use data::Files;
use deferral::Item;
use flusher::Flusher;
use locks::Locks;
pub use phase::{Progress, Results};
use site::Site;
pub use spec::{Allocation, Cycles, Daemons, XfsSpec};
use switches::{Comm, Scheduling};
pub use switches::{SwitchesObservation, SwitchesOptions};
use thread::Thread;
use volume::{Volume, violated};
use workers::Workers;
pub use writeback::{Writeback, WritebackCycles};

pub(super) const BLOCK_BYTES: u32 = 4096;

/// A mounted filesystem with the machine's processors. Phases run one after the other.
pub struct Mounted {
    allocation: Allocation,
    now: Time,
    smp: Processors<Actor>,
    volume: Volume,
    /// By the path of a thread's directory and the number in it: which of the volume's.
    names: BTreeMap<(String, Option<u32>), usize>,
    locks: Locks<Actor>,
    /// The list of the checkpoint under way, and its bytes.
    checkpoint: ObjectId,
    checkpoint_bytes: u64,
    workers: Workers<Item>,
    daemons: Vec<TaskNumber>,
    files: Files,
    flushers: Vec<Flusher>,
    events: EventQueue<Timer>,
    draws: rng::Stream,
    began: Time,
    threads: Vec<Thread>,
    /// Threads that still have something to do.
    active: usize,
    scheduling: Scheduling,
    allocator_calls: u64,
    /// Pieces of work and answers that are still to come, of all but daemons. None: whoever is not done waits for ever.
    under_way: u64,
}

/// Who does a piece of work; a daemon by its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    Caller(Caller),
    Worker(u32),
    Daemon(u16),
}

/// Who has transactions and calls the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Thread(u32),
    Flusher(u32),
}

#[derive(Clone, Copy, Debug)]
enum Timer {
    Daemon,
    /// Flushers look for pages that have expired.
    WriteBack,
    /// The allocator's answer reaches its caller late.
    Answered(Caller),
}

const COMPONENT_DRAWS: u64 = 0x0078_6673;

impl Mounted {
    /// `allocation`: the kernel's, where the filesystem's table does not say.
    pub fn new(
        processors: &SmpSpec,
        xfs: &XfsSpec,
        allocation: Allocation,
    ) -> Result<Mounted, SpecError> {
        xfs.check().map_err(|error| error.within("filesystem"))?;
        let mut smp = Processors::new(processors).map_err(|error| error.within("cpus"))?;
        smp.tap();
        let cpus = smp.cpus();
        let mut scheduling = Scheduling::default();
        let daemons = (0..cpus)
            .map(|cpu| {
                let task = smp.add_task(bound(cpus, cpu));
                scheduling.add(Comm::kworker(cpu, 0), Site::WorkerIdle);
                task
            })
            .collect();
        let mut volume = Volume::new(xfs);
        let mut locks = Locks::new(xfs.ag_count);
        volume.turn_rotor();
        let root = volume.add_directory(0);
        locks.add_directory();
        Ok(Mounted {
            allocation: xfs.allocation.unwrap_or(allocation),
            now: 0,
            checkpoint: smp.add_object(Kind::Log, 1),
            smp,
            names: BTreeMap::from([((String::new(), None), root)]),
            volume,
            locks,
            checkpoint_bytes: 0,
            workers: Workers::new(cpus, xfs.workers_max),
            daemons,
            files: Files::default(),
            flushers: Vec::new(),
            events: EventQueue::new(),
            draws: rng::stream(0, COMPONENT_DRAWS),
            began: 0,
            threads: Vec::new(),
            active: 0,
            scheduling,
            allocator_calls: 0,
            under_way: 0,
        })
    }

    /// Between phases: no lock is held, no thread stuck, and blocks and inodes add up.
    pub fn check(&self) -> Result<(), Violation> {
        if self.active > 0 {
            return Err(violated(
                "a thread sleeps for ever: the workers of a CPU all wait for a lock whose holder waits for one of them",
            ));
        }
        if !self.flushers.iter().all(Flusher::is_idle) {
            return Err(violated("a flusher sleeps for ever"));
        }
        if !self.locks.all_free() {
            return Err(violated("a lock was kept"));
        }
        self.volume.check(self.files.check()?)
    }

    /// Calls of `xfs_alloc_vextent` so far.
    pub fn allocator_calls(&self) -> u64 {
        self.allocator_calls
    }

    /// How often a thread or a worker slept for a lock.
    pub fn lock_waits(&self) -> u64 {
        self.locks.waits()
    }

    /// Whatever comes next. False: nothing does.
    fn turn(&mut self, batch: &mut Vec<Done<Actor>>) -> bool {
        let (work, timer) = (self.smp.next_event(), self.events.next_at());
        let Some(at) = work.into_iter().chain(timer).min() else {
            return false;
        };
        self.scheduling.look(&mut self.smp);
        self.now = at;
        if work == Some(at) {
            self.smp.advance(at, batch);
            batch.drain(..).for_each(|done| self.finished(done));
        } else if let Some((_, timer)) = self.events.take() {
            self.ring(timer);
        }
        true
    }

    fn finished(&mut self, done: Done<Actor>) {
        self.now = done.at;
        let cpu = done.cpu;
        match done.tag {
            Actor::Daemon(_) => return,
            _ => self.under_way -= 1,
        }
        match done.tag {
            Actor::Caller(caller) => self.caller_goes_on(caller, Some(cpu)),
            Actor::Worker(number) => self.worked(number, cpu),
            Actor::Daemon(_) => {}
        }
    }

    fn ring(&mut self, timer: Timer) {
        match timer {
            Timer::Answered(caller) => {
                self.under_way -= 1;
                self.caller_goes_on(caller, None);
            }
            Timer::WriteBack => {
                self.wake_flushers(None);
                let period_ns = self.volume.spec().writeback.period_ns;
                self.events.put(self.now + period_ns, Timer::WriteBack);
            }
            Timer::Daemon => {
                let daemons = self.volume.spec().daemons;
                let cpu = self.draws.below(u64::from(self.smp.cpus())) as u16;
                let work = Work::of(daemons.cycles.max(1)).of_kernel_thread();
                let task = self.daemons[usize::from(cpu)];
                self.smp
                    .wake(self.now, task, None, work.tagged(Actor::Daemon(cpu)));
                let mean_ns = SECOND as f64 / f64::from(daemons.wakeups_per_s);
                let pause_ns = -libm::log(1.0 - self.draws.unit()) * mean_ns;
                self.events.put(self.now + pause_ns as Time, Timer::Daemon);
            }
        }
    }
}

/// A kernel thread bound to a CPU.
fn bound(cpus: u16, cpu: u16) -> TaskSpec {
    TaskSpec {
        sleeps_for_io: false,
        ..TaskSpec::pinned(cpus, cpu)
    }
}
