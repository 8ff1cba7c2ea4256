//! pdflush: threads that write back on whatever drive has something to write (2.5 to 2.6.31).
//!
//! In rounds of 1024 pages, each walks over the filesystems from the one that was mounted last on, here over the drives. It
//! leaves out a drive whose queue is congested, also half-way through an inode, and one where another of them is at work. After
//! a round in which it was congestion that kept it from writing, it sleeps until any queue has room, at most 100 ms.
//!
//! Sources: `mm/pdflush.c` of 2.6.20; of 2.6.18 `mm/page-writeback.c` (`background_writeout`, `wb_kupdate`) and
//! `fs/fs-writeback.c` (`writeback_inodes`, `sync_sb_inodes`).

use crate::cache::Effect;
use crate::cache::device::DeviceId;
use crate::cache::flushers::{Flusher, Purpose, Walk};
use crate::cache::page_cache::PageCache;
use crate::cache::spec::CONGESTION_WAIT;
use block_layer::Direction;
use events::time::{SECOND, Time};

/// With none asleep, `wb_timer_fn` tries again after it; old data that takes longer than the interval leaves as much.
const RETRY: Time = SECOND;

impl PageCache {
    /// Someone finds too much dirty who writes to the drive: work for one more, unless one is at work there already.
    pub(super) fn start_pdflush(&mut self, device: DeviceId) {
        if !self.flushers.has_pdflush(device) {
            self.give_pdflush(Purpose::Background);
        }
    }

    /// It is time to look for old data (`wb_timer_fn`, `wb_kupdate`). When to do so again.
    pub(super) fn pdflush_old_data(&mut self, before: Time) -> Time {
        if !self.flushers.has_pdflush_for_old_data() && self.give_pdflush(Purpose::OldData(before)) {
            self.now + self.rules.interval
        } else {
            self.now + RETRY
        }
    }

    /// One step of its round.
    pub(super) fn step_pdflush(&mut self, mut flusher: Flusher) {
        if std::mem::take(&mut flusher.has_waited) && !self.starts_round(&mut flusher) {
            return self.end_pdflush(flusher);
        }
        let mut left = self.rules.step.min(flusher.turn);
        while left > 0 {
            if !self.walks_to_drive(&mut flusher) {
                return self.end_round(flusher);
            }
            let most = left.min(self.rules.io_pages_max);
            if let Some(piece) = self.next_dirty(&mut flusher, most) {
                let (.., pages) = piece;
                self.write_back(&mut flusher, piece);
                flusher.turn -= pages;
                left -= pages;
            }
        }
        if flusher.turn == 0 {
            self.return_inode(&mut flusher);
            if !self.starts_round(&mut flusher) {
                return self.end_pdflush(flusher);
            }
        }
        self.flushers.go_in_line(flusher);
    }

    /// `pdflush_operation`. False: there is none that could do it.
    fn give_pdflush(&mut self, purpose: Purpose) -> bool {
        let walk = Walk::over(self.devices.count());
        self.flushers.start_pdflush(self.now, purpose, walk, self.rules.turn)
    }

    /// `background_writeout`. False: enough has been written.
    fn starts_round(&mut self, flusher: &mut Flusher) -> bool {
        let goes_on = flusher.purpose != Purpose::Background || self.limits.goes_on(&self.standing(), flusher.of);
        flusher.turn = self.rules.turn;
        flusher.walk = Some(Walk::over(self.devices.count()));
        goes_on
    }

    /// To where there is something for it to write (`writeback_inodes`); it may be there. False: the round has come to its
    /// end.
    fn walks_to_drive(&mut self, flusher: &mut Flusher) -> bool {
        let mut walk = flusher.walk.expect("it walks");
        while walk.drives > 0 {
            let device = walk.drives - 1;
            let is_congested = self.devices.is_congested(device, Direction::Write);
            // Seen before whether another has the inode, or whether it is of age.
            walk.found_congestion |= is_congested && self.devices.dirty(device) > 0;
            let has_work = flusher.inode.is_some() || self.backlog.has_inode(device, flusher.purpose.before());
            let is_free = flusher.inode.is_some() || !self.flushers.has_pdflush(device);
            if has_work && !is_congested && is_free {
                flusher.of = device;
                flusher.walk = Some(walk);
                return true;
            }
            self.return_inode(flusher);
            walk.drives -= 1;
        }
        flusher.walk = Some(walk);
        false
    }

    /// It could write less than a round's pages.
    fn end_round(&mut self, flusher: Flusher) {
        if flusher.walk.is_some_and(|walk| walk.found_congestion) {
            self.effects.push(Effect::Unplug);
            self.flushers.pause(self.now + CONGESTION_WAIT, flusher);
        } else {
            self.end_pdflush(flusher);
        }
    }

    fn end_pdflush(&mut self, flusher: Flusher) {
        self.effects.push(Effect::Unplug);
        self.flushers.end_pdflush(self.now, flusher.task);
    }
}
