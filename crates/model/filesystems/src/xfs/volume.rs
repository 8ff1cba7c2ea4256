//! The filesystem on its drive: groups, the rotor of directories, and what is asked of the allocator.

use std::collections::BTreeMap;

use super::data::{Extent, File};
use super::directory::Directory;
use super::group::{BlockTarget, Group, INODE_ROOT_BLOCK};
use super::spec::{Allocation, XfsSpec};
use events::station::Violation;

/// The owner of blocks, inodes and directories. A caller that takes some has locked them; a caller that changes some
/// commits the change.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    spec: XfsSpec,
    allocation: Allocation,
    /// Calls of `xfs_alloc_vextent` until now.
    allocator_calls: u64,
    groups: Vec<Group>,
    /// `m_agirotor`: where the next directory goes.
    rotor: u32,
    ag_blocks: u32,
    directories: Vec<Directory>,
    /// By the path of a thread's directory and the number in it.
    names: BTreeMap<(String, Option<u32>), usize>,
    inodes_taken: u64,
    /// Given out by the allocator and not a chunk's: the directories'.
    directory_blocks: u64,
    /// And of files, with the maps of their extents.
    data_blocks: u64,
    blocks_at_first: u64,
}

/// One call of `xfs_alloc_vextent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) group: u32,
    pub(super) place: BlockTarget,
    pub(super) blocks: u32,
    pub(super) align: u32,
    /// For what a file holds (`userdata`).
    pub(super) is_data: bool,
    /// Other groups will do, from the next one on (`XFS_ALLOCTYPE_START_BNO`).
    pub(super) elsewhere: bool,
}

/// The shift of a group's number, which is the upper half of an inode's, as in XFS.
const GROUP_SHIFT: u32 = 32;

/// Behind the headers and the reserve of its group.
const LOG_BEGINS: u32 = 8;

/// 8 KiB (`XFS_INODE_BIG_CLUSTER_SIZE`).
const CLUSTER_BLOCKS: u32 = 2;

/// So much has to be left before a file is begun: a chunk, and a block at each level that may grow.
const RESERVATION_BLOCKS: u64 = 40;

/// (`MAXEXTLEN`.)
const EXTENT_BLOCKS_MAX: u32 = (1 << 21) - 1;

impl Volume {
    /// `allocation`: the kernel's, if the specification has none. Its root is there.
    pub(super) fn new(spec: &XfsSpec, allocation: Allocation) -> Volume {
        let count = spec.ag_count;
        let blocks = (spec.blocks / u64::from(count)) as u32;
        let groups: Vec<Group> = (0..count)
            .map(|number| {
                let log = if number == count / 2 { spec.log_blocks } else { 0 };
                Group::new(blocks, log, spec.inodes_per_block())
            })
            .collect();
        let blocks_at_first = groups.iter().map(Group::free).sum();
        let mut volume = Volume {
            spec: *spec,
            allocation: spec.allocation.unwrap_or(allocation),
            allocator_calls: 0,
            groups,
            rotor: 0,
            ag_blocks: blocks,
            directories: Vec::new(),
            names: BTreeMap::new(),
            inodes_taken: 0,
            directory_blocks: 0,
            data_blocks: 0,
            blocks_at_first,
        };
        volume.turn_rotor();
        volume.add_directory(0, "", None);
        volume
    }

    pub(super) fn spec(&self) -> &XfsSpec {
        &self.spec
    }

    /// A call of the allocator is handed over to a worker.
    pub(super) fn defers_call(&self, is_data: bool) -> bool {
        self.allocation.defers_call(is_data)
    }

    /// So is all that gives a file's data their places.
    pub(super) fn defers_mapping(&self) -> bool {
        self.allocation.defers_mapping()
    }

    pub(super) fn count_allocator_call(&mut self) {
        self.allocator_calls += 1;
    }

    pub(super) fn allocator_calls(&self) -> u64 {
        self.allocator_calls
    }

