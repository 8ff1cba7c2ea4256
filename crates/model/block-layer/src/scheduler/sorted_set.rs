//! A small set in ascending order.

use std::collections::VecDeque;

/// For what schedulers keep: mostly few, leaving at the front and coming at the back. What comes or goes in between moves
/// the shorter side, which up to thousands costs less than a tree's nodes.
#[derive(Clone, Debug)]
pub struct SortedSet<K>(VecDeque<K>);

impl<K: Copy + Ord> SortedSet<K> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub fn first(&self) -> Option<K> {
        self.0.front().copied()
    }

    pub fn pop_first(&mut self) -> Option<K> {
        self.0.pop_front()
    }

    pub fn last(&self) -> Option<K> {
        self.0.back().copied()
    }

    #[inline]
    pub fn insert(&mut self, key: K) {
        if self.0.back().is_none_or(|last| *last < key) {
            self.0.push_back(key);
        } else {
            let index = self.index(&key);
            debug_assert!(self.0[index] != key, "is there once");
            self.0.insert(index, key);
        }
    }

    /// Whether it was there.
    #[inline]
    pub fn remove(&mut self, key: &K) -> bool {
        let index = self.index(key);
        let was_there = self.0.get(index) == Some(key);
        if was_there {
            self.0.remove(index);
        }
        was_there
    }

    /// The first that is not before the key.
    #[inline]
    pub fn from(&self, key: &K) -> Option<K> {
        self.0.get(self.index(key)).copied()
    }

    /// The last before the key, and the first behind it; the key itself need not be there.
    #[inline]
    pub fn around(&self, key: &K) -> (Option<K>, Option<K>) {
        let index = self.index(key);
        let before = index.checked_sub(1).map(|before| self.0[before]);
        let is_there = self.0.get(index) == Some(key);
        (before, self.0.get(index + usize::from(is_there)).copied())
    }

    /// How many are before the key.
    #[inline]
    fn index(&self, key: &K) -> usize {
        match self.0.front() {
            Some(first) if first < key => self.0.partition_point(|other| other < key),
            _ => 0,
        }
    }
}

impl<K> Default for SortedSet<K> {
    fn default() -> Self {
        SortedSet(VecDeque::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn is_a_set_in_order(steps in prop::collection::vec((0u8..2, 0u32..50), 0..200)) {
            let (mut sorted, mut set) = (SortedSet::default(), BTreeSet::new());
            for (step, key) in steps {
                if step == 0 {
                    prop_assert_eq!(sorted.remove(&key), set.remove(&key));
                } else if set.insert(key) {
                    sorted.insert(key);
                }
                prop_assert_eq!(sorted.0.iter().copied().collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!((sorted.first(), sorted.last()), (set.first().copied(), set.last().copied()));
                prop_assert_eq!(sorted.from(&key), set.range(key..).next().copied());
                let around = (set.range(..key).next_back().copied(), set.range(key + 1..).next().copied());
                prop_assert_eq!(sorted.around(&key), around);
            }
        }
    }
}
