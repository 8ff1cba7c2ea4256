//! Numbers by key.
//!
//! Its own hash table: the standard one differs from process to process, a tree costs a walk for each key.

/// Open addressing with linear probing. Its size is a power of two, at least half of it empty.
#[derive(Clone, Debug)]
pub(super) struct Index {
    slots: Vec<Slot>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
    number: u32,
}

const EMPTY: Slot = Slot { key: 0, number: u32::MAX };

impl Index {
    pub(super) fn new() -> Index {
        Index { slots: vec![EMPTY; 64], len: 0 }
    }

    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<u32> {
        let slot = self.slots[self.slot_of(key)];
        (slot.number != EMPTY.number).then_some(slot.number)
    }

    /// A key that is not in it yet; `number` is less than `u32::MAX`.
    pub(super) fn put(&mut self, key: u64, number: u32) {
        self.len += 1;
        if self.len * 2 > self.slots.len() {
            let larger = vec![EMPTY; self.slots.len() * 2];
            for slot in std::mem::replace(&mut self.slots, larger) {
                if slot.number != EMPTY.number {
                    let at = self.slot_of(slot.key);
                    self.slots[at] = slot;
                }
            }
        }
        let at = self.slot_of(key);
        self.slots[at] = Slot { key, number };
    }

    /// Takes a key out that is in it, and moves up what probing went past it for.
    pub(super) fn remove(&mut self, key: u64) {
        self.len -= 1;
        let mask = self.slots.len() - 1;
        let mut hole = self.slot_of(key);
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let other = self.slots[at];
            if other.number == EMPTY.number {
                break;
            }
            let home = self.home(other.key);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = other;
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
    }

    /// Where the key is, or would be.
    #[inline]
    fn slot_of(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while self.slots[at].number != EMPTY.number && self.slots[at].key != key {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        // Fibonacci hashing; neighbours stay near each other in blocks of 8, which sequential I/O profits from.
        let mixed = (key >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        ((mixed as usize) * 8 + (key & 7) as usize) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_finds_what_a_tree_finds(steps in prop::collection::vec((any::<bool>(), 0u64..300), 0..800)) {
            let (mut index, mut tree) = (Index::new(), BTreeMap::new());
            for (number, (put, key)) in (0..).zip(steps) {
                match tree.get(&key) {
                    None if put => {
                        index.put(key, number);
                        tree.insert(key, number);
                    }
                    Some(_) if !put => {
                        index.remove(key);
                        tree.remove(&key);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.get(key), tree.get(&key).copied());
            }
            for key in 0..300 {
                prop_assert_eq!(index.get(key), tree.get(&key).copied());
            }
        }
    }
}