    /// The directory at a thread's path, or the one of that number in it.
    pub(super) fn directory_at(&self, path: &str, number: Option<u32>) -> Option<usize> {
        self.names.get(&(path.to_owned(), number)).copied()
    }

    /// Where a group's block is on the volume.
    pub(super) fn absolute(&self, group: u32, block: u32) -> u64 {
        u64::from(group) * u64::from(self.ag_blocks) + u64::from(block)
    }

    /// The group of a block of the volume, and where it is there.
    pub(super) fn relative(&self, block: u64) -> (u32, u32) {
        let of_group = u64::from(self.ag_blocks);
        ((block / of_group) as u32, (block % of_group) as u32)
    }

    /// The group and the block where an inode is.
    pub(super) fn place_of(&self, inode: u64) -> (u32, u32) {
        let block = inode as u32 / self.spec.inodes_per_block();
        ((inode >> GROUP_SHIFT) as u32, block)
    }

    /// Blocks of a file are free again.
    pub(super) fn give_back(&mut self, group: u32, start: u32, blocks: u32) {
        self.groups[group as usize].give_back(start, blocks);
        self.data_blocks -= u64::from(blocks);
    }

    /// The log's first block.
    pub(super) fn log_block(&self) -> u64 {
        self.absolute(self.spec.ag_count / 2, LOG_BEGINS)
    }

    /// The blocks of the cluster in which an inode is written.
    pub(super) fn inode_blocks(&self, inode: u64) -> [u64; CLUSTER_BLOCKS as usize] {
        let block = inode as u32 / self.spec.inodes_per_block();
        let first = block / CLUSTER_BLOCKS * CLUSTER_BLOCKS;
        let group = (inode >> GROUP_SHIFT) as u32;
        [0, 1].map(|step| self.absolute(group, first + step))
    }

    /// The header of a group's inodes, and the root of their tree.
    pub(super) fn inode_headers(&self, group: u32) -> [u64; 2] {
        [0, INODE_ROOT_BLOCK].map(|block| self.absolute(group, block))
    }

    /// The header of a group's free space, and the roots of its two trees.
    pub(super) fn space_headers(&self, group: u32) -> [u64; 3] {
        [0, 1, 2].map(|block| self.absolute(group, block))
    }

    /// The blocks of a directory that an entry with that hash changes.
    pub(super) fn entry_blocks(&self, directory: usize, hash: u32) -> Vec<u64> {
        let directory = &self.directories[directory];
        let places = directory.changed_by(hash);
        let mut blocks: Vec<u64> = places.map(|(group, block)| self.absolute(group, block)).collect();
        blocks.extend(self.inode_blocks(directory.inode));
        blocks
    }

    /// Where a new directory begins to look for its inode.
    pub(super) fn turn_rotor(&mut self) -> u32 {
        let group = self.rotor;
        self.rotor = (self.rotor + 1) % self.groups.len() as u32;
        group
    }

    /// The first group from that one on, around, that can have an inode (`xfs_ialloc_ag_select`).
    pub(super) fn group_for_inode(&self, from: u32) -> Option<u32> {
        self.around(from).find(|&group| self.groups[group as usize].takes_inodes())
    }

    pub(super) fn around(&self, from: u32) -> impl Iterator<Item = u32> + use<> {
        let count = self.groups.len() as u32;
        (0..count).map(move |step| (from + step) % count)
    }

    /// There is room for this many blocks and for what one more file may need.
    pub(super) fn has_room(&self, blocks: u64) -> bool {
        self.free() >= blocks + RESERVATION_BLOCKS
    }

    pub(super) fn free(&self) -> u64 {
        self.groups.iter().map(Group::free).sum()
    }

    /// Near the inode of the directory if that lies in the group (`xfs_dialloc`).
    pub(super) fn take_inode(&mut self, group: u32, directory: Option<usize>) -> Option<u64> {
        let near = directory.map_or(0, |number| self.directories[number].inode);
        let near = if (near >> GROUP_SHIFT) as u32 == group { near as u32 } else { 0 };
        let inode = self.groups[group as usize].take_inode(near)?;
        self.inodes_taken += 1;
        Some(u64::from(group) << GROUP_SHIFT | u64::from(inode))
    }

