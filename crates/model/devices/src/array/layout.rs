//! Which disk holds what: chunks, stripes, parity, copies.

use serde::Deserialize;

use crate::limits::whole_sectors;
use block_layer::{SECTOR_BYTES, Sector};
use events::SpecError;
use events::spec_error::within;

/// How data, parity and copies are spread over the disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayoutSpec {
    /// What the chunks of a stripe hold.
    pub level: Level,
    /// Disks of all groups together.
    #[schemars(range(min = 1, max = 4096))]
    pub disks: u32,
    /// The disks are divided into this many groups of equal size; extents go round them.
    #[schemars(range(min = 1))]
    pub groups: u32,
    /// Chunks of a stripe, parity or copies included: n for RAID 5 of (n-1)+1, 2 for a RAID 1 pair. With more disks in
    /// a group, stripes go round them.
    #[schemars(range(min = 1))]
    pub stripe_disks: u32,
    /// What lies on one disk before the next one follows; whole sectors.
    #[schemars(range(min = SECTOR_BYTES, max = 1 << 30))]
    pub chunk_bytes: u64,
    /// This many stripes, one behind the other, are on the same disks.
    #[schemars(range(min = 1, max = 1 << 20))]
    pub extent_stripes: u32,
}

/// RAID levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Data only.
    Raid0,
    /// A chunk and its copies.
    Raid1,
    /// Data and one chunk of parity, which rotates over the disks.
    Raid5,
}

#[derive(Clone, Debug)]
pub(super) struct Layout {
    level: Level,
    groups: u64,
    group_disks: u64,
    /// Chunks of a stripe, and those of them that hold data.
    width: u64,
    data: u64,
    chunk: u64,
    extent_stripes: u64,
    sectors: Sector,
}

/// Consecutive sectors of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) disk: u32,
    pub(super) start: Sector,
    pub(super) sectors: u32,
}

/// Consecutive sectors of a stripe's data.
pub(super) type Range = std::ops::Range<u64>;

impl Layout {
    pub(super) fn new(spec: &LayoutSpec, disk_sectors: Sector) -> Layout {
        let width = u64::from(spec.stripe_disks);
        let mut layout = Layout {
            level: spec.level,
            groups: u64::from(spec.groups),
            group_disks: u64::from(spec.disks / spec.groups),
            width,
            data: match spec.level {
                Level::Raid0 => width,
                Level::Raid1 => 1,
                Level::Raid5 => width - 1,
            },
            chunk: spec.chunk_bytes / SECTOR_BYTES,
            extent_stripes: u64::from(spec.extent_stripes),
            sectors: 0,
        };
        let extents_of_disk = disk_sectors / (layout.chunk * layout.extent_stripes);
        let extents_of_group = extents_of_disk * layout.group_disks / width;
        layout.sectors = extents_of_group * layout.groups * layout.extent_stripes * layout.stripe_sectors();
        layout
    }

    pub(super) fn sectors(&self) -> Sector {
        self.sectors
    }

    /// The sectors of data in a stripe.
    #[inline]
    pub(super) fn stripe_sectors(&self) -> u64 {
        self.data * self.chunk
    }

    /// What to read for consecutive sectors. `takes_copy` chooses the second of two copies; pieces of a disk
    /// that only parity lies between become one.
    pub(super) fn read(
        &self,
        start: Sector,
        sectors: u64,
        takes_copy: impl Fn(&Piece, &Piece) -> bool,
        pieces: &mut Vec<Piece>,
    ) {
        let end = start + sectors;
        let mut at = start;
        while at < end {
            let here = (self.chunk - at % self.chunk).min(end - at);
            let (stripe, inside) = (at / self.stripe_sectors(), at % self.stripe_sectors());
            let mut piece = self.data_piece(stripe, inside..inside + here, 0);
            if self.level == Level::Raid1 {
                let copy = self.data_piece(stripe, inside..inside + here, 1);
                if takes_copy(&piece, &copy) {
                    piece = copy;
                }
            }
            let before = pieces.iter_mut().rev().find(|before| before.disk == piece.disk);
            match before {
                Some(before) if before.leads_to(&piece, self.chunk) => {
                    before.sectors = (piece.start + u64::from(piece.sectors) - before.start) as u32;
                }
                _ => pieces.push(piece),
            }
            at += here;
        }
    }

