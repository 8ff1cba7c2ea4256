//! Where a job's operations go, one after the other: their sizes, the turns of the files, the offsets in each.

use crate::files::Turn;
use crate::mix::Size;
use crate::pattern::{Block, Walk};
use crate::spec::{BlockSize, JobSpec};
use base::rng::Stream;

/// A way through the files: of all operations of a job, or of those of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    blocks: Blocks,
    turn: Turn,
    walk: Walk,
}

#[derive(Clone, Debug)]
enum Blocks {
    One(Block),
    Several(Vec<Block>, Size),
}

/// Where the next operation goes.
pub(crate) struct Extent {
    /// Index into the phase's files.
    pub file: u32,
    pub offset: u64,
    pub bytes: u32,
}

impl Course {
    /// The specification must have passed `check`. `streams` are for sizes, files and offsets.
    pub fn new(spec: &JobSpec, blocks: &[BlockSize], align_bytes: u64, streams: [Stream; 3]) -> Course {
        let [of_sizes, of_files, of_offsets] = streams;
        let sizes = Size::new(blocks, of_sizes);
        let blocks: Vec<Block> =
            blocks.iter().map(|block| Block::new(block.bytes, align_bytes, spec.length_bytes)).collect();
        Course {
            turn: Turn::new(spec.files.len(), spec.file_order, of_files),
            walk: Walk::new(spec, align_bytes, &blocks, of_offsets),
            blocks: match blocks[..] {
                [only] => Blocks::One(only),
                _ => Blocks::Several(blocks, sizes),
            },
        }
    }

    #[inline(always)]
    pub fn next(&mut self) -> Extent {
        let block = match &mut self.blocks {
            Blocks::One(block) => &*block,
            Blocks::Several(blocks, sizes) => &blocks[sizes.draw()],
        };
        let mut slot = self.turn.take();
        let (file, offset) = loop {
            if let Some(place) = self.walk.step(slot, block) {
                break place;
            }
            slot = self.turn.range_finished();
        };
        Extent { file, offset, bytes: block.bytes }
    }
}
