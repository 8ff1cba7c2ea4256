//! Filesystems by kernels.
//!
//! Sources: docs/model/sources/xfs.md, docs/model/sources/allocators.md.

use serde::Deserialize;

use crate::release::Kernel;

/// Where `xfs_alloc_vextent` runs; calls for a directory's or an inode's blocks are metadata, a file's blocks are data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Allocation {
    /// In its caller.
    Direct,
    /// In a worker bound to its caller's CPU, whatever is allocated (c999a223).
    Workqueue,
    /// The same, but metadata in its caller.
    DataOnly,
    /// The switch is one layer up, at a file's mapping (`xfs_bmapi_allocate`, 1f3c785c): all calls that it makes run in one
    /// worker. Metadata in its caller.
    Mapping,
}

impl Allocation {
    /// Whether a call of the allocator switches to a worker.
    pub fn defers_call(self, is_data: bool) -> bool {
        match self {
            Allocation::Direct | Allocation::Mapping => false,
            Allocation::Workqueue => true,
            Allocation::DataOnly => is_data,
        }
    }

    /// Whether a file's mapping switches to one, for all calls that it makes.
    pub fn defers_mapping(self) -> bool {
        self == Allocation::Mapping
    }
}

/// Who writes a checkpoint that is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpoints {
    /// Whoever has committed last.
    #[default]
    ByCommitter,
    /// A worker on the CPU of the last commit.
    ByBoundWorker,
    /// A worker on any CPU.
    ByWorker,
}

impl Kernel {
    /// Whether ext2 and ext3 begin a task's files at one of 16 places.
    pub fn start_colours(&self) -> bool {
        self.version >= [2, 5, 53]
    }

    /// Whether XFS holds the lock of a file's inode while an fsync forces the log (`xfs_fsync_flush_log` of 6.1 and 6.12;
    /// since when is inferred: fc0561ce).
    pub fn xfs_fsync_locks_inode(&self) -> bool {
        self.version >= [4, 4, 0]
    }

    /// Whether ext3 reserves windows.
    pub fn reserves_windows(&self) -> bool {
        self.version >= [2, 6, 10]
    }

    /// Where XFS runs its allocator: since c999a223 (3.4) in a workqueue, since 3.6 only for data, since 1f3c785c (taken as
    /// 3.7) all of a mapping's calls in one worker, since cf11da9c (3.16) only a split in the tree of a file's extents, which
    /// is left out.
    pub fn xfs_allocation(&self) -> Allocation {
        match self.version {
            version if version < [3, 4, 0] => Allocation::Direct,
            version if version < [3, 6, 0] => Allocation::Workqueue,
            version if version < [3, 7, 0] => Allocation::DataOnly,
            version if version < [3, 16, 0] => Allocation::Mapping,
            _ => Allocation::Direct,
        }
    }

    /// Who writes XFS' checkpoints: since 4c2d542f (taken as 3.5) a worker on the CPU of the last commit, since 5.14
    /// one of no CPU.
    pub fn xfs_checkpoints(&self) -> Checkpoints {
        match self.version {
            version if version < [3, 5, 0] => Checkpoints::ByCommitter,
            version if version < [5, 14, 0] => Checkpoints::ByBoundWorker,
            _ => Checkpoints::ByWorker,
        }
    }

    /// ext3 mounts with barriers by default: from 3.1 on (00eacd66).
    pub fn ext3_has_barriers(&self) -> bool {
        self.version >= [3, 1, 0]
    }

    /// Whether XFS commits into memory and writes checkpoints without being asked (`delaylog`): the default from 2.6.39 on.
    pub fn xfs_delays_log(&self) -> bool {
        self.version >= [2, 6, 39]
    }

    /// Whether blocks of ext4 that get data are written to the journal as such when the data are on the drive: it allocates
    /// them as unwritten first (`dioread_nolock`, the default from 5.6 on). Before, when the data are sent.
    pub fn ext4_converts_after_writes(&self) -> bool {
        self.version >= [5, 6, 0]
    }

    /// Whether writeback with `data=journal` commits what is to be written, then writes it in place (`ext4_do_writepages`): from
    /// 6.4 on (inferred). Before, an fsync commits, and a later writeback writes.
    pub fn ext4_commits_before_writeback(&self) -> bool {
        self.version >= [6, 4, 0]
    }

    /// Of how many parts of the log a transaction has at most one (`jbd2_journal_get_max_txn_bufs`): three from 6.11 on
    /// (inferred), four before.
    pub fn journal_parts(&self) -> u32 {
        match self.version >= [6, 11, 0] {
            true => 3,
            false => 4,
        }
    }

    /// Whether a synchronous handle waits for others to join its transaction for as long as commits take
    /// (`jbd2_journal_stop`): from 2.6.29 on (inferred); before, it waits for ticks.
    pub fn handles_join(&self) -> bool {
        self.version >= [2, 6, 29]
    }

    /// Whether fsync of ext3 and ext4 is a synchronous handle, as it writes the inode: until 2.6.32 (inferred). Since then it
    /// has a transaction committed without a handle of its own.
    pub fn fsync_has_handle(&self) -> bool {
        self.version < [2, 6, 33]
    }

    /// Whether ext4's code mounts ext3 too (4.3).
    pub fn mounts_ext3_as_ext4(&self) -> bool {
        self.version >= [4, 3, 0]
    }

    /// Whether ext4 has fast commits (`fs/ext4/fast_commit.c`, 5.10).
    pub fn has_fast_commits(&self) -> bool {
        self.version >= [5, 10, 0]
    }

    /// Whether ext4 exists.
    pub fn has_ext4(&self) -> bool {
        self.version >= [2, 6, 19]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Kernel {
        Kernel::named(name).unwrap()
    }

    #[test]
    fn the_switch_of_xfs_to_a_worker_moves_from_release_to_release() {
        let variant = |name| kernel(name).xfs_allocation();
        use Allocation::{DataOnly, Direct, Mapping, Workqueue};
        let variants = ["3.3", "3.4", "3.5.7", "3.6", "3.6.11"].map(variant);
        assert_eq!(variants, [Direct, Workqueue, Workqueue, DataOnly, DataOnly]);
        let variants = ["3.7", "3.8", "3.15", "3.16", "6.1"].map(variant);
        assert_eq!(variants, [Mapping, Mapping, Mapping, Direct, Direct]);
    }

    #[test]
    fn a_worker_writes_the_checkpoints_of_xfs_from_3_5_on() {
        let form = |name| kernel(name).xfs_checkpoints();
        use Checkpoints::{ByBoundWorker, ByCommitter, ByWorker};
        let forms = ["3.4", "3.5", "5.13", "5.14"].map(form);
        assert_eq!(forms, [ByCommitter, ByBoundWorker, ByBoundWorker, ByWorker]);
    }

    #[test]
    fn colours_begin_with_2_5_53() {
        assert!(!kernel("2.5.51-mm1").start_colours());
        assert!(kernel("2.5.53-mm1").start_colours());
    }
}
