//! Read-ahead of 2.6.11 to 2.6.22: by calls, not by pages (Steven Pratt's and Ram Pai's rewrite; `mm/readahead.c`).
//!
//! A call that continues where the last one ended has a window, and the next window ahead of it as soon as it continues
//! once more; from then on a window is read whenever a call comes to the one ahead. A call from elsewhere reads what it
//! asks for and ends that. Who finds 256 pages in a row in the cache is left alone until a page is missing.
//!
//! Sources: 2.6.11, 2.6.18, and Oleg Nesterov's patches between them. Those of February 2005 are in 2.6.12; those of February
//! 2006 against 2.6.16-rc3, with aed75ff3 of March among them, in 2.6.17.

use super::two_windows::TwoWindows;
use super::{ReaderPage, Window, Windows, on_demand};
use crate::cache::spec::ReadAhead;

/// `VM_MIN_READAHEAD`, 16 KiB.
const PAGES_MIN: u64 = 4;
/// `VM_MAX_CACHE_HIT`.
const CACHED_MAX: u64 = 256;

#[derive(Clone, Copy, Debug)]
pub(in crate::cache) struct Stream {
    kernel: ReadAhead,
    /// Their size is 0 as long as nobody reads in sequence.
    windows: TwoWindows,
    /// Behind the last window that was read ahead or that would have been.
    ahead_end: u64,
    /// The last page that was dealt with.
    previous: Option<u64>,
    /// The page that is dealt with next, and the end of the call.
    asked_at: u64,
    call_end: u64,
    /// A page was missing that should have been there.
    has_missed: bool,
    /// Nothing is read ahead, since all is there.
    is_cached: bool,
    cached_run: u64,
}

impl Stream {
    pub(super) fn new(kernel: ReadAhead) -> Stream {
        Stream {
            kernel,
            windows: TwoWindows::default(),
            ahead_end: 0,
            previous: None,
            asked_at: 0,
            call_end: 0,
            has_missed: false,
            is_cached: false,
            cached_run: 0,
        }
    }

    pub(super) fn begin(&mut self, first: u64, pages: u64) {
        (self.asked_at, self.call_end) = (first, first + pages);
    }

    pub(super) fn next(&mut self, found: ReaderPage, most: u64, is_cached: impl Fn(u64) -> bool) -> Option<Windows> {
        let is_asked = found.page == self.asked_at && found.page < self.call_end;
        let is_there = |page| page >= found.end || is_cached(page);
        let windows = if is_asked { self.ask(found, most, is_there) } else { None };
        if found.absent && !windows.is_some_and(|windows| windows.hold(found.page)) {
            self.missed();
        }
        windows
    }

    /// `page_cache_readahead`.
    fn ask(&mut self, found: ReaderPage, most: u64, is_there: impl Fn(u64) -> bool) -> Option<Windows> {
        let (mut page, mut request) = (found.page, self.call_end - found.page);
        let reads_on = self.previous == Some(page);
        if reads_on && (request == 1 || self.kernel >= ReadAhead::Linux2_6_12) {
            // The rest of a page.
            request -= 1;
            page += u64::from(request > 0);
        }
        let is_sequential = page == self.previous.map_or(0, |previous| previous + 1);
        let pages = request.min(most);
        if pages == 0 || self.is_cached {
            self.deal_with(page);
            return None;
        }
        self.deal_with(page + pages - 1);
        if !is_sequential {
            self.end_sequence();
            let window = Window::unmarked(page, pages);
            self.is_of_use(window, is_there);
            return Some(window.into());
        }
        if self.windows.size > 0 {
            return self.go_on(found, most, is_there);
        }
        let first = self.windows.renew(page, self.initial(pages, most));
        let goes_on = self.is_of_use(first, &is_there) && request >= most;
        let second = goes_on.then(|| self.look_ahead(true, found, most, is_there));
        Windows::both(Some(first), second.flatten())
    }

    fn deal_with(&mut self, last: u64) {
        self.previous = Some(last);
        self.asked_at = last + 1;
    }

