//! The page cache's calls, and what it asks for.

use std::collections::BTreeMap;

use super::World;
use super::bios::OF_CACHE;
use super::clock::Event;
use super::driven::Driven;
use block_layer::{Bio, Direction, SECTOR_BYTES, Sector, TaskId};
use events::Component;
use events::time::Time;
use kernels::files::FileReads;
use memory::cache::journal_task;
use memory::cache::{Effect, Io, PAGE_BYTES, PageCache};

/// The page cache, and what it has asked drives for.
pub(super) struct Cached {
    /// None: the machine has none.
    pub(super) cache: Option<Driven<PageCache>>,
    /// Bios left of what the cache asked for, by its tag.
    io: BTreeMap<u32, u32>,
    pub(super) reads: FileReads,
}

impl Cached {
    pub(super) fn new(cache: Option<PageCache>) -> Cached {
        Cached {
            cache: cache.map(Driven::new),
            io: BTreeMap::new(),
            reads: FileReads::LATEST,
        }
    }

    fn get_mut(&mut self) -> &mut Driven<PageCache> {
        self.cache.as_mut().expect("buffered I/O has a cache")
    }
}

const SECTORS_PER_PAGE: u64 = PAGE_BYTES / SECTOR_BYTES;

impl World {
    /// What the page cache's own tasks are called.
    pub fn cache_task_names(&self) -> Vec<(TaskId, String)> {
        let cache = self.cached.cache.as_ref();
        cache.map_or_else(Vec::new, |cache| cache.task_names().collect())
    }

    /// Who commits the drive's journal.
    pub(super) fn journal_task(&self, drive: usize) -> TaskId {
        let cache = self.cached.cache.as_ref();
        cache.map_or_else(|| journal_task(drive), |cache| cache.journal_task(drive))
    }

    /// Calls the cache, then does what it asks for.
    pub(super) fn with_cache<T>(&mut self, now: Time, call: impl FnOnce(&mut PageCache) -> T) -> T {
        let cache = self.cached.get_mut();
        let result = call(cache);
        cache.call_back(now, Event::Cache, &mut self.clock);
        let effects = cache.effects();
        let mut unplugs = false;
        for effect in &effects {
            match effect {
                Effect::Io(io) => self.start_cache_io(now, io),
                Effect::Unplug => unplugs = true,
                Effect::Wake(_) => {}
            }
        }
        self.flush_task_plug(now);
        for effect in &effects {
            if let Effect::Io(io) = effect {
                self.call_drive(now, self.files[io.file as usize].drive);
            }
        }
        if unplugs {
            self.unplug_all(now);
        }
        for effect in &effects {
            if let Effect::Wake(task) = *effect {
                self.unblock(now, task);
            }
        }
        self.cached.get_mut().give_back(effects);
        self.share_memory(now);
        result
    }

    /// The time has come for which the cache has asked.
    pub(super) fn run_cache(&mut self, now: Time) {
        self.cached.get_mut().event_came(now);
        self.with_cache(now, |cache| cache.advance(now));
    }

    fn unplug_all(&mut self, now: Time) {
        for number in 0..self.drives.len() {
            self.drives[number].unplug(now);
            self.call_drive(now, number);
        }
    }

    fn start_cache_io(&mut self, now: Time, io: &Io) {
        let drive = self.files[io.file as usize].drive;
        let (offset, bytes) = (io.page * PAGE_BYTES, u64::from(io.pages) * PAGE_BYTES);
        if io.direction == Direction::Write
            && self.allocate(io.task, io.file, offset, bytes).is_err()
        {
            self.syncs.found_no_room(io.file);
        }
        let mut found = std::mem::take(&mut self.kept.found);
        let sectors_max = match io.direction {
            Direction::Write => self.drives[drive].write_bio_sectors_max,
            Direction::Read => {
                let of_drive = self.drives[drive].bio_sectors_max;
                of_drive.min(self.cached.reads.bio_sectors_max)
            }
        };
        self.extents_of(io.file, offset, bytes, sectors_max, &mut found);
        let mut part = io.tag;
        self.cached.io.insert(part, 0);
        let mut end_of_last = None;
        for extent in found.drain(..) {
            let ends_alone = self.cached.reads.bios_end_alone || end_of_last != Some(extent.start);
            if io.direction == Direction::Read && ends_alone && end_of_last.is_some() {
                let page = extent.at / SECTORS_PER_PAGE;
                part = self.cached.get_mut().split_read(part, page);
                self.cached.io.insert(part, 0);
            }
            end_of_last = Some(extent.start + Sector::from(extent.sectors));
            *self.cached.io.get_mut(&part).expect("just counted") += 1;
            let tag = part | OF_CACHE;
            let is_write = io.direction == Direction::Write;
            let sync = io.sync && (!is_write || self.submission.sync_writes.of_fsync);
            let bio = Bio {
                read_ahead: io.read_ahead,
                writeback: is_write,
                ..self.bio(now, io.task, io.direction, sync, extent, tag)
            };
            self.submit(now, drive, bio);
        }
        self.kept.found = found;
        self.update_congestion(now, drive);
        if self.cached.io.get(&io.tag) == Some(&0) {
            self.cache_io_done(now, io.tag);
        }
    }

    pub(super) fn cache_bio_done(&mut self, now: Time, tag: u32) {
        let left = self
            .cached
            .io
            .get_mut(&tag)
            .expect("the cache asked for it");
        *left -= 1;
        if *left == 0 {
            self.cache_io_done(now, tag);
        }
    }

    fn cache_io_done(&mut self, now: Time, tag: u32) {
        self.cached.io.remove(&tag);
        self.with_cache(now, |cache| cache.completed(now, tag));
    }
}
