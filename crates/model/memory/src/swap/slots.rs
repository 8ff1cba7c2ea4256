//! The slots of a swap area, a page each, and how they are given out.
//!
//! As `scan_swap_map` of 2.4 and 2.5 (`mm/swapfile.c`): 256 in a row, from the first run of 256 free ones on; if there
//! is no such run, the first free one. The first slot of the area is its header.

use super::PageNumber;

pub(super) type SlotNumber = u32;

const RUN: u32 = 256;

#[derive(Clone, Debug)]
pub(super) struct Slots {
    owners: Vec<Option<PageNumber>>,
    /// No slot before it is free.
    lowest: SlotNumber,
    next: SlotNumber,
    left_of_run: u32,
    used: u32,
    used_max: u32,
}

impl Slots {
    /// The slots of an area of `pages` pages, its header among them.
    pub(super) fn new(pages: u32) -> Slots {
        Slots { owners: vec![None; pages as usize], lowest: 1, next: 1, left_of_run: 0, used: 0, used_max: 0 }
    }

    /// A slot for the page; None: all are in use.
    pub(super) fn take(&mut self, page: PageNumber) -> Option<SlotNumber> {
        let slot = self.next_of_run().or_else(|| self.begin_run())?;
        self.owners[slot as usize] = Some(page);
        self.next = slot + 1;
        self.left_of_run -= 1;
        self.used += 1;
        self.used_max = self.used_max.max(self.used);
        Some(slot)
    }

    pub(super) fn give_back(&mut self, slot: SlotNumber) {
        let owner = self.owners[slot as usize].take();
        assert!(owner.is_some(), "a slot is given back once");
        self.lowest = self.lowest.min(slot);
        self.used -= 1;
    }

    pub(super) fn owner(&self, slot: SlotNumber) -> Option<PageNumber> {
        self.owners.get(slot as usize).copied().flatten()
    }

    /// The slots that are read together with one: those in use from the start of its aligned cluster of
    /// 2^`page_cluster` to the first that is not, as `valid_swaphandles` finds them, and itself.
    pub(super) fn around(&self, slot: SlotNumber, page_cluster: u32) -> impl Iterator<Item = SlotNumber> {
        let first = ((slot >> page_cluster) << page_cluster).max(1);
        let end = ((slot >> page_cluster) + 1) << page_cluster;
        let in_use = (first..end).take_while(|&slot| self.owner(slot).is_some()).count() as u32;
        let own = (slot >= first + in_use).then_some(slot);
        (first..first + in_use).chain(own)
    }

    /// From here on pages give up their slots when they are read back (`vm_swap_full`).
    pub(super) fn is_half_full(&self) -> bool {
        self.used * 2 > self.owners.len() as u32 - 1
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }

    pub(super) fn used_max(&self) -> u32 {
        self.used_max
    }

    fn next_of_run(&self) -> Option<SlotNumber> {
        if self.left_of_run == 0 {
            return None;
        }
        self.first_free(self.next)
    }

    fn begin_run(&mut self) -> Option<SlotNumber> {
        self.lowest = self.first_free(self.lowest)?;
        self.left_of_run = RUN;
        let mut free = 0;
        for slot in self.lowest..self.owners.len() as u32 {
            free = if self.owners[slot as usize].is_none() { free + 1 } else { 0 };
            if free == RUN {
                return Some(slot + 1 - RUN);
            }
        }
        Some(self.lowest)
    }

    fn first_free(&self, from: SlotNumber) -> Option<SlotNumber> {
        (from..self.owners.len() as u32).find(|&slot| self.owners[slot as usize].is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_come_in_a_row_after_the_header() {
        let mut slots = Slots::new(1000);
        let taken: Vec<u32> = (0..300).filter_map(|page| slots.take(page)).collect();
        assert_eq!(taken, (1..=300).collect::<Vec<u32>>());
    }

    #[test]
    fn holes_are_used_when_no_run_is_left() {
        let mut slots = Slots::new(400);
        for page in 0..399 {
            slots.take(page).unwrap();
        }
        assert_eq!(slots.take(399), None);
        slots.give_back(17);
        slots.give_back(300);
        assert_eq!([slots.take(1), slots.take(2)], [Some(17), Some(300)]);
    }

    #[test]
    fn a_cluster_ends_at_the_first_free_slot_but_has_the_one_that_is_asked_for() {
        let mut slots = Slots::new(100);
        for page in 0..20 {
            slots.take(page).unwrap();
        }
        slots.give_back(10);
        let around = |slot| slots.around(slot, 3).collect::<Vec<u32>>();
        assert_eq!(around(2), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(around(9), [8, 9]);
        assert_eq!(around(12), [8, 9, 12]);
        assert_eq!(slots.around(12, 0).collect::<Vec<u32>>(), [12]);
    }

    proptest! {
        #[test]
        fn no_slot_has_two_owners_and_none_is_lost(steps in prop::collection::vec(any::<(bool, u8)>(), 0..600)) {
            let mut slots = Slots::new(300);
            let mut held: Vec<u32> = Vec::new();
            for (page, (takes, which)) in (0..).zip(steps) {
                if takes {
                    match slots.take(page) {
                        Some(slot) => {
                            prop_assert!(!held.contains(&slot) && slot > 0);
                            held.push(slot);
                        }
                        None => prop_assert_eq!(held.len(), 299),
                    }
                } else if !held.is_empty() {
                    slots.give_back(held.swap_remove(usize::from(which) % held.len()));
                }
                prop_assert_eq!(slots.used() as usize, held.len());
            }
        }
    }
}
