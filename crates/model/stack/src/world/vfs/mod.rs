//! Files and what holds them: the page cache, filesystems on drives, journals, mounts, and what syncs wait for.

mod bios_left;
mod cache_io;
mod checkpoints;
mod conversions;
mod fast_commits;
mod file;
mod inode_locks;
mod journaled_data;
mod load_journal;
mod log_room;
mod mounted_filesystem;
mod syncs;

use std::collections::BTreeMap;
use std::ops::Range;

use super::driven_component::DrivenComponent;
use block_layer::SECTOR_BYTES;
use cache_io::CacheIo;
pub(super) use checkpoints::CheckpointWork;
use conversions::Conversions;
use events::Component;
use events::station::Violation;
use events::time::Time;
pub(super) use file::FileExtent;
use file::file_extents;
pub use file::{FileLayout, FileSpec};
use filesystems::allocator::{Allocator, BLOCK_BYTES, Extent};
use inode_locks::InodeLocks;
pub(super) use inode_locks::Locker;
pub(super) use journaled_data::Page;
use kernels::files::FileReads;
pub use load_journal::LoadJournal;
pub(super) use load_journal::{JournalWrite, NextStep};
use memory::cache::{FileId, PAGE_BYTES, PageCache};
pub(super) use mounted_filesystem::MountedFilesystem;
use nfs::DirectIo;
pub(super) use syncs::SyncDemand;
use syncs::Syncs;

/// The owner of files and of what lies between them and the I/O path.
///
/// It answers where a file's blocks are and who keeps them. Each part is a type with private fields: the machine
/// reaches one by a method here, calls it, and does the effects that it hands over at once (`with_cache`,
/// `with_filesystem`, `run_mount`), because a part may be called again meanwhile. It refers to no bio in a queue, no
/// CPU and no task's state; what it means for those stands in `impl World`, in the files that end in `_calls`.
pub(super) struct Vfs {
    files: Vec<FileSpec>,
    /// The streams of those that have one.
    write_streams: BTreeMap<FileId, u8>,
    /// By drive without a filesystem: the first of the files that are its parts.
    device_inodes: BTreeMap<usize, FileId>,
    /// By drive: the allocator of its blocks; None: it has none, or one of `filesystems` allocates.
    allocators: Vec<Option<Box<dyn Allocator>>>,
    /// By drive: those whose metadata are simulated.
    filesystems: BTreeMap<usize, MountedFilesystem>,
    /// By drive: of ext3 and ext4.
    journals: BTreeMap<usize, LoadJournal>,
    mounts: Vec<DrivenComponent<DirectIo>>,
    /// None: the machine has no memory for it.
    cache_io: Option<CacheIo>,
    reads: FileReads,
    syncs: Syncs,
    inode_locks: InodeLocks,
    conversions: Conversions,
}

impl Vfs {
    pub(super) fn new(cache: Option<PageCache>, allocators: Vec<Option<Box<dyn Allocator>>>) -> Vfs {
        Vfs {
            write_streams: BTreeMap::new(),
            device_inodes: BTreeMap::new(),
            files: Vec::new(),
            allocators,
            filesystems: BTreeMap::new(),
            journals: BTreeMap::new(),
            mounts: Vec::new(),
            cache_io: cache.map(CacheIo::new),
            reads: FileReads::LATEST,
            syncs: Syncs::default(),
            inode_locks: InodeLocks::default(),
            conversions: Conversions::default(),
        }
    }

    pub(super) fn set_reads(&mut self, reads: FileReads) {
        self.reads = reads;
    }

    pub(super) fn set_mounts(&mut self, mounts: Vec<DirectIo>) {
        self.mounts = mounts.into_iter().map(DrivenComponent::new).collect();
    }

    pub(super) fn add_journal(&mut self, drive: usize, journal: LoadJournal) {
        self.journals.insert(drive, journal);
    }

    pub(super) fn mount(&mut self, drive: usize, filesystem: MountedFilesystem) {
        self.filesystems.insert(drive, filesystem);
    }

    /// Its drive's filesystem has heard of it.
    pub(super) fn add_file(&mut self, file: FileSpec) -> FileId {
        let number = self.file_count();
        if let Some(cache) = self.cache_mut() {
            cache.set_size(number, file.size_bytes);
            if !matches!(file.place, FileLayout::Mounted) {
                cache.place(number, file.drive);
            }
        }
        self.files.push(file);
        number
    }

    /// The file is a part of its drive, on which there is no filesystem: the page cache has one inode for all of them.
    pub(super) fn join_device(&mut self, file: FileId) {
        let spec = &self.files[file as usize];
        let FileLayout::Contiguous(start) = spec.place else { unreachable!("a part of a drive lies in a row") };
        let first = *self.device_inodes.entry(spec.drive).or_insert(file);
        let page = start * SECTOR_BYTES / PAGE_BYTES;
        if let Some(cache) = self.cache_mut() {
            cache.join(file, first, page);
        }
    }

