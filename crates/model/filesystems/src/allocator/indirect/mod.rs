//! ext2 and ext3: block by block in write(2), towards a goal, with indirect blocks on the same path.
//!
//! Source: `fs/ext2/{balloc,inode,ialloc}.c` and `fs/ext3/{balloc,inode}.c` of 2.5.59, for windows of 2.6.11-rc5
//! (docs/model/sources/allocators.md). Left out: that ext3 gives a freed block out again only after the commit that frees
//! it.

mod preallocation;
mod search;
#[cfg(test)]
mod tests;
mod tree;
mod windows;

use std::collections::BTreeMap;

use crate::allocator::file_map::FileMap;
use crate::allocator::groups::Inodes;
use crate::allocator::space::{GROUP_BLOCKS, Space};
use crate::allocator::{Allocator, Extent, Full, Geometry};
use block_layer::TaskId;
use memory::cache::FileId;
use preallocation::Preallocation;
use tree::Table;
use windows::{Reservation, Windows};

/// How blocks are set aside for a file that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreallocationRule {
    /// ext3 before windows: nothing, every block is searched for by itself.
    Nothing,
    /// ext2: this many blocks in all are marked as used at once; 8 unless the superblock has another number.
    Preallocation {
        /// How many blocks: the one that is asked for and those that follow it.
        blocks: u32,
    },
    /// ext3 of 2.6.10 on: windows in memory that other files' searches avoid; no bit is set.
    Windows,
}

/// The allocator of ext2 and ext3: files with their indirect blocks, and the disk that they share.
#[derive(Clone, Debug)]
pub struct Indirect {
    inodes: Inodes,
    files: BTreeMap<FileId, Inode>,
    disk: Disk,
}

/// What all files share.
#[derive(Clone, Debug)]
struct Disk {
    set_aside: PreallocationRule,
    /// 2.5.53 and later: a task's files begin at one of 16 places in the group; before, at the group's first block.
    colours: bool,
    space: Space,
    windows: Windows,
}

#[derive(Clone, Debug)]
struct Inode {
    group: u64,
    map: FileMap,
    tables: BTreeMap<Table, u64>,
    /// What was allocated last: the block of the file, and where it is.
    last: Option<(u64, u64)>,
    preallocation: Preallocation,
    reservation: Reservation,
}

impl Indirect {
    /// An empty filesystem. `colours`: a task's files begin at one of 16 places in their group (2.5.53 and later).
    pub fn new(geometry: &Geometry, set_aside: PreallocationRule, colours: bool) -> Indirect {
        Indirect {
            inodes: geometry.inodes(),
            files: BTreeMap::new(),
            disk: Disk { set_aside, colours, space: geometry.space(), windows: Windows::default() },
        }
    }
}

impl Disk {
    /// The indirect blocks that are missing on the way, then the block itself (`ext2_alloc_branch`).
    fn branch(&mut self, task: TaskId, file: FileId, inode: &mut Inode, logical: u64) -> Result<(), Full> {
        let (tables, count) = tree::path(logical);
        let present = tables[..count].iter().take_while(|table| inode.tables.contains_key(table)).count();
        let mut goal = self.goal(task, inode, logical, &tables[..count], present);
        for &table in &tables[present..count] {
            let block = self.one_block(file, inode, goal)?;
            inode.tables.insert(table, block);
            // What an indirect block leads to is sought at its own number: it ends up behind it.
            goal = block;
        }
        let block = self.one_block(file, inode, goal)?;
        inode.map.put(logical, block, 1);
        inode.last = Some((logical, block));
        Ok(())
    }

    /// `ext2_find_goal`.
    fn goal(&self, task: TaskId, inode: &Inode, logical: u64, tables: &[Table], present: usize) -> u64 {
        if let Some((last, physical)) = inode.last
            && last + 1 == logical
        {
            return physical + 1;
        }
        inode.near(logical, tables, present).unwrap_or_else(|| self.start_of(task, inode.group))
    }

