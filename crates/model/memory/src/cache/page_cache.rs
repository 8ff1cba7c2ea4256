//! The cache as a whole: what is in flight, and what its completion leads to.

use crate::cache::backlog::{Backlog, Piece};
use crate::cache::device::{Devices, FLUSHER, JOURNAL, OLD_DATA_FLUSHER, journal_task, task_of};
use crate::cache::flushers::{Flusher, Flushers, Purpose};
use crate::cache::folios::Folios;
use crate::cache::inode_lock::InodeLocks;
use crate::cache::journal::Journals;
use crate::cache::limits::{LimitContext, Limits};
use crate::cache::pages::Pages;
use crate::cache::pdflush_threads::THREADS_MAX;
use crate::cache::readers::Readers;
use crate::cache::spec::{CacheSpec, CacheVariant, Rules};
use crate::cache::syncs::Syncs;
use crate::cache::writes::{WriteFollowUp, Writes};
use crate::cache::{Effect, FileId, FsyncHolds, Io, PAGE_BYTES};
use block_layer::{Direction, TaskId};
use events::slab::Slab;
use events::station::Violation;
use events::time::Time;
use events::{Component, SpecError};

/// A page cache of some kernel: what a call, a completion or a flusher's step means for each of its owners. Offsets and
/// lengths are in bytes. `read`, `write`, `sync` and the steps are in files of their own.
#[derive(Clone, Debug)]
pub struct PageCache {
    pub(super) rules: Rules,
    /// When it was last called.
    pub(super) now: Time,
    pub(super) pages: Pages,
    pub(super) folios: Folios,
    pub(super) readers: Readers,
    pub(super) devices: Devices,
    pub(super) limits: Limits,
    pub(super) backlog: Backlog,
    pub(super) journals: Journals,
    pub(super) flushers: Flushers,
    pub(super) writes: Writes,
    pub(super) syncs: Syncs,
    pub(super) inode_locks: InodeLocks,
    pub(super) effects: Vec<Effect>,
    in_flight: Slab<PageIo>,
    again: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct PageIo {
    file: FileId,
    page: u64,
    pages: u64,
    /// The number of a write.
    write: Option<u64>,
}

impl Component for PageCache {
    type Effect = Effect;

    /// When a flusher, a writer that is held to a rate, or a journal's commit is due.
    fn next_event(&self) -> Option<Time> {
        let flush = self.flushers.next_event(self.now);
        let owners = [flush, self.journals.next_event(), self.limits.next_event()];
        owners.into_iter().flatten().min()
    }

    /// Commits what is due, releases whose time is over, and one flusher does one step.
    fn advance(&mut self, now: Time) {
        self.now = now;
        self.limits.update_rates(now);
        self.commit_what_is_due();
        self.release_sleepers();
        self.flush();
    }

    fn take_effects(&mut self, into: &mut Vec<Effect>) {
        into.append(&mut self.effects);
    }

    /// What is being read or written is in flight, and each owner's own account adds up.
    fn check(&self, _now: Time) -> Result<(), Violation> {
        let of_io = |writes: bool| {
            let io = self.in_flight.iter().map(|(_, io)| io);
            let io = io.filter(move |io| io.write.is_some() == writes);
            io.map(|io| io.pages).sum::<u64>()
        };
        let in_flight = (of_io(false), of_io(true));
        let in_memory = (self.pages.reading(), self.pages.writing());
        Violation::unless(in_flight == in_memory, "page cache", || {
            format!("{in_flight:?} pages are read and written by I/O under way, {in_memory:?} in memory")
        })?;
        self.pages.check()?;
        self.folios.check()?;
        self.readers.check(&self.pages)?;
        self.devices.check(&self.pages)?;
        self.backlog.check()?;
        self.journals.check()?;
        self.flushers.check()?;
        self.writes.check()?;
        self.inode_locks.check()
    }
}

impl PageCache {
    /// An empty cache. The error names the key of the specification that is wrong.
    pub fn new(spec: &CacheSpec) -> Result<PageCache, SpecError> {
        spec.check()?;
        Ok(PageCache::of(spec.rules(), 1))
    }

