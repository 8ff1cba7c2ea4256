//! Who writes back: flusher threads, throttled writers, fsync and commits, a step at a time in turn while the queue takes it.
//!
//! Who writes back sleeps for a request in the queue, each by itself (`PageCache::blocked`). Only pdflush, from 2.5 to 2.6.31,
//! holds back while a queue is congested: `balance_dirty_pages`, fsync and kjournald ask for no `nonblocking` writeback
//! (2.5.66 and 2.6.18 `mm/page-writeback.c`). A kernel does so after each page, here after each step.

use crate::cache::device::{DeviceId, task_of};
use crate::cache::flushers::{FLUSHER, Flusher, OLD_DATA_FLUSHER, Purpose, Then, Wait, Whose};
use crate::cache::page_cache::PageCache;
use crate::cache::spec::{COMMIT_BATCH, CONGESTION_WAIT, CacheVariant};
use crate::cache::{Effect, FileId};
use block_layer::TaskId;
use events::time::Time;

impl PageCache {
    /// The file's inode is dirty (`__mark_inode_dirty`): at the end of the line, unless it is there or with a flusher.
    pub(super) fn queue_inode(&mut self, file: FileId) {
        let now = self.now;
        let of = self.file(file);
        if !of.queued {
            of.queued = true;
            of.dirtied_at = now;
            let device = of.device;
            self.devices[device].inodes.push_back(file);
        }
    }

    /// What is due now; one step of one flusher.
    pub(super) fn flush(&mut self) {
        let now = self.now;
        self.look_for_old_data();
        let flushers = &mut self.flushers;
        if !flushers.paused.is_empty() {
            let due = flushers.paused.extract_if(.., |(at, _)| *at <= now);
            flushers.running.extend(due.map(|(_, flusher)| flusher));
        }
        if let Some(first) = self.first_to_run() {
            let flusher = self.flushers.running.remove(first).expect("it is in line");
            self.step(flusher);
        }
    }

    /// When a flusher has something to do.
    pub(super) fn next_flush(&self) -> Option<Time> {
        if self.first_to_run().is_some() {
            return Some(self.now);
        }
        let paused = self.flushers.paused.iter().map(|&(at, _)| at);
        paused.chain(self.flushers.look_at).min()
    }

    /// The place in line of the flusher whose step is next; None: all of them wait.
    fn first_to_run(&self) -> Option<usize> {
        let waits = |flusher: &Flusher| self.flushers.blocked.contains(&flusher.task);
        let mut running = self.flushers.running.iter();
        running.position(|flusher| !waits(flusher))
    }

    /// Background writeback of what is dirty on the drive.
    pub(super) fn start_background(&mut self, device: DeviceId) {
        if self.rules.variant.has_pdflush() {
            self.start_pdflush(device);
        } else if !std::mem::replace(&mut self.devices[device].background, true) {
            let (task, turn) = (task_of(FLUSHER, device), self.turn(device));
            self.flushers
                .start(Purpose::Background, task, device, u64::MAX, turn);
        }
    }

    /// Ends what waited for writes that are no longer under way.
    pub(super) fn end_waits(&mut self) {
        let mut number = 0;
        while let Some(&wait) = self.flushers.waits.get(number) {
            if !self.is_over(&wait) {
                number += 1;
                continue;
            }
            self.flushers.waits.swap_remove(number);
            match wait.then {
                Then::Release(task) => self.release(task),
                Then::Synced(task) => self.file_is_written(task),
                Then::Committed(device) => self.committed(device),
            }
        }
    }

    /// Calls `file_is_written` for the task when what is under way of the file now has been written.
    pub(super) fn await_file(&mut self, task: TaskId, file: FileId) {
        let of = Whose::File(file);
        self.wait(of, self.last_write, Then::Synced(task));
    }

