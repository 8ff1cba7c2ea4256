//! Filesystems whose metadata are simulated: what they hand over becomes work of runners, I/O on their drive and timers.

use workload::metadata::MetadataPhase;

use super::World;
use super::cpus::{Origin, WorkItem};
use super::vfs::{FileExtent, Locker, MountedFilesystem};
use crate::key_reader::KeyReader;
use block_layer::{Bio, Direction, KERNEL_TASKS, TaskId};
use events::SpecError;
use events::time::Time;
use filesystems::allocator::Allocator;
use filesystems::effect::{BlockIo, Effect, FlushNumber, Submitter};
use filesystems::ext::{Ext, ExtMetadata, Mount};
use filesystems::filesystem::{Filesystem, Progress, Results};
use filesystems::switches::SwitchesOptions;
use filesystems::xfs::Xfs;
use memory::cache::{FileId, PageCache};

/// The bit of the tag of a filesystem's bios.
pub(super) const OF_FILESYSTEM: u32 = 1 << 30;
/// Who waits for a drive's flush on behalf of its filesystem.
const FLUSHES: TaskId = KERNEL_TASKS + (1 << 28);
const SECTORS_PER_BLOCK: u64 = 8;

impl World {
    /// The same with a filesystem on a drive.
    pub fn with_xfs(mut self, drive: usize, xfs: Xfs) -> World {
        let lock = self.cpus.add_lock();
        self.vfs.mount(drive, MountedFilesystem::xfs(xfs, lock));
        self.follow_effects(self.clock.now(), drive);
        self
    }

    /// The same if a sync of the drive's files locks their inodes while it forces the log.
    pub fn with_inode_locks(mut self, drive: usize) -> World {
        self.vfs.inode_locks_mut().add_drive(drive);
        self
    }

    /// The XFS of the drive; panics if there is none.
    pub fn xfs(&self, drive: usize) -> &Xfs {
        let xfs = self.vfs.filesystem(drive).as_xfs();
        xfs.expect("the drive has an XFS")
    }

    /// Files are to be made on an ext2, ext3 or ext4 whose blocks the drive's allocator gives out. Once is enough.
    pub fn mount_ext(&mut self, drive: usize, mount: &Mount, spec: ExtMetadata) -> Result<(), SpecError> {
        if self.vfs.has_filesystem(drive) {
            return Ok(());
        }
        let allocator = self.vfs.take_allocator(drive);
        let allocator = allocator.expect("a drive with a filesystem");
        let ext = Ext::new(mount, spec, allocator)?;
        let lock = self.cpus.add_lock();
        self.vfs.mount(drive, MountedFilesystem::ext(ext, lock));
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
        let xfs = self.vfs.filesystem_mut(drive).as_xfs_mut();
        xfs.expect("the drive has an XFS")
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
        self.touched.extend([KeyReader::Cpus, KeyReader::Filesystem(drive as u16)]);
        self.with_filesystem(now, drive, |xfs| xfs.begin(now, phase, switches))
    }

    /// What the phase's threads came to.
    pub fn end_metadata(&mut self, drive: usize) -> Results {
        self.look_at_switches();
        self.cpus.tap(false);
        let used = self.cpus.used_by_all(self.clock.now(), self.tasks.used_by_all());
        let on = self.vfs.filesystem_mut(drive);
        on.count_switches(|runner| self.cpus.untold_usage(runner));
        on.get_mut().end(self.clock.now(), used)
    }

    /// How far the phase's threads have come.
    pub fn metadata_progress(&self, drive: usize) -> Progress {
        self.vfs.filesystem(drive).get().progress()
    }

    /// What the filesystem's tasks are called, the phase's threads as their jobs are.
    pub fn task_names(&self, drive: usize) -> Vec<(TaskId, String)> {
        self.vfs.filesystem(drive).task_names()
    }

    /// Whether threads still make files.
    pub(super) fn makes_files(&self) -> bool {
        self.vfs.filesystems().any(|on| on.get().is_active())
    }

    pub(super) fn stop_metadata(&mut self) {
        self.vfs.filesystems_mut().for_each(|on| on.get_mut().stop());
    }

