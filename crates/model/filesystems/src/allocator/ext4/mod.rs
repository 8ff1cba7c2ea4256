//! ext4: delayed allocation, and more at once than is asked for (a brief reading of
//! `fs/ext4/mballoc.c` of 5.4.291; docs/model/sources/allocators.md#ext4).
//!
//! What is set aside beyond a request belongs to the file until its last writer closes it; small files share what a
//! locality group has. The kernel has such a group per CPU; writeback, which is what allocates, has one here.

mod request;
mod search;

use std::collections::BTreeMap;

use crate::allocator::file_map::FileMap;
use crate::allocator::groups::Inodes;
use crate::allocator::space::{GROUP_BLOCKS, Space};
use crate::allocator::{Allocator, Extent, Full, Geometry};
use block_layer::TaskId;
use memory::cache::FileId;
use request::{AllocationRequest, LOCALITY_GROUP_BLOCKS, SMALL_FILE_BLOCKS};

/// ext4's multi-block allocator: free blocks, files, and the locality group that small files share.
#[derive(Clone, Debug)]
pub struct Ext4 {
    space: Space,
    inodes: Inodes,
    files: BTreeMap<FileId, Inode>,
    /// What is left of the locality group's blocks: where, and how many.
    small_files: (u64, u64),
}

#[derive(Clone, Debug)]
struct Inode {
    group: u64,
    open: bool,
    /// The first block of the file behind all that was asked for.
    end: u64,
    map: FileMap,
    /// Set aside: block of the file to where it is and how many.
    set_aside: BTreeMap<u64, (u64, u64)>,
}

impl Ext4 {
    /// An empty filesystem.
    pub fn new(geometry: &Geometry) -> Ext4 {
        Ext4 { space: geometry.space(), inodes: geometry.inodes(), files: BTreeMap::new(), small_files: (0, 0) }
    }

    /// Maps some of the blocks, none of which is mapped; how many.
    fn some(&mut self, inode: &mut Inode, block: u64, blocks: u64) -> Result<u64, Full> {
        if let Some(found) = inode.use_set_aside(block, blocks) {
            return Ok(found);
        }
        let (at, found) = if inode.open && inode.end <= SMALL_FILE_BLOCKS {
            self.take_of_locality_group(inode, block, blocks)?
        } else {
            let wanted = inode.wanted(block, blocks);
            let (at, found) = self.take(inode.goal(wanted.start), wanted.blocks)?;
            // A run that is too short to cover the block from the start begins at the block, and ends where it may.
            let start = if wanted.start + found > block { wanted.start } else { block };
            let length = found.min(wanted.start + wanted.blocks - start);
            self.space.give_back_run(at + length, found - length);
            inode.set_aside.insert(start, (at, length));
            let found = inode.use_set_aside(block, blocks);
            return Ok(found.expect("the run covers the block"));
        };
        inode.map.put(block, at, found);
        Ok(found)
    }

    /// `ext4_mb_use_group_pa`.
    fn take_of_locality_group(&mut self, inode: &Inode, block: u64, blocks: u64) -> Result<(u64, u64), Full> {
        if self.small_files.1 < blocks {
            let (at, left) = self.small_files;
            self.space.give_back_run(at, left);
            self.small_files = (0, 0);
            self.small_files = self.take(inode.goal(block), LOCALITY_GROUP_BLOCKS)?;
        }
        let (at, left) = self.small_files;
        let found = blocks.min(left);
        self.small_files = (at + found, left - found);
        Ok((at, found))
    }

    fn take(&mut self, goal: u64, blocks: u64) -> Result<(u64, u64), Full> {
        let found = search::find(&self.space, goal, blocks).or_else(|| {
            // Under pressure what is set aside is given up.
            self.discard_all();
            search::find(&self.space, goal, blocks)
        });
        let (at, length) = found.ok_or(Full)?;
        self.space.take_run(at, length);
        Ok((at, length))
    }

    fn discard_all(&mut self) {
        for inode in self.files.values_mut() {
            inode.discard(&mut self.space);
        }
        let (at, left) = std::mem::take(&mut self.small_files);
        self.space.give_back_run(at, left);
    }
}

impl Inode {
    /// Maps what is set aside for these blocks of the file, from the first on (`ext4_mb_use_inode_pa`).
    fn use_set_aside(&mut self, block: u64, blocks: u64) -> Option<u64> {
        let (&start, &(at, length)) = self.set_aside.range(..=block).next_back()?;
        let inside = block - start;
        if inside >= length {
            return None;
        }
        let found = blocks.min(length - inside);
        self.set_aside.remove(&start);
        if inside > 0 {
            self.set_aside.insert(start, (at, inside));
        }
        if inside + found < length {
            let rest = inside + found;
            self.set_aside.insert(start + rest, (at + rest, length - rest));
        }
        self.map.put(block, at + inside, found);
        Some(found)
    }

    /// The request, enlarged while the file is open, without what is mapped or set aside on either side of it.
    fn wanted(&self, block: u64, blocks: u64) -> AllocationRequest {
        if !self.open {
            return AllocationRequest { start: block, blocks };
        }
        let AllocationRequest { start, blocks } = request::normalize(block, blocks, self.end);
        let mapped = self.map.before(block).map_or(0, |(logical, _)| logical + 1);
        let before = self.set_aside.range(..block).next_back();
        let set_aside = before.map_or(0, |(logical, (_, length))| logical + length);
        let from = start.max(mapped).max(set_aside);
        let next_mapped = self.map.after(block).unwrap_or(u64::MAX);
        let next_set_aside = self.set_aside.range(block..).next();
        let next = next_mapped.min(next_set_aside.map_or(u64::MAX, |(&logical, _)| logical));
        let end = (start + blocks).min(next);
        AllocationRequest { start: from, blocks: end - from }
    }

