//! The page cache and writeback by kernels.
//!
//! Source: docs/model/sources/page-cache.md.

use serde::Deserialize;

use crate::dirty_limits::DirtyLimits;
use crate::read_ahead::ReadAhead;
use crate::release::Kernel;

/// Page caches by the kernel that was read; the version in each name is that of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
pub enum CacheVariant {
    /// A list of all dirty buffers in the order of dirtying, 32 at a time (2.4.20).
    #[serde(rename = "2.4")]
    Linux2_4,
    /// A list for each inode, 1024 pages at a time (2.5.59).
    #[serde(rename = "2.5")]
    Linux2_5,
    /// The same, each inode in the order of the file (2.6.18).
    #[serde(rename = "2.6.18")]
    Linux2_6_18,
    /// Each inode in the order of the file, a flusher per device, read-ahead on demand (2.6.35).
    #[serde(rename = "2.6.35")]
    Linux2_6_35,
    /// The same, with writers that are held to the rate of writeback instead of writing back themselves (3.2).
    #[serde(rename = "3.2")]
    Linux3_2,
}

impl CacheVariant {
    /// Read-ahead of the kernel that was read.
    pub fn read_ahead(self) -> ReadAhead {
        match self {
            CacheVariant::Linux2_4 => ReadAhead::Linux2_4,
            CacheVariant::Linux2_5 => ReadAhead::Linux2_5,
            CacheVariant::Linux2_6_18 => ReadAhead::Linux2_6_17,
            CacheVariant::Linux2_6_35 => ReadAhead::Linux2_6_34,
            CacheVariant::Linux3_2 => ReadAhead::Linux2_6_39,
        }
    }

    /// Limits of the kernel that was read.
    pub fn dirty_limits(self) -> DirtyLimits {
        match self {
            CacheVariant::Linux2_4 => DirtyLimits::Linux2_4,
            CacheVariant::Linux2_5 | CacheVariant::Linux2_6_18 => DirtyLimits::Linux2_5,
            CacheVariant::Linux2_6_35 | CacheVariant::Linux3_2 => DirtyLimits::Linux2_6_29,
        }
    }

    /// Whether threads write back for all drives, and look at the congestion of each one's queue (2.5 to 2.6.31).
    pub fn has_pdflush(self) -> bool {
        matches!(self, CacheVariant::Linux2_5 | CacheVariant::Linux2_6_18)
    }

    /// Whether an inode's pages are written in the order of the file, continuing where it stopped: from 2.6.6 on, where
    /// a search for tags (`PAGECACHE_TAG_DIRTY`, `mapping->writeback_index`) replaced lists of pages. Until then in
    /// that of dirtying.
    pub fn writes_in_file_order(self) -> bool {
        !matches!(self, CacheVariant::Linux2_4 | CacheVariant::Linux2_5)
    }
}

/// How a kernel shares the limit of dirty pages out among drives (`bdi_writeout_fraction`), in parts that follow what each has
/// written lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
pub enum WriteoutPeriod {
    /// In periods of pages, so long that half is forgotten within one or two limits (`lib/proportions.c` of 2.6.24).
    #[serde(rename = "pages")]
    Pages,
    /// In periods of 3 s (`lib/flex_proportions.c` of 3.6).
    #[serde(rename = "time")]
    Time,
}

/// For how long fsync holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FsyncHolds {
    /// Never.
    #[default]
    Nothing,
    /// While the filesystem commits, which is after the data has been submitted (`f_op->fsync`).
    Commit,
    /// From beginning to end.
    All,
}

impl Kernel {
    /// Which of the simulated page caches it has.
    pub fn cache_generation(&self) -> CacheVariant {
        match self.version {
            [2, 4, _] => CacheVariant::Linux2_4,
            version if version < [2, 6, 6] => CacheVariant::Linux2_5,
            version if version < [2, 6, 32] => CacheVariant::Linux2_6_18,
            version if version < [3, 2, 0] => CacheVariant::Linux2_6_35,
            _ => CacheVariant::Linux3_2,
        }
    }

    /// How drives share the limit of dirty pages, if they do: from 2.6.24 on (`bdi_writeout_fraction`).
    pub fn drives_share_limits(&self) -> Option<WriteoutPeriod> {
        match self.version {
            version if version < [2, 6, 24] => None,
            version if version < [3, 6, 0] => Some(WriteoutPeriod::Pages),
            _ => Some(WriteoutPeriod::Time),
        }
    }

    /// Whether a CPU looks at what is dirty once per 8 pages while there is too much (`dirty_exceeded`). 2.5.73 does; 2.5.59 is
    /// not known to.
    pub fn looks_often_beyond_limit(&self) -> bool {
        self.version >= [2, 5, 73]
    }

    /// Whether a throttled writer writes back only while its drive has more than its limit waiting (2.6.31, d7831a0bdf06, which
    /// slowed writers down: <https://lore.kernel.org/all/20090929001504.GA18192@localhost/T/>). Later kernels kept that, with
    /// other waits; it is not simulated of them.
    pub fn writes_back_only_beyond_limit(&self) -> bool {
        self.version == [2, 6, 31]
    }

