//! Reads before writes, but not for ever.

use crate::Direction;

#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// Batches of reads that have passed writes which waited.
    starved: u32,
}

impl Turns {
    /// Whose batch is next: reads', unless writes wait that have let `writes_starved` batches pass.
    pub fn next(&mut self, reads: bool, writes: bool, writes_starved: u32) -> Option<Direction> {
        if reads && writes {
            let starved = self.starved;
            self.starved += 1;
            if starved < writes_starved {
                return Some(Direction::Read);
            }
        } else if reads {
            return Some(Direction::Read);
        } else if !writes {
            return None;
        }
        self.starved = 0;
        Some(Direction::Write)
    }
}
