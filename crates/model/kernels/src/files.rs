//! How a kernel reads files through the page cache.

use crate::release::Kernel;

/// How a kernel's page cache reads from a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileReads {
    /// The largest bio, if the drive takes requests as large.
    pub bio_sectors_max: u32,
    /// Each bio ends with its own request, and its pages can be read. Otherwise those that were cut from one because of the
    /// size of requests end together (`bio_chain`).
    pub bios_end_alone: bool,
}

impl FileReads {
    /// From 4.3 on.
    pub const LATEST: FileReads = FileReads { bio_sectors_max: u32::MAX, bios_end_alone: false };
}

impl Kernel {
    /// How files are read through the page cache: buffer by buffer in 2.4 (`block_read_full_page`), later in bios that end
    /// each by itself (`mpage_end_io`). From 4.3 on, what is too large for a request is cut from one bio, which ends as a
    /// whole (`blk_queue_split`).
    pub fn file_reads(&self) -> FileReads {
        const PAGE: u32 = 8;
        match self.version {
            [2, 4, _] => FileReads { bio_sectors_max: PAGE, bios_end_alone: true },
            version if version < [4, 3, 0] => FileReads { bios_end_alone: true, ..FileReads::LATEST },
            _ => FileReads::LATEST,
        }
    }
}
