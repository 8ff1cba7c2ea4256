//! Read-ahead of 2.5 as it is generally known: a current window and one ahead (`mm/readahead.c` of 2.5.59, not read:
//! inferred).
//!
//! Hits lengthen the next window by two pages, misses shorten it by a quarter. The first read of a file at its start is
//! taken for one of all of it: half the largest window at once.

use super::two_windows::TwoWindows;
use super::{ReaderPage, Window};

/// `VM_MIN_READAHEAD`, 16 KiB.
const PAGES_MIN: u64 = 4;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cache) struct Stream {
    windows: TwoWindows,
    /// 0: nothing has been read yet.
    next_size: u64,
    previous: u64,
}

impl Stream {
    /// `page_cache_readahead`.
    pub(super) fn next(&mut self, found: ReaderPage, most: u64) -> Option<Window> {
        let page = found.page;
        if most == 0 || (page == self.previous && self.next_size != 0) {
            return None;
        }
        if self.next_size == 0 && page == 0 {
            self.next_size = (most / 2).max(1);
            return Some(self.windows.renew(page, self.next_size));
        }
        self.previous = page;
        if self.windows.are_hit_by(page) {
            self.next_size += 2;
        } else {
            self.next_size -= self.next_size / 4;
        }
        self.next_size = self.next_size.clamp(PAGES_MIN.min(most), most);

        if self.windows.holds(page) {
            return self.windows.look_ahead(self.next_size);
        }
        if self.windows.enter_ahead(page) {
            return None;
        }
        Some(self.windows.renew(page, self.next_size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::read_ahead::tests::found;

    fn windows(stream: &mut Stream, pages: std::ops::Range<u64>) -> Vec<(u64, u64, u64)> {
        pages
            .filter_map(|page| {
                let window = stream.next(found(page), 32)?;
                Some((page, window.start, window.pages))
            })
            .collect()
    }

    #[test]
    fn a_file_read_from_its_start_has_half_the_largest_window_then_one_ahead_while_it_uses_the_current() {
        let mut stream = Stream::default();
        let asked = windows(&mut stream, 0..100);
        // At 0 half of 32; with page 1 the window ahead; then with each window's second page.
        assert_eq!(asked[..4], [(0, 0, 16), (1, 16, 18), (17, 34, 32), (35, 66, 32)]);
    }

    #[test]
    fn random_reads_shrink_to_16_kib() {
        let mut stream = Stream::default();
        windows(&mut stream, 0..100);
        let sizes: Vec<u64> = (1..12).map(|seek| stream.next(found(seek * 10_000), 32).unwrap().pages).collect();
        assert_eq!(sizes[..3], [24, 18, 14]);
        assert_eq!(sizes[10], 4);
    }
}