    pub(super) fn put_inode(&mut self, inode: u64) {
        let group = (inode >> GROUP_SHIFT) as usize;
        let was_taken = self.groups[group].put_inode(inode as u32);
        debug_assert!(was_taken, "an inode is freed once");
        self.inodes_taken -= 1;
    }

    /// The calls that a new chunk takes, until one succeeds (`xfs_ialloc_ag_alloc`).
    pub(super) fn chunk_request(&self, group: u32, attempt: u32) -> Option<Request> {
        let state = &self.groups[group as usize];
        let blocks = state.chunk_blocks();
        let after = state.after_newest();
        let place = match (attempt, after) {
            (0, Some(after)) => BlockTarget::Exactly(after),
            (0, None) | (1, Some(_)) => BlockTarget::Near(INODE_ROOT_BLOCK),
            _ => return None,
        };
        Some(Request { group, place, blocks, align: blocks, is_data: false, elsewhere: false })
    }

    pub(super) fn add_chunk(&mut self, group: u32, block: u32) {
        self.groups[group as usize].add_chunk(block);
    }

    /// A block of a directory (`xfs_da_grow_inode_int`): behind its last one, or near its inode.
    pub(super) fn block_request(&self, directory: usize) -> Request {
        let directory = &self.directories[directory];
        let inode_block = directory.inode as u32 / self.spec.inodes_per_block();
        Request {
            group: directory.group,
            place: BlockTarget::Near(directory.target().unwrap_or(inode_block)),
            blocks: 1,
            align: 1,
            is_data: false,
            elsewhere: true,
        }
    }

    /// As many of the blocks that a file has written and not got as go into one extent: behind its last one, or near
    /// its inode (`xfs_bmap_btalloc_nullfb`: fewer if no group has this many together). None: nothing is free.
    pub(super) fn data_request(&self, inode: u64, file: &File) -> Option<Request> {
        let (group, near) = match file.extents.last() {
            Some(last) => (last.group, last.start + last.blocks),
            None => ((inode >> GROUP_SHIFT) as u32, inode as u32 / self.spec.inodes_per_block()),
        };
        let blocks = file.delayed.min(self.longest()).min(EXTENT_BLOCKS_MAX);
        (blocks > 0).then_some(Request {
            group,
            place: BlockTarget::Near(near),
            blocks,
            align: 1,
            is_data: true,
            elsewhere: true,
        })
    }

    /// A block for the map of a file's extents, near the one that was just allocated.
    pub(super) fn map_request(&self, file: &File) -> Option<Request> {
        let last = file.extents.last()?;
        Some(Request {
            group: last.group,
            place: BlockTarget::Near(last.start + last.blocks),
            blocks: 1,
            align: 1,
            is_data: false,
            elsewhere: true,
        })
    }

    pub(super) fn longest(&self) -> u32 {
        let lengths = self.groups.iter().map(Group::longest);
        lengths.max().unwrap_or(0)
    }

    /// Whether the request can be tried in that group at all.
    pub(super) fn may_fit(&self, group: u32, request: &Request) -> bool {
        self.groups[group as usize].longest() >= request.blocks + request.align - 1
    }

    /// What `__xfs_alloc_vextent` does with that group's header locked. None: no room there.
    pub(super) fn allocate(&mut self, group: u32, request: &Request) -> Option<u32> {
        let place = if group == request.group { request.place } else { BlockTarget::Near(0) };
        self.groups[group as usize].allocate(place, request.blocks, request.align)
    }

    /// CPU time of that, in cycles (`xfs_alloc_fix_freelist`): the reserve list is filled by an allocation of its own.
    pub(super) fn allocate_cycles(&self, group: u32) -> u32 {
        let fills = u32::from(self.groups[group as usize].lacks() > 0);
        self.spec.cycles.allocate * (1 + fills)
    }