    /// For a machine with this many drives, which have all written as much until now. In 2.4 they count as one: one
    /// list of buffers, one limit, one flusher.
    pub fn with_drives(self, drives: usize) -> PageCache {
        PageCache::of(self.rules, drives)
    }

    fn of(rules: Rules, drives: usize) -> PageCache {
        let devices = match rules.variant {
            CacheVariant::Linux2_4 => 1,
            _ => drives.max(1),
        };
        PageCache {
            rules,
            now: 0,
            pages: Pages::new(rules.memory),
            folios: Folios::new(devices),
            readers: Readers::default(),
            devices: Devices::new(devices),
            limits: Limits::new(&rules, devices),
            backlog: Backlog::new(rules.variant, devices),
            journals: Journals::new(rules.commit_interval, devices),
            flushers: Flushers::new(devices),
            writes: Writes::new(devices),
            syncs: Syncs::default(),
            inode_locks: InodeLocks::default(),
            effects: Vec::new(),
            in_flight: Slab::new(),
            again: Vec::new(),
        }
    }

    /// The drive that holds the file; by default the first.
    pub fn place(&mut self, file: FileId, drive: usize) {
        self.backlog.place(file, self.devices.counted(drive));
    }

    /// The file is the part of that one's inode that begins with that page: both are parts of a drive without a filesystem.
    pub fn join(&mut self, file: FileId, inode: FileId, start: u64) {
        self.backlog.join(file, inode, start);
    }

    /// Who commits the drive's journal.
    pub fn journal_task(&self, drive: usize) -> TaskId {
        journal_task(self.devices.counted(drive))
    }

    /// The names of the tasks that write back.
    pub fn task_names(&self) -> impl Iterator<Item = (TaskId, String)> {
        let devices = self.devices.count();
        let (flushers, old_data_flushers) = match self.rules.variant.has_pdflush() {
            true => (THREADS_MAX, 0),
            false => (devices, devices),
        };
        let names = [
            (FLUSHER, "flusher", flushers),
            (OLD_DATA_FLUSHER, "old_flusher", old_data_flushers),
            (JOURNAL, "journal", devices),
        ];
        names
            .into_iter()
            .flat_map(|(task, name, count)| (0..count).map(move |number| (task_of(task, number), name.to_owned())))
    }

    /// What an fsync of files on the drive holds.
    pub fn set_fsync_holds(&mut self, drive: usize, holds: FsyncHolds) {
        let device = self.devices.counted(drive);
        self.inode_locks.set_holds(device, holds);
    }

    /// Files on the drive have large folios in memory.
    pub fn set_large_folios(&mut self, drive: usize) {
        self.folios.are_on(self.devices.counted(drive));
    }

    /// Files on the drive are written back by iomap: pages in a row are an ioend, which is submitted when something else
    /// follows or the turn is over, and ends as a whole (`iomap_add_to_ioend`, `iomap_finish_ioend`). Not by pdflush.
    pub fn set_ioends(&mut self, drive: usize) {
        if !self.rules.variant.has_pdflush() {
            self.devices.set_ioends(self.devices.counted(drive));
        }
    }

    /// A journal gets the data of files on the drive: it is told which pages are written to.
    pub fn set_journals_data(&mut self, drive: usize) {
        let device = self.devices.counted(drive);
        self.devices.set_journals_data(device);
    }

    /// What the task writes is in memory; it is only kept because too much is dirty, or was.
    pub fn has_written(&self, task: TaskId) -> bool {
        self.flushers.has_throttled(task)
    }

    /// The CPU that the next calls come from: thresholds are looked at by CPU.
    pub fn on_cpu(&mut self, cpu: u16) {
        self.limits.on_cpu(cpu);
    }

    /// How long the file is before anything is written to it: read-ahead ends there. Unknown: with what is asked for.
    pub fn set_size(&mut self, file: FileId, bytes: u64) {
        self.backlog.set_size(file, bytes.div_ceil(PAGE_BYTES));
    }

