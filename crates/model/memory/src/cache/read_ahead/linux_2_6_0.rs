//! Read-ahead of 2.6.0 to 2.6.10: hits lengthen the next window by two pages, misses shorten it by as many, and with
//! nothing left there are no windows until a reader has read as many pages in a row as the largest has
//! (`mm/readahead.c`).
//!
//! Which window a miss reads, and who has one ahead, differs from release to release. Until 2.6.6 a miss reads as many
//! pages as were used of the last window, and one more; from 2.6.5 on the mean length of a reader's runs of pages
//! counts, and from 2.6.7 on only who reads longer runs than the largest window has one ahead.
//!
//! Sources: 2.6.8, with the patches to it from 2.6.6 (17 May and 18 July 2004) and from it to 2.6.9 (16 August 2004).
//! Of 2.6.1 there are the patches that undid parts of it (9 and 15 January 2004); that the rest came with it, and was
//! as 2.6.6 has it, is inferred, and so is 2.6.0: 2.6.1 without what these patches name and without readers that begin
//! elsewhere.

use super::two_windows::TwoWindows;
use super::{ReaderPage, Window};
use crate::cache::spec::ReadAhead;

/// `VM_MIN_READAHEAD`, 16 KiB.
const PAGES_MIN: u64 = 4;

#[derive(Clone, Copy, Debug)]
pub(in crate::cache) struct Stream {
    kernel: ReadAhead,
    /// While read-ahead is off, their size counts the pages that were read in a row.
    windows: TwoWindows,
    next: NextWindow,
    previous: u64,
    /// Pages in a row until now; from 2.6.9 on those that were in the window.
    run: u64,
    /// The mean of such runs; None: half the largest window, before any has ended.
    usual_run: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NextWindow {
    /// Nothing has been read yet.
    #[default]
    First,
    Pages(u64),
    Off,
}

impl Stream {
    pub(super) fn new(kernel: ReadAhead) -> Stream {
        Stream { kernel, windows: TwoWindows::default(), next: NextWindow::First, previous: 0, run: 0, usual_run: None }
    }

    pub(super) fn next(&mut self, found: ReaderPage, most: u64, is_cached: impl Fn(u64) -> bool) -> Option<Window> {
        let before = self.next;
        let wanted = self.wanted(found.page, most);
        let begun = wanted.filter(|_| !found.congested);
        let is_there = |page| page >= found.end || is_cached(page);
        if let Some(window) = wanted
            && (found.congested || window.range().all(is_there))
        {
            self.was_no_use(before);
        }
        if found.absent && !begun.is_some_and(|window| window.range().contains(&found.page)) {
            self.missed(found.page, most);
        }
        begun
    }

    /// `page_cache_readahead`.
    fn wanted(&mut self, page: u64, most: u64) -> Option<Window> {
        if most == 0 {
            return None;
        }
        let next = match self.next {
            NextWindow::First if page == 0 || self.kernel > ReadAhead::Linux2_6_0 => {
                self.previous = page;
                self.run += 1;
                return Some(self.renew(page, (most / 2).max(1)));
            }
            NextWindow::First => 0,
            _ if page == self.previous => return None,
            NextWindow::Off => return None,
            NextWindow::Pages(next) => next,
        };
        let is_hit = self.windows.are_hit_by(page);
        let last_read = self.previous;
        let goes_on = match self.kernel >= ReadAhead::Linux2_6_9 {
            true => is_hit,
            false => page == last_read + 1,
        };
        self.count(goes_on, most);
        self.previous = page;
        let next = match is_hit {
            true => next + 2,
            false => next.saturating_sub(2),
        }
        .min(most);
        if next == 0 {
            self.turn_off();
            return None;
        }
        self.next = NextWindow::Pages(next);
        if self.windows.holds(page) {
            let looks = self.looks_ahead(page, most);
            return looks.then(|| self.windows.look_ahead(next)).flatten();
        }
        if self.windows.enter_ahead(page) {
            return None;
        }
        Some(self.renew(page, self.behind_miss(last_read, next, most)))
    }

    /// Who reads a page of the current window has one ahead.
    fn looks_ahead(&self, page: u64, most: u64) -> bool {
        let is_last = self.windows.end_with(page);
        match self.kernel {
            ReadAhead::Linux2_6_0 | ReadAhead::Linux2_6_2 => true,
            ReadAhead::Linux2_6_1 => is_last,
            ReadAhead::Linux2_6_5 => is_last || self.expected_run(most) >= most,
            _ => self.expected_run(most) > most,
        }
    }

