//! Block allocators: where a filesystem puts the blocks of a file.
//!
//! How files intermingle on disk is no property of an allocator alone: it follows from the order in which the simulated
//! CPUs let writers call it.

mod contiguous;
mod ext4;
pub mod file_map;
mod groups;
mod indirect;
#[cfg(test)]
mod invariants;
mod space;
mod spec;

use block_layer::TaskId;
pub use groups::Geometry;
use memory::cache::FileId;
pub use space::GROUP_BLOCKS;
pub use spec::{FilesystemSpec, Kind};

/// Blocks of this many bytes, the only size that is simulated.
pub const BLOCK_BYTES: u64 = 4096;

/// A contiguous piece of a file, in blocks: as `bmap` and FIEMAP report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block in the file, from 0.
    pub logical: u64,
    /// First block on the filesystem, from 0.
    pub physical: u64,
    /// Length in blocks of `BLOCK_BYTES`.
    pub blocks: u64,
}

/// No block is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the filesystem is full")]
pub struct Full;

/// Gives blocks of a filesystem to files, as one kernel's filesystem does.
pub trait Allocator: Send {
    /// A new, empty file in a directory; files of one directory begin in the same group if there is room.
    fn create(&mut self, file: FileId, directory: u32);

    /// Where the file's `block` is, and how many blocks follow it contiguously; None: nowhere yet.
    fn map(&self, file: FileId, block: u64) -> Option<(u64, u64)>;

    /// The file's blocks are in memory only, and are to have a place when they are written back: room for them is kept,
    /// if a filesystem does so.
    fn reserve(&mut self, _file: FileId, _block: u64, _blocks: u64) -> Result<(), Full> {
        Ok(())
    }

    /// Gives the file's blocks from `block` on a place, on behalf of a task. Blocks that have one keep it.
    fn allocate(&mut self, task: TaskId, file: FileId, block: u64, blocks: u64) -> Result<(), Full>;

    /// Whether a block is given its place in write(2); otherwise when it is written back (delayed allocation).
    fn allocates_at_write(&self) -> bool;

    /// The last writer has closed the file: reservations are given back.
    fn close(&mut self, file: FileId);

    /// Deletes the file: its blocks and its inode are free again.
    fn remove(&mut self, file: FileId);

    /// The file's extents in the order of the file, contiguous ones as one.
    fn extents(&self, file: FileId) -> Vec<Extent>;

    /// Blocks that hold the file's map and not its data: indirect blocks.
    fn map_blocks(&self, _file: FileId) -> Vec<u64> {
        Vec::new()
    }

    /// Blocks that no file, and no reservation marked on disk, holds; group metadata are never free.
    fn free_blocks(&self) -> u64;
}
