//! Read-ahead of 2.4 as it is generally known (`generic_file_readahead` in `mm/filemap.c` of 2.4.20, not read: inferred).
//!
//! The limit doubles with each window. While a window is in use the next is asked for as soon as a page of the last request
//! is found ready.

use super::{ReaderPage, Window};

/// `vm_min_readahead`.
const PAGES_MIN: u64 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cache) struct Stream {
    /// The first page behind what was read ahead.
    end: u64,
    /// Pages of the last request, and of the last two together.
    request: u64,
    window: u64,
    /// What the next request may have.
    limit: u64,
    sequential: bool,
}

impl Stream {
    /// A call outside the last window starts anew; one inside lets the limit be at least what it asks for.
    pub(super) fn begin(&mut self, first: u64, pages: u64, most: u64) {
        self.sequential = first <= self.end && first + self.window >= self.end;
        if !self.sequential {
            (self.end, self.request, self.window, self.limit) = (0, 0, 0, 0);
        }
        self.limit = self.limit.max(pages + 1);
        if self.sequential {
            self.limit = self.limit.max(PAGES_MIN);
        }
        self.limit = self.limit.min(most);
    }

    /// `generic_file_readahead`.
    pub(super) fn next(&mut self, found: ReaderPage, most: u64) -> Option<Window> {
        let page = found.page;
        let from = if !found.present {
            let inside = self.request > 0 && page < self.end && page + self.window >= self.end;
            if inside {
                return None;
            }
            // The page itself is asked for by who reads it; the window lies behind.
            (self.window, self.request) = (0, 1);
            if self.limit == 0 {
                (self.end, self.window) = (page + 1, 1);
                return None;
            }
            page + 1
        } else {
            let in_last = self.end >= 1 && page <= self.end && page + self.request >= self.end;
            if !(self.sequential && self.limit > 0 && in_last) {
                return None;
            }
            (self.window, self.request) = (self.request, 0);
            self.end
        };
        let ahead = self.limit + u64::from(found.present);
        self.request += ahead;
        self.window += self.request;
        self.end = from + ahead;
        self.limit = (2 * self.limit).min(most);
        Some(Window { start: from, pages: ahead, mark: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: u64, present: bool) -> ReaderPage {
        ReaderPage { page, left: 1, end: u64::MAX, absent: !present, present, marked: false, congested: false }
    }

    /// A stream of single pages; where those that were read ahead are ready when they are read.
    fn windows(count: u64) -> Vec<(u64, u64)> {
        let mut stream = Stream::default();
        let (mut read_to, mut windows) = (0, Vec::new());
        for page in 0..count {
            stream.begin(page, 1, 31);
            if let Some(window) = stream.next(found(page, page < read_to), 31) {
                read_to = window.start + window.pages;
                windows.push((window.start, window.pages));
            }
        }
        windows
    }

    #[test]
    fn the_limit_doubles_up_to_31_pages() {
        let sizes: Vec<u64> = windows(300).iter().map(|window| window.1).collect();
        assert_eq!(sizes[..6], [3, 7, 13, 25, 32, 32], "asynchronous ones have a page more");
    }

    #[test]
    fn windows_follow_each_other_without_gap_or_overlap() {
        let mut end = 1;
        for (start, pages) in windows(1000) {
            assert_eq!(start, end);
            end += pages;
        }
    }

    #[test]
    fn a_seek_starts_anew_with_what_the_call_needs() {
        let mut stream = Stream::default();
        for page in 0..100 {
            stream.begin(page, 1, 31);
            stream.next(found(page, page % 7 != 0), 31);
        }
        stream.begin(5000, 1, 31);
        let window = stream.next(found(5000, false), 31).unwrap();
        assert_eq!((window.start, window.pages), (5001, 2));
    }
}
