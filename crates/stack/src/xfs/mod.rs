//! XFS under a metadata load: allocation groups, inodes in chunks, directories, the delayed log, and the allocation
//! workqueue on modelled processors.
//!
//! Sources: the note on XFS (`fs/xfs` of c999a223, 3.4.113 and 3.6.0). docs/model/xfs.md has equations, parameters and limits.

mod allocation;
mod directory;
mod free_space;
mod group;
mod locks;
mod site;
mod spec;
mod step;
mod switches;
#[cfg(test)]
mod tests;
mod thread;
mod volume;
mod workers;

use std::collections::BTreeMap;

use workload::metadata::{MetadataPhase, ThreadMeasured};
use workload::rng;

use crate::Impossible;
use crate::agenda::Agenda;
use crate::smp::{
    Context, CpuSet, Done, Kind, ObjectId, Processors, Rank, SmpSpec, TaskNumber, TaskSpec, Work,
};
use crate::station::Broken;
use crate::time::{SECOND, Time};
use allocation::Item;
use locks::Locks;
use site::Site;
pub use spec::{Allocation, Cycles, Daemons, XfsSpec};
use switches::{Comm, Scheduling};
pub use switches::{SwitchesObservation, SwitchesOptions};
use thread::Thread;
use volume::{Volume, broken};
use workers::Workers;

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
    agenda: Agenda<Timer>,
    draws: rng::Stream,
    began: Time,
    threads: Vec<Thread>,
    /// Threads that still have something to do.
    active: usize,
    scheduling: Scheduling,
    allocator_calls: u64,
}

/// Who does a piece of work; a daemon by its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    Thread(u32),
    Worker(u32),
    Daemon(u16),
}

#[derive(Clone, Copy, Debug)]
enum Timer {
    Daemon,
    /// The allocator's answer reaches a thread late.
    Answered(u32),
}

/// How far a phase has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub elapsed_ns: Time,
    pub files: u64,
    /// The furthest behind of all threads; None: no bound tells.
    pub fraction: Option<f64>,
}

/// What a phase yielded.
pub struct Results {
    pub threads: Vec<Option<ThreadMeasured>>,
    pub filesystem_used_percent: f64,
    pub switches: Option<SwitchesObservation>,
}

/// How many events between two questions whether to go on.
const EVENTS_PER_LOOK: u32 = 20_000;
const COMPONENT_DRAWS: u64 = 0x0078_6673;

