//! The reserve list of an allocation group (AGFL): blocks for the two trees of its free space, which grow while they change.

use super::free_space::FreeSpace;

/// Blocks count from the start of the group.
#[derive(Clone, Debug)]
pub(super) struct FreeList {
    blocks: Vec<u32>,
    /// Blocks of both trees beyond their roots.
    in_trees: Vec<u32>,
}

/// What mkfs puts on the list: two levels for each tree.
pub(super) const LIST_BLOCKS: u32 = 4;
/// Records of a leaf, and pointers of a node, of 4 KiB (`xfs_allocbt_maxrecs`).
const LEAF_RECORDS: u64 = 510;
const NODE_POINTERS: u64 = 340;

/// How full the blocks of a tree are.
#[derive(Clone, Copy)]
struct Fill {
    /// What the root has while it is the only block.
    root_records: u64,
    percent: u64,
}

/// A root is split when it is full; from then on a block is ln 2 full in the mean, if insertions are at random (Yao 1978):
/// inferred for these trees.
const GROWING: Fill = Fill { root_records: LEAF_RECORDS, percent: 69 };
/// Blocks are merged when they would be half full.
const SHRINKING: Fill = Fill { root_records: LEAF_RECORDS / 2, percent: 50 };

impl FreeList {
    pub(super) fn new(first: u32) -> FreeList {
        FreeList { blocks: (first..first + LIST_BLOCKS).collect(), in_trees: Vec::new() }
    }

    /// Blocks on the list and in the trees.
    pub(super) fn held(&self) -> u64 {
        (self.blocks.len() + self.in_trees.len()) as u64
    }

    /// Blocks that the next allocation puts on the list first.
    pub(super) fn missing(&self, space: &FreeSpace) -> u32 {
        least(space).saturating_sub(self.blocks.len() as u32)
    }

    /// Before blocks are taken or given back: the list has what both trees need to grow by a level, and no more
    /// (`xfs_alloc_fix_freelist`). Blocks for it are the smallest extent that is long enough, or the longest.
    pub(super) fn fix(&mut self, space: &mut FreeSpace) {
        while self.blocks.len() as u32 > least(space) {
            let block = self.blocks.pop().expect("longer than it has to be");
            space.put(block, 1);
        }
        while self.missing(space) > 0 {
            let Some((start, blocks)) = space.take_by_length(self.missing(space)) else {
                return;
            };
            self.blocks.extend(start..start + blocks);
        }
    }

    /// After the free space has changed: the trees take blocks from the list, or give some back to it.
    pub(super) fn follow(&mut self, space: &FreeSpace) {
        while (self.in_trees.len() as u64) < 2 * tree_blocks(space.extents(), GROWING) {
            let Some(block) = self.blocks.pop() else {
                return;
            };
            self.in_trees.push(block);
        }
        while self.in_trees.len() as u64 > 2 * tree_blocks(space.extents(), SHRINKING) {
            self.blocks.extend(self.in_trees.pop());
        }
    }
}

/// A block for each level of each tree, and one more for a new root (`xfs_alloc_min_freelist`).
fn least(space: &FreeSpace) -> u32 {
    let mut levels = 1;
    let mut blocks = tree_leaves(space.extents(), GROWING);
    while blocks > 1 {
        levels += 1;
        blocks = blocks.div_ceil(NODE_POINTERS);
    }
    2 * (levels + 1)
}

/// One leaf is the root.
fn tree_leaves(extents: u64, fill: Fill) -> u64 {
    match extents <= fill.root_records {
        true => 1,
        false => (extents * 100).div_ceil(LEAF_RECORDS * fill.percent),
    }
}

/// Beyond the root.
fn tree_blocks(extents: u64, fill: Fill) -> u64 {
    let mut level = tree_leaves(extents, fill);
    let mut blocks = 0;
    while level > 1 {
        blocks += level;
        level = (level * 100).div_ceil(NODE_POINTERS * fill.percent);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_list_grows_by_a_block_for_each_tree_when_they_do_by_a_level() {
        let mut space = FreeSpace::default();
        let mut list = FreeList::new(4);
        for block in 0..510 {
            space.put(1000 + 2 * block, 1);
            list.follow(&space);
        }
        assert_eq!((list.missing(&space), list.held()), (0, 4));
        space.put(10_000, 50);
        list.follow(&space);
        assert_eq!(list.in_trees.len(), 4, "two leaves of each");
        assert_eq!(list.missing(&space), 6);
        list.fix(&mut space);
        assert_eq!((list.missing(&space), list.held()), (0, 10));
        assert_eq!(space.longest(), 44, "of the smallest extent that has six together");
    }

    proptest! {
        /// Whatever is taken and given back, no block is lost and none is on the list and free as well.
        #[test]
        fn no_block_is_lost(steps in prop::collection::vec((any::<bool>(), 0u32..4000), 1..1500)) {
            let mut space = FreeSpace::default();
            space.put(8, 3992);
            let mut list = FreeList::new(4);
            let mut taken = Vec::new();
            for (gives, at) in steps {
                list.fix(&mut space);
                match taken.pop() {
                    Some(block) if gives => space.put(block, 1),
                    last => {
                        taken.extend(last);
                        taken.extend(space.take_near(at, 1, 1));
                    }
                }
                list.follow(&space);
                prop_assert_eq!(space.free() + list.held() + taken.len() as u64, 3996);
            }
            let mut all = [list.blocks, list.in_trees, taken].concat();
            all.sort_unstable();
            let before = all.len();
            all.dedup();
            prop_assert_eq!(all.len(), before);
            prop_assert!(all.iter().all(|&block| !space.take_at(block, 1)));
        }
    }
}
