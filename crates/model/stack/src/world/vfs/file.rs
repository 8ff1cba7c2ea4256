//! Where files are: each on a drive, contiguous there or as an allocator laid it out.

use block_layer::{SECTOR_BYTES, Sector};
use filesystems::allocator::{Allocator, BLOCK_BYTES, Extent};
use memory::cache::FileId;

/// A file of the machine.
#[derive(Clone, Debug)]
pub struct FileSpec {
    /// As errors name it.
    pub name: String,
    /// Which of the machine's drives; of its mounts, if it is on one.
    pub drive: usize,
    /// Its size.
    pub size_bytes: u64,
    /// Where it is on the drive or mount.
    pub place: FileLayout,
}

/// Where a file's data are.
#[derive(Clone, Copy, Debug)]
pub enum FileLayout {
    /// From this sector on; a whole device is a file at sector 0.
    Contiguous(Sector),
    /// As the drive's filesystem lays it out; files of one directory begin near one another.
    Allocated {
        /// The number of its directory.
        directory: u32,
    },
    /// On a server.
    Mounted,
}

impl FileSpec {
    /// Where it lies, in blocks of 4 KiB, as FIEMAP and bmap report it. `allocator`: its drive's.
    pub(super) fn extents(&self, number: FileId, allocator: Option<&dyn Allocator>) -> Vec<Extent> {
        match self.place {
            FileLayout::Allocated { .. } => match allocator {
                Some(allocator) => allocator.extents(number),
                None => Vec::new(),
            },
            FileLayout::Contiguous(start) => vec![Extent {
                logical: 0,
                physical: start * SECTOR_BYTES / BLOCK_BYTES,
                blocks: self.size_bytes.div_ceil(BLOCK_BYTES),
            }],
            FileLayout::Mounted => Vec::new(),
        }
    }

    /// A filesystem gives it its blocks.
    pub(in crate::world) fn is_allocated(&self) -> bool {
        matches!(self.place, FileLayout::Allocated { .. })
    }
}

/// A part of a file that is contiguous on its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) struct FileExtent {
    pub(in crate::world) start: Sector,
    pub(in crate::world) sectors: u32,
    /// Where it begins in the file, in sectors.
    pub(in crate::world) at: Sector,
}

impl FileExtent {
    /// In parts none of which is larger than this many sectors.
    pub(in crate::world) fn parts(self, sectors_max: u32, found: &mut Vec<FileExtent>) {
        cut(self.start, u64::from(self.sectors), self.at, sectors_max, found);
    }
}

const SECTORS_PER_BLOCK: u64 = BLOCK_BYTES / SECTOR_BYTES;

/// The extents of `bytes` at `offset`, none longer than `sectors_max`; a hole has none.
pub(super) fn file_extents(
    file: &FileSpec,
    number: u32,
    allocator: Option<&dyn Allocator>,
    offset: u64,
    bytes: u64,
    sectors_max: u32,
    found: &mut Vec<FileExtent>,
) {
    let first = offset / SECTOR_BYTES;
    let end = (offset + bytes).div_ceil(SECTOR_BYTES);
    match file.place {
        FileLayout::Contiguous(start) => {
            cut(start + first, end - first, first, sectors_max, found);
        }
        FileLayout::Allocated { .. } => {
            let allocator = allocator.expect("a drive with files has a filesystem");
            let mut at = first;
            while at < end {
                let (block, inside) = (at / SECTORS_PER_BLOCK, at % SECTORS_PER_BLOCK);
                let here = match allocator.map(number, block) {
                    Some((physical, run)) => {
                        let sectors = (run * SECTORS_PER_BLOCK - inside).min(end - at);
                        cut(physical * SECTORS_PER_BLOCK + inside, sectors, at, sectors_max, found);
                        sectors
                    }
                    None => (SECTORS_PER_BLOCK - inside).min(end - at),
                };
                at += here;
            }
        }
        FileLayout::Mounted => unreachable!("I/O on a mount makes no bios"),
    }
}

fn cut(mut start: Sector, mut sectors: u64, mut at: Sector, sectors_max: u32, found: &mut Vec<FileExtent>) {
    while sectors > 0 {
        let here = sectors.min(u64::from(sectors_max)) as u32;
        found.push(FileExtent { start, sectors: here, at });
        start += Sector::from(here);
        at += Sector::from(here);
        sectors -= u64::from(here);
    }
}