    /// How much is read if a reader comes from elsewhere.
    fn behind_miss(&self, last_read: u64, next: u64, most: u64) -> u64 {
        match self.kernel {
            ReadAhead::Linux2_6_0 => next,
            ReadAhead::Linux2_6_1 | ReadAhead::Linux2_6_2 | ReadAhead::Linux2_6_5 => {
                match self.windows.holds(last_read) {
                    true => last_read - self.windows.start + 2,
                    false => next,
                }
            }
            // The run that has not ended does not count.
            ReadAhead::Linux2_6_7 => self.usual_run(most).min(most),
            _ => self.expected_run(most).min(most),
        }
    }

    /// A run continues, or has ended and counts half of the mean.
    fn count(&mut self, goes_on: bool, most: u64) {
        if goes_on {
            self.run += u64::from(self.run <= 2 * most);
        } else {
            let usual = self.usual_run(most);
            let rounded_up = usual + u64::from(self.rounds_up() && usual < self.run);
            self.usual_run = Some((rounded_up + self.run) / 2);
            self.run = 1;
        }
    }

    fn rounds_up(&self) -> bool {
        self.kernel >= ReadAhead::Linux2_6_7
    }

    fn usual_run(&self, most: u64) -> u64 {
        self.usual_run.unwrap_or(most / 2)
    }

    fn expected_run(&self, most: u64) -> u64 {
        let usual = self.usual_run(most);
        usual.max((self.run + usual + u64::from(self.rounds_up())) / 2)
    }

    fn renew(&mut self, page: u64, pages: u64) -> Window {
        self.next = NextWindow::Pages(pages);
        self.windows.renew(page, pages)
    }

    /// A window of which all is there already (`check_ra_success`); the next had that length before the page.
    fn was_no_use(&mut self, before: NextWindow) {
        match before {
            NextWindow::First if self.kernel > ReadAhead::Linux2_6_0 => {}
            NextWindow::Pages(pages) if pages > 1 => {
                self.next = NextWindow::Pages(pages - 1);
                self.windows.resize_ahead(pages - 1);
            }
            _ => self.turn_off(),
        }
    }

    fn turn_off(&mut self) {
        (self.next, self.windows.size) = (NextWindow::Off, 0);
    }

