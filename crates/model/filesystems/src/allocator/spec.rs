//! A filesystem as a machine file describes it.

use serde::Deserialize;

use crate::allocator::contiguous::Contiguous;
use crate::allocator::ext4::Ext4;
use crate::allocator::groups::Geometry;
use crate::allocator::indirect::{Indirect, PreallocationRule};
use crate::allocator::space::GROUP_BLOCKS;
use crate::allocator::{Allocator, BLOCK_BYTES};
use events::SpecError;
use events::spec_error::within;

/// A filesystem of a machine file's drive: the table `filesystem`, for the kinds that take loads.
#[derive(Clone, Copy, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = events::spec_error::optional("blocks"))]
pub struct FilesystemSpec {
    /// Which allocator places blocks.
    pub kind: Kind,
    /// Groups are of 32768 blocks of 4 KiB.
    #[schemars(range(min = 1, max = BLOCKS_MAX))]
    pub blocks: u64,
    /// At the start of each group: bitmaps, inodes, copies of the superblock.
    #[serde(default = "metadata_blocks")]
    pub group_metadata_blocks: u32,
    /// Inodes per group, 16384 unless given; a new file goes to a group that has one left.
    #[serde(default = "inodes_per_group")]
    #[schemars(range(min = 1))]
    pub group_inodes: u32,
    /// A task's files begin at one of 16 places in their group: ext2 and ext3 of 2.5.53 and later.
    #[serde(default)]
    pub start_colours: bool,
    /// ext2's superblock field: 0 is 8.
    #[serde(default)]
    #[schemars(range(max = 1024))]
    pub preallocated_blocks: u32,
}

/// The allocators that are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// ext2 with preallocation: `preallocated_blocks` at a time (2.5.59 `fs/ext2/balloc.c`).
    Ext2,
    /// Without preallocation: 2.4 to 2.6.9.
    Ext3,
    /// With reservation windows: 2.6.10 on.
    Ext3Windows,
    /// ext4's multi-block allocator, with delayed allocation.
    Ext4,
    /// A filesystem that keeps files in long pieces.
    Contiguous,
}

/// 16384 inodes of 128 bytes, two bitmaps, superblock and descriptors (an estimate: what mke2fs made of a large disk in 2003).
fn metadata_blocks() -> u32 {
    516
}

fn inodes_per_group() -> u32 {
    16384
}

/// 64 TiB: a group's entry is small, but they are made at once.
const BLOCKS_MAX: u64 = (64 << 40) / BLOCK_BYTES;

impl FilesystemSpec {
    /// Checks that every value lies in its range. The error names the first key whose value does not.
    pub fn check(&self) -> Result<(), SpecError> {
        let wrong = |key, what: &str| Err(SpecError::of(key, what));
        within("blocks", self.blocks, 1, BLOCKS_MAX)?;
        if u64::from(self.group_metadata_blocks) >= self.blocks.min(GROUP_BLOCKS) {
            return wrong("group_metadata_blocks", "leaves no block for files");
        }
        let inodes = u64::from(self.group_inodes);
        within("group_inodes", inodes, 1, u64::from(u32::MAX))?;
        let indirect = matches!(self.kind, Kind::Ext2 | Kind::Ext3 | Kind::Ext3Windows);
        if self.start_colours && !indirect {
            return wrong("start_colours", "only ext2 and ext3 have them here");
        }
        if self.preallocated_blocks > 0 && self.kind != Kind::Ext2 {
            return wrong("preallocated_blocks", "only ext2 preallocates so");
        }
        let preallocated = u64::from(self.preallocated_blocks);
        within("preallocated_blocks", preallocated, 0, 1024)
    }

    fn geometry(&self) -> Geometry {
        Geometry {
            blocks: self.blocks,
            group_metadata_blocks: self.group_metadata_blocks,
            group_inodes: self.group_inodes,
        }
    }

    /// An empty filesystem of that kind. The error is that of `check`.
    pub fn build(&self) -> Result<Box<dyn Allocator>, SpecError> {
        self.check()?;
        let geometry = &self.geometry();
        let indirect =
            |set_aside| -> Box<dyn Allocator> { Box::new(Indirect::new(geometry, set_aside, self.start_colours)) };
        Ok(match self.kind {
            Kind::Ext2 => {
                let blocks = match self.preallocated_blocks {
                    0 => 8,
                    set => set,
                };
                indirect(PreallocationRule::Preallocation { blocks })
            }
            Kind::Ext3 => indirect(PreallocationRule::Nothing),
            Kind::Ext3Windows => indirect(PreallocationRule::Windows),
            Kind::Ext4 => Box::new(Ext4::new(geometry)),
            Kind::Contiguous => Box::new(Contiguous::new(geometry)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: Kind) -> FilesystemSpec {
        FilesystemSpec {
            kind,
            start_colours: false,
            preallocated_blocks: 0,
            blocks: 2 * GROUP_BLOCKS,
            group_metadata_blocks: 0,
            group_inodes: 16384,
        }
    }

    #[test]
    fn what_is_impossible_is_said_with_its_key() {
        let mut zero = spec(Kind::Ext3);
        zero.blocks = 0;
        assert_eq!(zero.check().unwrap_err().key, "blocks");
        let mut full = spec(Kind::Ext3);
        full.group_metadata_blocks = 32768;
        assert_eq!(full.check().unwrap_err().key, "group_metadata_blocks");
        let mut colours = spec(Kind::Ext4);
        colours.start_colours = true;
        assert_eq!(colours.check().unwrap_err().key, "start_colours");
        let mut preallocated = spec(Kind::Ext3);
        preallocated.preallocated_blocks = 8;
        assert_eq!(preallocated.check().unwrap_err().key, "preallocated_blocks");
    }
}