    /// What an `Io` of that tag asked for is done.
    pub fn completed(&mut self, now: Time, tag: u32) {
        self.now = now;
        let id = self.in_flight.id(tag);
        let done = self.in_flight.take(id);
        match done.write {
            None => self.read_done(done),
            Some(number) => self.write_done(done, number),
        }
    }

    /// The pages of a read from that one on end by themselves: the tag of that part.
    pub fn split_read(&mut self, tag: u32, page: u64) -> u32 {
        let id = self.in_flight.id(tag);
        let whole = &mut self.in_flight[id];
        let rest = PageIo { page, pages: whole.page + whole.pages - page, ..*whole };
        whole.pages = page - whole.page;
        self.put(rest)
    }

    /// That drive's queue has become congested in that direction, or is so no more.
    pub fn congested(&mut self, now: Time, drive: usize, direction: Direction, is: bool) {
        self.now = now;
        let device = self.devices.counted(drive);
        self.devices.set_congested(device, direction, is);
        if direction == Direction::Write && !is {
            self.flushers.go_on();
        }
    }

    /// Whether pdflush looks at the queue's congestion instead of sleeping for a request (`nonblocking` of a
    /// `writeback_control`, 2.5 to 2.6.31).
    pub fn looks_at_congestion(&self) -> bool {
        self.rules.variant.has_pdflush()
    }

    /// What the task writes back has found no request: it continues when there is one.
    pub fn blocked(&mut self, task: TaskId) {
        self.flushers.block(task);
    }

    /// All that it had submitted is in the queue. Who has no more to write sleeps from now on, and lets the queue run
    /// first.
    pub fn unblocked(&mut self, now: Time, task: TaskId) {
        self.now = now;
        if self.flushers.unblock(task) {
            self.effects.push(Effect::Unplug);
        }
        let waiting = self.flushers.take_waiting_for_folio();
        self.effects.extend(waiting.into_iter().map(Effect::Wake));
    }

    /// Whether the task is kept because too much is dirty.
    pub fn holds(&self, task: TaskId) -> bool {
        self.flushers.holds(task)
    }

    /// Pages in memory that the device does not have.
    pub fn dirty_pages(&self) -> u64 {
        self.pages.unwritten()
    }

    /// The writer continues.
    pub(super) fn release(&mut self, task: TaskId) {
        self.flushers.release(task);
        self.effects.push(Effect::Wake(task));
    }

    fn release_sleepers(&mut self) {
        while let Some(task) = {
            let (pages, folios, devices) = (&self.pages, &self.folios, &self.devices);
            let (now, rules) = (self.now, &self.rules);
            self.limits.pop_rested(&LimitContext { now, rules, pages, folios, devices })
        } {
            self.release(task);
        }
    }

    /// What the limits are judged by.
    pub(super) fn standing(&self) -> LimitContext<'_> {
        LimitContext {
            now: self.now,
            rules: &self.rules,
            pages: &self.pages,
            folios: &self.folios,
            devices: &self.devices,
        }
    }

    /// What has waited for writes that are no longer in flight continues.
    pub(super) fn end_waits(&mut self) {
        while let Some(then) = self.writes.pop_over() {
            match then {
                WriteFollowUp::Release(task) => self.release(task),
                WriteFollowUp::Synced(task) => self.sync_is_woken(task),
                WriteFollowUp::Committed(device) => self.committed(device),
            }
        }
    }

    pub(super) fn submit_read(&mut self, task: TaskId, file: FileId, page: u64, pages: u64, read_ahead: bool) {
        (page..page + pages).for_each(|page| self.pages.start_reading(file, page));
        let tag = self.put(PageIo { file, page, pages, write: None });
        self.effects.push(Effect::Io(Io {
            tag,
            file,
            page,
            pages: pages as u32,
            direction: Direction::Read,
            sync: true,
            read_ahead,
            task,
        }));
    }

