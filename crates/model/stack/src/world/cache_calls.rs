//! The page cache's calls, and what it asks for.

use super::World;
use super::bios::OF_CACHE;
use super::cpus::Origin;
use block_layer::{Bio, Direction, SECTOR_BYTES, Sector, TaskId};
use events::Component;
use events::time::Time;
use memory::cache::journal_task;
use memory::cache::{Effect, Io, PAGE_BYTES, PageCache};

const SECTORS_PER_PAGE: u64 = PAGE_BYTES / SECTOR_BYTES;

impl World {
    /// What the page cache's own tasks are called.
    pub fn cache_task_names(&self) -> Vec<(TaskId, String)> {
        let cache = self.vfs.cache();
        cache.map_or_else(Vec::new, |cache| cache.task_names().collect())
    }

    /// Who commits the drive's journal.
    pub(super) fn journal_task(&self, drive: usize) -> TaskId {
        let cache = self.vfs.cache();
        cache.map_or_else(|| journal_task(drive), |cache| cache.journal_task(drive))
    }

    /// Calls the cache, then does what it asks for.
    pub(super) fn with_cache<T>(&mut self, now: Time, call: impl FnOnce(&mut PageCache) -> T) -> T {
        let cache = self.vfs.cache_io_mut();
        let result = call(cache.get_mut());
        cache.call_back(now, &mut self.clock);
        let effects = cache.effects();
        let mut unplugs = false;
        for effect in &effects {
            match effect {
                Effect::Io(io) => self.start_cache_io(now, io),
                Effect::Unplug => unplugs = true,
                Effect::Journaled { file, first, end } => {
                    self.vfs.data_changes(*file, *first..*end);
                }
                Effect::Wake(_) | Effect::Start(_) => {}
            }
        }
        self.flush_task_plug(now);
        for effect in &effects {
            if let Effect::Io(io) = effect {
                self.call_drive(now, self.vfs.file(io.file).drive);
            }
        }
        if unplugs {
            self.unplug_all(now);
        }
        for effect in &effects {
            match *effect {
                Effect::Wake(task) => self.unblock(now, task),
                Effect::Start(task) => self.start_flusher(now, task),
                Effect::Io(_) | Effect::Unplug | Effect::Journaled { .. } => {}
            }
        }
        self.vfs.cache_io_mut().give_back(effects);
        self.share_memory(now);
        result
    }

    /// A flusher is woken: who woke it goes on, and it begins when it has had a CPU, on simple ones.
    fn start_flusher(&mut self, now: Time, task: TaskId) {
        if !self.works_as_kernel_thread(now, task, Origin::Flusher(task)) {
            self.flusher_begins(now, task);
        }
    }

    pub(super) fn flusher_begins(&mut self, now: Time, task: TaskId) {
        self.with_cache(now, |cache| cache.unblocked(now, task));
    }

    /// The time has come for which the cache has asked.
    pub(super) fn run_cache(&mut self, now: Time) {
        self.vfs.cache_io_mut().event_came(now);
        self.with_cache(now, |cache| cache.advance(now));
    }

    fn unplug_all(&mut self, now: Time) {
        for number in self.io.drive_numbers() {
            self.io[number].unplug(now);
            self.call_drive(now, number);
        }
    }

    pub(super) fn start_cache_io(&mut self, now: Time, io: &Io) {
        let drive = self.vfs.file(io.file).drive;
        let is_journaled = io.direction == Direction::Write && self.vfs.journals_data(drive);
        if is_journaled && self.waits_for_commit(now, drive, io) {
            return;
        }
        let (offset, bytes) = (io.page * PAGE_BYTES, u64::from(io.pages) * PAGE_BYTES);
        if io.direction == Direction::Write {
            let gets_blocks = self.vfs.delays_allocation(drive) && self.vfs.lacks_blocks(io.file, offset, bytes);
            if self.allocate(io.task, io.file, offset, bytes).is_err() {
                self.vfs.syncs_mut().found_no_room(io.file);
            }
            if gets_blocks && self.vfs.gets_blocks_at_once(drive) {
                self.got_blocks(now, io.file);
            } else if gets_blocks {
                let end = io.page + u64::from(io.pages);
                self.vfs.conversions_mut().starts(io.tag, io.file, io.page..end);
            }
        }
        let reads = self.vfs.reads();
        let mut found = std::mem::take(&mut self.kept.found);
        let sectors_max = match io.direction {
            Direction::Write => self.io[drive].write_bio_sectors_max(),
            Direction::Read => {
                let of_drive = self.io[drive].bio_sectors_max();
                of_drive.min(reads.bio_sectors_max)
            }
        };
        match is_journaled {
            true => self.extents_not_in_place(drive, io, sectors_max, &mut found),
            false => self.vfs.extents_of(io.file, offset, bytes, sectors_max, &mut found),
        }
        let mut part = io.tag;
        self.vfs.cache_io_mut().begin_io(part);
        let write_stream = self.write_stream_of(io.file, io.direction);
        let mut end_of_last = None;
        for extent in found.drain(..) {
            let ends_alone = reads.bios_end_alone || end_of_last != Some(extent.start);
            if io.direction == Direction::Read && ends_alone && end_of_last.is_some() {
                let page = extent.at / SECTORS_PER_PAGE;
                part = self.vfs.cache_io_mut().split_read(part, page);
            }
            end_of_last = Some(extent.start + Sector::from(extent.sectors));
            self.vfs.cache_io_mut().count_bio(part);
            let tag = part | OF_CACHE;
            let is_write = io.direction == Direction::Write;
            let sync = io.sync && (!is_write || self.io.sync_writes().of_fsync);
            let bio = Bio {
                read_ahead: io.read_ahead,
                writeback: is_write,
                write_stream,
                ..self.bio(now, io.task, io.direction, sync, extent, tag)
            };
            self.submit(now, drive, bio);
        }
        self.kept.found = found;
        self.update_congestion(now, drive);
        if self.vfs.cache_io_mut().is_done(io.tag) {
            self.cache_io_done(now, io.tag);
        }
    }

    pub(super) fn cache_bio_done(&mut self, now: Time, tag: u32) {
        if self.vfs.cache_io_mut().bio_done(tag) {
            self.cache_io_done(now, tag);
        }
    }

    pub(super) fn cache_io_done(&mut self, now: Time, tag: u32) {
        if !self.is_converted(now, tag) {
            self.ends_cache_io(now, tag);
        }
    }

    /// The I/O is over, and its blocks are the file's.
    pub(super) fn ends_cache_io(&mut self, now: Time, tag: u32) {
        self.are_in_place(now, tag);
        self.with_cache(now, |cache| cache.completed(now, tag));
    }
}