    /// As far behind the nearest earlier block as it is in the file; else the start of its group.
    fn goal(&self, block: u64) -> u64 {
        match self.map.before(block) {
            Some((logical, physical)) => physical + (block - logical),
            None => self.group * GROUP_BLOCKS,
        }
    }

    /// `ext4_discard_preallocations`.
    fn discard(&mut self, space: &mut Space) {
        for (_, (at, length)) in std::mem::take(&mut self.set_aside) {
            space.give_back_run(at, length);
        }
    }
}

impl Allocator for Ext4 {
    fn create(&mut self, file: FileId, directory: u32) {
        let inode = Inode {
            group: self.inodes.place(&self.space, directory),
            open: true,
            end: 0,
            map: FileMap::default(),
            set_aside: BTreeMap::new(),
        };
        let before = self.files.insert(file, inode);
        assert!(before.is_none(), "file {file} is created once");
    }

    fn map(&self, file: FileId, block: u64) -> Option<(u64, u64)> {
        self.files.get(&file)?.map.get(block)
    }

    fn allocate(&mut self, _task: TaskId, file: FileId, block: u64, blocks: u64) -> Result<(), Full> {
        let mut inode = self.files.remove(&file).expect("the file was created");
        inode.end = inode.end.max(block + blocks);
        let mut result = Ok(());
        let mut at = block;
        while at < block + blocks && result.is_ok() {
            if let Some((_, run)) = inode.map.get(at) {
                at += run;
                continue;
            }
            let hole_end = inode.map.after(at).unwrap_or(u64::MAX);
            match self.some(&mut inode, at, hole_end.min(block + blocks) - at) {
                Ok(found) => at += found,
                Err(full) => result = Err(full),
            }
        }
        self.files.insert(file, inode);
        result
    }

    fn allocates_at_write(&self) -> bool {
        false
    }

    fn close(&mut self, file: FileId) {
        if let Some(inode) = self.files.get_mut(&file) {
            inode.open = false;
            inode.discard(&mut self.space);
        }
    }

    fn remove(&mut self, file: FileId) {
        self.close(file);
        if let Some(inode) = self.files.remove(&file) {
            for extent in inode.map.extents() {
                self.space.give_back_run(extent.physical, extent.blocks);
            }
            self.inodes.give_back(inode.group);
        }
    }

    fn extents(&self, file: FileId) -> Vec<Extent> {
        let inode = self.files.get(&file);
        inode.map_or_else(Vec::new, |inode| inode.map.extents().collect())
    }

    /// What the locality group holds counts as free: any small file may have it.
    fn free_blocks(&self) -> u64 {
        self.space.free_blocks() + self.small_files.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::Geometry;

    fn filesystem() -> Ext4 {
        Ext4::new(&Geometry { blocks: 8 * GROUP_BLOCKS, ..Geometry::TEST })
    }

    #[test]
    fn blocks_are_given_at_writeback() {
        assert!(!filesystem().allocates_at_write());
    }

    #[test]
    fn what_is_cached_is_one_extent_however_calls_interleaved() {
        let mut fs = filesystem();
        fs.create(0, 0);
        fs.create(1, 0);
        for round in 0..4 {
            for file in 0..2 {
                fs.allocate(0, file, round * 1024, 1024).unwrap();
            }
        }
        for file in 0..2 {
            assert!(fs.extents(file).len() <= 3, "{:?}", fs.extents(file));
        }
    }

    #[test]
    fn what_is_left_of_a_request_belongs_to_the_file_until_it_is_closed() {
        let mut fs = filesystem();
        let all = fs.free_blocks();
        fs.create(0, 0);
        fs.allocate(0, 0, 0, 300).unwrap();
        assert_eq!(fs.free_blocks(), all - 512, "300 blocks want 2 MiB");
        fs.create(1, 0);
        fs.allocate(0, 1, 0, 300).unwrap();
        fs.allocate(0, 0, 300, 100).unwrap();
        assert_eq!(fs.extents(0).len(), 1);
        fs.close(0);
        fs.close(1);
        assert_eq!(fs.free_blocks(), all - 700);
    }

    #[test]
    fn files_of_up_to_16_blocks_lie_together_in_a_locality_group() {
        let mut fs = filesystem();
        let first = |fs: &Ext4, file| fs.extents(file)[0].physical;
        for file in 0..3 {
            fs.create(file, file);
            fs.allocate(0, file, 0, 2).unwrap();
        }
        assert_eq!(first(&fs, 1), first(&fs, 0) + 2);
        assert_eq!(first(&fs, 2), first(&fs, 0) + 4);
    }

    #[test]
    fn a_run_shorter_than_what_is_wanted_ends_before_what_is_set_aside_behind_it() {
        let mut fs = Ext4::new(&Geometry { blocks: 1081, ..Geometry::TEST });
        fs.create(0, 0);
        fs.allocate(0, 0, 1025, 1).unwrap();
        fs.allocate(0, 0, 1021, 3).unwrap();
        fs.close(0);
        assert_eq!(fs.free_blocks(), 1081 - 4);
    }

    #[test]
    fn a_closed_file_gets_no_more_than_it_asks_for() {
        let mut fs = filesystem();
        let all = fs.free_blocks();
        fs.create(0, 0);
        fs.close(0);
        fs.allocate(0, 0, 0, 300).unwrap();
        assert_eq!(fs.free_blocks(), all - 300);
    }
}
