//! The simulated machine as a whole: tasks on CPUs, files, the page cache, drives; one event queue.

mod bios;
mod cache_calls;
mod clock;
mod conversion_calls;
mod cpu_work;
mod cpus;
mod driven_component;
mod file_calls;
mod filesystem_calls;
mod io_path;
mod journal_calls;
mod mount_calls;
mod operations;
mod phase;
mod phase_spec;
mod polling;
mod standstill;
mod stop_poll;
mod submission;
mod swap;
mod sync_calls;
mod task;
mod tasks;
#[cfg(test)]
mod tests;
mod vfs;

use std::collections::{BTreeMap, BTreeSet};

use kernels::files::FileReads;
use kernels::submission::SyncWrites;

use crate::key_reader::KeyReader;
use block_layer::completion::Counters;
use block_layer::{KERNEL_TASKS, QueueEvent, TaskId, TaskPlug, Throttle};
use clock::{Clock, Event};
pub(crate) use cpus::CALL_NS_MAX;
pub use cpus::{
    CallCycles, CpuSpec, Cpus, DetailedSpec, DmaSpec, DriveCpus, Interrupts, Origin, RunnerNumber, Tag,
    TimerInterruptSpec,
};
use events::slab::Slab;
use events::smp::{Processors, SchedulerEvent};
use events::station::Violation;
use events::time::Time;
use io_path::IoPath;
pub use io_path::{DriveParts, FuaRules, PollDelay, PollRules, QueueRunCosts};
use memory::cache::PageCache;
use nfs::DirectIo;
use phase::Phase;
pub use phase::{Part, PhaseError, Results};
pub use phase_spec::{GroupSpec, Path, PhaseSpec};
use stop_poll::StopPoll;
use swap::Swap;
pub use swap::SwapArea;
pub use task::Progress;
use task::{Operation, Tasks};
use vfs::{FileExtent, Vfs};
pub use vfs::{FileLayout, FileSpec, LoadJournal};

/// Who syncs, and drops the page cache, between phases.
const HOUSEKEEPER: TaskId = KERNEL_TASKS + (1 << 19);

/// The machine with everything on it: a router over owners.
///
/// Each field is a type with private state. Its file states who may call it; what a call or an event means for several
/// of them stands in `impl World`, which calls one after the other in the order in which a kernel does.
pub struct World {
    clock: Clock,
    cpus: Cpus,
    tasks: Tasks,
    io: IoPath,
    vfs: Vfs,
    /// Processes that sort, of the last phase that had some.
    swap: Option<Swap>,
    operations: Slab<Operation>,
    phase: Phase,
    /// The parts that have been used since the machine was made.
    touched: BTreeSet<KeyReader>,
    stop_poll: StopPoll,
    /// Kernel threads whose turns on the CPU count, as runners.
    threads: BTreeMap<TaskId, RunnerNumber>,
    kept: ScratchLists,
}

/// Lists that are kept between events, so that none is allocated for each.
#[derive(Default)]
struct ScratchLists {
    may_retry: Vec<TaskId>,
    found: Vec<FileExtent>,
    scheduled: Vec<SchedulerEvent>,
}

/// Events between two looks at whether to continue.
const EVENTS_BETWEEN_QUESTIONS: u64 = 1 << 16;

impl World {
    /// `task_plug`: kernels from 2.6.39 on have one.
    pub fn new(
        cpus: impl Into<Cpus>,
        mut drives: Vec<DriveParts>,
        cache: Option<PageCache>,
        task_plug: Option<TaskPlug>,
    ) -> World {
        let mut cpus = cpus.into();
        cpus.serve(drives.iter().map(|drive| drive.queue.hooks()));
        let cache = cache.map(|cache| cache.with_drives(drives.len()));
        let allocators = drives.iter_mut().map(|drive| drive.filesystem.take());
        World {
            clock: Clock::new(),
            tasks: Tasks::default(),
            vfs: Vfs::new(cache, allocators.collect()),
            io: IoPath::new(drives, task_plug, cpus.count(), cpus.complete_requests()),
            cpus,
            swap: None,
            operations: Slab::new(),
            phase: Phase::default(),
            touched: BTreeSet::new(),
            stop_poll: StopPoll::default(),
            threads: BTreeMap::new(),
            kept: ScratchLists::default(),
        }
    }

    /// Of which writes schedulers see that a task waits for them.
    pub fn with_sync_writes(mut self, sync_writes: SyncWrites) -> World {
        self.io.set_sync_writes(sync_writes);
        self
    }

    /// How the page cache's reads become bios, and in what pieces they end.
    pub fn with_file_reads(mut self, file_reads: FileReads) -> World {
        self.vfs.set_reads(file_reads);
        self
    }

    /// Sets how often the clock of file times advances.
    pub fn with_tick(mut self, tick_ns: Time) -> World {
        self.vfs.syncs_mut().set_tick(tick_ns);
        self
    }

    /// The same with a drive that takes writes with force unit access.
    pub fn with_fua(mut self, drive: usize, rules: FuaRules) -> World {
        self.io.set_fua(drive, rules);
        self
    }

    /// The same with limits of control groups before a drive.
    pub fn with_throttle(mut self, drive: usize, throttle: Throttle) -> World {
        self.io.set_throttle(drive, throttle);
        self
    }

    /// By drive: whether fsync waits until the device's cache is on the medium.
    pub fn with_flushes(mut self, flushes: impl IntoIterator<Item = bool>) -> World {
        self.vfs.syncs_mut().look_at_caches();
        self.io.set_flushes(flushes);
        self
    }

