//! Writing: into memory, and by whom it is written back when there is too much.

use crate::cache::device::DeviceId;
use crate::cache::flushers::Purpose;
use crate::cache::limits::{LimitContext, Verdict};
use crate::cache::page_cache::PageCache;
use crate::cache::pages::DirtyOutcome;
use crate::cache::{Effect, FileId, Outcome, PAGE_BYTES};
use block_layer::TaskId;
use events::time::Time;

impl PageCache {
    /// May keep the writer until enough has been written back.
    pub fn write(&mut self, now: Time, task: TaskId, file: FileId, offset: u64, bytes: u64) -> Outcome {
        self.now = now;
        if let Some(released) = self.flushers.was_throttled(task) {
            return if released { Outcome::Done } else { Outcome::Wait };
        }
        if bytes == 0 {
            return Outcome::Done;
        }
        let end = offset + bytes;
        let (first, last) = (offset / PAGE_BYTES, (end - 1) / PAGE_BYTES);
        if self.inode_locks.keeps(task, file) || self.flushers.keeps_for_folio(task, file, first, last) {
            return Outcome::Wait;
        }
        if self.reads_first(task, file, offset, end) {
            return Outcome::Wait;
        }
        let device = self.backlog.device_of(file);
        self.folios.make(device, file, (first, last), &self.pages);
        if self.devices.journals_data(device) {
            let end = last + 1;
            self.effects.push(Effect::Journaled { file, first, end });
        }
        let (mut dirtied, mut counts) = (0, 0);
        for page in first..=last {
            match self.pages.write_to(file, page) {
                DirtyOutcome::Now => self.became_dirty(file, page),
                // When it has been written it becomes dirty once more.
                DirtyOutcome::WhileWriting => {}
                DirtyOutcome::Before => continue,
            }
            dirtied += 1;
            counts += self.folios.dirtied(file, page);
        }
        let size = self.backlog.size(file).max(last + 1);
        self.backlog.set_size(file, size);
        self.devices.dirtied(device, dirtied);
        self.limits.count_dirtied(counts);
        self.limits.count_dirtier(self.now, task, counts);
        self.balance(task, device, counts)
    }

    /// A page that is written to in part, exists and is not in memory has to be read.
    fn reads_first(&mut self, task: TaskId, file: FileId, offset: u64, end: u64) -> bool {
        let pages = self.backlog.size(file);
        let mut waits = false;
        for edge in [offset, end] {
            let page = edge / PAGE_BYTES;
            if edge % PAGE_BYTES == 0 || page >= pages || self.pages.is_present(file, page) {
                continue;
            }
            if !self.pages.is_cached(file, page) {
                self.submit_read(task, file, page, 1, false);
            }
            self.readers.wait_for(file, page, task);
            waits = true;
            break;
        }
        waits
    }

    /// Looks at the limits now and then (`balance_dirty_pages_ratelimited`); may keep the writer.
    fn balance(&mut self, task: TaskId, device: DeviceId, dirtied: u64) -> Outcome {
        let looked = self.limits.looks(&self.rules, device, task, dirtied);
        let Some(dirtied) = looked else {
            return Outcome::Done;
        };
        if self.limits.starts_background(&self.standing(), device) {
            self.start_background(device);
        }
        let standing = LimitContext {
            now: self.now,
            rules: &self.rules,
            pages: &self.pages,
            folios: &self.folios,
            devices: &self.devices,
        };
        match self.limits.judge(&standing, device, task, dirtied) {
            Verdict::GoesOn => return Outcome::Done,
            Verdict::Sleeps => self.flushers.throttle(task),
            Verdict::WritesBack => {
                let pages = self.rules.throttled_writes;
                self.flushers.start(Purpose::Throttled, task, device, pages, pages);
            }
        }
        Outcome::Wait
    }

    /// The page is dirty and not being written: into the lists that the kernel has.
    #[inline]
    pub(super) fn became_dirty(&mut self, file: FileId, page: u64) {
        let (now, pages) = (self.now, &self.pages);
        self.backlog.became_dirty(now, file, page, pages);
        let device = self.backlog.device_of(file);
        self.journals.became_dirty(now, device, file, page, pages);
        self.flushers.something_is_dirty(now, self.rules.interval);
    }
}
