//! What making files costs on ext2, ext3 and ext4, as a machine file describes it.

use block_layer::Priority;
use serde::Deserialize;

use events::SpecError;
use events::spec_error::within;
use events::time::Time;

/// The table `metadata` of a drive whose filesystem is ext2, ext3 or ext4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExtMetadata {
    /// Of the journal (`mke2fs -J size`), in blocks of 4 KiB: 32 MiB, what mke2fs takes of a large filesystem until 2006.
    #[schemars(range(min = 1024, max = 262_144))]
    pub journal_blocks: u32,
    /// Whether a commit empties the drive's cache (mount options `barrier` and `nobarrier`); None: as the kernel does, ext4
    /// always and ext3 from 3.1 on.
    pub barrier: Option<bool>,
    /// Calls that make and unlink files return when that is committed (mount option `dirsync`, `chattr +D`); ext3 and ext4.
    pub dirsync: bool,
    /// The shortest and the longest time for which a synchronous call waits for others to join its transaction, in
    /// microseconds (mount options of ext4 from 2.6.29 on; None: 0 and 15000); in between the wait is the average time of
    /// a commit.
    #[schemars(range(max = 10_000_000))]
    pub min_batch_time: Option<u32>,
    /// See `min_batch_time`; 0: no wait.
    #[schemars(range(max = 10_000_000))]
    pub max_batch_time: Option<u32>,
    /// CPU time of a call that makes, opens or unlinks a file (an estimate).
    #[schemars(range(max = 1_000_000_000))]
    pub call_ns: Time,
    /// CPU time of looking through a block of a directory (an estimate).
    #[schemars(range(max = 1_000_000_000))]
    pub scan_block_ns: Time,
    /// An fsync of a load's file writes what has changed in short, without a commit of the transaction (`mke2fs -O
    /// fast_commit`): ext4 from 5.10 on.
    pub fast_commit: bool,
    /// What a commit has to do with data (mount option `data`), on ext3 and ext4. Left out: ordered.
    pub data: Option<DataMode>,
    /// CPU time of giving a load's file the blocks that its sync commits: handles, bitmaps, checksums. Left out: 0.
    #[schemars(range(max = 1_000_000_000))]
    pub allocate_ns: Time,
    /// CPU time of the journal's thread for a commit that a load's sync waits for: lists, descriptors, checksums. Left out: 0.
    #[schemars(range(max = 1_000_000_000))]
    pub commit_ns: Time,
}

/// The mount option `data` of ext3 and ext4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DataMode {
    /// Data go to the log with the commit, and later to their places.
    Journal,
    /// Data are in their places before the commit.
    Ordered,
    /// A commit waits for no data.
    Writeback,
}

/// What distinguishes the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// ext3 and ext4.
    pub is_journaled: bool,
    /// A commit first writes data of files that have got blocks (`data=ordered`).
    pub orders_data: bool,
    /// Directories are found by the hashes of their names (`dir_index`): ext4.
    pub is_indexed: bool,
    /// Commits empty the drive's cache.
    pub barrier: bool,
    /// The record of a commit is on the medium when its write completes, without a flush behind it.
    pub fua: bool,
    /// How long a synchronous handle waits for others to join its transaction; None: not at all.
    pub joins: Option<JoinTimes>,
    /// fsync is such a handle.
    pub fsync_has_handle: bool,
    /// The I/O priority of who commits.
    pub journal_priority: Priority,
}

/// Between these the wait is the average time of a commit (`jbd2_journal_stop`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinTimes {
    /// At least (`min_batch_time`).
    pub least_ns: Time,
    /// At most (`max_batch_time`).
    pub most_ns: Time,
}

/// `EXT4_DEF_MIN_BATCH_TIME` and `EXT4_DEF_MAX_BATCH_TIME`, in microseconds.
const BATCH_TIMES: (u32, u32) = (0, 15_000);
const MICROSECOND: Time = 1000;

impl Default for ExtMetadata {
    fn default() -> Self {
        ExtMetadata {
            journal_blocks: 8192,
            barrier: None,
            dirsync: false,
            min_batch_time: None,
            max_batch_time: None,
            call_ns: 10_000,
            scan_block_ns: 1_000,
            fast_commit: false,
            data: None,
            allocate_ns: 0,
            commit_ns: 0,
        }
    }
}

impl ExtMetadata {
    /// The mount options of ext4 and their names.
    pub fn batch_times(&self) -> [(&'static str, Option<u32>); 2] {
        [("min_batch_time", self.min_batch_time), ("max_batch_time", self.max_batch_time)]
    }

    /// How long synchronous handles of ext4 wait for others.
    pub fn join_times(&self) -> JoinTimes {
        let (least, most) = BATCH_TIMES;
        JoinTimes {
            least_ns: Time::from(self.min_batch_time.unwrap_or(least)) * MICROSECOND,
            most_ns: Time::from(self.max_batch_time.unwrap_or(most)) * MICROSECOND,
        }
    }

    /// Checks that every value lies in its range.
    pub fn check(&self) -> Result<(), SpecError> {
        within("journal_blocks", u64::from(self.journal_blocks), 1024, 262_144)?;
        for (key, time) in self.batch_times() {
            within(key, u64::from(time.unwrap_or(0)), 0, 10_000_000)?;
        }
        within("call_ns", self.call_ns, 0, 1_000_000_000)?;
        within("allocate_ns", self.allocate_ns, 0, 1_000_000_000)?;
        within("commit_ns", self.commit_ns, 0, 1_000_000_000)?;
        within("scan_block_ns", self.scan_block_ns, 0, 1_000_000_000)
    }
}