    /// What to read before these ranges of a stripe can be written, and what to write then. With RAID 5, the less is
    /// read: the old data and parity, or what the stripe holds besides. A full stripe needs nothing.
    pub(super) fn write(&self, stripe: u64, ranges: &[Range], reads: &mut Vec<Piece>, writes: &mut Vec<Piece>) {
        for chunk in 0..self.data {
            for range in self.within_chunk(chunk, ranges) {
                writes.push(self.data_piece(stripe, range.clone(), 0));
                if self.level == Level::Raid1 {
                    writes.push(self.data_piece(stripe, range, 1));
                }
            }
        }
        if self.level != Level::Raid5 {
            return;
        }
        let offsets = || {
            (0..self.data).flat_map(|chunk| {
                let first = chunk * self.chunk;
                self.within_chunk(chunk, ranges).map(move |range| range.start - first..range.end - first)
            })
        };
        let from = offsets().map(|range| range.start).min().unwrap_or(0);
        let to = offsets().map(|range| range.end).max().unwrap_or(0);
        let parity = self.piece(stripe, self.parity_slot(stripe), from..to);
        let besides =
            || (0..self.data).filter(|&chunk| !self.covers(ranges, chunk * self.chunk + from..chunk * self.chunk + to));
        if besides().count() <= writes.len() + 1 {
            reads.extend(besides().map(|chunk| {
                let first = chunk * self.chunk;
                self.data_piece(stripe, first + from..first + to, 0)
            }));
        } else {
            reads.extend_from_slice(writes);
            reads.push(parity);
        }
        writes.push(parity);
    }

    fn within_chunk<'a>(&self, chunk: u64, ranges: &'a [Range]) -> impl Iterator<Item = Range> + 'a {
        let (first, end) = (chunk * self.chunk, (chunk + 1) * self.chunk);
        ranges
            .iter()
            .map(move |range| range.start.max(first)..range.end.min(end))
            .filter(|range| range.start < range.end)
    }

    fn covers(&self, ranges: &[Range], wanted: Range) -> bool {
        ranges.iter().any(|range| range.start <= wanted.start && wanted.end <= range.end)
    }

    /// A range within one chunk of a stripe's data.
    #[inline]
    fn data_piece(&self, stripe: u64, range: Range, copy: u64) -> Piece {
        let (chunk, offset) = (range.start / self.chunk, range.start % self.chunk);
        let slot = match self.level {
            Level::Raid0 => chunk,
            Level::Raid1 => copy,
            // Left-symmetric: data begin behind the parity.
            Level::Raid5 => (self.parity_slot(stripe) + 1 + chunk) % self.width,
        };
        self.piece(stripe, slot, offset..offset + (range.end - range.start))
    }

    #[inline]
    fn parity_slot(&self, stripe: u64) -> u64 {
        self.width - 1 - stripe % self.width
    }

    /// The stripe's slot-th chunk: extents go round the groups, and their chunks round the disks of their group.
    #[inline]
    fn piece(&self, stripe: u64, slot: u64, offsets: Range) -> Piece {
        let (extent, inside) = (stripe / self.extent_stripes, stripe % self.extent_stripes);
        let (group, of_group) = (extent % self.groups, extent / self.groups);
        let place = of_group * self.width + slot;
        let row = place / self.group_disks * self.extent_stripes + inside;
        Piece {
            disk: (group * self.group_disks + place % self.group_disks) as u32,
            start: row * self.chunk + offsets.start,
            sectors: (offsets.end - offsets.start) as u32,
        }
    }
}

impl Piece {
    fn leads_to(&self, next: &Piece, gap_max: u64) -> bool {
        let end = self.start + u64::from(self.sectors);
        end <= next.start && next.start - end <= gap_max
    }
}

