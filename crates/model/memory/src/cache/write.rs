//! Writing: into memory, and by whom it is written back when there is too much.

use crate::cache::page_cache::PageCache;
use crate::cache::pages::Dirtied;
use crate::cache::spec::CacheVariant;
use crate::cache::{FileId, Outcome, PAGE_BYTES};
use block_layer::TaskId;
use events::time::Time;

impl PageCache {
    /// May keep the writer until enough has been written back.
    pub fn write(
        &mut self,
        now: Time,
        task: TaskId,
        file: FileId,
        offset: u64,
        bytes: u64,
    ) -> Outcome {
        self.now = now;
        if let Some(released) = self.flushers.was_throttled(task) {
            return if released {
                Outcome::Done
            } else {
                Outcome::Wait
            };
        }
        if bytes == 0 {
            return Outcome::Done;
        }
        if self.waits_for_inode(task, file) {
            return Outcome::Wait;
        }
        let end = offset + bytes;
        let (first, last) = (offset / PAGE_BYTES, (end - 1) / PAGE_BYTES);
        if self.reads_first(task, file, offset, end) {
            return Outcome::Wait;
        }
        let mut dirtied = 0;
        for page in first..=last {
            match self.pages.write_to(file, page) {
                Dirtied::Now => self.became_dirty(file, page),
                // When it has been written it becomes dirty once more.
                Dirtied::WhileWriting => self.count_dirtied(),
                Dirtied::Before => continue,
            }
            dirtied += 1;
        }
        let of = self.file(file);
        of.pages = of.pages.max(last + 1);
        let device = of.device;
        self.devices[device].dirty += dirtied;
        self.count_dirtier(task, dirtied);
        self.balance(task, file)
    }

    /// A page that is written to in part, exists and is not in memory has to be read.
    fn reads_first(&mut self, task: TaskId, file: FileId, offset: u64, end: u64) -> bool {
        let pages = self.file(file).pages;
        let mut waits = false;
        for edge in [offset, end] {
            let page = edge / PAGE_BYTES;
            if edge % PAGE_BYTES == 0 || page >= pages || self.pages.is_present(file, page) {
                continue;
            }
            if !self.pages.is_cached(file, page) {
                self.submit_read(task, file, page, 1, false);
            }
            self.readers.insert((file, page, task));
            waits = true;
            break;
        }
        waits
    }

    /// The page is dirty and nobody is writing it: into the lists that the kernel has.
    #[inline]
    pub(super) fn became_dirty(&mut self, file: FileId, page: u64) {
        let now = self.now;
        self.count_dirtied();
        let pages = &self.pages;
        let is_waiting = |file, page| pages.is_waiting(file, page);
        match self.rules.variant {
            CacheVariant::Linux2_4 => {
                self.order.push(file, page, now);
                self.order.tidy(pages.waiting(), is_waiting);
            }
            CacheVariant::Linux2_5 => {
                if self.files.len() <= file as usize {
                    self.files.resize_with(file as usize + 1, Default::default);
                }
                let order = &mut self.files[file as usize].order;
                order.push(file, page, now);
                order.tidy(pages.waiting_of(file), is_waiting);
            }
            CacheVariant::Linux2_6_18 | CacheVariant::Linux2_6_35 | CacheVariant::Linux3_2 => {}
        }
        let device = self.device_of(file);
        if let Some(journal) = &mut self.devices[device].journal {
            journal.dirtied(now, file, page);
            journal.tidy(pages.waiting(), is_waiting);
        }
        if self.rules.variant != CacheVariant::Linux2_4 {
            self.queue_inode(file);
        }
        self.flushers.something_is_dirty(now, self.rules.interval);
    }

    #[inline]
    fn count_dirtied(&mut self) {
        self.dirtied[usize::from(self.cpu)] += 1;
    }
}
