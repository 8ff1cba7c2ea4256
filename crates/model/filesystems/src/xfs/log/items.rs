//! What the log on the drive has and the drive's own blocks have not: until a block is written in place, its part of the log
//! can't be written over (`fs/xfs/xfs_trans_ail.c` of 3.4).

use std::collections::{BTreeMap, BTreeSet};

/// Blocks of the volume by the position in the log of their oldest change that counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    by_position: BTreeMap<u64, BTreeSet<u64>>,
    position_of: BTreeMap<u64, u64>,
    /// On its way: its position when it left.
    writing: BTreeMap<u64, u64>,
}

/// What may be written in place now.
#[derive(Clone, Debug, Default)]
pub(super) struct WritableBlocks {
    /// Ascending, on their way from now on.
    pub(super) blocks: Vec<u64>,
    /// Some could not be: the log has to be forced first.
    pub(super) found_pinned: bool,
}

impl Items {
    /// A checkpoint that began there is on the drive. What was in an older one moves.
    pub(super) fn insert(&mut self, position: u64, blocks: BTreeSet<u64>) {
        for &block in &blocks {
            self.forget(block);
            self.position_of.insert(block, position);
        }
        if !blocks.is_empty() {
            self.by_position.entry(position).or_default().extend(blocks);
        }
    }

    /// The oldest position that is still needed.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.by_position.keys().next().copied()
    }

    /// At most this number from positions up to that one, unless `is_pinned`.
    pub(super) fn take(&mut self, target: u64, most: usize, is_pinned: impl Fn(u64) -> bool) -> WritableBlocks {
        let mut taken = WritableBlocks::default();
        for (&position, blocks) in self.by_position.range(..=target) {
            for &block in blocks {
                if taken.blocks.len() == most {
                    break;
                }
                if self.writing.contains_key(&block) {
                    continue;
                }
                if is_pinned(block) {
                    taken.found_pinned = true;
                } else {
                    self.writing.insert(block, position);
                    taken.blocks.push(block);
                }
            }
        }
        taken.blocks.sort_unstable();
        taken
    }

    /// The block is on the drive as it was when it was taken.
    pub(super) fn written(&mut self, block: u64) {
        let position = self.writing.remove(&block).expect("it was on its way");
        if self.position_of.get(&block) == Some(&position) {
            self.forget(block);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.position_of.is_empty()
    }

    fn forget(&mut self, block: u64) {
        let Some(position) = self.position_of.remove(&block) else {
            return;
        };
        let others = self.by_position.get_mut(&position).expect("a position with blocks");
        others.remove(&block);
        if others.is_empty() {
            self.by_position.remove(&position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_again_while_it_is_written_stays() {
        let mut items = Items::default();
        items.insert(0, BTreeSet::from([5, 3, 8]));
        let taken = items.take(0, 10, |block| block == 8);
        assert_eq!((taken.blocks, taken.found_pinned), (vec![3, 5], true));
        assert!(items.take(0, 10, |_| true).blocks.is_empty(), "on their way");
        items.insert(100, BTreeSet::from([5]));
        items.written(3);
        items.written(5);
        assert_eq!(items.oldest(), Some(0), "8 was never written");
        assert_eq!(items.take(0, 10, |_| false).blocks, [8]);
        items.written(8);
        assert_eq!(items.oldest(), Some(100));
        assert!(!items.is_empty());
    }
}
