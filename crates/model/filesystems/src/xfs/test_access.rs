//! What tests look at and change inside a filesystem; those of whole machines are in the crate above.

use serde_json::json;
use trace::event::Device;

use super::{Platform, Xfs, XfsSpec};

/// A file's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInside {
    /// The number of its inode.
    pub inode: u64,
    /// Allocation group and blocks of each of its extents.
    pub extents: Vec<(u32, u32)>,
    /// Blocks of its map of extents.
    pub map_blocks: u64,
}

/// 8 GiB in this number of allocation groups, with costs in round figures.
pub fn small_filesystem(ag_count: u32) -> XfsSpec {
    serde_json::from_value(json!({
        "blocks": 1u64 << 21, "ag_count": ag_count,
        "cycles": {
            "application": 4000, "begin": 20000, "inode": 20000, "entry": 15000, "scan_block": 4, "commit": 20000,
            "commit_locked": 1000, "end": 12000, "close": 3000, "unlink": 30000, "allocate": 8000,
            "hand_over": 600, "checkpoint_block": 1500
        }
    }))
    .expect("a specification")
}

/// A drive without a cache on two CPUs of 2 GHz.
pub fn some_drive() -> Platform<'static> {
    Platform { cpus: 2, clock_hz: 2_000_000_000, drive: "sda", device: Device::new(8, 0), flushes: false, fua: false }
}

impl Xfs {
    /// Files that have data.
    pub fn files_inside(&self) -> Vec<FileInside> {
        let inside = |(inode, file): (u64, &super::data::File)| FileInside {
            inode,
            extents: file.extents.iter().map(|extent| (extent.group, extent.blocks)).collect(),
            map_blocks: file.map.len() as u64,
        };
        self.files.with_inodes().map(inside).collect()
    }

    /// Blocks that are reserved for data without a place.
    pub fn delayed_blocks(&self) -> u64 {
        self.files.delayed_blocks()
    }

    /// Some page of a file is dirty.
    pub fn has_dirty(&self) -> bool {
        self.files.has_dirty()
    }

    /// A thread, a daemon or the drive has work of this filesystem.
    pub fn is_busy(&self) -> bool {
        self.machine.is_busy()
    }

    /// Leaves every other block free among `blocks` blocks of each group, as if something else had the rest.
    pub fn break_up(&mut self, blocks: u32) {
        self.volume.break_up(blocks);
    }
}
