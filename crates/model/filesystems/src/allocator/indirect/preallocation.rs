//! ext2's preallocation: blocks marked as used for a file before it wants them.

use crate::allocator::Full;
use crate::allocator::indirect::search;
use crate::allocator::space::Space;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Preallocation {
    start: u64,
    blocks: u64,
}

impl Preallocation {
    /// One block (`ext2_alloc_block`): of what is set aside if the goal is there or just before, else a new one with those
    /// that follow it.
    pub(super) fn take(&mut self, space: &mut Space, goal: u64, at_once: u32) -> Result<u64, Full> {
        if self.blocks > 0 && (goal == self.start || goal + 1 == self.start) {
            self.start += 1;
            self.blocks -= 1;
            return Ok(self.start - 1);
        }
        self.give_back(space);
        let block = search::find(space, goal)?;
        let end = space.group_end(block).min(block + u64::from(at_once.max(1)));
        let end = space.next_used(block, end);
        space.take_run(block, end - block);
        *self = Preallocation { start: block + 1, blocks: end - block - 1 };
        Ok(block)
    }

    /// Returns what is left (`ext2_discard_prealloc`).
    pub(super) fn give_back(&mut self, space: &mut Space) {
        space.give_back_run(self.start, self.blocks);
        self.blocks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::space::GROUP_BLOCKS;

    #[test]
    fn eight_blocks_in_all_are_claimed_and_handed_out_when_the_goal_is_the_start_or_just_before() {
        let mut space = Space::new(GROUP_BLOCKS, 0);
        let mut own = Preallocation::default();
        assert_eq!(own.take(&mut space, 100, 8), Ok(100));
        assert_eq!(space.free_blocks(), GROUP_BLOCKS - 8);
        assert_eq!(own.take(&mut space, 101, 8), Ok(101));
        assert_eq!(own.take(&mut space, 101, 8), Ok(102), "goal + 1 == start");
        assert_eq!(space.free_blocks(), GROUP_BLOCKS - 8);
    }

    #[test]
    fn another_goal_gives_the_leftover_back() {
        let mut space = Space::new(GROUP_BLOCKS, 0);
        let mut own = Preallocation::default();
        assert_eq!(own.take(&mut space, 100, 8), Ok(100));
        assert_eq!(own.take(&mut space, 500, 8), Ok(500));
        assert_eq!(space.free_blocks(), GROUP_BLOCKS - 9);
        own.give_back(&mut space);
        assert_eq!(space.free_blocks(), GROUP_BLOCKS - 2);
    }

    #[test]
    fn only_following_bits_until_one_is_in_use_or_the_group_ends() {
        let mut space = Space::new(2 * GROUP_BLOCKS, 0);
        space.take(103);
        let mut own = Preallocation::default();
        assert_eq!(own.take(&mut space, 100, 8), Ok(100));
        assert_eq!(own.blocks, 2);
        assert_eq!(own.take(&mut space, GROUP_BLOCKS - 3, 8), Ok(GROUP_BLOCKS - 3));
        assert_eq!(own.blocks, 2);
    }
}
