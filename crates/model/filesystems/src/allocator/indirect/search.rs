//! The order in which ext2 and ext3 look at bitmaps (`fs/ext2/balloc.c` and `fs/ext3/balloc.c` of
//! 2.5.59; docs/model/sources/allocators.md#ext2-and-ext3).

use crate::allocator::Full;
use crate::allocator::space::{GROUP_BLOCKS, Space};

/// A free block for the goal (`ext2_new_block`, `ext3_new_block`): itself; else one in its group from it on; else in the
/// groups after it, cyclically.
pub(super) fn find(space: &Space, goal: u64) -> Result<u64, Full> {
    let goal = if goal < space.blocks() { goal } else { 0 };
    let home = goal / GROUP_BLOCKS;
    if let Some(block) = in_group(space, goal) {
        return Ok(block);
    }
    // The goal's own group comes again last, from its first block.
    (1..=space.groups())
        .map(|distance| (home + distance) % space.groups())
        .filter(|&group| space.free_in_group(group) > 0)
        .find_map(|group| in_group(space, group * GROUP_BLOCKS))
        .ok_or(Full)
}

fn in_group(space: &Space, goal: u64) -> Option<u64> {
    if space.is_free(goal) {
        return Some(goal);
    }
    let (start, end) = (goal - goal % GROUP_BLOCKS, space.group_end(goal));
    if space.free_in_group(goal / GROUP_BLOCKS) == 0 {
        return None;
    }
    let boundary = goal.next_multiple_of(64).min(end);
    if let Some(near) = space.next_free(goal, boundary) {
        return Some(near);
    }
    if let Some(byte) = space.next_free_byte(boundary, end)
        && byte + 8 <= end
    {
        return Some(step_back(space, byte, start));
    }
    space.next_free(boundary, end)
}

/// To the start of the free blocks that lead to this byte: fewer than 8, or the byte before were free as well.
fn step_back(space: &Space, mut block: u64, group_start: u64) -> u64 {
    while block > group_start && space.is_free(block - 1) {
        block -= 1;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All in use but these, in three groups.
    fn all_but(free: &[u64]) -> Space {
        let mut space = Space::new(3 * GROUP_BLOCKS, 0);
        space.take_run(0, 3 * GROUP_BLOCKS);
        for &block in free {
            space.give_back(block);
        }
        space
    }

    #[test]
    fn a_free_goal_is_taken() {
        assert_eq!(find(&all_but(&[10, 500]), 500), Ok(500));
    }

    #[test]
    fn then_the_first_free_bit_up_to_the_next_64_aligned_boundary() {
        let byte: Vec<u64> = (128..136).collect();
        assert_eq!(find(&all_but(&[&[63], &byte[..]].concat()), 10), Ok(63));
    }

    #[test]
    fn then_the_first_wholly_free_byte_though_single_bits_are_nearer() {
        let byte: Vec<u64> = (128..136).collect();
        assert_eq!(find(&all_but(&[&[70], &byte[..]].concat()), 10), Ok(128));
    }

    #[test]
    fn and_from_that_byte_back_while_preceding_bits_are_free() {
        let free: Vec<u64> = (123..136).collect();
        assert_eq!(find(&all_but(&free), 10), Ok(123));
    }

    #[test]
    fn else_any_free_bit_of_the_rest_of_the_group() {
        assert_eq!(find(&all_but(&[5, 70, 90]), 10), Ok(70));
    }

    #[test]
    fn else_the_following_groups_cyclically_from_bit_0() {
        let free = [5, GROUP_BLOCKS + 1, 2 * GROUP_BLOCKS + 7];
        assert_eq!(find(&all_but(&free), GROUP_BLOCKS + 2), Ok(2 * GROUP_BLOCKS + 7));
        assert_eq!(find(&all_but(&free), 2 * GROUP_BLOCKS + 8), Ok(5));
        assert_eq!(find(&all_but(&[GROUP_BLOCKS + 1]), GROUP_BLOCKS + 2), Ok(GROUP_BLOCKS + 1));
    }

    #[test]
    fn at_bit_0_the_window_of_64_is_skipped() {
        let byte: Vec<u64> = (640..648).collect();
        assert_eq!(find(&all_but(&[&[1], &byte[..]].concat()), 0), Ok(640));
    }

    #[test]
    fn a_full_filesystem_has_no_block() {
        assert_eq!(find(&all_but(&[]), 77), Err(Full));
    }
}
