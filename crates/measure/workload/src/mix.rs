//! Draws of what an operation is: its direction and its size.

use crate::spec::BlockSize;
use base::rng::Stream;

/// Read or write, by share.
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    /// A draw below this is a read.
    read_below: u64,
    /// Neither all reads nor all writes: each operation draws.
    mixed: bool,
    stream: Stream,
}

impl Direction {
    pub fn new(read_share: f64, stream: Stream) -> Direction {
        // The cast saturates: a share of 1.0 becomes u64::MAX, which `mixed` takes care of.
        let read_below = (read_share * 2f64.powi(64)) as u64;
        Direction {
            read_below,
            mixed: read_share > 0.0 && read_share < 1.0,
            stream,
        }
    }

    #[inline]
    pub fn reads(&mut self) -> bool {
        if self.mixed {
            self.stream.next_u64() < self.read_below
        } else {
            self.read_below > 0
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
        if self.bounds.is_empty() {
            return 0;
        }
        let draw = self.stream.next_u64();
        // A sum, not a search: the branches of a search cannot be predicted.
        self.bounds
            .iter()
            .map(|&bound| usize::from(draw >= bound))
            .sum()
    }
}