    /// Whether fsync ends with a flush of the drive's cache, whatever the filesystem (`REQ_FLUSH`, 2.6.37). Before, barriers
    /// did that where they were on, which ext3 left off; here never.
    pub fn flushes_caches(&self) -> bool {
        self.version >= [2, 6, 37]
    }

    /// Whether a durable direct write to a device has `REQ_FUA`, and a flush behind it nevertheless (`dio_bio_write_op`, 4.10).
    pub fn device_writes_fua(&self) -> bool {
        self.version >= [4, 10, 0]
    }

    /// Whether one to blocks that a file has is durable by `REQ_FUA` alone (`__iomap_dio_rw`, 4.18): on XFS, and on ext4 since
    /// its direct writes go through iomap (5.5). With O_SYNC it is not.
    pub fn iomap_writes_fua(&self, is_xfs: bool) -> bool {
        self.version >= if is_xfs { [4, 18, 0] } else { [5, 5, 0] }
    }

    /// Whether a write brings as many pages into memory at once as it has (`iomap_get_folio`, 6.6, where blocks in them are
    /// dirty each by itself from then on): on XFS. ext4 has large folios from 6.16 on, in an order of its own (left out).
    pub fn writes_large_folios(&self, is_xfs: bool) -> bool {
        is_xfs && self.version >= [6, 6, 0]
    }

    /// Whether what is written back of a file in a row ends as a whole: XFS has ioends (6.1 and 6.12 were read; that earlier
    /// kernels are alike is inferred). What ext4 writes back ends bio by bio.
    pub fn writes_ioends(&self, is_xfs: bool) -> bool {
        is_xfs
    }

    /// For how long an fsync keeps others from writing to its file. In 2.4 and 2.5 `sys_fsync` takes `i_sem` before it writes the
    /// data, from 2.6.10 on (the first that was read; inferred) around `f_op->fsync` only. From 3.1 on that takes `i_mutex`
    /// itself (02c24a82187d): XFS does not, ext4 does until 3.10 (92e6222dfb85; ext3 is taken as the same).
    pub fn fsync_holds(&self, is_xfs: bool) -> FsyncHolds {
        match self.version {
            version if version < [2, 6, 10] => FsyncHolds::All,
            version if version < [3, 1, 0] => FsyncHolds::Commit,
            version if version < [3, 11, 0] && !is_xfs => FsyncHolds::Commit,
            _ => FsyncHolds::Nothing,
        }
    }

    /// The largest bio in which files are written back. Buffer by buffer in 2.4; in 2.5 ext3 in ordered mode page by page,
    /// and what has no journal 16 pages at once (docs/model/sources/page-cache.md#writeback). What follows is as general
    /// knowledge has it: ext4, from 2.6.19 on, submits what it has.
    pub fn write_bio_sectors_max(&self, journaled: bool) -> u32 {
        const PAGE: u32 = 8;
        match self.version {
            [2, 4, _] => PAGE,
            version if journaled && version < [2, 6, 19] => PAGE,
            version if version < [2, 6, 19] => 16 * PAGE,
            _ => 256 * PAGE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Kernel {
        Kernel::named(name).unwrap()
    }

    #[test]
    fn ext3_of_2_5_is_written_page_by_page() {
        assert_eq!(kernel("2.5.59").write_bio_sectors_max(true), 8);
        assert_eq!(kernel("2.5.59").write_bio_sectors_max(false), 128);
        assert_eq!(kernel("2.4.20").write_bio_sectors_max(false), 8);
    }

    #[test]
    fn xfs_has_large_folios_of_writes_from_6_6_on() {
        assert!(kernel("6.6").writes_large_folios(true));
        assert!(!kernel("6.1.192").writes_large_folios(true));
        assert!(!kernel("6.12.117").writes_large_folios(false));
    }

    #[test]
    fn an_fsync_holds_off_writers_for_as_long_as_each_kernel_has_it() {
        use FsyncHolds::{All, Commit, Nothing};
        let holds = |name| kernel(name).fsync_holds(false);
        let found = ["2.4.20", "2.6.9", "2.6.11", "3.10", "3.11"].map(holds);
        assert_eq!(found, [All, All, Commit, Commit, Nothing]);
        let holds = |name| kernel(name).fsync_holds(true);
        assert_eq!(["3.0", "3.1"].map(holds), [Commit, Nothing]);
    }

    #[test]
    fn drives_share_the_limit_of_dirty_pages_from_2_6_24_on() {
        let period = |name| kernel(name).drives_share_limits();
        let found = ["2.6.23", "2.6.24", "3.5", "3.6", "6.1"].map(period);
        let [pages, time] = [Some(WriteoutPeriod::Pages), Some(WriteoutPeriod::Time)];
        assert_eq!(found, [None, pages, pages, time, time]);
    }

    #[test]
    fn pdflush_writes_in_file_order_from_2_6_6_on_and_writers_are_held_to_a_rate_from_3_2_on() {
        let cache = |name| kernel(name).cache_generation();
        assert_eq!(cache("2.6.5"), CacheVariant::Linux2_5);
        assert_eq!(cache("2.6.6"), CacheVariant::Linux2_6_18);
        assert_eq!(cache("2.6.31"), CacheVariant::Linux2_6_18);
        assert_eq!(cache("3.1"), CacheVariant::Linux2_6_35);
        assert_eq!(cache("3.2"), CacheVariant::Linux3_2);
    }
}