    /// The same with mounts.
    pub fn with_mounts(mut self, mounts: Vec<DirectIo>) -> World {
        self.vfs.set_mounts(mounts);
        self
    }

    /// Runs until every task is done. `go_on` is asked now and then; false stops the jobs.
    pub fn run(&mut self, mut go_on: impl FnMut(&mut World) -> bool) {
        let mut stopped = false;
        for count in 0u64.. {
            if self.phase.is_over() && !self.makes_files() && !self.sorts() {
                return;
            }
            let Some((now, event)) = self.next_event() else {
                unreachable!("{} tasks wait for nothing", self.phase.tasks_left());
            };
            let polls = matches!(event, Event::StopPoll) && self.stop_poll.is_due(now);
            self.handle(now, event);
            #[cfg(test)]
            if count % tests::EVENTS_BETWEEN_CHECKS == 0 {
                self.hold_contracts();
            }
            self.look_at_stopper();
            let asks = polls || count % EVENTS_BETWEEN_QUESTIONS == 0;
            if asks && !stopped && !go_on(self) {
                stopped = true;
                self.stop_all();
            }
        }
    }

    /// The end of that part of what was begun stops the others; None: each continues to its own end.
    pub fn stop_others_with(&mut self, part: Option<Part>) {
        self.phase.stop_with(part);
    }

    #[inline]
    fn look_at_stopper(&mut self) {
        if let Some(part) = self.phase.stopper()
            && !self.is_active(part)
        {
            self.phase.stop_with(None);
            self.stop_all();
        }
    }

    fn is_active(&self, part: Part) -> bool {
        match part {
            Part::Load => !self.phase.is_over(),
            Part::Metadata => self.makes_files(),
            Part::Sort => self.sorts(),
        }
    }

    /// Nobody begins anything any more.
    fn stop_all(&mut self) {
        self.stop_metadata();
        self.stop_sorting();
        self.stop_jobs();
    }

    /// From here on the drives' queues emit their events.
    pub fn tap(&mut self) {
        self.io.tap();
    }

    /// Stops recording the block events of all drives.
    pub fn untap(&mut self) {
        self.io.untap();
    }

    /// Appends what the drives' queues have emitted since the last time.
    pub fn take_events(&mut self, into: &mut Vec<QueueEvent>) {
        self.io.take_events(into);
    }

    /// Simulated time since the machine was made.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Takes one of the detailed CPUs offline at that time, or brings it back. The last one stays online.
    pub fn plan_online(&mut self, at: Time, cpu: u16, is: bool) {
        self.clock.put(at, Event::Online(cpu, is));
    }

    /// The CPUs' times, counters and topology, up to now; None: simple CPUs keep none.
    pub fn processors(&mut self) -> Option<&Processors<Tag>> {
        self.cpus.processors(self.clock.now())
    }

    /// By drive: bios and requests by where they were worked on; none if the CPUs are simple.
    pub fn completion_counters(&self) -> Vec<Counters> {
        self.cpus.completion_counters()
    }

    /// By drive, how fast io.cost lets its virtual time pass, in percent of wall time; None: it is off there.
    pub fn vrates_percent(&self) -> impl Iterator<Item = Option<f64>> {
        self.io.drives().map(|drive| drive.queue().vrate_percent())
    }

    /// The parts of the machine that phases have used until now: no other key of its file made a difference.
    pub fn touched(&self) -> &BTreeSet<KeyReader> {
        &self.touched
    }

    /// Conservation and Little's law at every station.
    pub fn check(&self) -> Result<(), Violation> {
        let now = self.clock.now();
        self.io.check(now)?;
        self.vfs.check(now)?;
        if let Some(swap) = &self.swap {
            swap.check(now)?;
        }
        self.cpus.check(now)
    }

    /// What happens next; it is that time from here on.
    fn next_event(&mut self) -> Option<(Time, Event)> {
        let of_cpus = self.cpus.next_event();
        let (at, event) = match (of_cpus, self.clock.next_at()) {
            (Some(at), other) if other.is_none_or(|other| at <= other) => (at, Event::Cpus),
            _ => self.clock.take()?,
        };
        self.check_standstill(at);
        self.look_at_switches();
        self.clock.go_to(at);
        Some((at, event))
    }

    /// Anything is to come.
    fn has_events(&mut self) -> bool {
        self.clock.next_at().is_some() || self.cpus.next_event().is_some()
    }

    fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::StopPoll => self.poll_stop(now),
            Event::Cpus => {
                self.cpus.advance(now);
                self.follow_cpus(now);
            }
            Event::Reminder(reminder) => {
                let later = self.cpus.remind(now, reminder);
                self.plan_reminder(later);
                self.follow_cpus(now);
            }
            Event::Online(cpu, is) => self.cpus.set_online(now, cpu, is),
            Event::Drive(drive) => {
                self.io.event_came(now, usize::from(drive));
                self.run_drive(now, usize::from(drive));
            }
            Event::Mount(mount) => self.run_mount(now, usize::from(mount)),
            Event::Filesystem(drive) => self.run_filesystem(now, usize::from(drive)),
            Event::Swap => self.run_swap(now),
            Event::Wake(task) => {
                self.clock.progressed(now);
                self.wake(now, task);
            }
            Event::Cache => self.run_cache(now),
        }
    }
}