    /// `wb_kupdate`.
    fn look_for_old_data(&mut self) {
        let now = self.now;
        if self.flushers.look_at.is_none_or(|at| now < at) {
            return;
        }
        let dirty = self.pages.dirty() > 0;
        self.flushers.look_at = dirty.then_some(now + self.rules.interval);
        if !dirty || now < self.rules.expire {
            return;
        }
        let before = now - self.rules.expire;
        if self.rules.variant.has_pdflush() {
            self.flushers.look_at = Some(self.pdflush_old_data(before));
            return;
        }
        for device in 0..self.devices.len() {
            let of = &mut self.devices[device];
            if of.dirty == 0 || std::mem::replace(&mut of.old_data, true) {
                continue;
            }
            let purpose = Purpose::OldData(before);
            let (task, turn) = (task_of(OLD_DATA_FLUSHER, device), self.turn(device));
            self.flushers.start(purpose, task, device, u64::MAX, turn);
        }
    }

    fn step(&mut self, mut flusher: Flusher) {
        if flusher.walk.is_some() {
            return self.step_pdflush(flusher);
        }
        let (task, device) = (flusher.task, flusher.of);
        if std::mem::take(&mut flusher.has_waited) && !self.must_wait(task, device) {
            return self.release(task);
        }
        let batch = match flusher.purpose {
            Purpose::Commit => COMMIT_BATCH,
            _ => self.rules.step,
        };
        let mut left = batch.min(flusher.left).min(flusher.turn);
        let mut dry = false;
        while left > 0 {
            let piece = match self.only_waits(&flusher) {
                true => None,
                false => self.next_piece(&mut flusher, left),
            };
            let Some((file, page, pages)) = piece else {
                dry = true;
                break;
            };
            let sync = matches!(flusher.purpose, Purpose::Sync(..));
            self.submit_write(flusher.task, file, page, pages, sync);
            flusher.left -= pages;
            flusher.turn -= pages;
            left -= pages;
        }
        if dry || flusher.left == 0 {
            self.return_inode(&mut flusher);
            self.finish(flusher, dry);
        } else if flusher.turn == 0 {
            self.return_inode(&mut flusher);
            let device = flusher.of;
            if flusher.purpose == Purpose::Background && !self.goes_on(device) {
                self.devices[device].background = false;
            } else {
                flusher.turn = self.turn(device);
                self.flushers.running.push_back(flusher);
            }
        } else {
            self.flushers.running.push_back(flusher);
        }
    }

    /// Too little of its drive is waiting to be written for a throttled writer to do it.
    fn only_waits(&self, flusher: &Flusher) -> bool {
        flusher.purpose == Purpose::Throttled
            && self.rules.writes_back_only_beyond_limit
            && self.devices[flusher.of].dirty <= self.task_limit(flusher.task, flusher.of)
    }

    /// It has written its share, or has found nothing more to write.
    fn finish(&mut self, flusher: Flusher, dry: bool) {
        let task = flusher.task;
        self.effects.push(Effect::Unplug);
        let device = flusher.of;
        match flusher.purpose {
            Purpose::Background => self.devices[device].background = false,
            Purpose::OldData(_) => self.devices[device].old_data = false,
            // 2.4: until the oldest write that is under way is done.
            Purpose::Throttled if self.rules.variant == CacheVariant::Linux2_4 => {
                let oldest = self.oldest_write().unwrap_or(0);
                self.wait(Whose::All, oldest, Then::Release(task));
            }
            Purpose::Throttled => {
                if dry && self.must_wait(task, device) {
                    self.flushers.pause(self.now + CONGESTION_WAIT, flusher);
                } else {
                    self.release(task);
                }
            }
            Purpose::Sync(file, ..) => self.file_is_submitted(task, file),
            Purpose::Commit => {
                let then = Then::Committed(device);
                self.wait(Whose::Device(device), self.last_write, then);
            }
        }
    }

    fn wait(&mut self, of: Whose, until: u64, then: Then) {
        let wait = Wait { until, of, then };
        self.flushers.waits.push(wait);
        if self.is_over(&wait) {
            self.end_waits();
        }
    }

    fn is_over(&self, wait: &Wait) -> bool {
        let first = match wait.of {
            Whose::File(file) => self.files[file as usize].writes.first().copied(),
            Whose::Device(device) => self.devices[device].writes.first().copied(),
            Whose::All => self.oldest_write(),
        };
        first.is_none_or(|first| first > wait.until)
    }

