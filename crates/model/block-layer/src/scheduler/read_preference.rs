//! Batches of reads pass waiting writes, up to a bound (`writes_starved`).

use crate::Direction;

#[derive(Clone, Copy, Debug, Default)]
pub struct ReadPreference {
    /// Batches of reads that have passed writes which waited.
    starved: u32,
}

impl ReadPreference {
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
