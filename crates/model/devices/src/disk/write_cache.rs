//! The write cache: what was acknowledged and is not on the medium yet.

use std::collections::BTreeMap;

use crate::disk::choice::{Aging, Choice};
use crate::disk::mechanics::{Arm, Mechanics, PhysicalSector};
use crate::disk::spec::Cache;
use crate::disk::turnaround::Turnaround;
use crate::watermarks::fits;
use block_layer::Sector;
use events::time::Time;

#[derive(Clone, Debug)]
pub(super) struct WriteCache {
    /// By first sector; none overlap.
    extents: BTreeMap<Sector, Extent>,
    /// First sectors in order of arrival.
    order: BTreeMap<u64, Sector>,
    next_order: u64,
    sectors: u64,
    /// Being written to the medium: still held, no longer merged into.
    leaving: u64,
    sectors_max: u64,
}

/// Consecutive sectors that wait for the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) start: Sector,
    pub(super) sectors: u32,
    pub(super) place: PhysicalSector,
    since: Time,
    order: u64,
}

/// How many of the oldest extents the disk looks at to find the nearest (estimate).
const LOOKED_AT: usize = 32;

/// An extent grows no further than this, so that writing it does not block the arm for long (inferred).
const EXTENT_SECTORS_MAX: u32 = 1024;

impl WriteCache {
    pub(super) fn new(spec: &Cache) -> WriteCache {
        WriteCache {
            extents: BTreeMap::new(),
            order: BTreeMap::new(),
            next_order: 0,
            sectors: 0,
            leaving: 0,
            sectors_max: u64::from(spec.dirty_sectors_max),
        }
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors + self.leaving
    }

    pub(super) fn has_room(&self, sectors: u32) -> bool {
        fits(self.sectors_max, self.sectors(), u64::from(sectors))
    }

    /// Whether all of the sectors wait here, in one extent.
    #[inline]
    pub(super) fn holds(&self, start: Sector, sectors: u32) -> bool {
        !self.extents.is_empty()
            && self
                .extents
                .range(..=start)
                .next_back()
                .is_some_and(|(_, extent)| start + u64::from(sectors) <= extent.end())
    }

    pub(super) fn put(&mut self, mechanics: &Mechanics, now: Time, start: Sector, sectors: u32) {
        self.forget(mechanics, start, sectors);
        self.sectors += u64::from(sectors);
        let mut extent = Extent { start, sectors, place: mechanics.place(start), since: now, order: self.next_order };
        self.next_order += 1;
        let before = self.extents.range(..start).next_back();
        if let Some(before) = before.map(|(_, &before)| before)
            && before.end() == start
            && before.sectors + sectors <= EXTENT_SECTORS_MAX
        {
            self.extents.remove(&before.start);
            extent = Extent { sectors: before.sectors + sectors, ..before };
        }
        // The two now touch, or the new one lies before one that waits: one extent, which has waited as long as the older.
        if let Some(&behind) = self.extents.get(&extent.end())
            && extent.sectors + behind.sectors <= EXTENT_SECTORS_MAX
        {
            self.extents.remove(&behind.start);
            self.order.remove(&behind.order);
            self.order.remove(&extent.order);
            extent.sectors += behind.sectors;
            extent.order = extent.order.min(behind.order);
            extent.since = extent.since.min(behind.since);
        }
        self.insert(extent);
    }

    /// Which extent the mechanism should write next, of those that have waited longest, and at what cost.
    pub(super) fn nearest(
        &self,
        mechanics: &Mechanics,
        now: Time,
        arm: Arm,
        aging: Aging,
        turnaround: Turnaround,
    ) -> Option<(u64, i64)> {
        let mut choice = Choice::new(mechanics, now, arm, aging);
        for (&order, start) in self.order.iter().take(LOOKED_AT) {
            let extent = &self.extents[start];
            let ready_at = turnaround.ready_at(extent.start, now);
            choice.offer(order, extent.since, ready_at, &extent.place, true);
        }
        choice.made()
    }

    /// Since when the extent of that order has lain here.
    pub(super) fn since(&self, order: u64) -> Time {
        self.extents[&self.order[&order]].since
    }

    /// Takes an extent out, to be written.
    pub(super) fn take(&mut self, order: u64) -> Extent {
        let start = self.order[&order];
        let extent = self.remove(start);
        self.leaving += u64::from(extent.sectors);
        extent
    }

    pub(super) fn written(&mut self, extent: Extent) {
        self.leaving -= u64::from(extent.sectors);
    }

    /// These sectors are written anew: what waits of them need not be.
    pub(super) fn forget(&mut self, mechanics: &Mechanics, start: Sector, sectors: u32) {
        let end = start + u64::from(sectors);
        while let Some((&first, _)) = self.extents.range(..end).next_back().filter(|(_, extent)| extent.end() > start) {
            let extent = self.remove(first);
            let back = extent.end().saturating_sub(end) as u32;
            if back > 0 {
                // The rest has waited as long, but has an order of its own.
                let order = self.next_order;
                self.next_order += 1;
                self.sectors += u64::from(back);
                self.insert(Extent {
                    start: end,
                    sectors: back,
                    place: mechanics.place(end),
                    since: extent.since,
                    order,
                });
            }
            let front = start.saturating_sub(extent.start) as u32;
            if front > 0 {
                self.sectors += u64::from(front);
                self.insert(Extent { sectors: front, ..extent });
            }
        }
    }

    fn insert(&mut self, extent: Extent) {
        self.order.insert(extent.order, extent.start);
        self.extents.insert(extent.start, extent);
    }

    fn remove(&mut self, start: Sector) -> Extent {
        let extent = self.extents.remove(&start).expect("an extent begins there");
        self.order.remove(&extent.order);
        self.sectors -= u64::from(extent.sectors);
        extent
    }
}

impl Extent {
    fn end(&self) -> Sector {
        self.start + u64::from(self.sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::test_disk;

    #[test]
    fn writes_that_touch_become_one_extent_whichever_came_first() {
        let spec = test_disk();
        let mechanics = Mechanics::new(&spec);
        for starts in [[0, 8, 16], [16, 8, 0], [0, 16, 8]] {
            let mut cache = WriteCache::new(&spec.cache);
            for (now, start) in (5..).zip(starts) {
                cache.put(&mechanics, now, start, 8);
            }
            let (first, last) = (cache.order.keys().next(), cache.order.keys().next_back());
            assert_eq!(first, last, "{starts:?}");
            let order = *first.unwrap();
            let extent = cache.take(order);
            assert_eq!((extent.start, extent.sectors, extent.since), (0, 24, 5));
        }
    }
}
