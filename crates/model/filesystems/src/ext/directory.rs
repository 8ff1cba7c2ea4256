//! Directories: blocks of entries, in a row as ext2 and ext3 have them, or found by hashes (`dir_index`, ext4).

use std::collections::VecDeque;

use memory::cache::FileId;

/// A directory, and who has it locked.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) inode: u64,
    /// The allocator's number of its file.
    pub(super) file: FileId,
    /// Leaves in the order of their hashes, or blocks in a row.
    leaves: Vec<Leaf>,
    /// Entries that a block holds.
    per_block: u32,
    is_indexed: bool,
    pub(super) is_locked: bool,
    pub(super) waiting: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Leaf {
    /// The lowest hash in it.
    from: u32,
    /// Of the directory's file.
    block: u64,
    used: u32,
}

/// What one more entry changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectoryChange {
    /// Blocks of the directory's file.
    pub(super) changed: Vec<u64>,
    /// The one of them that is new.
    pub(super) new: Option<u64>,
    /// Which of its blocks holds the entry.
    pub(super) block: u64,
}

const BLOCK_BYTES: u32 = 4096;
/// Bytes of an entry without its name; entries are multiples of 4.
const ENTRY_BYTES: u32 = 8;

impl Directory {
    pub(super) fn new(inode: u64, file: FileId, name_bytes: u32, is_indexed: bool) -> Directory {
        Directory {
            inode,
            file,
            leaves: vec![Leaf { from: 0, block: 0, used: 0 }],
            per_block: BLOCK_BYTES / (ENTRY_BYTES + name_bytes).next_multiple_of(4),
            is_indexed,
            is_locked: false,
            waiting: VecDeque::new(),
        }
    }

    /// Blocks that are looked through to find that a name is not there, and room for it.
    pub(super) fn scanned_to_enter(&self) -> u64 {
        let blocks = self.leaves.len() as u64;
        match self.is_indexed {
            true => blocks.min(2),
            false => blocks + self.first_with_room().map_or(blocks, |at| at as u64 + 1),
        }
    }

    /// To find an entry that is in that block.
    pub(super) fn scanned_to_find(&self, block: u64) -> u64 {
        match self.is_indexed {
            true => (self.leaves.len() as u64).min(2),
            false => block + 1,
        }
    }

    /// Its blocks, with the one that holds the index.
    fn blocks(&self) -> u64 {
        let index = u64::from(self.is_indexed && self.leaves.len() > 1);
        self.leaves.len() as u64 + index
    }

    pub(super) fn enter(&mut self, hash: u32) -> DirectoryChange {
        match self.is_indexed {
            true => self.enter_by_hash(hash),
            false => self.enter_in_row(),
        }
    }

    /// An entry of that block is gone.
    pub(super) fn leave(&mut self, hash: u32, block: u64) -> u64 {
        let at = match self.is_indexed {
            true => self.leaf_of(hash),
            false => block as usize,
        };
        let leaf = &mut self.leaves[at];
        leaf.used = leaf.used.saturating_sub(1);
        leaf.block
    }

    fn first_with_room(&self) -> Option<usize> {
        self.leaves.iter().position(|leaf| leaf.used < self.per_block)
    }

    fn enter_in_row(&mut self) -> DirectoryChange {
        if let Some(at) = self.first_with_room() {
            let leaf = &mut self.leaves[at];
            leaf.used += 1;
            return DirectoryChange { changed: vec![leaf.block], new: None, block: leaf.block };
        }
        let block = self.blocks();
        self.leaves.push(Leaf { from: 0, block, used: 1 });
        DirectoryChange { changed: vec![block], new: Some(block), block }
    }

    fn leaf_of(&self, hash: u32) -> usize {
        self.leaves.partition_point(|leaf| leaf.from <= hash) - 1
    }

    /// A full leaf gives the upper half of its hashes to a new one; the first block becomes the index when there are two.
    fn enter_by_hash(&mut self, hash: u32) -> DirectoryChange {
        let at = self.leaf_of(hash);
        if self.leaves[at].used < self.per_block {
            self.leaves[at].used += 1;
            let block = self.leaves[at].block;
            return DirectoryChange { changed: vec![block], new: None, block };
        }
        let index = 0;
        if self.leaves.len() == 1 {
            // Its entries move behind the index.
            self.leaves[0].block = 1;
        }
        let new = self.leaves.len() as u64 + 1;
        let end = self.leaves.get(at + 1).map_or(u64::from(u32::MAX) + 1, |next| u64::from(next.from));
        let from = self.leaves[at].from;
        let middle = ((u64::from(from) + end) / 2) as u32;
        let upper = self.leaves[at].used / 2;
        self.leaves[at].used -= upper;
        let old = self.leaves[at].block;
        self.leaves.insert(at + 1, Leaf { from: middle, block: new, used: upper });
        let into = at + usize::from(hash >= middle);
        self.leaves[into].used += 1;
        DirectoryChange { changed: vec![index, old, new], new: Some(new), block: self.leaves[into].block }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_in_a_row_fill_the_first_block_with_room() {
        // 48 bytes for a name of 40: 85 in a block.
        let mut directory = Directory::new(0, 0, 40, false);
        let blocks: Vec<u64> = (0..86).map(|_| directory.enter(0).block).collect();
        assert_eq!((blocks[84], blocks[85]), (0, 1));
        assert_eq!(directory.scanned_to_enter(), 2 + 2);
        directory.leave(0, 0);
        assert_eq!(directory.enter(0).block, 0);
    }

    #[test]
    fn a_full_leaf_is_split_and_the_index_changes() {
        let mut directory = Directory::new(0, 0, 40, true);
        let step = u32::MAX / 86;
        let mut all = (0..86).map(|number| directory.enter(number * step));
        let last = all.by_ref().last().unwrap();
        assert_eq!(last.changed, [0, 1, 2]);
        assert_eq!(last.new, Some(2));
        assert_eq!((last.block, directory.scanned_to_enter()), (2, 2));
        assert_eq!(directory.leave(0, 0), 1);
    }

    #[test]
    fn a_name_as_long_as_can_be_leaves_room_for_fifteen() {
        assert_eq!(Directory::new(0, 0, 255, false).per_block, 15);
    }
}