    fn go_on(&mut self, found: ReaderPage, most: u64, is_there: impl Fn(u64) -> bool) -> Option<Windows> {
        let last = self.asked_at - 1;
        let (mut first, mut second) = (None, None);
        let has_ahead = self.windows.ahead_start > 0;
        if !has_ahead {
            first = self.look_ahead(false, found, most, &is_there);
        }
        if (has_ahead || first.is_some()) && last >= self.windows.ahead_start {
            self.windows.go_ahead();
            second = self.look_ahead(false, found, most, is_there);
        }
        if self.kernel >= ReadAhead::Linux2_6_17 {
            // What lies behind the window ahead would be read page by page.
            self.deal_with(last.min(self.ahead_end - 1));
        }
        Windows::both(first, second)
    }

    /// The window behind the current one (`make_ahead_window`); None: the queue is congested and nobody needs it yet, or all
    /// is there.
    fn look_ahead(
        &mut self,
        is_needed: bool,
        found: ReaderPage,
        most: u64,
        is_there: impl Fn(u64) -> bool,
    ) -> Option<Window> {
        let pages = self.following(most);
        let window = self.windows.follow(pages);
        self.ahead_end = window.start + window.pages;
        let is_asked_for = self.asked_at > window.start;
        if found.congested && !is_needed && !is_asked_for {
            self.windows.forget_ahead();
            return None;
        }
        self.is_of_use(window, is_there).then_some(window)
    }

    /// `get_init_ra_size`.
    fn initial(&self, request: u64, most: u64) -> u64 {
        if self.kernel >= ReadAhead::Linux2_6_17 {
            return on_demand::initial(request, most);
        }
        let size = request.next_power_of_two();
        if size <= most / 64 {
            size * size
        } else if size <= most / 4 {
            most / 4
        } else {
            most
        }
    }

    /// `get_next_ra_size`.
    fn following(&mut self, most: u64) -> u64 {
        let size = self.windows.size;
        let next = if std::mem::take(&mut self.has_missed) {
            size.saturating_sub(2).max(PAGES_MIN)
        } else if size < most / 16 {
            4 * size
        } else {
            2 * size
        };
        next.min(most)
    }

    /// False: enough pages in a row were there already (`check_ra_success`).
    fn is_of_use(&mut self, window: Window, is_there: impl Fn(u64) -> bool) -> bool {
        if !window.range().all(is_there) {
            self.cached_run = 0;
            return true;
        }
        self.cached_run += window.pages;
        if self.cached_run >= CACHED_MAX {
            self.end_sequence();
            self.is_cached = true;
        }
        !self.is_cached
    }

    /// `ra_off`.
    fn end_sequence(&mut self) {
        self.windows = TwoWindows::default();
        (self.has_missed, self.is_cached) = (false, false);
    }

