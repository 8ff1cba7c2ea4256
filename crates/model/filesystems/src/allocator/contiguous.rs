//! A filesystem that keeps files in long pieces, for those whose own rules are not simulated.
//!
//! Not a kernel's algorithm: a file asks for as much as it has, between 64 KiB and a limit, behind its last block if
//! that is free, else at the first run of that length, and for half as much while no run is as long; what it does not
//! use is given back when it is closed. Speculative preallocation past the end of a file that doubles with it is what
//! XFS does (inferred), its allocation groups and trees are not here.

use std::collections::BTreeMap;

use crate::allocator::file_map::FileMap;
use crate::allocator::groups::Inodes;
use crate::allocator::space::{GROUP_BLOCKS, Space};
use crate::allocator::{Allocator, Extent, Full, Geometry};
use block_layer::TaskId;
use memory::cache::FileId;

const CLAIM_FIRST: u64 = 16;
/// 8 GiB, what XFS takes at most.
const CLAIM_MAX: u64 = 2 << 20;

/// The allocator of such a filesystem: its free blocks and its files.
#[derive(Clone, Debug)]
pub struct Contiguous {
    space: Space,
    inodes: Inodes,
    files: BTreeMap<FileId, Inode>,
    /// No run of free blocks is longer, as far as is known: none is looked for in vain twice.
    run_max: u64,
}

#[derive(Clone, Debug)]
struct Inode {
    group: u64,
    map: FileMap,
    mapped: u64,
    last: Option<u64>,
    /// Claimed and not used: where, and how many.
    claim: (u64, u64),
}

impl Contiguous {
    /// An empty filesystem.
    pub fn new(geometry: &Geometry) -> Contiguous {
        Contiguous { space: geometry.space(), inodes: geometry.inodes(), files: BTreeMap::new(), run_max: u64::MAX }
    }

    fn claim(&mut self, inode: &Inode, blocks: u64) -> Result<(u64, u64), Full> {
        let goal = inode.last.map_or(inode.group * GROUP_BLOCKS, |last| last + 1);
        let mut wanted = inode.mapped.clamp(CLAIM_FIRST, CLAIM_MAX).max(blocks);
        let (at, length) = loop {
            if wanted <= self.run_max {
                match self.run(goal, wanted) {
                    Some(found) => break found,
                    None => self.run_max = wanted - 1,
                }
            }
            if wanted <= blocks {
                break self.longest().ok_or(Full)?;
            }
            wanted = (wanted / 2).max(blocks);
        };
        let length = length.min(wanted);
        self.space.take_run(at, length);
        Ok((at, length))
    }

    fn give_back(&mut self, at: u64, blocks: u64) {
        self.space.give_back_run(at, blocks);
        if blocks > 0 {
            self.run_max = u64::MAX;
        }
    }

    /// The first free run of that length from the goal on, cyclically.
    fn run(&self, goal: u64, blocks: u64) -> Option<(u64, u64)> {
        let whole = |from, to| {
            let mut at = from;
            while let Some(free) = self.space.next_free(at, to) {
                at = self.space.next_used(free, to.min(free + blocks));
                if at - free == blocks {
                    return Some((free, blocks));
                }
            }
            None
        };
        let end = self.space.blocks();
        whole(goal.min(end), end).or_else(|| whole(0, end))
    }

    fn longest(&self) -> Option<(u64, u64)> {
        let end = self.space.blocks();
        let mut longest: Option<(u64, u64)> = None;
        let mut at = 0;
        while let Some(free) = self.space.next_free(at, end) {
            at = self.space.next_used(free, end);
            if longest.is_none_or(|(_, length)| at - free > length) {
                longest = Some((free, at - free));
            }
        }
        longest
    }
}

impl Allocator for Contiguous {
    fn create(&mut self, file: FileId, directory: u32) {
        let inode = Inode {
            group: self.inodes.place(&self.space, directory),
            map: FileMap::default(),
            mapped: 0,
            last: None,
            claim: (0, 0),
        };
        let before = self.files.insert(file, inode);
        assert!(before.is_none(), "file {file} is created once");
    }

    fn map(&self, file: FileId, block: u64) -> Option<(u64, u64)> {
        self.files.get(&file)?.map.get(block)
    }

    fn allocate(&mut self, _task: TaskId, file: FileId, block: u64, blocks: u64) -> Result<(), Full> {
        let mut inode = self.files.remove(&file).expect("the file was created");
        let mut result = Ok(());
        let mut at = block;
        while at < block + blocks {
            if let Some((_, run)) = inode.map.get(at) {
                at += run;
                continue;
            }
            let hole_end = inode.map.after(at).unwrap_or(u64::MAX);
            let missing = hole_end.min(block + blocks) - at;
            if inode.claim.1 == 0 {
                match self.claim(&inode, missing) {
                    Ok(claim) => inode.claim = claim,
                    Err(full) => {
                        result = Err(full);
                        break;
                    }
                }
            }
            let (physical, left) = inode.claim;
            let found = missing.min(left);
            inode.map.put(at, physical, found);
            inode.claim = (physical + found, left - found);
            inode.mapped += found;
            inode.last = Some(physical + found - 1);
            at += found;
        }
        self.files.insert(file, inode);
        result
    }

    fn allocates_at_write(&self) -> bool {
        false
    }

    fn close(&mut self, file: FileId) {
        if let Some(inode) = self.files.get_mut(&file) {
            let (at, left) = std::mem::take(&mut inode.claim);
            self.give_back(at, left);
        }
    }

    fn remove(&mut self, file: FileId) {
        self.close(file);
        if let Some(inode) = self.files.remove(&file) {
            for extent in inode.map.extents() {
                self.give_back(extent.physical, extent.blocks);
            }
            self.inodes.give_back(inode.group);
        }
    }

    fn extents(&self, file: FileId) -> Vec<Extent> {
        let inode = self.files.get(&file);
        inode.map_or_else(Vec::new, |inode| inode.map.extents().collect())
    }

    fn free_blocks(&self) -> u64 {
        self.space.free_blocks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No run is as long as what is asked for: each group begins with blocks that are never given out.
    #[test]
    fn a_file_larger_than_a_group_goes_on_in_long_pieces() {
        let geometry = Geometry { blocks: 16 * GROUP_BLOCKS, group_metadata_blocks: 516, ..Geometry::TEST };
        let mut fs = Contiguous::new(&geometry);
        fs.create(0, 0);
        fs.create(1, 0);
        for block in 0..12 * GROUP_BLOCKS {
            fs.allocate(0, (block % 2) as u32, block / 2, 1).unwrap();
        }
        for file in 0..2 {
            let extents = fs.extents(file).len();
            assert!(extents < 60, "{extents}");
        }
    }

    #[test]
    fn a_growing_file_has_few_extents_among_others() {
        let mut fs = Contiguous::new(&Geometry::TEST);
        let all = fs.free_blocks();
        fs.create(0, 0);
        fs.create(1, 0);
        for block in 0..4096 {
            fs.allocate(0, (block % 2) as u32, block / 2, 1).unwrap();
        }
        // 16, 16, 32, 64, ..., each where the other has not gone on.
        assert!(fs.extents(0).len() <= 9, "{}", fs.extents(0).len());
        fs.close(0);
        fs.close(1);
        assert_eq!(fs.free_blocks(), all - 4096);
    }
}
