//! Where the next operation goes within a file's range.

use crate::ranks::Ranks;
use crate::spec::{JobSpec, Pattern};
use crate::zones::Zones;
use base::permutation::Permutation;
use base::rng::Stream;

/// One size of operation, and where it fits in the range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub bytes: u32,
    /// From one block to the next one that does not overlap it: the size, rounded up to the alignment.
    step: u64,
    /// The largest aligned offset at which it fits.
    last: u64,
    /// How many aligned offsets fit.
    places: u64,
}

impl Block {
    /// The operation must fit in the range.
    pub fn new(bytes: u32, align_bytes: u64, length_bytes: u64) -> Block {
        let places = (length_bytes - u64::from(bytes)) / align_bytes + 1;
        let step = u64::from(bytes).next_multiple_of(align_bytes);
        Block { bytes, step, last: (places - 1) * align_bytes, places }
    }
}

/// The pattern's memory: a cursor per file where the pattern has one, and the random stream.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    kind: Kind,
    start_bytes: u64,
    align_bytes: u64,
    cursors: Vec<Cursor>,
    stream: Stream,
}

/// The two patterns that cost next to nothing stand apart: their step is compiled into the engine's loop, and the code of
/// the others is not.
#[derive(Clone, Debug)]
enum Kind {
    Sequential,
    Uniform { bytes_per_pass: u64 },
    Other(Box<Other>),
}

#[derive(Clone, Debug)]
enum Other {
    Backward,
    Strided {
        stride_bytes: u64,
        lap_step: u64,
        /// Position and lap before the first step.
        first: (u64, u64),
    },
    Scattered {
        ranks: Ranks,
        scattered: Permutation,
        key: u64,
        bytes_per_pass: u64,
    },
    Zoned {
        zones: Zones,
        bytes_per_pass: u64,
    },
    Permutation {
        blocks: Permutation,
        blocks_done: u64,
    },
}

/// A file's place in its pass. What the numbers mean is the pattern's affair.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// Index into the phase's files.
    file: u32,
    /// Sequential and strided: the next offset in the range. Backward: the last one. Permutation: blocks visited in
    /// this pass. Other random ones: bytes offered in this pass.
    position: u64,
    /// Strided: where this lap began. Permutation: the key of this pass.
    lap: u64,
}

/// Backward: no offset yet.
const AT_THE_END: u64 = u64::MAX;

impl Walk {
    /// The specification must have passed `check`.
    /// `blocks` with their alignment are those of the direction that walks so.
    pub fn new(spec: &JobSpec, align_bytes: u64, blocks: &[Block], mut stream: Stream) -> Walk {
        // Where every size fits, and how far apart operations of any size do not overlap.
        let places = blocks.iter().map(|block| block.places).min().unwrap_or(1);
        let step = blocks.iter().map(|block| block.step).max().unwrap_or(1);
        let bytes_per_pass = spec.length_bytes;
        let other = |pattern| Kind::Other(Box::new(pattern));
        let kind = match &spec.pattern {
            Pattern::Sequential => Kind::Sequential,
            Pattern::Backward => other(Other::Backward),
            &Pattern::Strided { stride_bytes, one_lap, blocks_done } => {
                let lap_step = if one_lap { stride_bytes } else { step };
                let last = blocks.iter().map(|block| block.last).min().unwrap_or(0);
                other(Other::Strided {
                    stride_bytes,
                    lap_step,
                    first: after_blocks(blocks_done, last, stride_bytes, lap_step),
                })
            }
            Pattern::Uniform => Kind::Uniform { bytes_per_pass },
            Pattern::Zoned { zones } => {
                other(Other::Zoned { zones: Zones::new(zones, align_bytes, places), bytes_per_pass })
            }
            Pattern::Zipf { .. } | Pattern::Pareto { .. } | Pattern::Normal { .. } => other(Other::Scattered {
                ranks: Ranks::new(&spec.pattern, places),
                scattered: Permutation::new(places),
                key: match spec.scatter_seed {
                    Some(seed) => base::rng::stream(seed, 0).next_u64(),
                    None => stream.next_u64(),
                },
                bytes_per_pass,
            }),
            &Pattern::Permutation { blocks_done } => {
                if let Some(seed) = spec.scatter_seed {
                    stream = base::rng::stream(seed, 0);
                }
                other(Other::Permutation {
                    blocks: Permutation::new((places - 1) * align_bytes / step + 1),
                    blocks_done,
                })
            }
        };
        let cursors = spec
            .files
            .iter()
            .map(|&file| {
                let (position, lap) = match &kind {
                    Kind::Other(other) => other.start(&mut stream),
                    Kind::Sequential | Kind::Uniform { .. } => (0, 0),
                };
                Cursor { file, position, lap }
            })
            .collect();
        Walk { kind, start_bytes: spec.offset_bytes, align_bytes, cursors, stream }
    }

