//! Who writes back: flusher threads, throttled writers, fsync and commits, a step at a time in turn while the queue takes it.
//!
//! Who writes back sleeps for a request in the queue, each by itself (`PageCache::blocked`). Only pdflush, from 2.5 to 2.6.31,
//! holds back while a queue is congested: `balance_dirty_pages`, fsync and kjournald ask for no `nonblocking` writeback
//! (2.5.66 and 2.6.18 `mm/page-writeback.c`). A kernel does so after each page, here after each step.

use crate::cache::Effect;
use crate::cache::backlog::{Memory, Piece, up_to_submission};
use crate::cache::device::{DeviceId, FLUSHER, OLD_DATA_FLUSHER, task_of};
use crate::cache::flushers::{Flusher, Purpose};
use crate::cache::page_cache::PageCache;
use crate::cache::spec::{COMMIT_BATCH, CONGESTION_WAIT, CacheVariant};
use crate::cache::writes::{AwaitedWrites, WriteFollowUp};
use block_layer::TaskId;

impl PageCache {
    /// What is due now; one step of one flusher.
    pub(super) fn flush(&mut self) {
        self.look_for_old_data();
        self.flushers.go_on_if_due(self.now);
        if let Some(flusher) = self.flushers.pop_next() {
            self.step(flusher);
        }
    }

    /// Background writeback of what is dirty on the drive.
    pub(super) fn start_background(&mut self, device: DeviceId) {
        if self.rules.variant.has_pdflush() {
            self.start_pdflush(device);
        } else {
            self.start_flusher(Purpose::Background, FLUSHER, device);
        }
    }

    /// The drive's own, if it is not at work.
    fn start_flusher(&mut self, purpose: Purpose, task: TaskId, device: DeviceId) {
        if self.flushers.begins(purpose, device) {
            let turn = self.limits.turn(&self.rules, device);
            let task = task_of(task, device);
            self.flushers.start(purpose, task, device, u64::MAX, turn);
            if self.rules.variant == CacheVariant::Linux3_2 {
                self.flushers.block(task);
                self.effects.push(Effect::Start(task));
            }
        }
    }

    /// `wb_kupdate`.
    fn look_for_old_data(&mut self) {
        let now = self.now;
        if !self.flushers.looks_for_old_data(now) {
            return;
        }
        let dirty = self.pages.dirty() > 0;
        let next = dirty.then_some(now + self.rules.interval);
        self.flushers.look_for_old_data_at(next);
        if !dirty || now < self.rules.expire {
            return;
        }
        let before = now - self.rules.expire;
        if self.rules.variant.has_pdflush() {
            let next = self.pdflush_old_data(before);
            return self.flushers.look_for_old_data_at(Some(next));
        }
        for device in 0..self.devices.count() {
            if self.devices.dirty(device) > 0 {
                self.start_flusher(Purpose::OldData(before), OLD_DATA_FLUSHER, device);
            }
        }
    }

    fn step(&mut self, mut flusher: Flusher) {
        if flusher.walk.is_some() {
            return self.step_pdflush(flusher);
        }
        let (task, device) = (flusher.task, flusher.of);
        if std::mem::take(&mut flusher.has_waited) && !self.must_wait(device, task) {
            return self.release(task);
        }
        flusher.locked = None;
        if flusher.turn == 0 && flusher.ioend.is_some() {
            return self.end_turn(flusher);
        }
        if flusher.turn == 0 && !self.begins_turn(&mut flusher) {
            return;
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
            let Some(piece) = piece else {
                dry = !self.is_within_ioend(&flusher) || matches!(flusher.purpose, Purpose::Sync(..));
                if !dry {
                    // Behind what it has written of the inode there is no more: it does not begin again at its start.
                    flusher.turn = 0;
                }
                break;
            };
            let submitted = self.effects.len();
            let (pages, counts) = self.write_folio_back(&mut flusher, piece);
            flusher.left = flusher.left.saturating_sub(pages);
            flusher.turn = flusher.turn.saturating_sub(counts);
            left = left.saturating_sub(pages);
            // If what it has submitted of an inode finds no request, others write back what follows.
            if self.keeps_writes() && self.effects.len() > submitted {
                break;
            }
        }
        if dry || flusher.left == 0 {
            self.submit_ioend(&mut flusher);
            self.return_inode(&mut flusher);
            self.finish(flusher, dry);
        } else if flusher.turn == 0 && flusher.locked.is_none() {
            self.end_turn(flusher);
        } else {
            self.flushers.go_in_line(flusher);
        }
    }

    /// It has written its share of the inode. With ioends it looks whether to go on when all of that is in the queue.
    fn end_turn(&mut self, mut flusher: Flusher) {
        self.submit_ioend(&mut flusher);
        self.return_inode(&mut flusher);
        if self.devices.has_ioends(flusher.of) || self.begins_turn(&mut flusher) {
            self.flushers.go_in_line(flusher);
        }
    }

