//! Large folios: pages of a file that one write has brought into memory, and that count as dirty all together.
//!
//! Sources: `iomap_get_folio` and `iomap_folio_state` of fs/iomap/buffered-io.c, `__filemap_get_folio` of mm/filemap.c,
//! `folio_account_dirtied` and `__folio_end_writeback` of mm/page-writeback.c, from 6.6 on. What is written back is still
//! each dirty block alone. Simplified: a folio stays when its pages are forgotten, and what is read has single pages.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::FileId;
use crate::cache::device::DeviceId;
use crate::cache::pages::Pages;
use events::station::Violation;

/// Folios of more than one page, and what they count as beyond their own dirty pages.
#[derive(Clone, Debug)]
pub(super) struct Folios {
    /// Drives whose files have large ones.
    on: BTreeSet<DeviceId>,
    /// By file and first page.
    folios: BTreeMap<(FileId, u64), Folio>,
    of_devices: Vec<Beyond>,
}

#[derive(Clone, Copy, Debug)]
struct Folio {
    device: DeviceId,
    pages: u64,
    dirty: u64,
    writing: u64,
}

/// Pages that count with a dirty one, or with one that is being written, of the same folio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beyond {
    pub(super) dirty: u64,
    pub(super) writing: u64,
}

/// 2 MiB (`MAX_PAGECACHE_ORDER`).
const PAGES_MAX: u64 = 512;

impl Folio {
    fn beyond(&self) -> Beyond {
        let of = |count: u64| match count {
            0 => 0,
            count => self.pages - count,
        };
        Beyond { dirty: of(self.dirty), writing: of(self.writing) }
    }
}

impl Folios {
    pub(super) fn new(devices: usize) -> Folios {
        Folios { on: BTreeSet::new(), folios: BTreeMap::new(), of_devices: vec![Beyond::default(); devices] }
    }

    /// Files on that drive have large ones.
    pub(super) fn are_on(&mut self, device: DeviceId) {
        self.on.insert(device);
    }

    pub(super) fn beyond(&self, device: DeviceId) -> Beyond {
        self.of_devices[device]
    }

    pub(super) fn beyond_of_all(&self) -> Beyond {
        let sum = |of: fn(&Beyond) -> u64| self.of_devices.iter().map(of).sum();
        Beyond { dirty: sum(|of| of.dirty), writing: sum(|of| of.writing) }
    }

    /// A call writes those pages: what is not in memory gets folios, each as large as what is left of the call and the place
    /// in the file allow.
    pub(super) fn make(&mut self, device: DeviceId, file: FileId, (first, last): (u64, u64), pages: &Pages) {
        if !self.on.contains(&device) {
            return;
        }
        let mut page = first;
        while page <= last {
            if let Some((start, folio)) = self.find(file, page) {
                page = start + folio.pages;
                continue;
            }
            let end = (page..=last).find(|&at| pages.is_cached(file, at) || self.folios.contains_key(&(file, at)));
            let room = (end.unwrap_or(last + 1) - page).min(PAGES_MAX);
            if room < 2 {
                page += 1;
                continue;
            }
            let count = 1 << room.ilog2().min(page.trailing_zeros());
            if count > 1 {
                let folio = Folio { device, pages: count, dirty: 0, writing: 0 };
                self.folios.insert((file, page), folio);
            }
            page += count;
        }
    }

    /// The page is dirty now: for how many that counts.
    pub(super) fn dirtied(&mut self, file: FileId, page: u64) -> u64 {
        self.change(file, page, |folio| {
            folio.dirty += 1;
            if folio.dirty == 1 { folio.pages } else { 0 }
        })
    }

    /// The dirty pages are being written: for how many that counts.
    pub(super) fn start_writing(&mut self, file: FileId, start: u64, pages: u64) -> u64 {
        let each = (start..start + pages).map(|page| {
            self.change(file, page, |folio| {
                folio.dirty -= 1;
                folio.writing += 1;
                if folio.writing == 1 { folio.pages } else { 0 }
            })
        });
        each.sum()
    }

    /// Where the folio of the page ends, if it has several and some are being written.
    pub(super) fn end_of_written(&self, file: FileId, page: u64) -> Option<u64> {
        let (start, folio) = self.find(file, page)?;
        (folio.writing > 0).then_some(start + folio.pages)
    }

    /// The first page of the page's folio and the one behind its last, if it has several.
    pub(super) fn folio_of(&self, file: FileId, page: u64) -> Option<(u64, u64)> {
        let (start, folio) = self.find(file, page)?;
        Some((start, start + folio.pages))
    }