impl Mounted {
    /// `allocation`: the kernel's, where the filesystem's table does not say.
    pub fn new(
        processors: &SmpSpec,
        xfs: &XfsSpec,
        allocation: Allocation,
    ) -> Result<Mounted, Impossible> {
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
            workers: Workers::new(cpus),
            daemons,
            agenda: Agenda::new(),
            draws: rng::stream(0, COMPONENT_DRAWS),
            began: 0,
            threads: Vec::new(),
            active: 0,
            scheduling,
            allocator_calls: 0,
        })
    }

    /// Makes the threads and their directories. The error names a key of the phase.
    pub fn begin(
        &mut self,
        phase: &MetadataPhase,
        switches: Option<&SwitchesOptions>,
    ) -> Result<(), Impossible> {
        thread::check(phase, self.smp.cpus())?;
        let seed = phase.threads.first().map_or(0, |thread| thread.job.seed);
        self.draws = rng::stream(seed, COMPONENT_DRAWS);
        self.began = self.now;
        self.scheduling.begin(self.now, switches);
        let cpus = self.smp.cpus();
        self.threads.clear();
        let mut placed = vec![0u32; usize::from(cpus)];
        for spec in &phase.threads {
            let directory = self.base_directory(&spec.directory);
            let allowed = spec
                .cpus
                .as_ref()
                .map(|list| CpuSet::of(cpus, list.iter().map(|&cpu| cpu as u16)));
            let last_cpu = emptiest(
                &placed,
                allowed.as_ref(),
                self.draws.below(u64::from(cpus)) as u16,
            );
            placed[usize::from(last_cpu)] += 1;
            let task = self.smp.add_task(TaskSpec {
                rank: Rank::Normal,
                last_cpu,
                allowed,
                sleeps_for_io: false,
            });
            self.scheduling.add(Comm::thread(), Site::Begins);
            self.threads
                .push(Thread::new(spec, task, directory, self.now)?);
        }
        self.active = self.threads.len();
        (0..self.active as u32).for_each(|number| self.go_on(number, None));
        if self.volume.spec().daemons.wakeups_per_s > 0 {
            self.agenda.put(self.now, Timer::Daemon);
        }
        Ok(())
    }

    /// Runs the phase to its end. `go_on` is asked now and then; false stops its threads.
    pub fn run(&mut self, mut go_on: impl FnMut(Progress) -> bool) {
        let (mut batch, mut events) = (Vec::new(), 0);
        while self.active > 0 {
            if !self.turn(&mut batch) {
                return;
            }
            events += 1;
            if events % EVENTS_PER_LOOK == 0 && !go_on(self.progress()) {
                self.threads.iter_mut().for_each(Thread::stop);
            }
        }
        go_on(self.progress());
    }

    /// What the phase came to.
    pub fn end(&mut self) -> Results {
        // Workers and daemons end what they do.
        let mut batch = Vec::new();
        self.agenda = Agenda::new();
        while self.turn(&mut batch) {}
        self.scheduling.look(&mut self.smp);
        let process_ns = self.process_ns();
        let ended = self.now;
        let observed = self.scheduling.finish(ended);
        let began = self.began;
        let threads = std::mem::take(&mut self.threads).into_iter().map(|thread| {
            let switches = self.scheduling.switches_of(thread.task);
            Some(thread.into_measured(began, switches, process_ns))
        });
        Results {
            threads: threads.collect(),
            filesystem_used_percent: self.volume.used_share() * 100.0,
            switches: observed,
        }
    }

    /// Between phases: no lock is held, no thread stuck, and blocks and inodes add up.
    pub fn check(&self) -> Result<(), Broken> {
        if self.active > 0 {
            return Err(broken("a thread sleeps for ever"));
        }
        if !self.locks.all_free() {
            return Err(broken("a lock was kept"));
        }
        self.volume.check()
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
        let (work, timer) = (self.smp.next_event(), self.agenda.next_at());
        let Some(at) = work.into_iter().chain(timer).min() else {
            return false;
        };
        self.scheduling.look(&mut self.smp);
        self.now = at;
        if work == Some(at) {
            self.smp.advance(at, batch);
            batch.drain(..).for_each(|done| self.finished(done));
        } else if let Some((_, timer)) = self.agenda.take() {
            self.ring(timer);
        }
        true
    }

    fn finished(&mut self, done: Done<Actor>) {
        self.now = done.at;
        match done.tag {
            Actor::Thread(number) => self.go_on(number, Some(done.cpu)),
            Actor::Worker(number) => self.allocated(number, done.cpu),
            Actor::Daemon(_) => {}
        }
    }

    fn ring(&mut self, timer: Timer) {
        match timer {
            Timer::Answered(thread) => self.go_on(thread, None),
            Timer::Daemon => {
                let daemons = self.volume.spec().daemons;
                let cpu = self.draws.below(u64::from(self.smp.cpus())) as u16;
                let work = Work::of(daemons.cycles.max(1)).of_kernel_thread();
                let task = self.daemons[usize::from(cpu)];
                self.smp
                    .wake(self.now, task, None, work.tagged(Actor::Daemon(cpu)));
                let mean_ns = SECOND as f64 / f64::from(daemons.wakeups_per_s);
                let pause_ns = -libm::log(1.0 - self.draws.unit()) * mean_ns;
                self.agenda.put(self.now + pause_ns as Time, Timer::Daemon);
            }
        }
    }

    fn progress(&self) -> Progress {
        let fractions = self.threads.iter().map(Thread::fraction);
        Progress {
            elapsed_ns: self.now - self.began,
            files: self.threads.iter().map(Thread::files).sum(),
            fraction: fractions
                .reduce(|one, other| Some(one?.min(other?)))
                .flatten(),
        }
    }

    /// In user mode and in the kernel, of all CPUs until now.
    fn process_ns(&self) -> (Time, Time) {
        let of = |context| {
            (0..self.smp.cpus())
                .map(|cpu| self.smp.usage(cpu).ns(context))
                .sum()
        };
        (of(Context::User), of(Context::System))
    }

    /// A thread's directory: there before the phase begins, at no cost.
    fn base_directory(&mut self, path: &str) -> usize {
        let key = (path.to_owned(), None);
        if let Some(&known) = self.names.get(&key) {
            return known;
        }
        let group = self.volume.turn_rotor();
        let number = self.volume.lay_out_directory(group);
        self.locks.add_directory();
        self.names.insert(key, number);
        number
    }
}

/// Where a new thread begins, as a fork looks for the idlest CPU: the first from a place on that has fewest.
fn emptiest(placed: &[u32], allowed: Option<&CpuSet>, from: u16) -> u16 {
    let count = placed.len() as u16;
    (0..count)
        .map(|step| (from + step) % count)
        .filter(|&cpu| allowed.is_none_or(|set| set.has(cpu)))
        .min_by_key(|&cpu| placed[usize::from(cpu)])
        .expect("checked: some CPU is allowed")
}

/// A kernel thread bound to a CPU.
fn bound(cpus: u16, cpu: u16) -> TaskSpec {
    TaskSpec {
        sleeps_for_io: false,
        ..TaskSpec::pinned(cpus, cpu)
    }
}