    pub(super) fn grow_file(&mut self, file: FileId, size_bytes: u64) {
        let spec = &mut self.files[file as usize];
        spec.size_bytes = spec.size_bytes.max(size_bytes);
        let size_bytes = spec.size_bytes;
        if let Some(cache) = self.cache_mut() {
            cache.set_size(file, size_bytes);
        }
    }

    pub(super) fn set_write_stream(&mut self, file: FileId, stream: u8) {
        match stream {
            0 => self.write_streams.remove(&file),
            _ => self.write_streams.insert(file, stream),
        };
    }

    /// 0: none.
    pub(super) fn write_stream(&self, file: FileId) -> u8 {
        match self.write_streams.is_empty() {
            true => 0,
            false => self.write_streams.get(&file).copied().unwrap_or(0),
        }
    }

    #[inline]
    pub(super) fn file(&self, file: FileId) -> &FileSpec {
        &self.files[file as usize]
    }

    pub(super) fn file_count(&self) -> FileId {
        self.files.len() as FileId
    }

    /// None: the file is on a drive.
    pub(super) fn mount_of(&self, file: FileId) -> Option<usize> {
        let spec = self.file(file);
        matches!(spec.place, FileLayout::Mounted).then_some(spec.drive)
    }

    /// Where the file lies, in blocks.
    pub(super) fn extents(&self, file: FileId) -> Vec<Extent> {
        let spec = self.file(file);
        spec.extents(file, self.allocator(spec.drive))
    }

    /// Where a range of the file lies on its drive, in parts none of which is larger than this many sectors.
    pub(super) fn extents_of(
        &self,
        file: FileId,
        offset: u64,
        bytes: u64,
        sectors_max: u32,
        found: &mut Vec<FileExtent>,
    ) {
        let spec = self.file(file);
        let allocator = self.allocator(spec.drive);
        file_extents(spec, file, allocator, offset, bytes, sectors_max, found);
    }

    /// The allocator of the drive's blocks; None: it has none.
    pub(super) fn allocator(&self, drive: usize) -> Option<&dyn Allocator> {
        match self.filesystems.get(&drive) {
            Some(on) => Some(on.get()),
            None => self.allocators[drive].as_deref(),
        }
    }

    /// The same, if it is no more than that.
    pub(super) fn allocator_mut(&mut self, drive: usize) -> Option<&mut dyn Allocator> {
        let allocator = self.allocators[drive].as_mut()?;
        Some(allocator.as_mut())
    }

    /// For a filesystem that is mounted in its place.
    pub(super) fn take_allocator(&mut self, drive: usize) -> Option<Box<dyn Allocator>> {
        self.allocators[drive].take()
    }

    /// The file is written to. True: its times change.
    pub(super) fn written(&mut self, now: Time, file: FileId) -> bool {
        let drive = self.file(file).drive;
        let running = self.running_transaction(drive);
        self.allocator(drive).is_some() && self.syncs.written(now, file, running)
    }

    /// The file has got blocks: in the transaction that runs.
    pub(super) fn got_blocks(&mut self, file: FileId) {
        let drive = self.file(file).drive;
        let running = self.running_transaction(drive);
        self.syncs.got_blocks(file, running);
        if let Some(journal) = self.journals.get_mut(&drive) {
            journal.got_blocks();
        }
    }

    /// Pages of the file are written to, on a drive whose journal has data: in the transaction that runs.
    pub(super) fn data_changes(&mut self, file: FileId, pages: Range<u64>) {
        let drive = self.file(file).drive;
        let running = self.running_transaction(drive);
        self.syncs.data_changes(file, running);
        self.journal_mut(drive).data_changes(file, pages);
    }

    /// Whether blocks that are written back count as the file's when the data are sent, not when they are on the drive.
    pub(super) fn gets_blocks_at_once(&self, drive: usize) -> bool {
        let journal = self.journals.get(&drive);
        journal.is_some_and(|journal| !journal.converts_after_writes())
    }

    /// Whether a part of the range has no block yet.
    pub(super) fn lacks_blocks(&self, file: FileId, offset: u64, bytes: u64) -> bool {
        let Some(allocator) = self.allocator(self.file(file).drive) else {
            return false;
        };
        let end = (offset + bytes).div_ceil(BLOCK_BYTES);
        let mut at = offset / BLOCK_BYTES;
        while at < end
            && let Some((_, run)) = allocator.map(file, at)
        {
            at += run;
        }
        at < end
    }

    /// The file is read. True: its times change.
    pub(super) fn read(&mut self, now: Time, file: FileId) -> bool {
        let spec = self.file(file);
        let running = self.running_transaction(spec.drive);
        spec.is_allocated() && self.syncs.read(now, file, running)
    }

    /// The file's inode is part of the transaction that runs.
    pub(super) fn inode_changes(&mut self, drive: usize, file: FileId) {
        if let Some(journal) = self.journals.get_mut(&drive) {
            journal.inode_changes(file);
        }
    }

    /// Of the drive's journal; 0: it has none.
    pub(super) fn running_transaction(&self, drive: usize) -> u64 {
        self.journals.get(&drive).map_or(0, LoadJournal::running)
    }

