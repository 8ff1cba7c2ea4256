//! Filesystems whose metadata are simulated: what they hand over becomes work of runners, I/O on their drive and timers.

use std::collections::BTreeMap;

use workload::metadata::MetadataPhase;

use super::World;
use super::clock::Event;
use super::cpus::{Cost, LockNumber, Origin, RUNNERS, RunnerNumber, WorkItem};
use super::driven::Driven;
use super::files::FileExtent;
use crate::key_reader::KeyReader;
use block_layer::{Bio, Direction, KERNEL_TASKS, TaskId};
use events::smp::{Scheduled, SchedulerEvent, TaskNumber};
use events::station::Violation;
use events::time::Time;
use events::{Component, SpecError};
use filesystems::allocator::Allocator;
use filesystems::effect::{BlockIo, Effect, FlushNumber};
use filesystems::ext::{Ext, ExtMetadata, Mount};
use filesystems::filesystem::{Filesystem, Progress, Results};
use filesystems::switches::SwitchesOptions;
use filesystems::xfs::Xfs;
use memory::cache::FileId;

/// A filesystem on its drive, as the machine drives it.
pub(super) struct MountedFilesystem {
    filesystem: Driven<Kind>,
    /// By the filesystem's own number of a task.
    runners: Vec<RunnerNumber>,
    /// Of the list of the checkpoint under way.
    lock: LockNumber,
    /// Bios left of what it asked for, by its tag.
    io: BTreeMap<u32, u32>,
}

/// The bit of a bio's tag that says so: of a filesystem.
pub(super) const OF_FILESYSTEM: u32 = 1 << 30;
/// Who waits for a drive's flush on behalf of its filesystem.
const FLUSHES: TaskId = KERNEL_TASKS + (1 << 28);
/// In a trace's numbers of tasks, those that are none of the filesystem's.
const OTHERS: TaskNumber = 1 << 24;
const SECTORS_PER_BLOCK: u64 = 8;

enum Kind {
    Xfs(Box<Xfs>),
    /// It counts its work in nanoseconds.
    Ext(Box<Ext>),
}

impl MountedFilesystem {
    fn new(filesystem: Kind, lock: LockNumber) -> MountedFilesystem {
        MountedFilesystem {
            filesystem: Driven::new(filesystem),
            runners: Vec::new(),
            lock,
            io: BTreeMap::new(),
        }
    }

    pub(super) fn check(&self, now: Time) -> Result<(), Violation> {
        self.filesystem.check(now)
    }

    #[cfg(test)]
    pub(super) fn hold_contract(&mut self, now: Time) -> Result<(), Violation> {
        events::component::hold_contract(&mut *self.filesystem, now)
    }

    fn get(&self) -> &dyn Filesystem {
        self.filesystem.get()
    }

    fn get_mut(&mut self) -> &mut dyn Filesystem {
        self.filesystem.get_mut()
    }

