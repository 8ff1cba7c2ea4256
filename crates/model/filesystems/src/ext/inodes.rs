//! Where inodes and bitmaps lie: at the start of each group its superblock's copy and descriptors, a bitmap of blocks, one of
//! inodes, and the inodes themselves.

use std::collections::{BTreeMap, BTreeSet};

use crate::allocator::GROUP_BLOCKS;
use events::SpecError;

/// Inodes in use, by group, and where each lies.
#[derive(Clone, Debug)]
pub(super) struct Inodes {
    groups: u64,
    per_group: u32,
    per_block: u32,
    used: BTreeMap<u64, Group>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// From here on none was ever used.
    next: u32,
    free: BTreeSet<u32>,
}

/// Superblock and descriptors; the two bitmaps follow.
const BLOCK_BITMAP: u64 = 2;
const INODE_BITMAP: u64 = 3;
const INODE_TABLE: u64 = 4;
/// Descriptors of 32 bytes in a block.
const DESCRIPTORS_PER_BLOCK: u64 = 128;

impl Inodes {
    pub(super) fn new(blocks: u64, group_metadata_blocks: u32, per_group: u32) -> Result<Inodes, SpecError> {
        let table = u64::from(group_metadata_blocks).saturating_sub(INODE_TABLE);
        if table == 0 {
            let what = format!(
                "expected at least 5 to make files: descriptors, bitmaps and inodes, found {group_metadata_blocks}"
            );
            return Err(SpecError::of("filesystem.group_metadata_blocks", what));
        }
        Ok(Inodes {
            groups: blocks.div_ceil(GROUP_BLOCKS),
            per_group,
            per_block: u64::from(per_group).div_ceil(table) as u32,
            used: BTreeMap::new(),
        })
    }

    /// The lowest free one of the group, or of the next that has one; None: there is none.
    pub(super) fn take(&mut self, group: u64) -> Option<u64> {
        (0..self.groups).map(|step| (group + step) % self.groups).find_map(|group| {
            let of = self.used.entry(group).or_default();
            let index = match of.free.pop_first() {
                Some(index) => index,
                None if of.next < self.per_group => {
                    of.next += 1;
                    of.next - 1
                }
                None => return None,
            };
            Some(group * u64::from(self.per_group) + u64::from(index))
        })
    }

    pub(super) fn give_back(&mut self, inode: u64) {
        let (group, index) = self.place(inode);
        self.used.entry(group).or_default().free.insert(index);
    }

    /// The block of the inode table that holds it.
    pub(super) fn table_block(&self, inode: u64) -> u64 {
        let (group, index) = self.place(inode);
        group * GROUP_BLOCKS + INODE_TABLE + u64::from(index / self.per_block)
    }

    pub(super) fn bitmap(&self, inode: u64) -> u64 {
        self.place(inode).0 * GROUP_BLOCKS + INODE_BITMAP
    }

    pub(super) fn block_bitmap(&self, group: u64) -> u64 {
        group * GROUP_BLOCKS + BLOCK_BITMAP
    }

    /// The descriptors that are written are those of the first group.
    pub(super) fn descriptor(&self, group: u64) -> u64 {
        1 + group / DESCRIPTORS_PER_BLOCK % (GROUP_BLOCKS - 1)
    }

    pub(super) fn group_of(&self, inode: u64) -> u64 {
        self.place(inode).0
    }

    pub(super) fn group_of_block(&self, block: u64) -> u64 {
        block / GROUP_BLOCKS
    }

    pub(super) fn groups(&self) -> u64 {
        self.groups
    }

    pub(super) fn count(&self) -> u64 {
        let used = self.used.values();
        used.map(|group| u64::from(group.next) - group.free.len() as u64).sum()
    }

    fn place(&self, inode: u64) -> (u64, u32) {
        let per_group = u64::from(self.per_group);
        (inode / per_group, (inode % per_group) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_of_a_group_lie_in_its_table_lowest_first() {
        let mut inodes = Inodes::new(2 * GROUP_BLOCKS, 516, 16_384).unwrap();
        let taken: Vec<u64> = (0..33).map(|_| inodes.take(1).unwrap()).collect();
        assert_eq!(taken[0], 16_384);
        assert_eq!(inodes.table_block(taken[0]), GROUP_BLOCKS + 4);
        // 32 of 128 bytes lie in a block.
        assert_eq!(inodes.table_block(taken[31]), GROUP_BLOCKS + 4);
        assert_eq!(inodes.table_block(taken[32]), GROUP_BLOCKS + 5);
        inodes.give_back(taken[7]);
        assert_eq!(inodes.take(1), Some(taken[7]));
        assert_eq!(inodes.count(), 33);
    }

    #[test]
    fn a_full_group_hands_on_and_no_table_is_refused() {
        let mut inodes = Inodes::new(2 * GROUP_BLOCKS, 5, 1).unwrap();
        assert_eq!([inodes.take(1), inodes.take(1), inodes.take(1)], [Some(1), Some(0), None]);
        assert!(Inodes::new(GROUP_BLOCKS, 4, 1).is_err());
    }
}
