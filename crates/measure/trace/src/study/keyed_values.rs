//! Counts by a key.

use std::collections::BTreeMap;

use crate::recent::RecentPlaces;

/// A value for each of this many keys, those that came first; all others share one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KeyedValues<K, V> {
    /// Where the value of each is.
    places: BTreeMap<K, usize>,
    values: Vec<V>,
    recent: RecentPlaces,
    keys_max: usize,
    others: K,
}

impl<K: Copy + Ord + Into<u32>, V: Default> KeyedValues<K, V> {
    /// `others`: what keys beyond the first `keys_max` are counted as.
    pub(super) fn new(keys_max: usize, others: K) -> KeyedValues<K, V> {
        KeyedValues { places: BTreeMap::new(), values: Vec::new(), recent: RecentPlaces::default(), keys_max, others }
    }

    /// The value of that key.
    #[inline]
    pub(super) fn of(&mut self, key: K) -> &mut V {
        let at = match self.recent.place(key.into()) {
            Some(at) => at,
            None => self.place(key),
        };
        &mut self.values[at]
    }

    fn place(&mut self, key: K) -> usize {
        let counted = match self.places.contains_key(&key) || self.places.len() < self.keys_max {
            true => key,
            false => self.others,
        };
        let at = *self.places.entry(counted).or_insert_with(|| {
            self.values.push(V::default());
            self.values.len() - 1
        });
        self.recent.remember(key.into(), at);
        at
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.iter_mut()
    }

    pub(super) fn into_map(self) -> BTreeMap<K, V> {
        let mut values: Vec<Option<V>> = self.values.into_iter().map(Some).collect();
        let places = self.places.into_iter();
        places.filter_map(|(key, at)| Some((key, values[at].take()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keys_have_their_own_value_and_all_others_one() {
        let mut counts: KeyedValues<u32, u64> = KeyedValues::new(2, 9);
        for key in [5, 5, 7, 1, 5, 2, 2, 7] {
            *counts.of(key) += 1;
        }
        assert_eq!(counts.into_map(), BTreeMap::from([(5, 3), (7, 2), (9, 3)]));
    }
}
