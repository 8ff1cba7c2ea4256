//! How a directory grows: where its entries lie, and when it needs another block.
//!
//! Source: `fs/xfs/xfs_dir2*.c` of 3.4 with 4 KiB blocks and version 2 directories (docs/model/sources/xfs.md#directories).
//! The sizes of the short and the block format, and that splits halve a leaf's range of hashes, are inferred from the same
//! files' structures.

use std::collections::BTreeMap;

/// What an allocator call of a directory is for. Each is a space of its own in the directory's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockUse {
    Data,
    /// Hashes with the places of their entries, and the nodes above.
    Leaf,
    /// The room that each data block has left.
    Free,
}

#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) inode: u64,
    pub(super) group: u32,
    entries: u64,
    /// Entries that there is room for in blocks that are there.
    vacant: u64,
    format: DirectoryFormat,
    data_blocks: u32,
    /// By the first hash of its range: how many entries each leaf has.
    leaves: BTreeMap<u32, u16>,
    nodes: u32,
    /// Where the last block was put, from which the next is looked for.
    last_block: Option<u32>,
    /// The block behind the last of each use, which would be contiguous.
    next_of: [Option<(u32, u32)>; 3],
    extents: u32,
    map_blocks: u32,
    /// By use: group and block of each.
    places: [Vec<(u32, u32)>; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectoryFormat {
    /// In the inode.
    Short,
    /// Entries and hashes in one block.
    Block,
    /// Data blocks, and one leaf with the hashes and each block's room.
    Leaf,
    /// Leaves below nodes, and blocks for the room.
    Node,
}

const BLOCK: u32 = super::BLOCK_BYTES;
const DATA_HEADER: u32 = 16;
const HASH_ENTRY: u32 = 8;
const LEAF_ENTRIES_MAX: u16 = ((BLOCK - 16) / HASH_ENTRY) as u16;
const NODE_ENTRIES_MAX: u32 = (BLOCK - 16) / 8;
const FREE_ENTRIES_MAX: u32 = (BLOCK - 16) / 2;
/// An inode's core before its literal area.
const CORE_BYTES: u32 = 100;
const EXTENT_BYTES: u32 = 16;
const MAP_RECORDS_MAX: u32 = (BLOCK - 24) / EXTENT_BYTES;

/// Bytes of an entry in a data block: inode number, length, name, tag, in eights.
pub(super) fn entry_bytes(name_bytes: u32) -> u32 {
    (8 + 1 + name_bytes + 2).next_multiple_of(8)
}

/// How many entries a data block holds.
pub(super) fn entries_per_block(name_bytes: u32) -> u64 {
    u64::from((BLOCK - DATA_HEADER) / entry_bytes(name_bytes))
}

/// Blocks of the map of a file with this many extents: none while they fit into the inode.
pub(super) fn map_blocks(extents: u32, inode_bytes: u32) -> u32 {
    let inline = (inode_bytes - CORE_BYTES) / EXTENT_BYTES;
    match extents {
        few if few <= inline => 0,
        many => many.div_ceil(MAP_RECORDS_MAX),
    }
}

impl Directory {
    pub(super) fn new(inode: u64, group: u32) -> Directory {
        Directory {
            inode,
            group,
            entries: 0,
            vacant: 0,
            format: DirectoryFormat::Short,
            data_blocks: 0,
            leaves: BTreeMap::new(),
            nodes: 0,
            last_block: None,
            next_of: [None; 3],
            extents: 0,
            map_blocks: 0,
            places: Default::default(),
        }
    }

    pub(super) fn data_blocks(&self) -> u32 {
        self.data_blocks
    }

    /// The blocks that an entry with that hash changes: the data block that has room, which is the last, the leaf of the
    /// hash, and the last block of the room.
    pub(super) fn changed_by(&self, hash: u32) -> impl Iterator<Item = (u32, u32)> {
        let [data, leaves, room] = &self.places;
        // Hashes spread evenly, and so do the leaves' ranges.
        let leaf = (u64::from(hash) * leaves.len() as u64) >> 32;
        [data.last(), leaves.get(leaf as usize), room.last()].into_iter().flatten().copied()
    }

    /// Where its next block is looked for.
    pub(super) fn target(&self) -> Option<u32> {
        self.last_block
    }

    /// Makes an entry: the blocks that it has to get for that, in their order.
    pub(super) fn enter(&mut self, hash: u32, name_bytes: u32, inode_bytes: u32) -> Vec<BlockUse> {
        let mut wanted = Vec::new();
        self.entries += 1;
        if self.format == DirectoryFormat::Short {
            // Length, offset, name, inode number.
            let short = u64::from(name_bytes + 1 + 2 + 4);
            if 10 + self.entries * short <= u64::from(inode_bytes - CORE_BYTES) {
                return wanted;
            }
            self.format = DirectoryFormat::Block;
            self.data_blocks = 1;
            wanted.push(BlockUse::Data);
        }
        if self.format == DirectoryFormat::Block {
            let each = u64::from(entry_bytes(name_bytes) + HASH_ENTRY);
            if self.entries <= u64::from(BLOCK - DATA_HEADER - 8) / each {
                return wanted;
            }
            self.format = DirectoryFormat::Leaf;
            self.leaves.insert(0, self.entries as u16 - 1);
            self.vacant = entries_per_block(name_bytes).saturating_sub(self.entries - 1);
            wanted.push(BlockUse::Leaf);
        }
        if self.vacant == 0 {
            self.data_blocks += 1;
            self.vacant = entries_per_block(name_bytes);
            wanted.push(BlockUse::Data);
            if self.format == DirectoryFormat::Node && self.data_blocks % FREE_ENTRIES_MAX == 1 {
                wanted.push(BlockUse::Free);
            }
        }
        self.vacant -= 1;
        self.put_hash(hash, &mut wanted);
        wanted
    }

    /// An entry goes. Blocks stay, with room for others.
    pub(super) fn leave(&mut self, hash: u32) {
        self.entries -= 1;
        if matches!(self.format, DirectoryFormat::Leaf | DirectoryFormat::Node) {
            self.vacant += 1;
            let (_, count) = self.leaves.range_mut(..=hash).next_back().expect("ranges begin with 0");
            // What a split moved by halves may be another's.
            *count = count.saturating_sub(1);
        }
    }

    /// A block has been put there. True: the map of extents needs another block for that.
    pub(super) fn placed(&mut self, group: u32, block: u32, what: BlockUse, inode_bytes: u32) -> bool {
        self.places[what as usize].push((group, block));
        let next = &mut self.next_of[what as usize];
        if *next != Some((group, block)) {
            self.extents += 1;
        }
        *next = Some((group, block + 1));
        if group == self.group {
            self.last_block = Some(block);
        }
        let needed = map_blocks(self.extents, inode_bytes);
        let grows = needed > self.map_blocks;
        self.map_blocks = needed.max(self.map_blocks);
        grows
    }

    fn put_hash(&mut self, hash: u32, wanted: &mut Vec<BlockUse>) {
        if self.format == DirectoryFormat::Leaf {
            let room = (BLOCK - 16 - 4 - 2 * self.data_blocks) / HASH_ENTRY;
            if self.leaves[&0] < room as u16 {
                *self.leaves.get_mut(&0).expect("the one leaf") += 1;
                return;
            }
            self.format = DirectoryFormat::Node;
            self.nodes = 1;
            // The room's own block, and a node above.
            wanted.extend([BlockUse::Free, BlockUse::Leaf]);
        }
        let (&first, count) = self.leaves.range_mut(..=hash).next_back().expect("ranges begin with 0");
        *count += 1;
        if *count <= LEAF_ENTRIES_MAX {
            return;
        }
        let upper = *count / 2;
        *count -= upper;
        let end = self.leaves.range(first.saturating_add(1)..).next();
        let end = end.map_or(1u64 << 32, |(&next, _)| u64::from(next));
        let middle = (u64::from(first) + end) / 2;
        self.leaves.insert(middle as u32, upper);
        wanted.push(BlockUse::Leaf);
        let nodes = (self.leaves.len() as u32).div_ceil(NODE_ENTRIES_MAX);
        if nodes > self.nodes {
            self.nodes = nodes;
            wanted.push(BlockUse::Leaf);
        }
    }
}

#[cfg(test)]
mod tests {
    use base::rng;

    use super::*;

    fn filled(entries: u64) -> (Directory, Vec<BlockUse>) {
        let mut directory = Directory::new(1, 0);
        let mut stream = rng::stream(5, 0);
        let wanted = (0..entries).flat_map(|_| directory.enter(stream.next_u64() as u32, 40, 256));
        let wanted = wanted.collect();
        (directory, wanted)
    }

    #[test]
    fn seventy_two_entries_of_forty_letters_fill_a_block() {
        assert_eq!(entry_bytes(40), 56);
        assert_eq!(entries_per_block(40), 72);
    }

    #[test]
    fn a_directory_goes_through_its_forms() {
        let forms = |entries| filled(entries).0.format;
        assert_eq!(
            [3, 4, 63, 64, 400, 600].map(forms),
            [
                DirectoryFormat::Short,
                DirectoryFormat::Block,
                DirectoryFormat::Block,
                DirectoryFormat::Leaf,
                DirectoryFormat::Leaf,
                DirectoryFormat::Node
            ]
        );
    }

    #[test]
    fn the_calls_of_a_large_directory_are_a_block_of_data_per_72_entries_and_leaves_two_thirds_full() {
        let (directory, wanted) = filled(22_500);
        assert_eq!(directory.data_blocks(), 313);
        let leaves = wanted.iter().filter(|&&what| what == BlockUse::Leaf).count();
        assert!((55..=100).contains(&leaves), "{leaves}");
        let of_data = wanted.iter().filter(|&&what| what == BlockUse::Data).count();
        assert_eq!(of_data, 313);
        let entries: u64 = directory.leaves.values().map(|&count| u64::from(count)).sum();
        assert_eq!(entries, 22_500);
    }

    #[test]
    fn entries_that_went_leave_room() {
        let (mut directory, _) = filled(1_000);
        (0..500).for_each(|number| directory.leave(number * 8_000_000));
        let more = (0..500).flat_map(|_| directory.enter(77, 40, 256));
        assert!(more.into_iter().all(|what| what != BlockUse::Data));
        assert_eq!(directory.entries, 1_000);
    }

    #[test]
    fn scattered_blocks_need_a_map_of_their_own() {
        let mut directory = Directory::new(1, 0);
        let grows: Vec<u32> =
            (0..300).filter(|&number| directory.placed(0, number * 10, BlockUse::Data, 256)).collect();
        assert_eq!(grows, [9, 254]);
        let mut together = Directory::new(1, 0);
        assert!((0..300).all(|number| !together.placed(0, number, BlockUse::Data, 256)));
    }
}
