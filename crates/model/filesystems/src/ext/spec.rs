//! What making files costs on ext2, ext3 and ext4, as a machine file describes it.

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
    /// CPU time of a call that makes, opens or unlinks a file (an estimate).
    #[schemars(range(max = 1_000_000_000))]
    pub call_ns: Time,
    /// CPU time of looking through a block of a directory (an estimate).
    #[schemars(range(max = 1_000_000_000))]
    pub scan_block_ns: Time,
}

/// What distinguishes the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// ext3 and ext4, in ordered mode.
    pub is_journaled: bool,
    /// Directories are found by the hashes of their names (`dir_index`): ext4.
    pub is_indexed: bool,
    /// Commits empty the drive's cache.
    pub barrier: bool,
}

impl Default for ExtMetadata {
    fn default() -> Self {
        ExtMetadata {
            journal_blocks: 8192,
            barrier: None,
            call_ns: 10_000,
            scan_block_ns: 1_000,
        }
    }
}

impl ExtMetadata {
    /// Checks that every value lies in its range.
    pub fn check(&self) -> Result<(), SpecError> {
        within(
            "journal_blocks",
            u64::from(self.journal_blocks),
            1024,
            262_144,
        )?;
        within("call_ns", self.call_ns, 0, 1_000_000_000)?;
        within("scan_block_ns", self.scan_block_ns, 0, 1_000_000_000)
    }
}