    fn cost(&self, amount: u32) -> Cost {
        match *self.filesystem {
            Kind::Xfs(_) => Cost::Cycles(amount),
            Kind::Ext(_) => Cost::Ns(Time::from(amount)),
        }
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

impl World {
    /// The same with a filesystem on a drive.
    pub fn with_xfs(mut self, drive: usize, xfs: Xfs) -> World {
        let lock = self.cpus.add_lock();
        self.filesystems.insert(
            drive,
            MountedFilesystem::new(Kind::Xfs(Box::new(xfs)), lock),
        );
        self.follow_effects(self.clock.now(), drive);
        self
    }

    /// The XFS of the drive; panics where there is none.
    pub fn xfs(&self, drive: usize) -> &Xfs {
        match &*self.filesystems[&drive].filesystem {
            Kind::Xfs(xfs) => xfs,
            Kind::Ext(_) => panic!("drive {drive} has another filesystem"),
        }
    }

    /// Files are to be made on an ext2, ext3 or ext4 whose blocks the drive's allocator gives out. Once is enough.
    pub fn mount_ext(
        &mut self,
        drive: usize,
        mount: &Mount,
        spec: ExtMetadata,
    ) -> Result<(), SpecError> {
        if self.filesystems.contains_key(&drive) {
            return Ok(());
        }
        let allocator = self.drives[drive].allocator.take();
        let allocator = allocator.expect("a drive with a filesystem");
        let ext = Ext::new(mount, spec, allocator)?;
        let lock = self.cpus.add_lock();
        self.filesystems.insert(
            drive,
            MountedFilesystem::new(Kind::Ext(Box::new(ext)), lock),
        );
        self.follow_effects(self.clock.now(), drive);
        Ok(())
    }

    /// Until nothing of the filesystem's is under way.
    #[cfg(test)]
    pub(crate) fn settle_filesystem(&mut self, drive: usize) {
        while self.xfs(drive).is_busy() {
            let (at, event) = self.next_event().expect("something is under way");
            self.handle(at, event);
        }
    }

    #[cfg(test)]
    pub(crate) fn xfs_mut(&mut self, drive: usize) -> &mut Xfs {
        match &mut *self.filesystem(drive).filesystem {
            Kind::Xfs(xfs) => xfs,
            Kind::Ext(_) => panic!("drive {drive} has another filesystem"),
        }
    }

    /// Threads that make files, beside the jobs of the phase that was begun. The error names a key of the phase.
    pub fn begin_metadata(
        &mut self,
        drive: usize,
        phase: &MetadataPhase,
        switches: Option<&SwitchesOptions>,
    ) -> Result<(), SpecError> {
        let now = self.clock.now();
        self.cpus.tap(true);
        self.touched
            .extend([KeyReader::Cpus, KeyReader::Filesystem(drive as u16)]);
        self.with_filesystem(now, drive, |xfs| xfs.begin(now, phase, switches))
    }

    /// What the phase's threads came to.
    pub fn end_metadata(&mut self, drive: usize) -> Results {
        self.look_at_switches();
        self.cpus.tap(false);
        let used = self
            .cpus
            .used_by_all(self.clock.now(), self.tasks.used_by_all());
        let on = self.filesystems.get_mut(&drive);
        let on = on.expect("it was begun there");
        for (task, &runner) in (0..).zip(&on.runners) {
            if let Some(usage) = self.cpus.untold_usage(runner) {
                on.filesystem.get_mut().count_switches(task, &usage);
            }
        }
        on.get_mut().end(self.clock.now(), used)
    }

    /// How far the phase's threads have come.
    pub fn metadata_progress(&self, drive: usize) -> Progress {
        self.filesystems[&drive].get().progress()
    }

    /// What the filesystem's tasks are called, the phase's threads as their jobs are.
    pub fn task_names(&self, drive: usize) -> Vec<(TaskId, String)> {
        let on = &self.filesystems[&drive];
        let names = on.get().task_names().into_iter();
        names
            .map(|(task, name)| (RUNNERS + on.runners[task as usize], name))
            .collect()
    }

    /// Whether threads still make files.
    pub(super) fn makes_files(&self) -> bool {
        self.filesystems.values().any(|on| on.get().is_active())
    }

    pub(super) fn stop_metadata(&mut self) {
        self.filesystems
            .values_mut()
            .for_each(|on| on.get_mut().stop());
    }

    /// Who has left a CPU for whom until now.
    pub(super) fn look_at_switches(&mut self) {
        if self.filesystems.is_empty() {
            return;
        }
        let mut events = std::mem::take(&mut self.kept.scheduled);
        self.cpus.take_scheduled(&mut events);
        for event in events.drain(..) {
            for on in self.filesystems.values_mut() {
                let cpus = &self.cpus;
                let own = |task: TaskNumber| {
                    let runner = cpus.runner_of_task(task);
                    let own = runner.and_then(|runner| on.runners.binary_search(&runner).ok());
                    own.map_or(OTHERS + task, |own| own as TaskNumber)
                };
                let event = renumbered(&event, own);
                on.get_mut().scheduled(&event);
            }
        }
        self.kept.scheduled = events;
    }

    /// A runner's piece of work is done.
    pub(super) fn item_done(&mut self, now: Time, cpu: u16, origin: Origin) {
        self.clock.progressed(now);
        match origin {
            Origin::Filesystem(drive, actor) => {
                self.with_filesystem(now, usize::from(drive), |xfs| xfs.worked(now, actor, cpu));
            }
            Origin::Sorting(task) => self.sorting_worked(now, task),
        }
    }

    /// The time has come for which the filesystem has asked.
    pub(super) fn run_filesystem(&mut self, now: Time, drive: usize) {
        self.filesystem(drive).filesystem.event_came(now);
        self.with_filesystem(now, drive, |filesystem| filesystem.advance(now));
    }

    pub(super) fn filesystem_bio_done(&mut self, now: Time, drive: usize, tag: u32) {
        let on = self.filesystem(drive);
        let left = on.io.get_mut(&tag).expect("the filesystem asked for it");
        *left -= 1;
        if *left == 0 {
            on.io.remove(&tag);
            self.with_filesystem(now, drive, |xfs| xfs.completed(now, tag));
        }
    }

    /// True: the drive's cache was emptied for the filesystem on it, which knows now.
    pub(super) fn flushed_for_filesystem(&mut self, now: Time, drive: usize, task: TaskId) -> bool {
        let Some(number) = task.checked_sub(FLUSHES) else {
            return false;
        };
        self.with_filesystem(now, drive, |xfs| xfs.flushed(now, number));
        true
    }

    /// Whether the task waits for the log of the filesystem before its sync of the file is over.
    pub(super) fn forces_log(
        &mut self,
        now: Time,
        drive: usize,
        task: TaskId,
        file: FileId,
        times: bool,
    ) -> bool {
        self.filesystems.contains_key(&drive)
            && self.with_filesystem(now, drive, |xfs| {
                xfs.advance(now);
                xfs.force_for_load(task, file, times)
            })
    }

    /// Who gives the drive's blocks to files; None: nobody does.
    pub(super) fn allocator(&self, drive: usize) -> Option<&dyn Allocator> {
        match self.filesystems.get(&drive) {
            Some(on) => Some(on.get()),
            None => self.drives[drive].allocator.as_deref(),
        }
    }

    /// Calls it; None: there is none.
    pub(super) fn with_allocator<T>(
        &mut self,
        drive: usize,
        call: impl FnOnce(&mut dyn Allocator) -> T,
    ) -> Option<T> {
        let now = self.clock.now();
        if self.filesystems.contains_key(&drive) {
            return Some(self.with_filesystem(now, drive, |xfs| {
                xfs.advance(now);
                call(xfs)
            }));
        }
        let allocator = self.drives[drive].allocator.as_mut()?;
        Some(call(allocator.as_mut()))
    }

    /// Calls the filesystem, then does what it hands over.
    fn with_filesystem<T>(
        &mut self,
        now: Time,
        drive: usize,
        call: impl FnOnce(&mut dyn Filesystem) -> T,
    ) -> T {
        let result = call(self.filesystem(drive).get_mut());
        self.follow_effects(now, drive);
        result
    }

    fn filesystem(&mut self, drive: usize) -> &mut MountedFilesystem {
        let on = self.filesystems.get_mut(&drive);
        on.expect("a drive with a filesystem")
    }

    fn follow_effects(&mut self, now: Time, drive: usize) {
        let event = Event::Filesystem(drive as u16);
        let on = self.filesystems.get_mut(&drive).expect("it was told");
        on.filesystem.call_back(now, event, &mut self.clock);
        let mut effects = on.filesystem.effects();
        let mut goes_to_drive = false;
        let mut empty: Vec<FlushNumber> = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Task(spec) => {
                    let runner = self.cpus.add_runner(spec);
                    self.filesystem(drive).runners.push(runner);
                }
                Effect::Work {
                    task,
                    by,
                    cycles,
                    locked_cycles,
                    context,
                    of,
                } => {
                    let on = &self.filesystems[&drive];
                    let item = WorkItem {
                        cost: on.cost(cycles),
                        context,
                        lock: (locked_cycles > 0).then_some((on.lock, locked_cycles)),
                        of: of.map(|actor| Origin::Filesystem(drive as u16, actor)),
                    };
                    let runner = on.runners[task as usize];
                    self.give(now, runner, by, item);
                }
                Effect::Io(io) => {
                    goes_to_drive = true;
                    self.start_block_io(now, drive, &io);
                }
                Effect::Flush(number) => {
                    goes_to_drive = true;
                    self.touched.insert(KeyReader::Flushes(drive as u16));
                    if !self.drives[drive].flush_for(now, FLUSHES + number) {
                        empty.push(number);
                    }
                }
                Effect::Unblock(task) => {
                    self.sync_goes_on(now, task);
                }
                Effect::Exit(task) => {
                    let task = RUNNERS + self.filesystems[&drive].runners[task as usize];
                    self.drives[drive].exited(now, task);
                    self.call_drive(now, drive);
                }
            }
        }
        self.filesystem(drive).filesystem.give_back(effects);
        if goes_to_drive {
            self.flush_task_plug(now);
            self.drives[drive].unplug(now);
            self.call_drive(now, drive);
        }
        for number in empty {
            self.with_filesystem(now, drive, |xfs| xfs.flushed(now, number));
        }
    }