    /// The page is not there, nor is it read ahead (`handle_ra_miss`): who then reads long enough in a row has windows
    /// again.
    fn missed(&mut self, page: u64, most: u64) {
        match self.next {
            NextWindow::Pages(next) => {
                let shorter = next.saturating_sub(3).max(PAGES_MIN);
                self.next = NextWindow::Pages(shorter);
            }
            _ if page != self.previous + 1 => {
                self.windows.size = self.windows.size.saturating_sub(1);
                self.previous = page;
            }
            _ => {
                self.windows.size += 1;
                if self.windows.size >= most {
                    // Behind the page: nothing is read for it.
                    self.renew(page.saturating_sub(most), most);
                    if self.kernel >= ReadAhead::Linux2_6_8 {
                        self.usual_run = Some(most / 2);
                    }
                }
                self.previous = page;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::read_ahead::tests::found;

    /// Reads pages that become cached as they are read, and returns its windows: at which page, from where, how long.
    fn windows(stream: &mut Stream, pages: impl IntoIterator<Item = u64>) -> Vec<(u64, u64, u64)> {
        let mut cached = std::collections::BTreeSet::new();
        let mut windows = Vec::new();
        for page in pages {
            let absent = !cached.contains(&page);
            let found = ReaderPage { absent, ..found(page) };
            if let Some(window) = stream.next(found, 32, |page| cached.contains(&page)) {
                windows.push((page, window.start, window.pages));
                cached.extend(window.range());
            }
            cached.insert(page);
        }
        windows
    }

    fn runs(seeks: std::ops::Range<u64>, pages: u64) -> impl Iterator<Item = u64> {
        seeks.flat_map(move |seek| (0..pages).map(move |page| seek * 10_000 + page))
    }

    #[test]
    fn random_reads_have_windows_of_their_own_length() {
        let mut stream = Stream::new(ReadAhead::Linux2_6_7);
        let asked = windows(&mut stream, runs(1..12, 4));
        let lengths: Vec<u64> = asked.iter().map(|&(_, _, pages)| pages).collect();
        assert_eq!(lengths, [16, 10, 7, 5, 4, 4, 4, 4, 4, 4, 4]);
        assert!(asked.iter().all(|&(page, start, _)| page == start));
    }

    #[test]
    fn single_pages_here_and_there_end_read_ahead_and_in_2_6_7_it_comes_back_a_page_at_a_time() {
        for (kernel, back) in [(ReadAhead::Linux2_6_7, 1), (ReadAhead::Linux2_6_8, 16)] {
            let mut stream = Stream::new(kernel);
            let asked = windows(&mut stream, runs(1..20, 1));
            assert!(asked.len() < 10, "{asked:?}");
            assert_eq!(stream.next, NextWindow::Off);
            // As many pages in a row as the largest window has, behind the first.
            let asked = windows(&mut stream, 500_000..500_100);
            assert_eq!(asked[0], (500_033, 500_033, back));
        }
    }

    #[test]
    fn a_long_run_has_a_window_ahead_once_it_is_longer_than_the_largest() {
        let mut stream = Stream::new(ReadAhead::Linux2_6_7);
        let asked = windows(&mut stream, 0..200);
        assert_eq!(asked[..3], [(0, 0, 16), (16, 16, 16), (32, 32, 16)]);
        // From page 48 on, 49 in a row and 16 before are more than 32 on average.
        assert_eq!(asked[3], (48, 48, 16));
        assert_eq!(asked[4].1, 64);
        assert!(asked[5..].iter().all(|&(page, start, _)| start > page));
    }

    #[test]
    fn windows_that_are_there_already_become_shorter_and_end() {
        let mut stream = Stream::new(ReadAhead::Linux2_6_7);
        stream.next(found(0), 32, |_| false);
        let here = ReaderPage { absent: false, ..found(0) };
        let mut lengths = Vec::new();
        for seek in 1..40 {
            let here = ReaderPage { page: seek * 10_000, ..here };
            lengths.extend(stream.next(here, 32, |_| true).map(|window| window.pages));
        }
        assert_eq!(stream.next, NextWindow::Off, "{lengths:?}");
    }

    #[test]
    fn readers_of_4_pages_have_as_many_and_one_more_until_2_6_6_and_a_window_ahead_with_the_last_of_theirs() {
        let mut stream = Stream::new(ReadAhead::Linux2_6_5);
        let asked = windows(&mut stream, runs(1..6, 4));
        let lengths: Vec<u64> = asked.iter().map(|&(_, _, pages)| pages).collect();
        // Half the largest, then the four that were read of it and one more.
        assert_eq!(lengths, [16, 5, 5, 5, 5]);
        let asked = windows(&mut stream, runs(6..8, 5));
        // The fifth of a run is the last of its window.
        assert_eq!(asked[0], (60_000, 60_000, 5));
        assert_eq!((asked[1].0, asked[1].1), (60_004, 60_005));
    }

    #[test]
    fn windows_ahead_come_with_the_last_page_in_2_6_1_with_the_second_before_and_after() {
        use ReadAhead::{Linux2_6_0, Linux2_6_1, Linux2_6_2};
        let second = [Linux2_6_0, Linux2_6_1, Linux2_6_2].map(|kernel| {
            let asked = windows(&mut Stream::new(kernel), 0..40);
            (asked[1].0, asked[1].1)
        });
        assert_eq!(second, [(1, 16), (15, 16), (1, 16)]);
    }

    #[test]
    fn in_2_6_0_only_who_begins_at_page_0_has_windows_at_once() {
        let first = |kernel| windows(&mut Stream::new(kernel), 7000..7100)[0];
        assert_eq!(first(ReadAhead::Linux2_6_1), (7000, 7000, 16));
        // The others as soon as they have read as many pages as the largest has.
        assert_eq!(first(ReadAhead::Linux2_6_0).0, 7033);
    }

    #[test]
    fn from_2_6_9_on_what_lies_in_the_window_is_a_run_even_with_gaps() {
        let after_gaps = |kernel| {
            let mut stream = Stream::new(kernel);
            let every_other = (1..20).flat_map(|seek| (0..8).map(move |page| seek * 10_000 + 2 * page));
            windows(&mut stream, every_other);
            windows(&mut stream, [900_000]).first().map(|&(.., pages)| pages)
        };
        assert_eq!(after_gaps(ReadAhead::Linux2_6_8), None, "every page was a miss");
        assert_eq!(after_gaps(ReadAhead::Linux2_6_9), Some(5));
    }
}