    /// Who has left a CPU for whom until now.
    pub(super) fn look_at_switches(&mut self) {
        if !self.vfs.has_filesystems() {
            return;
        }
        let mut events = std::mem::take(&mut self.kept.scheduled);
        self.cpus.take_scheduled(&mut events);
        for event in events.drain(..) {
            for on in self.vfs.filesystems_mut() {
                on.scheduled(&event, |task| self.cpus.runner_of_task(task));
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
            Origin::Retry(task) => self.tries_again(now, task),
            Origin::Flusher(task) => self.flusher_begins(now, task),
            Origin::Journal(drive) => self.journal_goes_on(now, usize::from(drive)),
            Origin::Conversion(file) => self.conversion_goes_on(now, file),
        }
    }

    /// The time has come for which the filesystem has asked.
    pub(super) fn run_filesystem(&mut self, now: Time, drive: usize) {
        self.vfs.filesystem_mut(drive).event_came(now);
        self.with_filesystem(now, drive, |filesystem| filesystem.advance(now));
    }

    pub(super) fn filesystem_bio_done(&mut self, now: Time, drive: usize, tag: u32) {
        if self.vfs.filesystem_mut(drive).bio_done(tag) {
            self.with_filesystem(now, drive, |xfs| xfs.completed(now, tag));
        }
    }

    /// True: the drive's cache was emptied for the filesystem on it, which has noted that.
    pub(super) fn flushed_for_filesystem(&mut self, now: Time, drive: usize, task: TaskId) -> bool {
        let Some(number) = task.checked_sub(FLUSHES) else {
            return false;
        };
        self.with_filesystem(now, drive, |xfs| xfs.flushed(now, number));
        true
    }

    /// Whether the task waits for the log of the filesystem before its sync of the file is over.
    pub(super) fn forces_log(&mut self, now: Time, drive: usize, task: TaskId, file: FileId) -> bool {
        self.vfs.has_filesystem(drive)
            && self.with_filesystem(now, drive, |xfs| {
                xfs.advance(now);
                xfs.force_for_load(task, file)
            })
    }

    /// Whether the task's sync of the file waits before it may force the log for it.
    pub(super) fn waits_to_force(&mut self, task: TaskId, file: FileId, data_only: bool) -> bool {
        let drive = self.vfs.file(file).drive;
        self.vfs.locks_inodes(drive)
            && self.vfs.syncs().has_changes(file, data_only)
            && !self.vfs.inode_locks_mut().shares(task, file)
    }

    /// The log is on the drive for the task. If another had it forced, the task flushes the drive's cache, too
    /// (`xfs_file_fsync`).
    fn log_is_forced(&mut self, now: Time, drive: usize, task: TaskId, flushed: bool) {
        self.ends_force(now, task);
        if flushed || !self.io[drive].flush_for(now, task) {
            self.sync_goes_on(now, task);
        } else {
            self.call_drive(now, drive);
        }
    }

    /// The task's sync forces the log no more: what has waited for that goes on.
    pub(super) fn ends_force(&mut self, now: Time, task: TaskId) {
        if let Some(file) = self.vfs.inode_locks_mut().ends_force(task) {
            self.vfs.syncs_mut().are_committed(file);
            self.unlock_inode(now, file);
        }
    }

    /// Whether the task, which writes to the file through the page cache, waits for the inode. Who does not lets in the next.
    pub(super) fn waits_for_inode(&mut self, now: Time, task: TaskId, file: FileId) -> bool {
        let drive = self.vfs.file(file).drive;
        let has_written = |cache: &PageCache| cache.has_written(task);
        if !self.vfs.locks_inodes(drive) || self.vfs.cache().is_some_and(has_written) {
            return false;
        }
        if self.vfs.inode_locks_mut().keeps_out(task, file) {
            return true;
        }
        if let Some(next) = self.vfs.inode_locks_mut().next_writer(file) {
            self.unblock(now, next);
        }
        self.unlock_inode(now, file);
        false
    }

    pub(super) fn unlock_inode(&mut self, now: Time, file: FileId) {
        for one in self.vfs.inode_locks_mut().next(file) {
            match one {
                Locker::Writer(task) | Locker::Forces(task) => self.unblock(now, task),
                Locker::Converts => self.worker_is_woken(now, file),
            }
        }
    }

    /// The file has got blocks, and perhaps another size, which its inode has.
    pub(super) fn got_blocks(&mut self, now: Time, file: FileId) {
        self.vfs.got_blocks(file);
        self.inode_changes(now, file);
    }

    /// The file's inode changes, in the log of its filesystem.
    pub(super) fn inode_changes(&mut self, now: Time, file: FileId) {
        let drive = self.vfs.file(file).drive;
        if self.vfs.has_filesystem(drive) {
            self.with_filesystem(now, drive, |xfs| {
                xfs.advance(now);
                xfs.inode_changes(file);
            });
        } else {
            self.vfs.inode_changes(drive, file);
        }
    }

    /// Calls the allocator of the drive; None: it has none.
    pub(super) fn with_allocator<T>(&mut self, drive: usize, call: impl FnOnce(&mut dyn Allocator) -> T) -> Option<T> {
        let now = self.clock.now();
        if self.vfs.has_filesystem(drive) {
            return Some(self.with_filesystem(now, drive, |xfs| {
                xfs.advance(now);
                call(xfs)
            }));
        }
        self.vfs.allocator_mut(drive).map(call)
    }

    /// Calls the filesystem, then does what it hands over.
    fn with_filesystem<T>(&mut self, now: Time, drive: usize, call: impl FnOnce(&mut dyn Filesystem) -> T) -> T {
        let result = call(self.vfs.filesystem_mut(drive).get_mut());
        self.follow_effects(now, drive);
        result
    }

    fn follow_effects(&mut self, now: Time, drive: usize) {
        let on = self.vfs.filesystem_mut(drive);
        on.call_back(now, drive, &mut self.clock);
        let mut effects = on.effects();
        let mut goes_to_drive = false;
        let mut empty: Vec<FlushNumber> = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Task(spec) => {
                    let runner = self.cpus.add_runner(spec);
                    self.vfs.filesystem_mut(drive).add_runner(runner);
                }
                Effect::Work { task, by, cycles, locked_cycles, context, of } => {
                    let on = self.vfs.filesystem(drive);
                    let item = WorkItem {
                        cost: on.cost(cycles),
                        context,
                        lock: on.lock(locked_cycles),
                        of: of.map(|actor| Origin::Filesystem(drive as u16, actor)),
                    };
                    let runner = on.runner(task);
                    self.give(now, runner, by, item);
                }
                Effect::Io(io) => {
                    goes_to_drive = true;
                    self.start_block_io(now, drive, &io);
                }
                Effect::Flush(number) => {
                    goes_to_drive = true;
                    self.touched.insert(KeyReader::Flushes(drive as u16));
                    if !self.io[drive].flush_for(now, FLUSHES + number) {
                        empty.push(number);
                    }
                }
                Effect::Unblock { task, flushed } => self.log_is_forced(now, drive, task, flushed),
                Effect::Exit(task) => {
                    let task = self.vfs.filesystem(drive).task_id(task);
                    self.io[drive].exited(now, task);
                    self.call_drive(now, drive);
                }
            }
        }
        self.vfs.filesystem_mut(drive).give_back(effects);
        if goes_to_drive {
            self.flush_task_plug(now);
            self.io[drive].unplug(now);
            self.call_drive(now, drive);
        }
        for number in empty {
            self.with_filesystem(now, drive, |xfs| xfs.flushed(now, number));
        }
    }

    fn start_block_io(&mut self, now: Time, drive: usize, io: &BlockIo) {
        let sectors_max = match io.writeback {
            true => self.io[drive].write_bio_sectors_max(),
            false => self.io[drive].bio_sectors_max(),
        };
        let task = match io.by {
            Submitter::Own(task) => self.vfs.filesystem(drive).task_id(task),
            Submitter::Load(task) => task,
        };
        let shows = match (io.direction, io.metadata) {
            (Direction::Read, _) => true,
            (Direction::Write, true) => self.io.sync_writes().of_journal,
            (Direction::Write, false) => self.io.sync_writes().of_fsync,
        };
        let mut start = io.block * SECTORS_PER_BLOCK;
        let mut left = io.blocks * SECTORS_PER_BLOCK as u32;
        let bios = left.div_ceil(sectors_max);
        self.vfs.filesystem_mut(drive).begin_io(io.tag, bios);
        while left > 0 {
            let sectors = left.min(sectors_max);
            let tag = io.tag | OF_FILESYSTEM;
            let place = FileExtent { start, sectors, at: 0 };
            let bio = self.bio(now, task, io.direction, io.sync && shows, place, tag);
            let bio = Bio {
                metadata: io.metadata,
                behind_flush: io.behind_flush,
                force_unit_access: io.behind_flush,
                writeback: io.writeback,
                priority: match io.by {
                    Submitter::Own(_) => io.priority,
                    Submitter::Load(_) => bio.priority,
                },
                ..bio
            };
            self.submit(now, drive, bio);
            start += u64::from(sectors);
            left -= sectors;
        }
    }
}
