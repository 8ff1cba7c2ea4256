//! The write cache: what was acknowledged and is not on the medium yet.

use crate::block::Sector;
use crate::device::disk::mechanics::{Arm, Mechanics, Place};
use crate::device::disk::spec::Cache;
use crate::time::Time;

#[derive(Clone, Debug)]
pub(super) struct WriteCache {
    /// In order of arrival; none overlap.
    extents: Vec<Extent>,
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
    pub(super) place: Place,
}

/// How many of the oldest extents the disk looks at to find the nearest (note on disk models).
const LOOKED_AT: usize = 32;

/// An extent grows no further than this, so that writing it does not block the arm for long (inferred).
const EXTENT_SECTORS_MAX: u32 = 1024;

impl WriteCache {
    pub(super) fn new(spec: &Cache) -> WriteCache {
        WriteCache {
            extents: Vec::new(),
            sectors: 0,
            leaving: 0,
            sectors_max: u64::from(spec.dirty_sectors_max),
        }
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors + self.leaving
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// A write larger than the cache gets in when the cache is empty.
    pub(super) fn has_room(&self, sectors: u32) -> bool {
        self.sectors() == 0 || self.sectors() + u64::from(sectors) <= self.sectors_max
    }

    /// Whether all of the sectors wait here, in one extent.
    pub(super) fn holds(&self, start: Sector, sectors: u32) -> bool {
        let end = start + u64::from(sectors);
        self.extents
            .iter()
            .any(|extent| extent.start <= start && end <= extent.end())
    }

    pub(super) fn put(&mut self, mechanics: &Mechanics, start: Sector, sectors: u32) {
        self.forget(mechanics, start, sectors);
        self.sectors += u64::from(sectors);
        let grown = self
            .extents
            .iter_mut()
            .find(|extent| extent.end() == start && extent.sectors + sectors <= EXTENT_SECTORS_MAX);
        match grown {
            Some(extent) => extent.sectors += sectors,
            None => self.extents.push(Extent {
                start,
                sectors,
                place: mechanics.place(start),
            }),
        }
    }

    /// Takes the extent out that the mechanism reaches first, of those that have waited longest.
    pub(super) fn nearest(&mut self, mechanics: &Mechanics, now: Time, arm: Arm) -> Option<Extent> {
        let (nearest, _) = self
            .extents
            .iter()
            .take(LOOKED_AT)
            .map(|extent| mechanics.positioning_ns(now, arm, &extent.place, true))
            .enumerate()
            .min_by_key(|&(_, time)| time)?;
        let extent = self.extents.remove(nearest);
        self.sectors -= u64::from(extent.sectors);
        self.leaving += u64::from(extent.sectors);
        Some(extent)
    }

    pub(super) fn written(&mut self, extent: Extent) {
        self.leaving -= u64::from(extent.sectors);
    }

    /// These sectors are written anew: what waits of them need not be.
    pub(super) fn forget(&mut self, mechanics: &Mechanics, start: Sector, sectors: u32) {
        let end = start + u64::from(sectors);
        if self
            .extents
            .iter()
            .all(|extent| !extent.overlaps(start, end))
        {
            return;
        }
        let before = std::mem::take(&mut self.extents);
        for extent in before {
            if !extent.overlaps(start, end) {
                self.extents.push(extent);
                continue;
            }
            let front = start.saturating_sub(extent.start) as u32;
            let back = extent.end().saturating_sub(end) as u32;
            self.sectors -= u64::from(extent.sectors - front - back);
            if front > 0 {
                self.extents.push(Extent {
                    sectors: front,
                    ..extent
                });
            }
            if back > 0 {
                self.extents.push(Extent {
                    start: end,
                    sectors: back,
                    place: mechanics.place(end),
                });
            }
        }
    }
}

impl Extent {
    fn end(&self) -> Sector {
        self.start + u64::from(self.sectors)
    }

    fn overlaps(&self, start: Sector, end: Sector) -> bool {
        self.start < end && start < self.end()
    }
}
