//! An allocation group: its free space, and its inodes in chunks of 64.

use std::collections::{BTreeMap, BTreeSet};

use super::free_list::{FreeList, LIST_BLOCKS};
use super::free_space::FreeSpace;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockTarget {
    /// There or not at all (`XFS_ALLOCTYPE_THIS_BNO`).
    Exactly(u32),
    /// (`XFS_ALLOCTYPE_NEAR_BNO`).
    Near(u32),
}

/// Blocks and inodes count from the start of the group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    space: FreeSpace,
    list: FreeList,
    inodes_per_block: u32,
    /// By first block: which inodes are free, a bit each.
    chunks: BTreeMap<u32, u64>,
    with_free: BTreeSet<u32>,
    free_inodes: u64,
    newest: Option<u32>,
}

pub(super) const CHUNK_INODES: u32 = 64;
/// Block 0 has the headers and the roots of three trees behind it; then come the reserve list's.
const HEADER_BLOCKS: u32 = 4;
/// The root of the tree of inodes, near which chunks go that can't follow the last one (`XFS_IBT_BLOCK`).
pub(super) const INODE_ROOT_BLOCK: u32 = 3;
/// Records of the tree of inodes that are looked at on each side of the parent's (`xfs_dialloc`).
const LOOK_RECORDS: usize = 10;

impl Group {
    /// `taken`: blocks behind the header that something else has, such as the log.
    pub(super) fn new(blocks: u32, taken: u32, inodes_per_block: u32) -> Group {
        let mut space = FreeSpace::default();
        let first = HEADER_BLOCKS + LIST_BLOCKS + taken;
        space.put(first, blocks - first);
        Group {
            space,
            list: FreeList::new(HEADER_BLOCKS),
            inodes_per_block,
            chunks: BTreeMap::new(),
            with_free: BTreeSet::new(),
            free_inodes: 0,
            newest: None,
        }
    }

    /// Blocks that can be allocated.
    pub(super) fn free(&self) -> u64 {
        self.space.free()
    }

    /// Blocks on the reserve list and in the trees of the free space, beyond those of a new group.
    pub(super) fn held(&self) -> u64 {
        self.list.held() - u64::from(LIST_BLOCKS)
    }

    /// The longest extent, less what the reserve list lacks (`xfs_alloc_longest_free_extent`).
    pub(super) fn longest(&self) -> u32 {
        self.space.longest().saturating_sub(self.lacks())
    }

    /// What the reserve list lacks, which has to be allocated first.
    pub(super) fn lacks(&self) -> u32 {
        self.list.missing(&self.space)
    }

    /// `xfs_alloc_ag_vextent`.
    pub(super) fn allocate(&mut self, place: BlockTarget, blocks: u32, align: u32) -> Option<u32> {
        self.list.fix(&mut self.space);
        let block = match place {
            BlockTarget::Exactly(block) => self.space.take_at(block, blocks).then_some(block),
            BlockTarget::Near(target) => self.space.take_near(target, blocks, align),
        };
        self.list.follow(&self.space);
        block
    }

    /// `xfs_free_ag_extent`.
    pub(super) fn give_back(&mut self, start: u32, blocks: u32) {
        self.list.fix(&mut self.space);
        self.space.put(start, blocks);
        self.list.follow(&self.space);
    }

    pub(super) fn chunk_blocks(&self) -> u32 {
        (CHUNK_INODES / self.inodes_per_block).max(1)
    }

    /// Whether an inode can be had: one is free, or there is room for a chunk and a block more (`xfs_ialloc_ag_select`).
    pub(super) fn takes_inodes(&self) -> bool {
        let chunk = self.chunk_blocks();
        self.free_inodes > 0 || self.space.longest() >= chunk && self.space.free() > u64::from(chunk)
    }

    pub(super) fn free_inodes(&self) -> u64 {
        self.free_inodes
    }

    pub(super) fn inodes(&self) -> u64 {
        self.chunks.len() as u64 * u64::from(CHUNK_INODES)
    }

    pub(super) fn chunks(&self) -> u64 {
        self.chunks.len() as u64
    }

    /// Where the chunk after the last one would begin.
    pub(super) fn after_newest(&self) -> Option<u32> {
        self.newest.map(|block| block + self.chunk_blocks())
    }

    pub(super) fn add_chunk(&mut self, block: u32) {
        self.chunks.insert(block, u64::MAX);
        self.with_free.insert(block);
        self.free_inodes += u64::from(CHUNK_INODES);
        self.newest = Some(block);
    }

    /// A free inode near another (`xfs_dialloc`): of its chunk, of the nearest of ten records left and right, of the newest
    /// chunk, else any.
    pub(super) fn take_inode(&mut self, near: u32) -> Option<u32> {
        let chunk = self.choose(near / self.inodes_per_block)?;
        let free = self.chunks.get_mut(&chunk).expect("a chunk with free inodes");
        let index = free.trailing_zeros();
        *free &= !(1 << index);
        if *free == 0 {
            self.with_free.remove(&chunk);
        }
        self.free_inodes -= 1;
        Some(chunk * self.inodes_per_block + index)
    }

    /// `xfs_difree`. False: it was free.
    pub(super) fn put_inode(&mut self, inode: u32) -> bool {
        let found = self.chunks.range_mut(..=inode / self.inodes_per_block).next_back();
        let Some((&chunk, free)) = found else {
            return false;
        };
        let bit = 1u64 << (inode - chunk * self.inodes_per_block);
        if *free & bit != 0 {
            return false;
        }
        *free |= bit;
        self.with_free.insert(chunk);
        self.free_inodes += 1;
        true
    }

    fn choose(&self, parent: u32) -> Option<u32> {
        if self.with_free.len() <= 1 {
            return self.with_free.first().copied();
        }
        let left = self.with_free.range(..=parent).next_back().copied();
        let right = self.with_free.range(parent..).next().copied();
        let left = left.filter(|&chunk| self.chunks.range(chunk..=parent).nth(LOOK_RECORDS + 1).is_none());
        let right = right.filter(|&chunk| self.chunks.range(parent..=chunk).nth(LOOK_RECORDS).is_none());
        let near = [left, right].into_iter().flatten();
        near.min_by_key(|chunk| chunk.abs_diff(parent))
            .or_else(|| self.newest.filter(|chunk| self.with_free.contains(chunk)))
            .or_else(|| self.with_free.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_are_taken_near_their_directory_then_from_the_newest_chunk() {
        let mut group = Group::new(100_000, 0, 16);
        (0..40).for_each(|chunk| group.add_chunk(1000 + 10 * chunk));
        // All are taken but one in the first and one in the last chunk.
        let taken: Vec<u32> = std::iter::from_fn(|| group.take_inode(1000 * 16)).collect();
        assert_eq!(taken.len(), 40 * 64);
        assert!(group.put_inode(1000 * 16 + 7) && group.put_inode(1390 * 16 + 9));
        assert!(!group.put_inode(1390 * 16 + 9));
        let near = |group: &Group, block| group.choose(block);
        assert_eq!(near(&group, 1050), Some(1000));
        assert_eq!(near(&group, 1200), Some(1390), "neither is within ten records");
        assert_eq!(group.take_inode(1000 * 16), Some(1000 * 16 + 7));
        assert_eq!(group.free_inodes(), 1);
    }
}
