//! A filesystem whose metadata are simulated, on its drive: its event, its runners and the bios that its I/O became.

use super::super::clock::{Clock, Event};
use super::super::cpus::{Cost, LockNumber, RUNNERS, RunnerNumber};
use super::super::driven_component::DrivenComponent;
use super::bios_left::BiosLeft;
use block_layer::TaskId;
use events::Component;
use events::smp::{SchedulerEvent, SchedulerEventKind, TaskNumber, TaskUsage};
use events::station::Violation;
use events::time::Time;
use filesystems::effect::Effect;
use filesystems::ext::Ext;
use filesystems::filesystem::Filesystem;
use filesystems::xfs::Xfs;

/// A filesystem on its drive, as the machine drives it.
///
/// Calls that may have effects are made by `World::with_filesystem` alone, which does these.
pub(in crate::world) struct MountedFilesystem {
    filesystem: DrivenComponent<Kind>,
    /// By the filesystem's own number of a task.
    runners: Vec<RunnerNumber>,
    /// The lock of the current checkpoint's list.
    lock: LockNumber,
    /// By the filesystem's tags.
    bios: BiosLeft,
}

/// In a trace's numbers of tasks, those that are none of the filesystem's.
const OTHERS: TaskNumber = 1 << 24;

enum Kind {
    Xfs(Box<Xfs>),
    /// It counts its work in nanoseconds.
    Ext(Box<Ext>),
}

impl MountedFilesystem {
    pub(in crate::world) fn xfs(xfs: Xfs, lock: LockNumber) -> MountedFilesystem {
        MountedFilesystem::new(Kind::Xfs(Box::new(xfs)), lock)
    }

    pub(in crate::world) fn ext(ext: Ext, lock: LockNumber) -> MountedFilesystem {
        MountedFilesystem::new(Kind::Ext(Box::new(ext)), lock)
    }

    fn new(filesystem: Kind, lock: LockNumber) -> MountedFilesystem {
        MountedFilesystem {
            filesystem: DrivenComponent::new(filesystem),
            runners: Vec::new(),
            lock,
            bios: BiosLeft::default(),
        }
    }

    pub(super) fn check(&self, now: Time) -> Result<(), Violation> {
        self.filesystem.check(now)
    }

    #[cfg(test)]
    pub(super) fn hold_contract(&mut self, now: Time) -> Result<(), Violation> {
        events::component::hold_contract(&mut *self.filesystem, now)
    }

    #[inline]
    pub(in crate::world) fn get(&self) -> &dyn Filesystem {
        self.filesystem.get()
    }

    #[inline]
    pub(in crate::world) fn get_mut(&mut self) -> &mut dyn Filesystem {
        self.filesystem.get_mut()
    }

    /// None: it is another filesystem.
    pub(in crate::world) fn as_xfs(&self) -> Option<&Xfs> {
        match &*self.filesystem {
            Kind::Xfs(xfs) => Some(xfs),
            Kind::Ext(_) => None,
        }
    }

    #[cfg(test)]
    pub(in crate::world) fn as_xfs_mut(&mut self) -> Option<&mut Xfs> {
        match &mut *self.filesystem {
            Kind::Xfs(xfs) => Some(xfs),
            Kind::Ext(_) => None,
        }
    }

    #[inline]
    pub(in crate::world) fn event_came(&mut self, now: Time) {
        self.filesystem.event_came(now);
    }

    #[inline]
    pub(in crate::world) fn call_back(&mut self, now: Time, drive: usize, clock: &mut Clock) {
        let event = Event::Filesystem(drive as u16);
        self.filesystem.call_back(now, event, clock);
    }

    #[inline]
    pub(in crate::world) fn effects(&mut self) -> Vec<Effect> {
        self.filesystem.effects()
    }

    #[inline]
    pub(in crate::world) fn give_back(&mut self, effects: Vec<Effect>) {
        self.filesystem.give_back(effects);
    }

    /// The runner that is the filesystem's next task.
    pub(in crate::world) fn add_runner(&mut self, runner: RunnerNumber) {
        self.runners.push(runner);
    }

