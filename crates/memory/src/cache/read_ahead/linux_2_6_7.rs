//! Read-ahead of 2.6.7 to 2.6.10: windows as long as the runs of pages that a reader usually reads (`mm/readahead.c`).
//!
//! Only who reads longer runs than the largest window has a second one ahead. Who reads single pages here and there soon has
//! no read-ahead at all, until he has read as many pages in a row as the largest window has. In 2.6.7 his windows stay short
//! even then, since the run that has not ended does not count.

use super::two_windows::TwoWindows;
use super::{Found, Window};

/// `VM_MIN_READAHEAD`, 16 KiB.
const PAGES_MIN: u64 = 4;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cache) struct Stream {
    /// While read-ahead is off, their size counts the pages that were read in a row.
    windows: TwoWindows,
    next: NextWindow,
    previous: u64,
    /// Pages in a row until now.
    run: u64,
    /// The mean of such runs; None: half the largest window, before any has ended.
    usual_run: Option<u64>,
    /// The run that has not ended counts too: 2.6.8 on.
    counts_this_run: bool,
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
    pub(super) fn new(counts_this_run: bool) -> Stream {
        Stream {
            counts_this_run,
            ..Stream::default()
        }
    }

    pub(super) fn next(
        &mut self,
        found: Found,
        most: u64,
        is_cached: impl Fn(u64) -> bool,
    ) -> Option<Window> {
        let before = self.next;
        let wanted = self.wanted(found.page, most);
        let begun = wanted.filter(|_| !found.congested);
        if let (Some(window), NextWindow::Pages(pages)) = (wanted, before)
            && (found.congested || range(window).all(is_cached))
        {
            self.shorten(pages);
        }
        if found.absent && !begun.is_some_and(|window| range(window).contains(&found.page)) {
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
            NextWindow::First => {
                self.previous = page;
                self.run += 1;
                return Some(self.renew(page, (most / 2).max(1)));
            }
            _ if page == self.previous => return None,
            NextWindow::Off => return None,
            NextWindow::Pages(next) => next,
        };
        self.count(page, most);
        let next = if self.windows.are_hit_by(page) {
            next + 2
        } else {
            next.saturating_sub(2)
        }
        .min(most);
        if next == 0 {
            (self.next, self.windows.size) = (NextWindow::Off, 0);
            return None;
        }
        self.next = NextWindow::Pages(next);
        if self.windows.holds(page) {
            let looks = self.expected_run(most) > most;
            return looks.then(|| self.windows.look_ahead(next)).flatten();
        }
        if self.windows.enter_ahead(page) {
            return None;
        }
        let expected = match self.counts_this_run {
            true => self.expected_run(most),
            false => self.usual_run(most),
        };
        Some(self.renew(page, expected.min(most)))
    }

    /// A run goes on, or has ended and counts half of the mean.
    fn count(&mut self, page: u64, most: u64) {
        if page == self.previous + 1 {
            self.run += u64::from(self.run <= 2 * most);
        } else {
            let usual = self.usual_run(most);
            let rounded_up = usual + u64::from(usual < self.run);
            self.usual_run = Some((rounded_up + self.run) / 2);
            self.run = 1;
        }
        self.previous = page;
    }

    fn usual_run(&self, most: u64) -> u64 {
        self.usual_run.unwrap_or(most / 2)
    }

    fn expected_run(&self, most: u64) -> u64 {
        let usual = self.usual_run(most);
        usual.max((self.run + usual).div_ceil(2))
    }

    fn renew(&mut self, page: u64, pages: u64) -> Window {
        self.next = NextWindow::Pages(pages);
        self.windows.renew(page, pages)
    }

    /// A window of which all is there already was no use (`check_ra_success`); it had this length before the page.
    fn shorten(&mut self, before: u64) {
        if before > 1 {
            self.next = NextWindow::Pages(before - 1);
            self.windows.resize_ahead(before - 1);
        } else {
            (self.next, self.windows.size) = (NextWindow::Off, 0);
        }
    }

    /// The page is not there, nor is it read ahead (`handle_ra_miss`): who then reads long enough in a row has windows again.
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
                    if self.counts_this_run {
                        self.usual_run = Some(most / 2);
                    }
                }
                self.previous = page;
            }
        }
    }
}

fn range(window: Window) -> std::ops::Range<u64> {
    window.start..window.start + window.pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::read_ahead::tests::found;

    /// Reads pages that become cached as they are read, and says which windows it had: at which page, from where, how long.
    fn windows(stream: &mut Stream, pages: impl IntoIterator<Item = u64>) -> Vec<(u64, u64, u64)> {
        let mut cached = std::collections::BTreeSet::new();
        let mut windows = Vec::new();
        for page in pages {
            let absent = !cached.contains(&page);
            let found = Found {
                absent,
                ..found(page)
            };
            if let Some(window) = stream.next(found, 32, |page| cached.contains(&page)) {
                windows.push((page, window.start, window.pages));
                cached.extend(range(window));
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
        let mut stream = Stream::default();
        let asked = windows(&mut stream, runs(1..12, 4));
        let lengths: Vec<u64> = asked.iter().map(|&(_, _, pages)| pages).collect();
        assert_eq!(lengths, [16, 10, 7, 5, 4, 4, 4, 4, 4, 4, 4]);
        assert!(asked.iter().all(|&(page, start, _)| page == start));
    }

    #[test]
    fn single_pages_here_and_there_end_read_ahead_and_in_2_6_7_it_comes_back_a_page_at_a_time() {
        for (counts_this_run, back) in [(false, 1), (true, 16)] {
            let mut stream = Stream::new(counts_this_run);
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
        let mut stream = Stream::default();
        let asked = windows(&mut stream, 0..200);
        assert_eq!(asked[..3], [(0, 0, 16), (16, 16, 16), (32, 32, 16)]);
        // From page 48 on, 49 in a row and 16 before are more than 32 on average.
        assert_eq!(asked[3], (48, 48, 16));
        assert_eq!(asked[4].1, 64);
        assert!(asked[5..].iter().all(|&(page, start, _)| start > page));
    }

    #[test]
    fn windows_that_are_there_already_become_shorter_and_end() {
        let mut stream = Stream::default();
        stream.next(found(0), 32, |_| false);
        let here = Found {
            absent: false,
            ..found(0)
        };
        let mut lengths = Vec::new();
        for seek in 1..40 {
            let here = Found {
                page: seek * 10_000,
                ..here
            };
            lengths.extend(stream.next(here, 32, |_| true).map(|window| window.pages));
        }
        assert_eq!(stream.next, NextWindow::Off, "{lengths:?}");
    }
}
