//! The cache as a whole: what is under way, and what its completion leads to.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::device::{Device, DeviceId};
use crate::cache::flushers::Flushers;
use crate::cache::inode_lock::InodeLocks;
use crate::cache::pages::Pages;
use crate::cache::proportions::{Proportions, Share};
use crate::cache::read::Resumed;
use crate::cache::read_ahead::Stream;
use crate::cache::spec::{CacheSpec, CacheVariant, Rules};
use crate::cache::syncs::Syncs;
use crate::cache::{Effect, FileId, Io, PAGE_BYTES, dirty_order::DirtyOrder};
use block_layer::{Direction, TaskId};
use events::slab::Slab;
use events::station::Violation;
use events::time::Time;
use events::{Component, SpecError};

/// A page cache of some kernel. Offsets and lengths are in bytes. `read`, `write`, `fsync` and `direct` are in files of
/// their own.
#[derive(Clone, Debug)]
pub struct PageCache {
    pub(super) rules: Rules,
    /// When it was last called.
    pub(super) now: Time,
    pub(super) pages: Pages,
    pub(super) files: Vec<File>,
    pub(super) streams: BTreeMap<(TaskId, FileId), Stream>,
    /// Readers in a call that sleep or copy, and where they go on.
    pub(super) resume: BTreeMap<TaskId, Resumed>,
    /// I/O that a call holds back.
    pub(super) plugged: BTreeMap<TaskId, Vec<Effect>>,
    /// Who waits for which page.
    pub(super) readers: BTreeSet<(FileId, u64, TaskId)>,
    /// Dirty pages of all files in the order of dirtying; only 2.4 has it.
    pub(super) order: DirtyOrder,
    /// Who calls runs there.
    pub(super) cpu: u16,
    /// Pages dirtied since the last look at the thresholds, by CPU.
    pub(super) dirtied: Vec<u64>,
    pub(super) flushers: Flushers,
    /// By drive.
    pub(super) devices: Vec<Device>,
    /// Pages that were written; None: drives have no limits of their own.
    pub(super) written: Option<Proportions>,
    /// Pages that were dirtied, of all and by task, until writers are held to a rate.
    pub(super) dirtiers: Option<Proportions>,
    pub(super) dirtied_by: BTreeMap<TaskId, Share>,
    /// Writers that are held to a rate, by when they go on.
    pub(super) sleeping: BTreeSet<(Time, TaskId, DeviceId)>,
    pub(super) syncs: Syncs,
    pub(super) inode_locks: InodeLocks,
    pub(super) effects: Vec<Effect>,
    under_way: Slab<UnderWay>,
    pub(super) last_write: u64,
    again: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) device: DeviceId,
    pub(super) pages: u64,
    /// In the order of dirtying; of 2.5 to 2.6.5.
    pub(super) order: DirtyOrder,
    /// Where writeback in the order of the file goes on.
    pub(super) cursor: u64,
    /// In the line of inodes to be written, or with a flusher.
    pub(super) queued: bool,
    pub(super) dirtied_at: Time,
    pub(super) writes: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
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
        let sleeper = self.sleeping.first().map(|&(at, ..)| at);
        [self.next_flush(), self.next_commit(), sleeper]
            .into_iter()
            .flatten()
            .min()
    }

    /// Commits what is due, releases whose time is over, and one flusher does one step.
    fn advance(&mut self, now: Time) {
        self.now = now;
        self.commit_what_is_due();
        self.release_sleepers();
        self.flush();
    }

    fn take_effects(&mut self, into: &mut Vec<Effect>) {
        into.append(&mut self.effects);
    }

    /// Pages that are dirty, and those that are being read or written, are those of the drives and of the I/O under way.
    fn check(&self, _now: Time) -> Result<(), Violation> {
        let of_drives = |count: fn(&Device) -> u64| self.devices.iter().map(count).sum::<u64>();
        let of_io = |writes: bool| {
            let own = self.under_way.iter().map(|(_, io)| io);
            let own = own.filter(move |io| io.write.is_some() == writes);
            own.map(|io| io.pages).sum::<u64>()
        };
        let reading = self.pages.not_clean() - self.pages.unwritten();
        for (what, pages, others) in [
            (
                "dirty on drives",
                self.pages.dirty(),
                of_drives(|one| one.dirty),
            ),
            (
                "written by drives",
                self.pages.writing(),
                of_drives(|one| one.writing),
            ),
            (
                "written by I/O under way",
                self.pages.writing(),
                of_io(true),
            ),
            ("read by I/O under way", reading, of_io(false)),
        ] {
            if pages != others {
                return Err(Violation {
                    station: "page cache".to_owned(),
                    what: format!("{others} pages are {what}, {pages} in memory"),
                });
            }
        }
        Ok(())
    }
}

