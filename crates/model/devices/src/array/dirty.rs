//! What was acknowledged and waits for the disks, by stripe.

use std::collections::BTreeMap;

use crate::array::layout::Range;
use crate::chain::Chain;
use crate::index::Index;
use events::slab::{Id, Slab};
use events::time::Time;

#[derive(Clone, Debug)]
pub(super) struct DirtyStripes {
    stripe_sectors: u64,
    stripes: Slab<Dirty>,
    /// Numbers in the slab, by stripe.
    index: Index,
    /// In order of when they became dirty; and those of them that are full.
    order: Chain,
    full: BTreeMap<u64, Id<Dirty>>,
    next_order: u64,
    sectors: u64,
    /// Stripes that are being destaged, with their sectors: what is written to them meanwhile waits here.
    leaving: BTreeMap<u64, u64>,
    leaving_sectors: u64,
}

#[derive(Clone, Debug)]
struct Dirty {
    stripe: u64,
    order: u64,
    since: Time,
    sectors: u64,
    /// In order, none touching another.
    ranges: Vec<Range>,
}

impl DirtyStripes {
    pub(super) fn new(stripe_sectors: u64) -> DirtyStripes {
        DirtyStripes {
            stripe_sectors,
            stripes: Slab::new(),
            index: Index::new(),
            order: Chain::new(),
            full: BTreeMap::new(),
            next_order: 0,
            sectors: 0,
            leaving: BTreeMap::new(),
            leaving_sectors: 0,
        }
    }

    /// Those that are being destaged included.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors + self.leaving_sectors
    }

    pub(super) fn put(&mut self, now: Time, stripe: u64, range: Range) {
        let id = match self.index.get(stripe) {
            Some(number) => self.stripes.id(number),
            None => self.begin(now, stripe),
        };
        let held = &mut self.stripes[id];
        self.sectors += held.add(range);
        if held.sectors == self.stripe_sectors {
            self.full.insert(held.order, id);
        }
    }

    pub(super) fn holds(&self, stripe: u64, wanted: &Range) -> bool {
        self.index.get(stripe).is_some_and(|number| {
            self.stripes[self.stripes.id(number)]
                .ranges
                .iter()
                .any(|range| range.start <= wanted.start && wanted.end <= range.end)
        })
    }

    /// Since when the oldest stripe that could be destaged has been dirty.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.oldest_free().map(|id| self.stripes[id].since)
    }

    /// Takes a full stripe out, which costs least, or the oldest one.
    pub(super) fn take(&mut self, full_only: bool) -> Option<(u64, Vec<Range>)> {
        let full = self.full.values().copied().find(|&id| self.is_free(id));
        let oldest = || self.oldest_free().filter(|_| !full_only);
        let id = full.or_else(oldest)?;
        let held = self.stripes.take(id);
        self.index.remove(held.stripe);
        self.order.remove(id.number());
        self.full.remove(&held.order);
        self.sectors -= held.sectors;
        self.leaving.insert(held.stripe, held.sectors);
        self.leaving_sectors += held.sectors;
        Some((held.stripe, held.ranges))
    }

    pub(super) fn destaged(&mut self, stripe: u64) {
        self.leaving_sectors -= self.leaving.remove(&stripe).expect("it was being destaged");
    }

    fn begin(&mut self, now: Time, stripe: u64) -> Id<Dirty> {
        let id = self.stripes.put(Dirty { stripe, order: self.next_order, since: now, sectors: 0, ranges: Vec::new() });
        self.next_order += 1;
        self.index.put(stripe, id.number());
        self.order.put(id.number());
        id
    }

    fn oldest_free(&self) -> Option<Id<Dirty>> {
        let mut ids = self.order.iter().map(|number| self.stripes.id(number));
        ids.find(|&id| self.is_free(id))
    }

    fn is_free(&self, id: Id<Dirty>) -> bool {
        !self.leaving.contains_key(&self.stripes[id].stripe)
    }
}

impl Dirty {
    /// Returns how many sectors were not dirty before.
    fn add(&mut self, range: Range) -> u64 {
        let first = self.ranges.partition_point(|other| other.end < range.start);
        let last = self.ranges.partition_point(|other| other.start <= range.end);
        let mut joined = range;
        let mut before = 0;
        for other in &self.ranges[first..last] {
            joined = joined.start.min(other.start)..joined.end.max(other.end);
            before += other.end - other.start;
        }
        let added = joined.end - joined.start - before;
        self.ranges.splice(first..last, [joined]);
        self.sectors += added;
        added
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_stripe_goes_first_and_then_the_oldest() {
        let mut dirty = DirtyStripes::new(10);
        dirty.put(1, 5, 0..3);
        dirty.put(2, 6, 0..5);
        dirty.put(3, 6, 5..10);
        assert_eq!(dirty.take(true).unwrap().0, 6);
        assert_eq!(dirty.take(true), None);
        let (stripe, ranges) = dirty.take(false).unwrap();
        assert_eq!((stripe, ranges.as_slice()), (5, std::slice::from_ref(&(0..3))));
        assert_eq!(dirty.sectors(), 13);
    }

    #[test]
    fn a_stripe_that_is_being_destaged_is_not_destaged_again_meanwhile() {
        let mut dirty = DirtyStripes::new(10);
        dirty.put(1, 5, 0..3);
        dirty.take(false);
        dirty.put(2, 5, 0..3);
        assert_eq!(dirty.take(false), None);
        dirty.destaged(5);
        assert!(dirty.take(false).is_some());
    }

    proptest! {
        #[test]
        fn ranges_hold_just_what_was_put(writes in prop::collection::vec((0u64..60, 1u64..20), 0..30)) {
            let mut dirty = DirtyStripes::new(80);
            let mut held = [false; 80];
            for (start, sectors) in writes {
                dirty.put(0, 0, start..start + sectors);
                held[start as usize..(start + sectors) as usize].fill(true);
            }
            prop_assert_eq!(dirty.sectors(), held.iter().filter(|held| **held).count() as u64);
            for at in 0..80 {
                prop_assert_eq!(dirty.holds(0, &(at..at + 1)), held[at as usize]);
            }
        }
    }
}