    /// Where a file's first block goes: 16 colours, by the process's number, are 8 MiB apart in a whole group.
    fn start_of(&self, task: TaskId, group: u64) -> u64 {
        let start = group * GROUP_BLOCKS;
        let colour = start + u64::from(task % 16) * (GROUP_BLOCKS / 16);
        if self.colours && colour < self.space.blocks() { colour } else { start }
    }

    fn one_block(&mut self, file: FileId, inode: &mut Inode, goal: u64) -> Result<u64, Full> {
        let space = &mut self.space;
        match self.set_aside {
            PreallocationRule::Nothing => {
                let block = search::find(space, goal)?;
                space.take(block);
                Ok(block)
            }
            PreallocationRule::Preallocation { blocks } => inode.preallocation.take(space, goal, blocks),
            PreallocationRule::Windows => self.windows.take(space, file, &mut inode.reservation, goal),
        }
    }
}

impl Inode {
    /// The nearest earlier pointer in the block of pointers (its own number, not the one behind it), else the number of
    /// that block (`ext2_find_near`).
    fn near(&self, logical: u64, tables: &[Table], present: usize) -> Option<u64> {
        let parent = present.checked_sub(1).map(|last| tables[last]);
        match (parent, tables.get(present)) {
            // The data block is what is missing, in a leaf or in the inode.
            (parent, None) => {
                let first = parent.map_or(0, |(_, leaf)| tree::first_block(leaf));
                let earlier = self.map.before(logical);
                earlier.filter(|&(block, _)| block >= first).map(|(_, physical)| physical)
            }
            (Some(_), Some(&missing)) => {
                let first = tree::first_sibling(missing)?;
                self.tables.range(first..missing).next_back().map(|(_, &at)| at)
            }
            // The inode's own pointers: tables of lower levels, then data.
            (None, Some(&(level, _))) => (1..level)
                .rev()
                .find_map(|lower| self.tables.get(&(lower, 0)).copied())
                .or_else(|| self.map.before(tree::DIRECT).map(|(_, physical)| physical)),
        }
        .or_else(|| parent.map(|table| self.tables[&table]))
    }
}

impl Allocator for Indirect {
    fn create(&mut self, file: FileId, directory: u32) {
        let group = self.inodes.place(&self.disk.space, directory);
        let inode = Inode {
            group,
            map: FileMap::default(),
            tables: BTreeMap::new(),
            last: None,
            preallocation: Preallocation::default(),
            reservation: Reservation::default(),
        };
        let before = self.files.insert(file, inode);
        assert!(before.is_none(), "file {file} is created once");
    }

    fn map(&self, file: FileId, block: u64) -> Option<(u64, u64)> {
        self.files.get(&file)?.map.get(block)
    }

    fn allocate(&mut self, task: TaskId, file: FileId, block: u64, blocks: u64) -> Result<(), Full> {
        let inode = self.files.get_mut(&file).expect("the file was created");
        for logical in block..block + blocks {
            if inode.map.get(logical).is_none() {
                self.disk.branch(task, file, inode, logical)?;
            }
        }
        Ok(())
    }

    fn allocates_at_write(&self) -> bool {
        true
    }

    fn close(&mut self, file: FileId) {
        if let Some(inode) = self.files.get_mut(&file) {
            inode.preallocation.give_back(&mut self.disk.space);
            self.disk.windows.discard(&mut inode.reservation);
        }
    }

    fn remove(&mut self, file: FileId) {
        self.close(file);
        let Some(inode) = self.files.remove(&file) else {
            return;
        };
        for extent in inode.map.extents() {
            self.disk.space.give_back_run(extent.physical, extent.blocks);
        }
        for &table in inode.tables.values() {
            self.disk.space.give_back(table);
        }
        self.inodes.give_back(inode.group);
    }

    fn map_blocks(&self, file: FileId) -> Vec<u64> {
        let inode = self.files.get(&file);
        inode.map_or_else(Vec::new, |inode| inode.tables.values().copied().collect())
    }

    fn extents(&self, file: FileId) -> Vec<Extent> {
        let inode = self.files.get(&file);
        inode.map_or_else(Vec::new, |inode| inode.map.extents().collect())
    }

    fn free_blocks(&self) -> u64 {
        self.disk.space.free_blocks()
    }
}