impl PageCache {
    /// An empty cache. The error names the key of the specification that is wrong.
    pub fn new(spec: &CacheSpec) -> Result<PageCache, SpecError> {
        spec.check()?;
        let rules = spec.rules();
        let of_limit = |lately| Proportions::new(lately, rules.foreground);
        let has_dirtiers = rules.variant != CacheVariant::Linux3_2;
        let cache = PageCache {
            rules,
            now: 0,
            pages: Pages::new(rules.memory),
            files: Vec::new(),
            streams: BTreeMap::new(),
            resume: BTreeMap::new(),
            plugged: BTreeMap::new(),
            readers: BTreeSet::new(),
            order: DirtyOrder::default(),
            cpu: 0,
            dirtied: vec![0],
            flushers: Flushers::default(),
            devices: Vec::new(),
            written: rules.lately.map(of_limit),
            dirtiers: rules.lately.filter(|_| has_dirtiers).map(of_limit),
            dirtied_by: BTreeMap::new(),
            sleeping: BTreeSet::new(),
            syncs: Syncs::default(),
            inode_locks: InodeLocks::default(),
            effects: Vec::new(),
            under_way: Slab::new(),
            last_write: 0,
            again: Vec::new(),
        };
        Ok(cache.with_drives(1))
    }

    /// The CPU that the next calls come from: thresholds are looked at by CPU.
    pub fn on_cpu(&mut self, cpu: u16) {
        self.cpu = cpu;
        if self.dirtied.len() <= usize::from(cpu) {
            self.dirtied.resize(usize::from(cpu) + 1, 0);
        }
    }

    /// How long the file is before anything is written to it: read-ahead ends there. Unknown: with what is asked for.
    pub fn set_size(&mut self, file: FileId, bytes: u64) {
        self.file(file).pages = bytes.div_ceil(PAGE_BYTES);
    }

    /// What an `Io` of that tag asked for is done.
    pub fn completed(&mut self, now: Time, tag: u32) {
        self.now = now;
        let id = self.under_way.id(tag);
        let done = self.under_way.take(id);
        match done.write {
            None => self.read_done(done),
            Some(number) => self.write_done(done, number),
        }
    }

    /// The pages of a read from that one on end by themselves: the tag of that part.
    pub fn split_read(&mut self, tag: u32, page: u64) -> u32 {
        let id = self.under_way.id(tag);
        let whole = &mut self.under_way[id];
        let rest = UnderWay {
            page,
            pages: whole.page + whole.pages - page,
            ..*whole
        };
        whole.pages = page - whole.page;
        self.put(rest)
    }

    /// That drive's queue has become congested in that direction, or is so no more.
    pub fn congested(&mut self, now: Time, drive: usize, direction: Direction, is: bool) {
        self.now = now;
        let device = self.counted(drive);
        self.devices[device].congested[direction as usize] = is;
        if direction == Direction::Write && !is {
            self.flushers.go_on();
        }
    }

    /// Whether pdflush looks at the queue's congestion instead of sleeping for a request (`nonblocking` of a
    /// `writeback_control`, 2.5 to 2.6.31).
    pub fn looks_at_congestion(&self) -> bool {
        self.rules.variant.has_pdflush()
    }

    /// What the task writes back has found no request: it goes on when there is one.
    pub fn blocked(&mut self, task: TaskId) {
        self.flushers.blocked.insert(task);
    }

    /// All that it had submitted is in the queue. Who has no more to write sleeps from now on, and lets the queue run first.
    pub fn unblocked(&mut self, now: Time, task: TaskId) {
        self.now = now;
        if self.flushers.blocked.remove(&task) {
            let mut running = self.flushers.running.iter();
            if !running.any(|flusher| flusher.task == task) {
                self.effects.push(Effect::Unplug);
            }
        }
    }

