//! Where files are: each on a drive, contiguous there or as an allocator laid it out.

use super::World;
use block_layer::{SECTOR_BYTES, Sector};
use filesystems::allocator::{Allocator, BLOCK_BYTES, Extent};
use memory::cache::FileId;

/// A file of the machine.
#[derive(Clone, Debug)]
pub struct FileSpec {
    /// As errors name it.
    pub name: String,
    /// Which of the machine's drives; of its mounts, where it is on one.
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

impl World {
    /// One more file, empty where the drive's filesystem allocates; its number. Read-ahead ends with its size.
    pub fn add_file(&mut self, file: FileSpec) -> FileId {
        let number = self.files.len() as FileId;
        if let FileLayout::Allocated { directory } = file.place {
            self.with_allocator(file.drive, |allocator| allocator.create(number, directory));
        }
        if let Some(cache) = &mut self.cached.cache {
            cache.set_size(number, file.size_bytes);
            if !matches!(file.place, FileLayout::Mounted) {
                cache.place(number, file.drive);
            }
        }
        self.files.push(file);
        number
    }

    /// The file is to be at least so long.
    pub fn grow_file(&mut self, file: FileId, size_bytes: u64) {
        let spec = &mut self.files[file as usize];
        spec.size_bytes = spec.size_bytes.max(size_bytes);
        if let Some(cache) = &mut self.cached.cache {
            cache.set_size(file, spec.size_bytes);
        }
    }

    /// The file of that number.
    pub fn file(&self, file: FileId) -> &FileSpec {
        &self.files[file as usize]
    }

    /// Where the file lies, in blocks of 4 KiB, as FIEMAP and bmap tell it.
    pub fn extents(&self, file: FileId) -> Vec<Extent> {
        let spec = &self.files[file as usize];
        match spec.place {
            FileLayout::Allocated { .. } => match self.allocator(spec.drive) {
                Some(allocator) => allocator.extents(file),
                None => Vec::new(),
            },
            FileLayout::Contiguous(start) => vec![Extent {
                logical: 0,
                physical: start * SECTOR_BYTES / BLOCK_BYTES,
                blocks: spec.size_bytes.div_ceil(BLOCK_BYTES),
            }],
            FileLayout::Mounted => Vec::new(),
        }
    }
}

/// A part of a file that is contiguous on its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileExtent {
    pub(super) start: Sector,
    pub(super) sectors: u32,
    /// Where it begins in the file, in sectors.
    pub(super) at: Sector,
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
                        cut(
                            physical * SECTORS_PER_BLOCK + inside,
                            sectors,
                            at,
                            sectors_max,
                            found,
                        );
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

fn cut(
    mut start: Sector,
    mut sectors: u64,
    mut at: Sector,
    sectors_max: u32,
    found: &mut Vec<FileExtent>,
) {
    while sectors > 0 {
        let here = sectors.min(u64::from(sectors_max)) as u32;
        found.push(FileExtent {
            start,
            sectors: here,
            at,
        });
        start += Sector::from(here);
        at += Sector::from(here);
        sectors -= u64::from(here);
    }
}