    fn start_block_io(&mut self, now: Time, drive: usize, io: &BlockIo) {
        let sectors_max = match io.writeback {
            true => self.drives[drive].write_bio_sectors_max,
            false => self.drives[drive].bio_sectors_max,
        };
        let task = RUNNERS + self.filesystems[&drive].runners[io.task as usize];
        let shows = match (io.direction, io.metadata) {
            (Direction::Read, _) => true,
            (Direction::Write, true) => self.submission.sync_writes.of_journal,
            (Direction::Write, false) => self.submission.sync_writes.of_fsync,
        };
        let mut start = io.block * SECTORS_PER_BLOCK;
        let mut left = io.blocks * SECTORS_PER_BLOCK as u32;
        let bios = left.div_ceil(sectors_max);
        self.filesystem(drive).io.insert(io.tag, bios);
        while left > 0 {
            let sectors = left.min(sectors_max);
            let tag = io.tag | OF_FILESYSTEM;
            let place = FileExtent {
                start,
                sectors,
                at: 0,
            };
            let bio = Bio {
                metadata: io.metadata,
                behind_flush: io.behind_flush,
                writeback: io.writeback,
                ..self.bio(now, task, io.direction, io.sync && shows, place, tag)
            };
            self.submit(now, drive, bio);
            start += u64::from(sectors);
            left -= sectors;
        }
    }
}

/// The event with other numbers of tasks.
fn renumbered(event: &SchedulerEvent, own: impl Fn(TaskNumber) -> TaskNumber) -> SchedulerEvent {
    let what = match event.what {
        Scheduled::Woken(task) => Scheduled::Woken(own(task)),
        Scheduled::Switch {
            previous,
            preempted,
            next,
        } => Scheduled::Switch {
            previous: previous.map(&own),
            preempted,
            next: next.map(&own),
        },
    };
    SchedulerEvent { what, ..*event }
}