    /// The runner that is the task of that number of the filesystem's.
    pub(in crate::world) fn runner(&self, task: TaskNumber) -> RunnerNumber {
        self.runners[task as usize]
    }

    /// The number of the same task in queues and traces.
    pub(in crate::world) fn task_id(&self, task: TaskNumber) -> TaskId {
        RUNNERS + self.runner(task)
    }

    /// What its tasks are called.
    pub(in crate::world) fn task_names(&self) -> Vec<(TaskId, String)> {
        let names = self.get().task_names().into_iter();
        names.map(|(task, name)| (self.task_id(task), name)).collect()
    }

    /// What the work costs, in the filesystem's own measure.
    pub(in crate::world) fn cost(&self, amount: u32) -> Cost {
        match *self.filesystem {
            Kind::Xfs(_) => Cost::Cycles(amount),
            Kind::Ext(_) => Cost::Ns(Time::from(amount)),
        }
    }

    /// The lock that work holds for this many cycles; None: it holds none.
    pub(in crate::world) fn lock(&self, cycles: u32) -> Option<(LockNumber, u32)> {
        (cycles > 0).then_some((self.lock, cycles))
    }

    /// A CPU has gone from one task to another. `runner_of` the machine's number of a task.
    pub(in crate::world) fn scheduled(
        &mut self,
        event: &SchedulerEvent,
        runner_of: impl Fn(TaskNumber) -> Option<RunnerNumber>,
    ) {
        let own = |task: TaskNumber| {
            let own = runner_of(task).and_then(|runner| self.runners.binary_search(&runner).ok());
            own.map_or(OTHERS + task, |own| own as TaskNumber)
        };
        let event = renumbered(event, own);
        self.get_mut().scheduled(&event);
    }

    /// What its tasks have used that no event has reported.
    pub(in crate::world) fn count_switches(&mut self, untold_usage: impl Fn(RunnerNumber) -> Option<TaskUsage>) {
        for (task, &runner) in (0..).zip(&self.runners) {
            if let Some(usage) = untold_usage(runner) {
                self.filesystem.get_mut().count_switches(task, &usage);
            }
        }
    }

    /// The I/O of that tag has become this many bios.
    pub(in crate::world) fn begin_io(&mut self, tag: u32, bios: u32) {
        self.bios.begin(tag, bios);
    }

    /// True: it was the last of its I/O.
    pub(in crate::world) fn bio_done(&mut self, tag: u32) -> bool {
        self.bios.one_done(tag)
    }
}

impl Component for Kind {
    type Effect = Effect;

    fn next_event(&self) -> Option<Time> {
        self.get().next_event()
    }

    fn advance(&mut self, now: Time) {
        self.get_mut().advance(now);
    }

    fn take_effects(&mut self, into: &mut Vec<Effect>) {
        self.get_mut().take_effects(into);
    }

    fn check(&self, now: Time) -> Result<(), Violation> {
        self.get().check(now)
    }
}

impl Kind {
    fn get(&self) -> &dyn Filesystem {
        match self {
            Kind::Xfs(xfs) => xfs.as_ref(),
            Kind::Ext(ext) => ext.as_ref(),
        }
    }

    fn get_mut(&mut self) -> &mut dyn Filesystem {
        match self {
            Kind::Xfs(xfs) => xfs.as_mut(),
            Kind::Ext(ext) => ext.as_mut(),
        }
    }
}

/// The event with other numbers of tasks.
fn renumbered(event: &SchedulerEvent, own: impl Fn(TaskNumber) -> TaskNumber) -> SchedulerEvent {
    let what = match event.what {
        SchedulerEventKind::Woken(task) => SchedulerEventKind::Woken(own(task)),
        SchedulerEventKind::Switch { previous, preempted, next } => {
            SchedulerEventKind::Switch { previous: previous.map(&own), preempted, next: next.map(&own) }
        }
    };
    SchedulerEvent { what, ..*event }
}
