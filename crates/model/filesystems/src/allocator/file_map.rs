//! Where the blocks of a file are: an extent map.

use std::collections::BTreeMap;

use crate::allocator::Extent;

/// Where the blocks of one file lie.
#[derive(Clone, Debug, Default)]
pub struct FileMap {
    /// Logical block to physical block and length; neighbours that continue each other are one.
    runs: BTreeMap<u64, (u64, u64)>,
}

impl FileMap {
    /// Where the block is, and how many follow it contiguously, itself included.
    #[inline]
    pub fn get(&self, logical: u64) -> Option<(u64, u64)> {
        let (&start, &(physical, blocks)) = self.runs.range(..=logical).next_back()?;
        let inside = logical - start;
        (inside < blocks).then(|| (physical + inside, blocks - inside))
    }

    /// The nearest mapped block before `logical`, and where it is.
    pub fn before(&self, logical: u64) -> Option<(u64, u64)> {
        let (&start, &(physical, blocks)) = self.runs.range(..logical).next_back()?;
        let inside = (logical - 1 - start).min(blocks - 1);
        Some((start + inside, physical + inside))
    }

    /// The nearest mapped block from `logical` on.
    pub fn after(&self, logical: u64) -> Option<u64> {
        if self.get(logical).is_some() {
            return Some(logical);
        }
        self.runs.range(logical..).next().map(|(&start, _)| start)
    }

    /// The blocks must not be mapped yet.
    pub fn put(&mut self, logical: u64, physical: u64, blocks: u64) {
        let (mut start, mut at, mut length) = (logical, physical, blocks);
        if let Some((&before, run)) = self.runs.range_mut(..logical).next_back() {
            debug_assert!(before + run.1 <= logical);
            if before + run.1 == logical && run.0 + run.1 == physical {
                run.1 += blocks;
                (start, at, length) = (before, run.0, run.1);
            }
        }
        if let Some((&next, &(next_at, next_length))) = self.runs.range(logical..).next() {
            debug_assert!(logical + blocks <= next);
            if logical + blocks == next && physical + blocks == next_at {
                self.runs.remove(&next);
                length += next_length;
            }
        }
        self.runs.insert(start, (at, length));
    }

    /// The mapped blocks in the order of the file; no extent continues the one before it.
    pub fn extents(&self) -> impl Iterator<Item = Extent> {
        self.runs.iter().map(|(&logical, &(physical, blocks))| Extent { logical, physical, blocks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_block_between_two_extents_makes_them_one() {
        let mut map = FileMap::default();
        map.put(0, 100, 2);
        map.put(3, 103, 2);
        map.put(2, 102, 1);
        let whole = Extent { logical: 0, physical: 100, blocks: 5 };
        assert_eq!(map.extents().collect::<Vec<_>>(), [whole]);
        assert_eq!(map.get(3), Some((103, 2)));
        assert_eq!(map.get(5), None);
        assert_eq!(map.before(9), Some((4, 104)));
        assert_eq!(map.after(5), None);
    }

    proptest! {
        #[test]
        fn is_a_map_from_block_to_block(pairs in proptest::collection::btree_map(0u64..60, 0u64..4, 0..60)) {
            let mut map = FileMap::default();
            // Mostly contiguous: the same offset for the same small number.
            let at = |logical: u64, piece: u64| 1000 * piece + logical;
            for (&logical, &piece) in &pairs {
                map.put(logical, at(logical, piece), 1);
            }
            for logical in 0..61 {
                let expected = pairs.get(&logical).map(|&piece| at(logical, piece));
                prop_assert_eq!(map.get(logical).map(|(physical, _)| physical), expected);
                let before = (0..logical).rev().find_map(|b| pairs.get(&b).map(|&piece| (b, at(b, piece))));
                prop_assert_eq!(map.before(logical), before);
                prop_assert_eq!(map.after(logical), (logical..60).find(|b| pairs.contains_key(b)));
            }
            let extents: Vec<Extent> = map.extents().collect();
            for pair in extents.windows(2) {
                let end = (pair[0].logical + pair[0].blocks, pair[0].physical + pair[0].blocks);
                prop_assert!(end != (pair[1].logical, pair[1].physical), "contiguous extents are one");
            }
        }
    }
}