    /// False: enough has been written in the background.
    fn begins_turn(&mut self, flusher: &mut Flusher) -> bool {
        self.limits.ends_inode(self.now, flusher.of);
        let is_background = flusher.purpose == Purpose::Background;
        if is_background && !self.limits.goes_on(&self.standing(), flusher.of) {
            self.flushers.ends(flusher.purpose, flusher.of);
            return false;
        }
        flusher.turn = self.limits.turn(&self.rules, flusher.of);
        true
    }

    /// The pages, and all others of their folio that are dirty: how many, and for how many they count. It keeps the folio
    /// locked until what it submits meanwhile is in the queue (`iomap_writepage_map`).
    fn write_folio_back(&mut self, flusher: &mut Flusher, piece: Piece) -> (u64, u64) {
        let (file, page, pages) = piece;
        let submitted = self.effects.len();
        let (mut all, mut counts) = (pages, self.write_back(flusher, piece));
        let Some((start, end)) = self.folios.folio_of(file, page) else {
            return (all, counts);
        };
        let mut from = page + pages;
        while from < end
            && let Some((at, count)) = self.pages.waiting_run(file, from, end - from)
            && at < end
        {
            let count = count.min(end - at);
            counts += self.write_back(flusher, (file, at, count));
            all += count;
            from = at + count;
        }
        if self.effects.len() > submitted {
            flusher.locked = Some((file, start, end));
        }
        (all, counts)
    }

    fn must_wait(&self, device: DeviceId, task: TaskId) -> bool {
        self.limits.must_wait(&self.standing(), device, task)
    }

    /// A throttled writer leaves the little that is waiting to be written.
    fn only_waits(&self, flusher: &Flusher) -> bool {
        let (device, task) = (flusher.of, flusher.task);
        flusher.purpose == Purpose::Throttled && self.limits.only_waits(&self.standing(), device, task)
    }

    /// It has written its share, or has found nothing more to write.
    fn finish(&mut self, flusher: Flusher, dry: bool) {
        let task = flusher.task;
        self.effects.push(Effect::Unplug);
        let device = flusher.of;
        match flusher.purpose {
            Purpose::Background | Purpose::OldData(_) => {
                self.limits.ends_inode(self.now, device);
                self.flushers.ends(flusher.purpose, device);
            }
            // 2.4: until the oldest write that is in flight is done.
            Purpose::Throttled if self.rules.variant == CacheVariant::Linux2_4 => {
                self.writes.wait(AwaitedWrites::Oldest, WriteFollowUp::Release(task));
                self.end_waits();
            }
            Purpose::Throttled => {
                if dry && self.must_wait(device, task) {
                    self.flushers.pause(self.now + CONGESTION_WAIT, flusher);
                } else {
                    self.release(task);
                }
            }
            Purpose::Sync(file, ..) => {
                self.limits.ends_inode(self.now, device);
                self.file_is_submitted(task, file);
            }
            Purpose::Commit => {
                self.writes.wait(AwaitedWrites::Device(device), WriteFollowUp::Committed(device));
                self.end_waits();
            }
        }
    }

    /// The next consecutive pages that this flusher writes.
    fn next_piece(&mut self, flusher: &mut Flusher, left: u64) -> Option<Piece> {
        let most = left.min(self.rules.io_pages_max);
        match flusher.purpose {
            Purpose::Commit => self.journals.pop(flusher.of, most, &self.pages),
            Purpose::Sync(file, from, end) => {
                let (start, count) = self.pages.waiting_run(file, from, most)?;
                let count = count.min(end.checked_sub(start)?);
                let goes_on = self.end_of_ioend(flusher);
                let (_, _, count) = up_to_submission((file, start, count), goes_on);
                flusher.purpose = Purpose::Sync(file, start + count, end);
                (count > 0).then_some((file, start, count))
            }
            _ => self.next_dirty(flusher, most),
        }
    }

    pub(super) fn next_dirty(&mut self, flusher: &mut Flusher, most: u64) -> Option<Piece> {
        let (device, before) = (flusher.of, flusher.purpose.before());
        if flusher.inode.is_none() {
            self.begins_inode(device);
        }
        let memory = Memory { pages: &self.pages, folios: &self.folios };
        let goes_on = self.end_of_ioend(flusher);
        let how = (most, goes_on, !self.is_within_ioend(flusher));
        self.backlog.next(device, before, &mut flusher.inode, how, memory)
    }

    pub(super) fn begins_inode(&mut self, device: DeviceId) {
        let is_writing = self.devices.is_writing(device);
        self.limits.begins_inode(self.now, device, is_writing);
    }

    pub(super) fn return_inode(&mut self, flusher: &mut Flusher) {
        if let Some(file) = flusher.inode.take() {
            let (device, before) = (flusher.of, flusher.purpose.before());
            self.backlog.put_back(self.now, device, before, file, &self.pages);
        }
    }
}
