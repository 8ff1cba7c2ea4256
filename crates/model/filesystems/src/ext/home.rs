//! Blocks of metadata that are to be written in their places: those of committed transactions, and all of ext2's.

use std::collections::{BTreeMap, BTreeSet};

use events::time::Time;

#[derive(Clone, Debug, Default)]
pub(super) struct Home {
    /// Since when each is dirty.
    dirty: BTreeMap<u64, Time>,
    in_flight: BTreeSet<u64>,
    waiting: BTreeMap<u64, Vec<u32>>,
}

impl Home {
    pub(super) fn dirty(&mut self, block: u64, now: Time) {
        self.dirty.entry(block).or_insert(now);
    }

    pub(super) fn is_dirty(&self, block: u64) -> bool {
        self.dirty.contains_key(&block)
    }

    pub(super) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.dirty.is_empty() && self.in_flight.is_empty()
    }

    /// Neither dirty nor on its way.
    pub(super) fn is_written(&self, block: u64) -> bool {
        !self.dirty.contains_key(&block) && !self.in_flight.contains(&block)
    }

    /// The thread is among those that `written` gives when the block has been written.
    pub(super) fn wait(&mut self, block: u64, thread: u32) {
        self.waiting.entry(block).or_default().push(thread);
    }

    /// Those of the blocks that are dirty and not on their way, in runs; they are on their way from now on.
    pub(super) fn begin(&mut self, blocks: impl IntoIterator<Item = u64>) -> Vec<(u64, u32)> {
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for block in blocks {
            if self.in_flight.contains(&block) || self.dirty.remove(&block).is_none() {
                continue;
            }
            self.in_flight.insert(block);
            match runs.last_mut() {
                Some((first, count)) if *first + u64::from(*count) == block => *count += 1,
                _ => runs.push((block, 1)),
            }
        }
        runs
    }

    /// Dirty since before then, in their order on the drive.
    pub(super) fn expired(&self, before: Time) -> Vec<u64> {
        let dirty = self.dirty.iter();
        dirty.filter(|(_, since)| **since <= before).map(|(block, _)| *block).collect()
    }

    /// It is on the drive: who waits for it.
    pub(super) fn written(&mut self, block: u64) -> Vec<u32> {
        self.in_flight.remove(&block);
        self.waiting.remove(&block).unwrap_or_default()
    }
}
