//! What a task may ask for, and what of it reaches schedulers and drivers.

use crate::release::Kernel;

/// The writes whose submitters wait for them and that schedulers see as such.
#[derive(Clone, Copy, Debug)]
pub struct SyncWrites {
    /// Past the page cache.
    pub direct: bool,
    /// Writes of a file's data by fsync.
    pub of_fsync: bool,
    /// Writes of a filesystem's journal or log.
    pub of_journal: bool,
}

impl SyncWrites {
    /// All kinds of writes.
    pub const ALL: SyncWrites = SyncWrites { direct: true, of_fsync: true, of_journal: true };
}

/// The files whose lifetime hints (`F_SET_RW_HINT`) reach a drive that separates data by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteHints {
    /// None.
    OfNone,
    /// Block devices themselves, written past the page cache.
    OfDevices,
    /// All.
    OfAll,
}

impl Kernel {
    /// From 4.13 on, bios carry the hint of their inode, and the NVMe driver names a stream by it
    /// (`nvme_assign_write_stream`). Both left with 5.18. From 6.16 on, direct I/O of block devices names a write stream by
    /// the hint (`blkdev_direct_IO`), and the driver a placement handle by that (`nvme_setup_rw`).
    pub fn write_hints(&self) -> WriteHints {
        if self.version >= [6, 16, 0] {
            WriteHints::OfDevices
        } else if self.version >= [4, 13, 0] && self.version < [5, 18, 0] {
            WriteHints::OfAll
        } else {
            WriteHints::OfNone
        }
    }

    /// The writes whose waiting submitters are visible to schedulers. `PF_SYNCWRITE` marks a task, in fsync until 2.6.17
    /// and in `__blockdev_direct_IO` from 2.6.11 (December 2004) on; later, direct I/O marks the bio itself (`WRITE_SYNC`).
    /// fsync marks bios again from 2.6.30 on (`WB_SYNC_ALL` in `__block_write_full_page`), and so do commits.
    pub fn sync_writes(&self) -> SyncWrites {
        SyncWrites {
            direct: self.version >= [2, 6, 11],
            of_fsync: self.version < [2, 6, 18] || self.version >= [2, 6, 30],
            of_journal: self.version >= [2, 6, 30],
        }
    }

    /// Whether tasks can poll for completions (`blk_poll`, 4.4).
    pub fn polls(&self) -> bool {
        self.version >= [4, 4, 0]
    }

    /// Whether they can sleep first: hybrid polling came with 4.10 and left with 6.4.
    pub fn polls_with_delay(&self) -> bool {
        self.version >= [4, 10, 0] && self.version < [6, 4, 0]
    }

    /// Whether it has io_uring.
    pub fn has_rings(&self) -> bool {
        self.version >= [5, 1, 0]
    }

    /// Disks of parallel ATA are the IDE driver's, until libata has them (2.6.19).
    pub fn has_parallel_ata_by_ide(&self) -> bool {
        self.version < [2, 6, 19]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Kernel {
        Kernel::named(name).unwrap()
    }

    #[test]
    fn hints_reach_drives_of_kernels_with_streams_or_placement() {
        let of = |name| kernel(name).write_hints();
        assert_eq!(of("4.12"), WriteHints::OfNone);
        assert_eq!((of("4.13"), of("5.17")), (WriteHints::OfAll, WriteHints::OfAll));
        assert_eq!((of("5.18"), of("6.15")), (WriteHints::OfNone, WriteHints::OfNone));
        assert_eq!(of("6.16"), WriteHints::OfDevices);
    }

    #[test]
    fn schedulers_see_who_waits_for_a_write_as_each_kernel_tells_them() {
        let seen = |name| {
            let SyncWrites { direct, of_fsync, of_journal } = kernel(name).sync_writes();
            (direct, of_fsync, of_journal)
        };
        assert_eq!(seen("2.6.10"), (false, true, false));
        assert_eq!(seen("2.6.17"), (true, true, false));
        assert_eq!(seen("2.6.29"), (true, false, false));
        assert_eq!(seen("2.6.30"), (true, true, true));
    }
}
