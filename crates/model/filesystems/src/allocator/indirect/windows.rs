//! ext3's reservation windows (2.6.10 on, read at 2.6.11-rc5): where a file may allocate and others keep away from.

use std::collections::BTreeMap;

use crate::allocator::Full;
use crate::allocator::indirect::search;
use crate::allocator::space::{GROUP_BLOCKS, Space};
use memory::cache::FileId;

const SIZE_FIRST: u64 = 8;
const SIZE_MAX: u64 = 1024;

/// Of all files: first block to last block and owner. They never overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    by_start: BTreeMap<u64, (u64, FileId)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    /// First and last block.
    window: Option<(u64, u64)>,
    size: u64,
    /// Blocks that came from the window.
    hits: u64,
}

impl Default for Reservation {
    fn default() -> Reservation {
        Reservation { window: None, size: SIZE_FIRST, hits: 0 }
    }
}

impl Windows {
    /// `ext3_try_to_allocate_with_rsv`.
    pub(super) fn take(
        &mut self,
        space: &mut Space,
        file: FileId,
        own: &mut Reservation,
        goal: u64,
    ) -> Result<u64, Full> {
        let inside = own
            .window
            .filter(|&(first, last)| (first..=last).contains(&goal))
            .and_then(|(_, last)| space.next_free(goal, last + 1));
        let block = match inside.or_else(|| self.renew(space, file, own, goal)) {
            Some(block) => {
                own.hits += 1;
                block
            }
            // The last resort is to do without a window.
            None => search::find(space, goal)?,
        };
        space.take(block);
        Ok(block)
    }

    /// `ext3_discard_reservation`.
    pub(super) fn discard(&mut self, own: &mut Reservation) {
        if let Some((first, _)) = own.window.take() {
            self.by_start.remove(&first);
        }
        *own = Reservation::default();
    }

    /// A new window from the goal on, else in the groups after it (`alloc_new_reservation`); its first free block.
    fn renew(&mut self, space: &Space, file: FileId, own: &mut Reservation, goal: u64) -> Option<u64> {
        if let Some((first, last)) = own.window.take() {
            self.by_start.remove(&first);
            if 2 * own.hits > last - first + 1 {
                own.size = (own.size * 2).min(SIZE_MAX);
            }
        }
        own.hits = 0;
        let home = goal.min(space.blocks() - 1) / GROUP_BLOCKS;
        let (first, free) = (0..=space.groups()).find_map(|distance| {
            let group = (home + distance) % space.groups();
            let from = if distance == 0 { goal } else { group * GROUP_BLOCKS };
            self.gap(space, from, space.group_end(group * GROUP_BLOCKS), own.size)
        })?;
        let last = first + own.size - 1;
        own.window = Some((first, last));
        self.by_start.insert(first, (last, file));
        Some(free)
    }

    /// The first gap between windows that begins in `from..end`, has that size and a free block
    /// (`find_next_reservable_window`): its start, and the block.
    fn gap(&self, space: &Space, from: u64, end: u64, size: u64) -> Option<(u64, u64)> {
        let mut at = from;
        while at < end {
            let before = self.by_start.range(..=at).next_back();
            if let Some((_, &(last, _))) = before
                && last >= at
            {
                at = last + 1;
            } else if let Some((_, &(last, _))) = self.by_start.range(at..at + size).next() {
                at = last + 1;
            } else {
                // A free block beyond this gap is where the next one is looked for.
                let free = space.next_free(at, end)?;
                if free < at + size {
                    return Some((at, free));
                }
                at = free;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequential(count: u64) -> Vec<u64> {
        let mut space = Space::new(GROUP_BLOCKS, 0);
        let (mut windows, mut own) = (Windows::default(), Reservation::default());
        let mut sizes = Vec::new();
        let mut goal = 0;
        for _ in 0..count {
            goal = windows.take(&mut space, 0, &mut own, goal).unwrap() + 1;
            let (first, last) = own.window.unwrap();
            if sizes.last() != Some(&(last - first + 1)) {
                sizes.push(last - first + 1);
            }
        }
        sizes
    }

    #[test]
    fn a_window_begins_with_8_blocks_and_doubles_up_to_1024_while_more_than_half_of_it_is_used() {
        assert_eq!(sequential(3000), [8, 16, 32, 64, 128, 256, 512, 1024]);
    }

    #[test]
    fn windows_do_not_overlap_and_each_file_allocates_in_its_own() {
        let mut space = Space::new(GROUP_BLOCKS, 0);
        let mut windows = Windows::default();
        let (mut a, mut b) = (Reservation::default(), Reservation::default());
        assert_eq!(windows.take(&mut space, 1, &mut a, 0), Ok(0));
        assert_eq!(windows.take(&mut space, 2, &mut b, 1), Ok(8));
        assert_eq!(windows.take(&mut space, 1, &mut a, 1), Ok(1));
        assert_eq!(windows.take(&mut space, 2, &mut b, 9), Ok(9));
        assert_eq!(space.free_blocks(), GROUP_BLOCKS - 4, "no bit is set for a window");
    }

    #[test]
    fn a_discarded_window_is_free_for_others() {
        let mut space = Space::new(GROUP_BLOCKS, 0);
        let mut windows = Windows::default();
        let (mut a, mut b) = (Reservation::default(), Reservation::default());
        assert_eq!(windows.take(&mut space, 1, &mut a, 0), Ok(0));
        windows.discard(&mut a);
        assert_eq!(windows.take(&mut space, 2, &mut b, 1), Ok(1));
    }

    #[test]
    fn without_room_for_a_window_blocks_are_given_out_without_one() {
        let mut space = Space::new(20, 0);
        let mut windows = Windows::default();
        let mut own = [Reservation::default(); 5];
        let taken: Vec<u64> = (0..20u32)
            .map(|number| {
                let own = &mut own[(number % 5) as usize];
                windows.take(&mut space, number % 5, own, 0).unwrap()
            })
            .collect();
        let mut sorted = taken.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<u64>>());
        assert_eq!(windows.take(&mut space, 0, &mut own[0], 0), Err(Full));
    }
}