    /// Blocks of the drive get their places when they are written back. With `data=journal` they have them before.
    pub(super) fn delays_allocation(&self, drive: usize) -> bool {
        let allocator = self.allocator(drive);
        allocator.is_none_or(|allocator| !allocator.allocates_at_write()) && !self.journals_data(drive)
    }

    /// CPU time of what a sync commits of a file's new blocks.
    pub(super) fn allocation_ns(&self, drive: usize) -> Time {
        self.journals.get(&drive).map_or(0, LoadJournal::allocation_ns)
    }

    /// Whether an fsync that has nothing to commit empties the drive's cache: mounted with `nobarrier`, ext3 and ext4 do not.
    pub(super) fn fsync_flushes(&self, drive: usize) -> bool {
        let journal = self.journals.get(&drive);
        self.has_filesystem(drive) || journal.is_none_or(LoadJournal::has_barrier)
    }

    pub(super) fn has_filesystems(&self) -> bool {
        !self.filesystems.is_empty()
    }

    pub(super) fn has_filesystem(&self, drive: usize) -> bool {
        self.filesystems.contains_key(&drive)
    }

    pub(super) fn filesystem(&self, drive: usize) -> &MountedFilesystem {
        &self.filesystems[&drive]
    }

    pub(super) fn filesystem_mut(&mut self, drive: usize) -> &mut MountedFilesystem {
        let on = self.filesystems.get_mut(&drive);
        on.expect("a drive with a filesystem")
    }

    pub(super) fn filesystems(&self) -> impl Iterator<Item = &MountedFilesystem> {
        self.filesystems.values()
    }

    pub(super) fn filesystems_mut(&mut self) -> impl Iterator<Item = &mut MountedFilesystem> {
        self.filesystems.values_mut()
    }

    /// The journal of a drive whose filesystem's metadata are not simulated.
    pub(super) fn has_journal(&self, drive: usize) -> bool {
        !self.has_filesystem(drive) && self.journals.contains_key(&drive)
    }

    /// Data on the drive go to its journal first.
    pub(super) fn journals_data(&self, drive: usize) -> bool {
        let journal = self.journals.get(&drive);
        journal.is_some_and(LoadJournal::journals_data)
    }

    pub(super) fn journal_mut(&mut self, drive: usize) -> &mut LoadJournal {
        self.journals.get_mut(&drive).expect("it has one")
    }

    pub(super) fn has_mounts(&self) -> bool {
        !self.mounts.is_empty()
    }

    pub(super) fn mounts(&self) -> impl Iterator<Item = &DirectIo> {
        self.mounts.iter().map(|mount| &**mount)
    }

    pub(super) fn mount_mut(&mut self, mount: usize) -> &mut DrivenComponent<DirectIo> {
        &mut self.mounts[mount]
    }

    /// Times of mounts are drawn anew.
    pub(super) fn reseed_mounts(&mut self, seed: u64) {
        for mount in &mut self.mounts {
            mount.reseed(seed);
        }
    }

    pub(super) fn has_cache(&self) -> bool {
        self.cache_io.is_some()
    }

    #[inline]
    pub(super) fn cache(&self) -> Option<&PageCache> {
        self.cache_io.as_ref().map(CacheIo::get)
    }

    /// For calls that have no effects.
    #[inline]
    pub(super) fn cache_mut(&mut self) -> Option<&mut PageCache> {
        self.cache_io.as_mut().map(CacheIo::get_mut)
    }

    #[inline]
    pub(super) fn cache_io_mut(&mut self) -> &mut CacheIo {
        self.cache_io.as_mut().expect("buffered I/O has a cache")
    }

    /// How the page cache's reads become bios, and in what pieces they end.
    pub(super) fn reads(&self) -> FileReads {
        self.reads
    }

    pub(super) fn syncs(&self) -> &Syncs {
        &self.syncs
    }

    pub(super) fn syncs_mut(&mut self) -> &mut Syncs {
        &mut self.syncs
    }

    pub(super) fn inode_locks_mut(&mut self) -> &mut InodeLocks {
        &mut self.inode_locks
    }

    pub(super) fn conversions_mut(&mut self) -> &mut Conversions {
        &mut self.conversions
    }

    /// Whether a sync of the drive's files locks their inodes while it forces the log.
    pub(super) fn locks_inodes(&self, drive: usize) -> bool {
        self.inode_locks.are_of(drive)
    }

    /// The parts' own figures add up.
    pub(super) fn check(&self, now: Time) -> Result<(), Violation> {
        self.mounts.iter().try_for_each(|mount| mount.check(now))?;
        self.filesystems().try_for_each(|on| on.check(now))?;
        self.journals.values().try_for_each(LoadJournal::check)?;
        self.inode_locks.check()?;
        self.conversions.check()?;
        self.cache().map_or(Ok(()), |cache| cache.check(now))
    }

    /// Mounts go ahead by themselves.
    #[cfg(test)]
    pub(super) fn hold_contract(&mut self, now: Time) -> Result<(), Violation> {
        let mut filesystems = self.filesystems.values_mut();
        filesystems.try_for_each(|on| on.hold_contract(now))?;
        self.cache_mut().map_or(Ok(()), |cache| events::component::hold_contract(cache, now))
    }
}