    /// How many of these pages are of the folio of the first, or of none as it is.
    pub(super) fn room(&self, file: FileId, first: u64, count: u64) -> u64 {
        let end = self.folio_of(file, first).map_or_else(
            || {
                let mut others = self.folios.range((file, first)..(file, first + count));
                others.next().map_or(first + count, |(&(_, page), _)| page)
            },
            |(_, end)| end,
        );
        count.min(end - first)
    }

    /// They are written: for how many that counts.
    pub(super) fn written(&mut self, file: FileId, start: u64, pages: u64) -> u64 {
        let each = (start..start + pages).map(|page| {
            self.change(file, page, |folio| {
                folio.writing -= 1;
                if folio.writing == 0 { folio.pages } else { 0 }
            })
        });
        each.sum()
    }

    /// What the change of its folio counts for; 1: it is a page alone.
    fn change(&mut self, file: FileId, page: u64, by: impl FnOnce(&mut Folio) -> u64) -> u64 {
        let Some((start, mut folio)) = self.find(file, page) else {
            return 1;
        };
        let before = folio.beyond();
        let counts = by(&mut folio);
        let (after, of) = (folio.beyond(), &mut self.of_devices[folio.device]);
        of.dirty = of.dirty + after.dirty - before.dirty;
        of.writing = of.writing + after.writing - before.writing;
        self.folios.insert((file, start), folio);
        counts
    }

    #[inline]
    fn find(&self, file: FileId, page: u64) -> Option<(u64, Folio)> {
        if self.folios.is_empty() {
            return None;
        }
        let upto = self.folios.range((file, 0)..=(file, page));
        let (&(_, start), &folio) = upto.last()?;
        (page < start + folio.pages).then_some((start, folio))
    }

    /// Drives have what their folios have.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let mut found = vec![Beyond::default(); self.of_devices.len()];
        for folio in self.folios.values() {
            let of = folio.beyond();
            found[folio.device].dirty += of.dirty;
            found[folio.device].writing += of.writing;
        }
        Violation::unless(found == self.of_devices, "folios", || {
            format!(
                "{found:?} pages count beyond those that are dirty and being written, {:?} of drives",
                self.of_devices
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(dirty: u64, writing: u64) -> Beyond {
        Beyond { dirty, writing }
    }

    #[test]
    fn a_folio_counts_as_a_whole_once_whatever_of_it_is_dirty() {
        let mut folios = Folios::new(1);
        folios.are_on(0);
        folios.make(0, 3, (0, 255), &Pages::new(1000));
        assert_eq!(folios.dirtied(3, 17), 256);
        assert_eq!(folios.dirtied(3, 18), 0);
        assert_eq!(folios.beyond(0), beyond(254, 0));
        assert_eq!(folios.start_writing(3, 17, 2), 256);
        assert_eq!(folios.beyond(0), beyond(0, 254));
        assert_eq!(folios.dirtied(3, 17), 256);
        assert_eq!(folios.written(3, 17, 1), 0);
        assert_eq!(folios.written(3, 18, 1), 256);
        assert_eq!(folios.beyond_of_all(), beyond(255, 0));
        assert_eq!(folios.dirtied(3, 256), 1, "a page alone");
        assert!(folios.check().is_ok());
    }

    #[test]
    fn folios_are_as_large_as_call_and_place_allow_and_leave_alone_what_is_in_memory() {
        let mut folios = Folios::new(1);
        let mut pages = Pages::new(1000);
        folios.make(0, 0, (0, 63), &pages);
        assert!(folios.find(0, 0).is_none(), "the drive's files have none");
        folios.are_on(0);
        pages.write_to(0, 9);
        folios.make(0, 0, (2, 11), &pages);
        let of = |folios: &Folios, page| folios.find(0, page).map(|(start, of)| (start, of.pages));
        assert_eq!(of(&folios, 3), Some((2, 2)));
        assert_eq!(of(&folios, 7), Some((4, 4)));
        assert_eq!(of(&folios, 8), None);
        assert_eq!(of(&folios, 9), None);
        assert_eq!(of(&folios, 10), Some((10, 2)));
        folios.make(0, 0, (0, 63), &pages);
        assert_eq!(of(&folios, 0), Some((0, 2)));
        assert_eq!(of(&folios, 5), Some((4, 4)), "it stays as it is");
        assert_eq!(of(&folios, 63), Some((32, 32)));
    }
}
