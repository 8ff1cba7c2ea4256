//! Pages of processes: where each one is, and the two lists on which a kernel looks for pages to take away.

use super::PageNumber;
use super::slots::{SlotNumber, Slots};
use events::station::Violation;

pub(super) const PAGE_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageState {
    /// Never touched, or its process has ended.
    Nowhere,
    /// In memory, and in its process's page table.
    Mapped,
    /// In memory, in the swap cache only.
    Cached,
    /// On its way into memory.
    Reading,
    /// In its slot only.
    Swapped,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) place: PageState,
    pub(super) slot: Option<SlotNumber>,
    /// Touched since the last look: the page table's bit.
    pub(super) young: bool,
    /// Not as in its slot.
    pub(super) dirty: bool,
    /// Seen in use: the kernel's own bit.
    pub(super) referenced: bool,
    /// On its way into its slot.
    pub(super) writing: bool,
    /// Its process has ended: free as soon as it is on its way no more.
    orphaned: bool,
    list: Option<List>,
    newer: PageNumber,
    older: PageNumber,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Active,
    Inactive,
}

const NONE: PageNumber = PageNumber::MAX;

#[derive(Clone, Copy, Debug)]
struct Ends {
    newest: PageNumber,
    oldest: PageNumber,
    pages: u64,
}

/// What went to and came from the swap area, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) read: u64,
    pub(super) written: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Memory {
    pages: Vec<Page>,
    lists: [Ends; 2],
    pub(super) slots: Slots,
    frames: u64,
    resident: u64,
    resident_max: u64,
    pub(super) traffic: Traffic,
}

impl Memory {
    pub(super) fn new(frames: u64, pages: u32, slots: Slots) -> Memory {
        let page = Page {
            place: PageState::Nowhere,
            slot: None,
            young: false,
            dirty: false,
            referenced: false,
            writing: false,
            orphaned: false,
            list: None,
            newer: NONE,
            older: NONE,
        };
        let empty = Ends { newest: NONE, oldest: NONE, pages: 0 };
        Memory {
            pages: vec![page; pages as usize],
            lists: [empty; 2],
            slots,
            frames,
            resident: 0,
            resident_max: 0,
            traffic: Traffic::default(),
        }
    }

    #[inline]
    pub(super) fn page(&self, number: PageNumber) -> &Page {
        &self.pages[number as usize]
    }

    #[inline]
    pub(super) fn page_mut(&mut self, number: PageNumber) -> &mut Page {
        &mut self.pages[number as usize]
    }

    /// None if processes have more than they may keep.
    pub(super) fn free(&self) -> u64 {
        self.frames.saturating_sub(self.resident)
    }

    /// Pages in memory.
    pub(super) fn resident(&self) -> u64 {
        self.resident
    }

    pub(super) fn resident_max(&self) -> u64 {
        self.resident_max
    }

    /// They may have this many frames from now on. Returns how many they might have before.
    pub(super) fn set_frames(&mut self, frames: u64) -> u64 {
        std::mem::replace(&mut self.frames, frames)
    }

    pub(super) fn on(&self, list: List) -> u64 {
        self.lists[list as usize].pages
    }

    pub(super) fn oldest(&self, list: List) -> Option<PageNumber> {
        let oldest = self.lists[list as usize].oldest;
        (oldest != NONE).then_some(oldest)
    }

    pub(super) fn is_active(&self, number: PageNumber) -> bool {
        self.page(number).list == Some(List::Active)
    }

    /// To the new end of the list, from wherever it is.
    pub(super) fn put_newest(&mut self, number: PageNumber, list: List) {
        self.take_off(number);
        let newest = self.lists[list as usize].newest;
        let page = self.page_mut(number);
        (page.list, page.newer, page.older) = (Some(list), NONE, newest);
        let ends = &mut self.lists[list as usize];
        (ends.newest, ends.pages) = (number, ends.pages + 1);
        if newest == NONE {
            ends.oldest = number;
        } else {
            self.page_mut(newest).newer = number;
        }
    }

    /// To the old end of the list, where pages are taken from.
    pub(super) fn put_oldest(&mut self, number: PageNumber, list: List) {
        self.take_off(number);
        let oldest = self.lists[list as usize].oldest;
        let page = self.page_mut(number);
        (page.list, page.newer, page.older) = (Some(list), oldest, NONE);
        let ends = &mut self.lists[list as usize];
        (ends.oldest, ends.pages) = (number, ends.pages + 1);
        if oldest == NONE {
            ends.newest = number;
        } else {
            self.page_mut(oldest).older = number;
        }
    }

    /// `mark_page_accessed` of 2.4 and 2.5: what is seen in use twice becomes active.
    pub(super) fn mark_accessed(&mut self, number: PageNumber) {
        if self.page(number).referenced && !self.is_active(number) {
            self.put_newest(number, List::Active);
            self.page_mut(number).referenced = false;
        } else {
            self.page_mut(number).referenced = true;
        }
    }

    /// A first touch: a page of zeros, dirty, on no list yet.
    pub(super) fn map_new(&mut self, number: PageNumber) {
        self.take_frame();
        let page = self.page_mut(number);
        debug_assert_eq!(page.place, PageState::Nowhere);
        (page.place, page.young, page.dirty) = (PageState::Mapped, true, true);
    }