    /// The dirty pages are being written from now on: for how many that counts. They are submitted at once, or when it is
    /// clear that no more of them follow.
    pub(super) fn write_back(&mut self, flusher: &mut Flusher, piece: Piece) -> u64 {
        let (file, page, pages) = piece;
        let device = self.backlog.device_of(file);
        self.pages.start_writing(file, page, pages);
        let counts = self.folios.start_writing(file, page, pages);
        self.devices.start_writing(device, pages);
        let follows = self.end_of_ioend(flusher) == Some((file, page));
        let has_room = |io: &PageIo| self.devices.has_ioends(device) || io.pages + pages <= self.rules.io_pages_max;
        let kept = flusher.ioend.map(|tag| self.in_flight.id(tag));
        match kept.filter(|&id| follows && has_room(&self.in_flight[id])) {
            Some(id) => self.in_flight[id].pages += pages,
            None => {
                self.submit_ioend(flusher);
                let number = self.writes.start(file, page, device);
                let write = Some(number);
                flusher.ioend = Some(self.put(PageIo { file, page, pages, write }));
            }
        }
        if !self.keeps_writes() {
            self.submit_ioend(flusher);
        }
        counts
    }

    /// Whether what is written back is submitted when something else follows (`iomap_add_to_ioend`, `io_submit_add_bh`); that
    /// this is so from 3.2 on is inferred.
    pub(super) fn keeps_writes(&self) -> bool {
        self.rules.variant == CacheVariant::Linux3_2
    }

    /// It has an ioend under way, behind whose end it does not begin again at the start of the file in this turn.
    pub(super) fn is_within_ioend(&self, flusher: &Flusher) -> bool {
        flusher.ioend.is_some() && self.devices.has_ioends(flusher.of)
    }

    /// Where what the flusher has kept ends: of which file, before which page.
    pub(super) fn end_of_ioend(&self, flusher: &Flusher) -> Option<(FileId, u64)> {
        let io = self.in_flight[self.in_flight.id(flusher.ioend?)];
        Some((io.file, io.page + io.pages))
    }

    /// What the flusher has kept goes to the device.
    pub(super) fn submit_ioend(&mut self, flusher: &mut Flusher) {
        let Some(tag) = flusher.ioend.take() else {
            return;
        };
        let io = self.in_flight[self.in_flight.id(tag)];
        self.effects.push(Effect::Io(Io {
            tag,
            file: io.file,
            page: io.page,
            pages: io.pages as u32,
            direction: Direction::Write,
            sync: matches!(flusher.purpose, Purpose::Sync(..)),
            read_ahead: false,
            task: flusher.task,
        }));
    }

    fn put(&mut self, in_flight: PageIo) -> u32 {
        self.in_flight.put(in_flight).number()
    }

    fn read_done(&mut self, done: PageIo) {
        self.pages.read(done.file, done.page, done.pages);
        while let Some(task) = self.readers.pop_waiting(done.file, done.page, done.pages) {
            self.effects.push(Effect::Wake(task));
        }
    }

    fn write_done(&mut self, done: PageIo, number: u64) {
        let device = self.backlog.device_of(done.file);
        self.writes.end(done.file, done.page, device, number);
        self.devices.written(device, done.pages);
        let counts = self.folios.written(done.file, done.page, done.pages);
        let has_room = !self.devices.is_congested(device, Direction::Write);
        if has_room && self.rules.variant.has_pdflush() {
            // Each request that a queue gives back while it is not congested wakes all who wait for any queue
            // (`clear_queue_congested`).
            self.flushers.go_on();
        }
        let mut again = std::mem::take(&mut self.again);
        self.pages.written(done.file, done.page, done.pages, &mut again);
        let is_last = !self.backlog.is_being_written(done.file, &self.pages);
        self.limits.count_written(self.now, device, counts, is_last);
        for page in again.drain(..) {
            self.limits.count_dirtied(1);
            self.became_dirty(done.file, page);
        }
        self.again = again;
        self.backlog.queue_what_waits(self.now, done.file, &self.pages);
        self.end_waits();
    }
}