    fn oldest_write(&self) -> Option<u64> {
        let devices = self.devices.iter();
        devices
            .filter_map(|device| device.writes.first().copied())
            .min()
    }

    /// The next consecutive pages that this flusher writes.
    fn next_piece(&mut self, flusher: &mut Flusher, left: u64) -> Option<(FileId, u64, u64)> {
        let most = left.min(self.rules.io_pages_max);
        let pages = &self.pages;
        let is_waiting = |file, page| pages.is_waiting(file, page);
        match flusher.purpose {
            Purpose::Commit => {
                let journal = self.devices[flusher.of].journal.as_mut()?;
                journal.pop(most, is_waiting)
            }
            Purpose::Sync(file, from, end) => {
                let (start, count) = pages.waiting_run(file, from, most)?;
                let count = count.min(end.checked_sub(start)?);
                flusher.purpose = Purpose::Sync(file, start + count, end);
                (count > 0).then_some((file, start, count))
            }
            Purpose::OldData(before) if self.rules.variant == CacheVariant::Linux2_4 => {
                let is_old = self.order.oldest().is_some_and(|since| since <= before);
                is_old.then(|| self.order.pop(most, is_waiting)).flatten()
            }
            _ if self.rules.variant == CacheVariant::Linux2_4 => self.order.pop(most, is_waiting),
            _ => self.next_of_inodes(flusher, most),
        }
    }

    /// `sync_sb_inodes`.
    pub(super) fn next_of_inodes(
        &mut self,
        flusher: &mut Flusher,
        most: u64,
    ) -> Option<(FileId, u64, u64)> {
        loop {
            let file = match flusher.inode {
                Some(file) => file,
                None => self.take_inode(flusher)?,
            };
            flusher.inode = Some(file);
            let (pages, of) = (&self.pages, &mut self.files[file as usize]);
            let piece = match self.rules.variant.writes_in_file_order() {
                true => pages
                    .waiting_run(file, of.cursor, most)
                    .or_else(|| pages.waiting_run(file, 0, most))
                    .map(|(start, count)| (file, start, count)),
                false => of
                    .order
                    .pop(most, |file, page| pages.is_waiting(file, page)),
            };
            if let Some((_, start, count)) = piece {
                of.cursor = start + count;
                return piece;
            }
            // Nothing left of this one.
            of.queued = false;
            flusher.inode = None;
        }
    }

    /// The one that has been dirty for longest.
    fn take_inode(&mut self, flusher: &Flusher) -> Option<FileId> {
        match self.has_inode_for(flusher.purpose, flusher.of) {
            true => self.devices[flusher.of].inodes.pop_front(),
            false => None,
        }
    }

    /// Whether an inode is in the drive's line, and of age if it is about old data.
    pub(super) fn has_inode_for(&self, purpose: Purpose, device: DeviceId) -> bool {
        let first = self.devices[device].inodes.front();
        first.is_some_and(|&file| match purpose {
            Purpose::OldData(before) => self.files[file as usize].dirtied_at <= before,
            _ => true,
        })
    }

    /// The inode that it has had: at the end of the line if pages are left. Who writes what is old leaves it its age, and so
    /// comes to it again after the others that are old (`requeue_io`); until 2.6.5 it counted as just dirtied.
    pub(super) fn return_inode(&mut self, flusher: &mut Flusher) {
        let Some(file) = flusher.inode.take() else {
            return;
        };
        let of = &mut self.files[file as usize];
        of.queued = self.pages.waiting_of(file) > 0;
        if !of.queued {
            return;
        }
        match flusher.purpose {
            Purpose::OldData(before) if self.rules.variant.writes_in_file_order() => {
                let files = &self.files;
                let inodes = &mut self.devices[flusher.of].inodes;
                let is_old = |&file: &FileId| files[file as usize].dirtied_at <= before;
                let place = inodes.iter().position(|file| !is_old(file));
                inodes.insert(place.unwrap_or(inodes.len()), file);
            }
            _ => {
                of.queued = false;
                self.queue_inode(file);
            }
        }
    }
}