impl LayoutSpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        within("disks", u64::from(self.disks), 1, 4096)?;
        within("groups", u64::from(self.groups), 1, u64::from(self.disks))?;
        if !self.disks.is_multiple_of(self.groups) {
            let what = format!("expected a divisor of disks, {}, found {}", self.disks, self.groups);
            return Err(SpecError::of("groups", what));
        }
        let (least, most) = match self.level {
            Level::Raid0 => (1, self.disks / self.groups),
            Level::Raid1 => (2, 2),
            Level::Raid5 => (3, self.disks / self.groups),
        };
        within("stripe_disks", u64::from(self.stripe_disks), least, u64::from(most))?;
        if self.stripe_disks > self.disks / self.groups {
            let what = "a stripe needs as many disks in each group";
            return Err(SpecError::of("stripe_disks", what));
        }
        whole_sectors("chunk_bytes", self.chunk_bytes)?;
        within("chunk_bytes", self.chunk_bytes, SECTOR_BYTES, 1 << 30)?;
        within("extent_stripes", u64::from(self.extent_stripes), 1, 1 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn layout(level: Level, disks: u32, groups: u32, stripe_disks: u32, extent_stripes: u32) -> Layout {
        let spec = LayoutSpec { level, disks, groups, stripe_disks, chunk_bytes: 4 * 512, extent_stripes };
        Layout::new(&spec, 240)
    }

    fn written(layout: &Layout, range: Range) -> (Vec<Piece>, Vec<Piece>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        layout.write(7, std::slice::from_ref(&range), &mut reads, &mut writes);
        (reads, writes)
    }

    #[test]
    fn a_small_write_to_raid_5_costs_four_and_a_full_stripe_one_more_than_its_data() {
        let layout = layout(Level::Raid5, 5, 1, 5, 1);
        let (reads, writes) = written(&layout, 5..7);
        assert_eq!((reads.len(), writes.len()), (2, 2));
        let (reads, writes) = written(&layout, 0..16);
        assert_eq!((reads.len(), writes.len()), (0, 5));
        // Three of four: reading the fourth is less than reading all that is written.
        let (reads, writes) = written(&layout, 0..12);
        assert_eq!((reads.len(), writes.len()), (1, 4));
    }

    #[test]
    fn a_write_to_raid_1_goes_to_both_and_a_read_to_one() {
        let layout = layout(Level::Raid1, 4, 1, 2, 1);
        let (reads, writes) = written(&layout, 0..4);
        assert_eq!((reads.len(), writes.len()), (0, 2));
        let mut pieces = Vec::new();
        layout.read(0, 4, |_, _| true, &mut pieces);
        assert_eq!(pieces[0].disk, 1);
    }

    #[test]
    fn a_long_read_is_one_piece_for_each_disk() {
        let layout = layout(Level::Raid5, 5, 1, 5, 1);
        let mut pieces = Vec::new();
        layout.read(0, 16 * 10, |_, _| false, &mut pieces);
        assert_eq!(pieces.len(), 5);
    }

    proptest! {
        #[test]
        fn every_sector_has_a_place_of_its_own_on_the_disks(
            (level, disks, groups, stripe_disks) in prop::sample::select(vec![
                (Level::Raid0, 6, 2, 3), (Level::Raid0, 5, 1, 2), (Level::Raid1, 4, 1, 2), (Level::Raid1, 6, 2, 2),
                (Level::Raid5, 12, 1, 5), (Level::Raid5, 10, 2, 5), (Level::Raid5, 3, 1, 3),
            ]),
            extent_stripes in 1u32..5,
        ) {
            let layout = layout(level, disks, groups, stripe_disks, extent_stripes);
            let mut places = BTreeSet::new();
            let stripes = layout.sectors() / layout.stripe_sectors();
            prop_assert!(stripes > 0);
            for stripe in 0..stripes {
                let (mut reads, mut writes) = (Vec::new(), Vec::new());
                let everything = 0..layout.stripe_sectors();
                layout.write(stripe, std::slice::from_ref(&everything), &mut reads, &mut writes);
                prop_assert!(reads.is_empty());
                prop_assert_eq!(writes.len(), stripe_disks as usize);
                let of_stripe: BTreeSet<u32> = writes.iter().map(|piece| piece.disk).collect();
                prop_assert_eq!(of_stripe.len(), stripe_disks as usize, "each chunk on a disk of its own");
                for piece in writes {
                    prop_assert!(piece.disk < disks && piece.start + 4 <= 240);
                    prop_assert!(places.insert((piece.disk, piece.start)));
                }
            }
        }
    }
}
