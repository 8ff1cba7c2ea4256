//! The task that writes in place what the log has, so that the log's oldest part can be written over (`xfsaild`).

use super::super::io::Purpose;
use super::super::machine::Timer;
use super::super::{Actor, Xfs};
use crate::effect::Submitter;
use events::smp::{Context, TaskNumber};
use events::time::{MILLISECOND, Time};

#[derive(Clone, Debug)]
pub(super) struct Pusher {
    pub(super) task: TaskNumber,
    /// Up to which position of the log; None: there is nothing to do.
    target: Option<u64>,
    is_busy: bool,
}

/// Blocks between two looks at the list.
const BATCH: usize = 256;
/// Until the next look, while what is to be written is pinned or on its way (`xfsaild_push`).
const PAUSE_NS: Time = 10 * MILLISECOND;
/// Of a look (an estimate).
const LOOK_CYCLES: u32 = 2000;

impl Pusher {
    pub(super) fn new(task: TaskNumber) -> Pusher {
        Pusher { task, target: None, is_busy: false }
    }
}

impl Xfs {
    pub(in crate::xfs) fn push_to(&mut self, target: u64) {
        self.log.pusher.target = self.log.pusher.target.max(Some(target));
        if !std::mem::replace(&mut self.log.pusher.is_busy, true) {
            self.pusher_looks(None);
        }
    }

    pub(in crate::xfs) fn pusher_looks(&mut self, by: Option<u16>) {
        self.give_pusher(by, LOOK_CYCLES);
    }

    /// The next batch (`xfsaild_push`); each block in a row with its neighbours.
    pub(in crate::xfs) fn push(&mut self) {
        let Some(target) = self.log.pusher.target else {
            self.log.pusher.is_busy = false;
            return;
        };
        let taken = self.log.space.take_items(target, BATCH);
        if taken.blocks.is_empty() {
            return self.pusher_rests(target, taken.found_pinned);
        }
        let mut rows: Vec<(u64, u32)> = Vec::new();
        for &block in &taken.blocks {
            match rows.last_mut() {
                Some((first, blocks)) if *first + u64::from(*blocks) == block => *blocks += 1,
                _ => rows.push((block, 1)),
            }
        }
        for (block, blocks) in rows {
            self.write(Purpose::Items { block, blocks }, Submitter::Own(self.log.pusher.task), block, blocks);
        }
        let each = self.volume.spec().writeback.cycles.write_back_page;
        self.give_pusher(None, each.saturating_mul(taken.blocks.len() as u32));
    }

    /// Everything up to the target is written, on its way, or pinned by what is not in the log yet.
    fn pusher_rests(&mut self, target: u64, found_pinned: bool) {
        if found_pinned {
            self.force_for_nobody();
        }
        if self.log.space.oldest_item().is_some_and(|oldest| oldest <= target) {
            self.machine.call_back(PAUSE_NS, Timer::Push);
        } else {
            self.log.pusher.target = None;
            self.log.pusher.is_busy = false;
        }
    }

    fn give_pusher(&mut self, by: Option<u16>, cycles: u32) {
        let task = self.log.pusher.task;
        self.give(task, by, (cycles, 0), Context::KernelThread, Actor::Pusher);
    }
}
