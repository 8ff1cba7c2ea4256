//! Draws of what an operation is: its direction and its size.

use crate::pacing::Pacing;
use crate::spec::{Arrival, BlockSize, JobSpec, Spacing};
use base::rng::Stream;

/// Read or write, by share.
#[derive(Clone, Debug)]
pub(crate) enum Direction {
    Reads,
    Writes,
    /// Each operation draws: below this is a read.
    Mixed(u64, Stream),
    /// The one that is due first.
    FirstDue,
}

impl Direction {
    pub fn new(spec: &JobSpec, stream: Stream) -> Direction {
        let read_share = spec.read_share;
        let spacing = Spacing::ConstantEach;
        if matches!(spec.arrival, Arrival::Open { spacing: found, .. } if found == spacing) {
            Direction::FirstDue
        } else if read_share >= 1.0 {
            Direction::Reads
        } else if read_share > 0.0 {
            Direction::Mixed((read_share * 2f64.powi(64)) as u64, stream)
        } else {
            Direction::Writes
        }
    }

    #[inline]
    pub fn reads(&mut self, pacing: &Pacing) -> bool {
        match self {
            Direction::Reads => true,
            Direction::Writes => false,
            Direction::Mixed(read_below, stream) => stream.next_u64() < *read_below,
            Direction::FirstDue => pacing.reads_are_due(),
        }
    }
}

/// A size by weight: the index into the specification's list.
#[derive(Clone, Debug)]
pub(crate) struct Size {
    /// Cumulative shares, scaled to 2^64, without the last.
    bounds: Vec<u64>,
    stream: Stream,
}

impl Size {
    pub fn new(blocks: &[BlockSize], stream: Stream) -> Size {
        let total: f64 = blocks.iter().map(|block| block.weight).sum();
        let mut cumulated = 0.0;
        let bounds = blocks[..blocks.len() - 1]
            .iter()
            .map(|block| {
                cumulated += block.weight;
                (cumulated / total * 2f64.powi(64)) as u64
            })
            .collect();
        Size { bounds, stream }
    }

    #[inline]
    pub fn draw(&mut self) -> usize {
        let draw = self.stream.next_u64();
        // A sum, not a search: the branches of a search cannot be predicted.
        self.bounds.iter().map(|&bound| usize::from(draw >= bound)).sum()
    }
}