    /// Maps a page in the swap cache again.
    pub(super) fn map_again(&mut self, number: PageNumber) {
        let half_full = self.slots.is_half_full();
        let page = self.page_mut(number);
        debug_assert_eq!(page.place, PageState::Cached);
        (page.place, page.young) = (PageState::Mapped, true);
        if half_full
            && !page.writing
            && let Some(slot) = page.slot.take()
        {
            page.dirty = true;
            self.slots.give_back(slot);
        }
    }

    /// Out of its process's page table, into the swap cache. False: no slot is left.
    pub(super) fn unmap(&mut self, number: PageNumber) -> bool {
        if self.page(number).slot.is_none() {
            let Some(slot) = self.slots.take(number) else {
                return false;
            };
            let page = self.page_mut(number);
            (page.slot, page.dirty) = (Some(slot), true);
        }
        self.page_mut(number).place = PageState::Cached;
        true
    }

    pub(super) fn begin_write(&mut self, number: PageNumber) {
        let page = self.page_mut(number);
        debug_assert!(page.slot.is_some() && page.dirty && !page.writing);
        (page.writing, page.dirty) = (true, false);
        self.traffic.written += 1;
    }

    /// False: nobody has the page any more.
    pub(super) fn end_write(&mut self, number: PageNumber) -> bool {
        self.page_mut(number).writing = false;
        !self.bury(number)
    }

    pub(super) fn begin_read(&mut self, number: PageNumber) {
        self.take_frame();
        let page = self.page_mut(number);
        debug_assert_eq!(page.place, PageState::Swapped);
        (page.place, page.young, page.dirty) = (PageState::Reading, false, false);
        self.put_newest(number, List::Inactive);
        self.traffic.read += 1;
    }

    /// False: nobody has the page any more.
    pub(super) fn end_read(&mut self, number: PageNumber) -> bool {
        self.page_mut(number).place = PageState::Cached;
        !self.bury(number)
    }

    /// The frame of a clean page in the swap cache is free again.
    pub(super) fn release(&mut self, number: PageNumber) {
        debug_assert!(self.is_freeable(number));
        self.take_off(number);
        let page = self.page_mut(number);
        (page.place, page.referenced) = (PageState::Swapped, false);
        self.resident -= 1;
    }

    pub(super) fn is_freeable(&self, number: PageNumber) -> bool {
        let page = self.page(number);
        page.place == PageState::Cached && !page.dirty && !page.writing
    }

    /// The page's process has ended.
    pub(super) fn abandon(&mut self, number: PageNumber) {
        let page = self.page_mut(number);
        if page.place != PageState::Nowhere {
            page.orphaned = true;
            self.bury(number);
        }
    }

    /// Each page is in one place, the frames and slots add up, and the lists have what is in memory.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let violated = |what: String| Err(Violation { station: "swap".to_owned(), what });
        let in_memory = |page: &&Page| matches!(page.place, PageState::Mapped | PageState::Cached | PageState::Reading);
        let resident = self.pages.iter().filter(in_memory).count() as u64;
        if resident != self.resident {
            let counted = self.resident;
            return violated(format!("{resident} pages are in memory, {counted} counted"));
        }
        let listed = self.on(List::Active) + self.on(List::Inactive);
        if listed != resident {
            return violated(format!("{listed} pages on lists, {resident} in memory"));
        }
        let slotted = self.pages.iter().filter(|page| page.slot.is_some()).count() as u32;
        if slotted != self.slots.used() {
            let used = self.slots.used();
            return violated(format!("{slotted} pages with slots, {used} slots in use"));
        }
        for (number, page) in (0..).zip(&self.pages) {
            let owns = page.slot.is_none_or(|slot| self.slots.owner(slot) == Some(number));
            let has_slot = page.slot.is_some() || matches!(page.place, PageState::Nowhere | PageState::Mapped);
            let moves = page.writing && !matches!(page.place, PageState::Mapped | PageState::Cached);
            if !owns || !has_slot || moves || page.list.is_some() != in_memory(&page) {
                return violated(format!("page {number} is nowhere in order: {page:?}"));
            }
        }
        Ok(())
    }

    fn take_frame(&mut self) {
        assert!(self.free() > 0, "who takes a frame has made sure of one");
        self.resident += 1;
        self.resident_max = self.resident_max.max(self.resident);
    }

    fn take_off(&mut self, number: PageNumber) {
        let Page { list, newer, older, .. } = *self.page(number);
        let Some(list) = list else {
            return;
        };
        if newer == NONE {
            self.lists[list as usize].newest = older;
        } else {
            self.page_mut(newer).older = older;
        }
        if older == NONE {
            self.lists[list as usize].oldest = newer;
        } else {
            self.page_mut(older).newer = newer;
        }
        self.lists[list as usize].pages -= 1;
        self.page_mut(number).list = None;
    }

    /// Frees what an orphan still has, unless it is on its way.
    fn bury(&mut self, number: PageNumber) -> bool {
        let page = *self.page(number);
        if !page.orphaned || page.writing || page.place == PageState::Reading {
            return false;
        }
        self.take_off(number);
        if page.place != PageState::Swapped {
            self.resident -= 1;
        }
        if let Some(slot) = page.slot {
            self.slots.give_back(slot);
        }
        let page = self.page_mut(number);
        (page.place, page.slot, page.orphaned) = (PageState::Nowhere, None, false);
        true
    }
}