    /// `handle_ra_miss`.
    fn missed(&mut self) {
        (self.has_missed, self.is_cached) = (true, false);
        if self.kernel >= ReadAhead::Linux2_6_12 {
            self.cached_run = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::read_ahead::tests::found;
    use std::collections::BTreeSet;

    struct Reader {
        stream: Stream,
        cached: BTreeSet<u64>,
        congested: bool,
    }

    impl Reader {
        fn new(kernel: ReadAhead) -> Reader {
            Reader { stream: Stream::new(kernel), cached: BTreeSet::new(), congested: false }
        }

        /// The windows of a call: at which page, from where, how long.
        fn read(&mut self, first: u64, pages: u64) -> Vec<(u64, u64, u64)> {
            self.stream.begin(first, pages);
            let mut asked = Vec::new();
            for page in first..first + pages {
                let found = ReaderPage {
                    left: first + pages - page,
                    absent: !self.cached.contains(&page),
                    congested: self.congested,
                    ..found(page)
                };
                let is_cached = |page| self.cached.contains(&page);
                let windows = self.stream.next(found, 32, is_cached);
                for window in windows.into_iter().flatten() {
                    self.cached.extend(window.range());
                    asked.push((page, window.start, window.pages));
                }
                self.cached.insert(page);
            }
            asked
        }

        fn reads(&mut self, calls: u64, pages: u64) -> Vec<(u64, u64, u64)> {
            (0..calls).flat_map(|call| self.read(call * pages, pages)).collect()
        }
    }

    #[test]
    fn single_pages_in_sequence_have_a_window_of_32_kib_then_of_16_from_2_6_17_on_and_the_next_at_each_windows_start() {
        let windows = |kernel| Reader::new(kernel).reads(100, 1);
        let before = windows(ReadAhead::Linux2_6_12);
        assert_eq!(before[..4], [(0, 0, 8), (1, 8, 16), (8, 24, 32), (24, 56, 32)]);
        let after = windows(ReadAhead::Linux2_6_17);
        assert_eq!(after[..4], [(0, 0, 4), (1, 4, 8), (4, 12, 16), (12, 28, 32)]);
    }

    #[test]
    fn random_calls_read_what_they_ask_for_at_most_a_window_at_a_time() {
        let mut reader = Reader::new(ReadAhead::Linux2_6_17);
        assert_eq!(reader.read(7000, 4), [(7000, 7000, 4)]);
        assert_eq!(reader.read(500, 1), [(500, 500, 1)]);
        // The second part of a long call is in sequence with the first.
        let long = reader.read(90_000, 80);
        assert_eq!(long[..2], [(90_000, 90_000, 32), (90_032, 90_032, 32)]);
        assert!((90_000..90_080).all(|page| reader.cached.contains(&page)));
    }

    #[test]
    fn a_call_as_long_as_the_largest_window_has_two_at_once() {
        let mut reader = Reader::new(ReadAhead::Linux2_6_11);
        assert_eq!(reader.read(0, 64)[..2], [(0, 0, 32), (0, 32, 32)]);
    }

    #[test]
    fn who_finds_1_mib_in_a_row_cached_is_left_alone_until_a_page_is_missing() {
        let mut reader = Reader::new(ReadAhead::Linux2_6_17);
        reader.cached.extend(0..1000);
        reader.reads(990, 1);
        assert!(reader.stream.is_cached);
        assert_eq!(reader.read(2000, 1), []);
        assert!(!reader.stream.is_cached);
        assert_eq!(reader.read(3000, 2), [(3000, 3000, 2)]);
    }

    #[test]
    fn a_congested_queue_gets_no_window_that_nobody_has_asked_for() {
        let mut reader = Reader::new(ReadAhead::Linux2_6_17);
        reader.reads(4, 1);
        let ahead = reader.stream.ahead_end;
        reader.congested = true;
        assert_eq!(reader.read(4, 1), []);
        reader.congested = false;
        assert_eq!(reader.read(5, 1)[0].1, ahead, "it comes with the next call");
    }

    #[test]
    fn a_page_that_was_lost_makes_the_next_window_two_pages_shorter() {
        let mut reader = Reader::new(ReadAhead::Linux2_6_17);
        reader.reads(200, 1);
        let next = reader.stream.windows.ahead_start;
        reader.cached.remove(&200);
        (200..next).for_each(|page| assert_eq!(reader.read(page, 1), []));
        assert_eq!(reader.read(next, 1)[0].2, 30);
    }

    #[test]
    fn calls_that_begin_within_the_last_page_are_in_sequence_from_2_6_12_on() {
        let second = |kernel| {
            let mut reader = Reader::new(kernel);
            reader.read(0, 2);
            // From the middle of page 1 on.
            reader.read(1, 2);
            reader.stream.windows.size
        };
        assert_eq!(second(ReadAhead::Linux2_6_11), 0);
        assert_eq!(second(ReadAhead::Linux2_6_12), 8);
    }

    #[test]
    fn what_a_call_asks_for_behind_both_windows_is_missed_until_2_6_16() {
        let misses = |kernel| {
            let mut reader = Reader::new(kernel);
            reader.cached.extend(0..4);
            reader.stream.windows.renew(0, 4);
            reader.stream.previous = Some(0);
            // Windows of 4, 8 and 16 pages end before its last.
            reader.read(1, 32);
            reader.stream.has_missed
        };
        assert!(misses(ReadAhead::Linux2_6_12));
        assert!(!misses(ReadAhead::Linux2_6_17));
    }
}