    /// Whether the task is kept because too much is dirty.
    pub fn holds(&self, task: TaskId) -> bool {
        self.flushers.throttled.contains(&task)
    }

    /// Pages in memory that the device does not have.
    pub fn dirty_pages(&self) -> u64 {
        self.pages.unwritten()
    }

    /// The writer goes on.
    pub(super) fn release(&mut self, task: TaskId) {
        self.flushers.release(task);
        self.effects.push(Effect::Wake(task));
    }

    /// Those whose time is over. While the limit is exceeded, each sleeps on.
    fn release_sleepers(&mut self) {
        while let Some(&(at, task, device)) = self.sleeping.first()
            && at <= self.now
        {
            self.sleeping.pop_first();
            let level = self.level(device);
            if level.dirty < level.limit {
                self.release(task);
            } else if let Some(rate) = &mut self.devices[device].rate {
                let pause_ns = rate.holds_on(self.now, level);
                self.sleeping.insert((self.now + pause_ns, task, device));
            }
        }
    }

    /// What a flusher writes of an inode before the next has its turn.
    pub(super) fn turn(&self, device: DeviceId) -> u64 {
        match &self.devices[device].rate {
            Some(rate) => rate.chunk_pages(self.rules.foreground),
            None => self.rules.turn,
        }
    }

    pub(super) fn file(&mut self, file: FileId) -> &mut File {
        if self.files.len() <= file as usize {
            self.files.resize_with(file as usize + 1, File::default);
        }
        &mut self.files[file as usize]
    }

    pub(super) fn submit_read(
        &mut self,
        task: TaskId,
        file: FileId,
        page: u64,
        pages: u64,
        read_ahead: bool,
    ) {
        (page..page + pages).for_each(|page| self.pages.start_reading(file, page));
        let tag = self.put(UnderWay {
            file,
            page,
            pages,
            write: None,
        });
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

    pub(super) fn submit_write(
        &mut self,
        task: TaskId,
        file: FileId,
        page: u64,
        pages: u64,
        sync: bool,
    ) {
        self.pages.start_writing(file, page, pages);
        self.last_write += 1;
        let number = self.last_write;
        let of = self.file(file);
        of.writes.insert(number);
        let device = of.device;
        let device = &mut self.devices[device];
        device.writes.insert(number);
        device.dirty -= pages;
        device.writing += pages;
        let tag = self.put(UnderWay {
            file,
            page,
            pages,
            write: Some(number),
        });
        self.effects.push(Effect::Io(Io {
            tag,
            file,
            page,
            pages: pages as u32,
            direction: Direction::Write,
            sync,
            read_ahead: false,
            task,
        }));
    }

    fn put(&mut self, under_way: UnderWay) -> u32 {
        self.under_way.put(under_way).number()
    }

    fn read_done(&mut self, done: UnderWay) {
        self.pages.read(done.file, done.page, done.pages);
        let range = (done.file, done.page, 0)..(done.file, done.page + done.pages, 0);
        while let Some(&reader) = self.readers.range(range.clone()).next() {
            self.readers.remove(&reader);
            self.effects.push(Effect::Wake(reader.2));
        }
    }

    fn write_done(&mut self, done: UnderWay, number: u64) {
        let of = self.file(done.file);
        of.writes.remove(&number);
        let device = of.device;
        let device = &mut self.devices[device];
        device.writes.remove(&number);
        device.writing -= done.pages;
        if let Some(rate) = &mut device.rate {
            rate.written(done.pages);
        }
        let has_room = !device.congested[Direction::Write as usize];
        if let Some(written) = &mut self.written {
            written.count(self.now, &mut device.written, done.pages);
        }
        if has_room && self.rules.variant.has_pdflush() {
            // Each request that a queue gives back while it is not congested wakes all who wait for any queue
            // (`clear_queue_congested`).
            self.flushers.go_on();
        }
        let mut again = std::mem::take(&mut self.again);
        self.pages
            .written(done.file, done.page, done.pages, &mut again);
        for page in again.drain(..) {
            self.became_dirty(done.file, page);
        }
        self.again = again;
        self.end_waits();
    }
}
