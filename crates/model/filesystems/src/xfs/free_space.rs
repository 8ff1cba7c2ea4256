//! The free space of an allocation group: extents by start and by length, as its two B+trees have them.

use std::collections::{BTreeMap, BTreeSet};

/// Blocks count from the start of the group.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeSpace {
    by_start: BTreeMap<u32, u32>,
    /// Length, then start.
    by_length: BTreeSet<(u32, u32)>,
    free: u64,
}

impl FreeSpace {
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    pub(super) fn longest(&self) -> u32 {
        self.by_length.last().map_or(0, |&(length, _)| length)
    }

    /// How many extents there are: the records of each tree.
    pub(super) fn extents(&self) -> u64 {
        self.by_start.len() as u64
    }

    /// This many blocks of the smallest extent that has them, else all of the longest (`xfs_alloc_ag_vextent_size`):
    /// first block and blocks.
    pub(super) fn take_by_length(&mut self, blocks: u32) -> Option<(u32, u32)> {
        let fits = self.by_length.range((blocks, 0)..).next();
        let &(length, start) = fits.or_else(|| self.by_length.last())?;
        let taken = blocks.min(length);
        let is_free = self.take_at(start, taken);
        debug_assert!(is_free, "just found free");
        Some((start, taken))
    }

    /// Gives blocks back, joined with their neighbours (`xfs_free_ag_extent`).
    pub(super) fn put(&mut self, start: u32, length: u32) {
        let (mut start, mut length, added) = (start, length, u64::from(length));
        if let Some((&before, &blocks)) = self.by_start.range(..start).next_back()
            && before + blocks == start
        {
            self.remove(before, blocks);
            (start, length) = (before, blocks + length);
        }
        if let Some(&blocks) = self.by_start.get(&(start + length)) {
            self.remove(start + length, blocks);
            length += blocks;
        }
        self.insert(start, length);
        self.free += added;
    }

    /// Exactly there (`xfs_alloc_ag_vextent_exact`); false: not all of it is free.
    pub(super) fn take_at(&mut self, start: u32, length: u32) -> bool {
        let Some((&first, &blocks)) = self.by_start.range(..=start).next_back() else {
            return false;
        };
        if u64::from(first) + u64::from(blocks) < u64::from(start) + u64::from(length) {
            return false;
        }
        self.remove(first, blocks);
        if first < start {
            self.insert(first, start - first);
        }
        let (end, all) = (start + length, first + blocks);
        if end < all {
            self.insert(end, all - end);
        }
        self.free -= u64::from(length);
        true
    }

    /// As near to a target as there is room, at a multiple of `align` (`xfs_alloc_ag_vextent_near`); if both sides are
    /// as near, to the right.
    pub(super) fn take_near(&mut self, target: u32, length: u32, align: u32) -> Option<u32> {
        if self.longest() < length {
            return None;
        }
        let within = |first: u32, blocks: u32, at: u32| -> Option<u32> {
            let lowest = first.next_multiple_of(align);
            let highest = (first + blocks).checked_sub(length)? / align * align;
            (lowest <= highest).then(|| at.next_multiple_of(align).clamp(lowest, highest))
        };
        let right = self.by_start.range(target..).find_map(|(&first, &blocks)| within(first, blocks, target));
        let left = self.by_start.range(..target).rev().find_map(|(&first, &blocks)| within(first, blocks, target));
        let found = [right, left].into_iter().flatten().min_by_key(|at| at.abs_diff(target))?;
        let taken = self.take_at(found, length);
        debug_assert!(taken, "just found free");
        Some(found)
    }

    fn insert(&mut self, start: u32, length: u32) {
        self.by_start.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn remove(&mut self, start: u32, length: u32) {
        self.by_start.remove(&start);
        self.by_length.remove(&(length, start));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BLOCKS: u32 = 256;

    fn near_by_looking_at_each(free: &[bool], target: u32, length: u32, align: u32) -> Option<u32> {
        let fits = |at: &u32| (*at..at + length).all(|block| free.get(block as usize) == Some(&true));
        (0..BLOCKS).step_by(align as usize).filter(fits).map(|at| at.abs_diff(target)).min()
    }

    proptest! {
        /// Against a map of single blocks: nothing is given out twice, and near is as near as possible within one cluster.
        #[test]
        fn is_a_map_of_blocks(steps in prop::collection::vec((0u32..BLOCKS, 1u32..9, 0u8..3), 1..80)) {
            let mut space = FreeSpace::default();
            space.put(0, BLOCKS);
            let mut free = vec![true; BLOCKS as usize];
            let mut given: Vec<(u32, u32)> = Vec::new();
            for (at, length, what) in steps {
                let taken = match what {
                    0 => space.take_at(at, length).then_some(at),
                    1 => {
                        let align = if length % 2 == 0 { 4 } else { 1 };
                        let nearest = near_by_looking_at_each(&free, at, length, align);
                        let found = space.take_near(at, length, align);
                        let distance = found.map(|found| found.abs_diff(at));
                        // Within an extent both find the place by its multiple next to the target.
                        prop_assert_eq!(distance.is_some(), nearest.is_some());
                        if let (Some(distance), Some(nearest)) = (distance, nearest) {
                            prop_assert!(distance < nearest + align);
                        }
                        found
                    }
                    _ => {
                        if let Some((start, length)) = given.pop() {
                            space.put(start, length);
                            (start..start + length).for_each(|block| free[block as usize] = true);
                        }
                        None
                    }
                };
                if let Some(start) = taken {
                    for block in start..start + length {
                        prop_assert!(std::mem::take(&mut free[block as usize]));
                    }
                    given.push((start, length));
                }
                prop_assert_eq!(space.free(), free.iter().filter(|&&free| free).count() as u64);
            }
        }
    }
}
