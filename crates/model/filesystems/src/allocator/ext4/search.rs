//! Where ext4 finds room: at the goal, else an aligned power of two, else the best of the extents that it looks at.
//!
//! The buddy bitmaps themselves are not simulated: a run of a power of two that is aligned to itself is what they would find.

use crate::allocator::space::{GROUP_BLOCKS, Space};

/// The tunables `mb_min_to_scan` and `mb_max_to_scan`.
const SCAN_MIN: u32 = 10;
const SCAN_MAX: u32 = 200;

/// A free run, its start and length up to `blocks` (`ext4_mb_regular_allocator`); None: nothing is free.
pub(super) fn find(space: &Space, goal: u64, blocks: u64) -> Option<(u64, u64)> {
    at_goal(space, goal, blocks).or_else(|| aligned(space, goal, blocks)).or_else(|| best(space, goal, blocks))
}

/// All of it must be free there (`ext4_mb_find_by_goal`).
fn at_goal(space: &Space, goal: u64, blocks: u64) -> Option<(u64, u64)> {
    let end = goal + blocks;
    let free = end <= space.blocks() && space.next_used(goal, end) == end;
    free.then_some((goal, blocks))
}

/// `ext4_mb_simple_scan_group`.
fn aligned(space: &Space, goal: u64, blocks: u64) -> Option<(u64, u64)> {
    if !blocks.is_power_of_two() || blocks > GROUP_BLOCKS {
        return None;
    }
    groups_from(space, goal).find_map(|(start, end)| {
        if space.free_in_group(start / GROUP_BLOCKS) < blocks {
            return None;
        }
        let mut at = start;
        while at + blocks <= end {
            let used = space.next_used(at, at + blocks);
            if used == at + blocks {
                return Some((at, blocks));
            }
            at = (used + 1).next_multiple_of(blocks);
        }
        None
    })
}

/// The shortest that is long enough, of at least 10 that are looked at (`ext4_mb_complex_scan_group`); with none, the
/// longest of up to 200.
fn best(space: &Space, goal: u64, blocks: u64) -> Option<(u64, u64)> {
    let (mut fitting, mut longest) = (None, None);
    let mut seen = 0;
    for (start, end) in groups_from(space, goal) {
        if space.free_in_group(start / GROUP_BLOCKS) == 0 {
            continue;
        }
        let mut at = start;
        while let Some(free) = space.next_free(at, end) {
            at = space.next_used(free, end);
            let length = at - free;
            seen += 1;
            if length >= blocks && fitting.is_none_or(|(_, shortest)| length < shortest) {
                fitting = Some((free, length));
            }
            if longest.is_none_or(|(_, so_far)| length > so_far) {
                longest = Some((free, length));
            }
            let enough = fitting.is_some() && seen >= SCAN_MIN;
            if enough || fitting.is_some_and(|(_, length)| length == blocks) || seen >= SCAN_MAX {
                return fitting.or(longest).map(|(at, length)| (at, length.min(blocks)));
            }
        }
    }
    fitting.or(longest).map(|(at, length)| (at, length.min(blocks)))
}

/// Start and end of each group, from the goal's on, cyclically.
fn groups_from(space: &Space, goal: u64) -> impl Iterator<Item = (u64, u64)> {
    let home = goal.min(space.blocks() - 1) / GROUP_BLOCKS;
    (0..space.groups()).map(move |distance| {
        let start = (home + distance) % space.groups() * GROUP_BLOCKS;
        (start, space.group_end(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_goal_comes_first() {
        let space = Space::new(GROUP_BLOCKS, 0);
        assert_eq!(find(&space, 777, 100), Some((777, 100)));
    }

    #[test]
    fn then_a_power_of_two_aligned_to_itself() {
        let mut space = Space::new(GROUP_BLOCKS, 0);
        space.take(0);
        space.take(70);
        assert_eq!(find(&space, 10, 64), Some((128, 64)));
    }

    #[test]
    fn then_the_shortest_extent_that_is_long_enough() {
        let mut space = Space::new(1000, 0);
        space.take_run(0, 10);
        space.take_run(300, 10);
        space.take_run(500, 490);
        // Free: 290, 190, 10.
        assert_eq!(find(&space, 0, 100), Some((310, 100)));
    }

    #[test]
    fn with_none_that_is_long_enough_the_longest() {
        let mut space = Space::new(1000, 0);
        space.take_run(100, 10);
        space.take_run(300, 600);
        assert_eq!(find(&space, 100, 500), Some((110, 190)));
    }

    #[test]
    fn nothing_free_is_nothing() {
        let mut space = Space::new(100, 0);
        space.take_run(0, 100);
        assert_eq!(find(&space, 0, 1), None);
    }
}