    pub(super) fn add_directory(&mut self, inode: u64, path: &str, number: Option<u32>) -> usize {
        let group = (inode >> GROUP_SHIFT) as u32;
        let made = self.directories.len();
        self.directories.push(Directory::new(inode, group));
        self.names.insert((path.to_owned(), number), made);
        made
    }

    /// A directory that is there before anything is measured: its inode and perhaps a chunk, at no cost.
    pub(super) fn lay_out_directory(&mut self, path: &str) -> usize {
        let from = self.turn_rotor();
        let inode = self.lay_out_inode(from, None);
        self.add_directory(inode.unwrap_or(0), path, None)
    }

    /// A file of a load, whose making costs nothing.
    pub(super) fn lay_out_file(&mut self, directory: usize) -> u64 {
        let from = self.directories[directory].group;
        self.lay_out_inode(from, Some(directory)).unwrap_or(0)
    }

    fn lay_out_inode(&mut self, from: u32, directory: Option<usize>) -> Option<u64> {
        self.around(from).find_map(|group| {
            if self.groups[group as usize].free_inodes() == 0 {
                let mut requests = (0..).map_while(|attempt| self.chunk_request(group, attempt)).collect::<Vec<_>>();
                let block = requests.drain(..).find_map(|request| self.allocate(group, &request))?;
                self.add_chunk(group, block);
            }
            self.take_inode(group, directory)
        })
    }

    pub(super) fn directory(&mut self, number: usize) -> &mut Directory {
        &mut self.directories[number]
    }

    pub(super) fn count_data_blocks(&mut self, blocks: u32) {
        self.data_blocks += u64::from(blocks);
    }

    /// An unlinked file's inode and blocks, at once: that truncating locks the free-space headers is left out.
    pub(super) fn free_file(&mut self, inode: u64, file: &File) {
        self.put_inode(inode);
        let map = file.map.iter().map(|&(group, start)| Extent { group, start, blocks: 1 });
        for extent in file.extents.iter().copied().chain(map) {
            self.groups[extent.group as usize].give_back(extent.start, extent.blocks);
            self.data_blocks -= u64::from(extent.blocks);
        }
    }

    pub(super) fn count_directory_block(&mut self) {
        self.directory_blocks += 1;
    }

    /// Blocks that are taken or reserved, of all that files could have had.
    pub(super) fn used_share(&self, reserved: u64) -> f64 {
        let free = self.free().saturating_sub(reserved);
        1.0 - free as f64 / self.blocks_at_first.max(1) as f64
    }

    /// Nothing was lost and nothing given twice: blocks and inodes add up. `of_files`: blocks that files list as
    /// theirs.
    pub(super) fn check(&self, of_files: u64) -> Result<(), Violation> {
        let free = self.free();
        let chunks: u64 = self.groups.iter().map(|group| group.chunks() * u64::from(group.chunk_blocks())).sum();
        let held: u64 = self.groups.iter().map(Group::held).sum();
        let inodes: u64 = self.groups.iter().map(Group::inodes).sum();
        let free_inodes: u64 = self.groups.iter().map(Group::free_inodes).sum();
        let in_use = free + held + chunks + self.directory_blocks + of_files;
        for (what, found, expected) in [
            ("blocks of files", of_files, self.data_blocks),
            ("blocks", in_use, self.blocks_at_first),
            ("inodes", inodes - free_inodes, self.inodes_taken),
        ] {
            Violation::unless(found == expected, "allocation groups", || {
                format!("{what} do not add up: {found} of {expected}")
            })?;
        }
        Ok(())
    }
}

impl Volume {
    /// Takes every other one of `blocks` blocks at the first free place of each group, as if something else had them.
    pub(super) fn break_up(&mut self, blocks: u32) {
        for group in &mut self.groups {
            let blocks = blocks.min(group.longest()).max(1);
            let Some(first) = group.allocate(BlockTarget::Near(0), blocks, 1) else {
                continue;
            };
            (first..first + blocks).step_by(2).for_each(|block| group.give_back(block, 1));
        }
        let held: u64 = self.groups.iter().map(Group::held).sum();
        self.blocks_at_first = self.free() + held;
    }
}
