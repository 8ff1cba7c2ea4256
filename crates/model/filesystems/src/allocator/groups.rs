//! Which group a new file belongs to (`find_group_other` of 2.5.59; docs/model/sources/allocators.md#groups-of-files).

use crate::allocator::space::{GROUP_BLOCKS, Space};

/// The size of a filesystem and what its groups hold.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Size in blocks of 4 KiB.
    pub blocks: u64,
    /// Blocks at the start of each group that are never given to files.
    pub group_metadata_blocks: u32,
    /// Inodes per group.
    pub group_inodes: u32,
}

impl Geometry {
    /// Two full groups without metadata, for tests.
    #[cfg(test)]
    pub const TEST: Geometry = Geometry { blocks: 2 * GROUP_BLOCKS, group_metadata_blocks: 0, group_inodes: 16384 };

    pub(super) fn space(&self) -> Space {
        Space::new(self.blocks, u64::from(self.group_metadata_blocks))
    }

    pub(super) fn inodes(&self) -> Inodes {
        Inodes::new(self.blocks.div_ceil(GROUP_BLOCKS), self.group_inodes)
    }
}

/// Free inodes by group.
#[derive(Clone, Debug)]
pub struct Inodes {
    free: Vec<u32>,
}

impl Inodes {
    /// All inodes are free.
    pub fn new(groups: u64, per_group: u32) -> Inodes {
        Inodes { free: vec![per_group; groups as usize] }
    }

    /// The group of a new file in a directory. Directory `d` is in group `d` modulo the groups, and `d` is its inode's
    /// number. With no inode left anywhere it is the directory's group: how many files there are is not bounded here.
    pub fn place(&mut self, space: &Space, directory: u32) -> u64 {
        let groups = self.free.len() as u64;
        let parent = u64::from(directory) % groups;
        let group = self.choose(space, parent, u64::from(directory));
        self.free[group as usize] = self.free[group as usize].saturating_sub(1);
        group
    }

    /// The inode of a file that was placed in the group is free again.
    pub fn give_back(&mut self, group: u64) {
        self.free[group as usize] += 1;
    }

    /// `find_group_other`.
    fn choose(&self, space: &Space, parent: u64, number: u64) -> u64 {
        let groups = self.free.len() as u64;
        let has_room = |group: u64| self.free[group as usize] > 0 && space.free_in_group(group) > 0;
        if has_room(parent) {
            return parent;
        }
        let mut group = (parent + number) % groups;
        let mut step = 1;
        while step < groups {
            group = (group + step) % groups;
            if has_room(group) {
                return group;
            }
            step *= 2;
        }
        (1..=groups)
            .map(|distance| (parent + distance) % groups)
            .find(|&group| self.free[group as usize] > 0)
            .unwrap_or(parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::space::GROUP_BLOCKS;

    #[test]
    fn a_file_goes_to_its_directorys_group_if_that_has_a_free_inode_and_free_blocks() {
        let space = Space::new(4 * GROUP_BLOCKS, 0);
        let mut inodes = Inodes::new(4, 2);
        assert_eq!(inodes.place(&space, 6), 2);
        assert_eq!(inodes.place(&space, 6), 2);
    }

    #[test]
    fn else_from_group_plus_directory_by_doubling_steps() {
        let mut space = Space::new(8 * GROUP_BLOCKS, 0);
        space.take_run(3 * GROUP_BLOCKS, GROUP_BLOCKS);
        // (3 + 3) + 1 = 7; then + 2 = 1.
        let mut inodes = Inodes::new(8, 1);
        assert_eq!(inodes.place(&space, 3), 7);
        assert_eq!(inodes.place(&space, 3), 1);
    }

    #[test]
    fn else_the_next_group_with_an_inode() {
        let mut space = Space::new(4 * GROUP_BLOCKS, 0);
        space.take_run(0, 4 * GROUP_BLOCKS);
        assert_eq!(Inodes::new(4, 1).place(&space, 2), 3);
    }
}