    /// The file in this place of the job's list, and its next offset; `None` when its range is finished: asked again, it
    /// begins a new pass.
    #[inline(always)]
    pub fn step(&mut self, slot: usize, block: &Block) -> Option<(u32, u64)> {
        let cursor = &mut self.cursors[slot];
        let offset = match &self.kind {
            Kind::Sequential => cursor.forward(block)?,
            Kind::Uniform { bytes_per_pass } => {
                cursor.count(block, *bytes_per_pass)?;
                self.stream.below(block.places) * self.align_bytes
            }
            Kind::Other(other) => other.step(cursor, block, self.align_bytes, &mut self.stream)?,
        };
        Some((cursor.file, self.start_bytes + offset))
    }
}

impl Other {
    /// Position and lap of a cursor before the first step.
    fn start(&self, stream: &mut Stream) -> (u64, u64) {
        match self {
            Other::Backward => (AT_THE_END, 0),
            Other::Permutation { blocks, blocks_done } => {
                for _ in 0..blocks_done / blocks.len() {
                    stream.next_u64();
                }
                (blocks_done % blocks.len(), stream.next_u64())
            }
            Other::Strided { first, .. } => *first,
            Other::Scattered { .. } | Other::Zoned { .. } => (0, 0),
        }
    }

    #[inline(never)]
    fn step(&self, cursor: &mut Cursor, block: &Block, align_bytes: u64, stream: &mut Stream) -> Option<u64> {
        Some(match self {
            Other::Backward => cursor.backward(block)?,
            Other::Strided { stride_bytes, lap_step, .. } => cursor.strided(block, *stride_bytes, *lap_step)?,
            Other::Scattered { ranks, scattered, key, bytes_per_pass } => {
                cursor.count(block, *bytes_per_pass)?;
                scattered.at(*key, ranks.draw(stream)) * align_bytes
            }
            Other::Zoned { zones, bytes_per_pass } => {
                cursor.count(block, *bytes_per_pass)?;
                zones.draw(stream) * align_bytes
            }
            Other::Permutation { blocks, .. } => cursor.permuted(blocks, stream)? * block.step,
        })
    }
}

/// Position and lap of strided steps when so many of them are done, from 0 to `last` in each pass.
fn after_blocks(blocks: u64, last: u64, stride_bytes: u64, lap_step: u64) -> (u64, u64) {
    let laps = (0..stride_bytes.min(last.saturating_add(1))).step_by(lap_step as usize);
    let steps = |lap: u64| (last - lap) / stride_bytes + 1;
    let mut left = match blocks {
        0 => return (0, 0),
        _ => blocks % laps.clone().map(steps).sum::<u64>(),
    };
    for lap in laps {
        if left <= steps(lap) {
            return (lap + left * stride_bytes, lap);
        }
        left -= steps(lap);
    }
    (0, 0)
}

impl Cursor {
    #[inline]
    fn forward(&mut self, block: &Block) -> Option<u64> {
        if self.position > block.last {
            self.position = 0;
            return None;
        }
        let offset = self.position;
        self.position = self.position.saturating_add(block.step);
        Some(offset)
    }

    #[inline]
    fn backward(&mut self, block: &Block) -> Option<u64> {
        if self.position == AT_THE_END {
            self.position = block.last;
        } else if self.position < block.step {
            self.position = AT_THE_END;
            return None;
        } else {
            self.position -= block.step;
        }
        Some(self.position)
    }

    #[inline]
    fn strided(&mut self, block: &Block, stride_bytes: u64, lap_step: u64) -> Option<u64> {
        if self.position > block.last {
            self.lap = self.lap.saturating_add(lap_step);
            self.position = self.lap;
            if self.lap >= stride_bytes || self.lap > block.last {
                (self.position, self.lap) = (0, 0);
                return None;
            }
        }
        let offset = self.position;
        self.position = offset.saturating_add(stride_bytes);
        Some(offset)
    }

    /// Random patterns have no end of the range: they have finished it when they have offered as many bytes.
    #[inline]
    fn count(&mut self, block: &Block, bytes_per_pass: u64) -> Option<()> {
        if self.position >= bytes_per_pass {
            self.position = 0;
            return None;
        }
        self.position += u64::from(block.bytes);
        Some(())
    }

    #[inline]
    fn permuted(&mut self, blocks: &Permutation, stream: &mut Stream) -> Option<u64> {
        if self.position == blocks.len() {
            (self.position, self.lap) = (0, stream.next_u64());
            return None;
        }
        let index = self.position;
        self.position += 1;
        Some(blocks.at(self.lap, index))
    }
}
