//! Read-ahead on demand, from 2.6.23 on (`ondemand_readahead` in `mm/readahead.c`, of 2.6.24, 2.6.35, 4.18 and 6.6;
//! `page_cache_sync_ra` and `page_cache_async_ra` of 6.18).
//!
//! A miss that looks sequential starts a window of two to four times the request; a mark in it is where the reader asks for
//! the next, twice as long (four times while short), so that one window is always in flight while the last is used up.

use super::{ReaderPage, Window, Windows};
use crate::cache::spec::ReadAhead;

#[derive(Clone, Copy, Debug)]
pub(in crate::cache) struct Stream {
    kernel: ReadAhead,
    start: u64,
    size: u64,
    /// This many pages before the window's end lies its mark.
    ahead: u64,
    /// The last page of the last call.
    previous: Option<u64>,
}

impl Stream {
    pub(super) fn new(kernel: ReadAhead) -> Stream {
        Stream { kernel, start: 0, size: 0, ahead: 0, previous: None }
    }

    #[inline]
    pub(super) fn next(&mut self, found: ReaderPage, most: u64, is_cached: impl Fn(u64) -> bool) -> Option<Windows> {
        if found.absent && most > 0 {
            Some(self.missed(found, most, is_cached))
        } else if found.marked && !found.congested {
            self.met_mark(found, most, is_cached).map(Windows::from)
        } else {
            None
        }
    }

    pub(super) fn end(&mut self, last: u64) {
        self.previous = Some(last);
    }

    fn missed(&mut self, found: ReaderPage, most: u64, is_cached: impl Fn(u64) -> bool) -> Windows {
        let mut first = self.window_for(found.page, found.left, most, is_cached);
        let mut second = None;
        if self.kernel < ReadAhead::Linux2_6_31 && first.mark == Some(found.page) {
            // The reader meets the mark at once.
            first.mark = None;
            second = (!found.congested).then(|| self.push_on(found.page, most));
        }
        Windows { first, second }
    }

    /// `ondemand_readahead`.
    fn window_for(&mut self, page: u64, request: u64, most: u64, is_cached: impl Fn(u64) -> bool) -> Window {
        if page != 0 && self.kernel < ReadAhead::Linux6_11 && self.expects(page) {
            return self.push_on(page, most);
        }
        let follows = |previous| page == previous || page == previous + 1;
        let is_start = page == 0 && (self.kernel >= ReadAhead::Linux2_6_31 || self.previous.is_none());
        if is_start || self.previous.is_some_and(follows) || request > most {
            self.start = page;
            self.size = initial(request, most);
            self.ahead = match self.size > request {
                true => self.size - request,
                false if self.kernel >= ReadAhead::Linux6_11 => self.size / 2,
                false => self.size,
            };
            return self.submit(page, most);
        }
        let history = match self.kernel >= ReadAhead::Linux2_6_31 {
            true => (1..=most.min(page)).take_while(|&back| is_cached(page - back)).count() as u64,
            false => 0,
        };
        let by_chance = match self.kernel >= ReadAhead::Linux3_12 {
            true => request,
            false => 0,
        };
        if history <= by_chance {
            // One that stands alone is read as it is and leaves the stream alone.
            return Window::unmarked(page, request);
        }
        // Pages up to the file's start: it was read from there.
        let history = if history >= page { 2 * history } else { history };
        self.start = page;
        (self.size, self.ahead) = match self.kernel >= ReadAhead::Linux3_12 {
            true => ((history + request).min(most), 1),
            false => {
                let size = initial(history + request, most);
                (size, size)
            }
        };
        self.submit(page, most)
    }

    fn met_mark(&mut self, found: ReaderPage, most: u64, is_cached: impl Fn(u64) -> bool) -> Option<Window> {
        if self.expects(found.page) {
            return Some(self.push_on(found.page, most));
        }
        // Another stream's mark, or this one has lost its place: behind what is cached.
        let hole = (found.page + 1..=found.page + most).find(|&page| !is_cached(page))?;
        let request = match self.kernel >= ReadAhead::Linux2_6_31 {
            true => found.left,
            false => 0,
        };
        self.start = hole;
        self.size = following(hole - found.page + request, most);
        self.ahead = self.size;
        Some(self.submit(found.page, most))
    }

    fn expects(&self, page: u64) -> bool {
        let end = self.start + self.size;
        let is_end = page == end && self.kernel < ReadAhead::Linux6_11;
        self.size > 0 && (page == end - self.ahead || is_end)
    }

    fn push_on(&mut self, page: u64, most: u64) -> Window {
        self.start += self.size;
        self.size = following(self.size, most);
        self.ahead = self.size;
        self.submit(page, most)
    }

    fn submit(&mut self, page: u64, most: u64) -> Window {
        let comes_with_next = self.kernel >= ReadAhead::Linux2_6_31 && self.kernel < ReadAhead::Linux6_11;
        if comes_with_next && page == self.start && self.size == self.ahead {
            // The reader would meet the mark at once: the window that this would start comes with it.
            let next = following(self.size, most);
            if self.kernel >= ReadAhead::Linux4_18 && self.size + next > most {
                self.size = most;
                self.ahead = most / 2;
            } else {
                self.ahead = next;
                self.size += next;
            }
        }
        self.window()
    }

    fn window(&self) -> Window {
        Window { start: self.start, pages: self.size, mark: Some(self.start + self.size - self.ahead) }
    }
}

/// `get_init_ra_size`.
pub(super) fn initial(request: u64, most: u64) -> u64 {
    let size = request.next_power_of_two();
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

/// `get_next_ra_size`.
fn following(size: u64, most: u64) -> u64 {
    let next = if size < most / 16 { 4 * size } else { 2 * size };
    next.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::read_ahead::tests::found;
    use std::collections::BTreeSet;

    struct Reader {
        stream: Stream,
        cached: BTreeSet<u64>,
        marks: BTreeSet<u64>,
    }

    impl Default for Reader {
        fn default() -> Reader {
            Reader::new(ReadAhead::Linux2_6_34)
        }
    }

    impl Reader {
        fn new(kernel: ReadAhead) -> Reader {
            Reader { stream: Stream::new(kernel), cached: BTreeSet::new(), marks: BTreeSet::new() }
        }

        fn read(&mut self, first: u64, pages: u64) -> Vec<(u64, u64, Option<u64>)> {
            let mut asked = Vec::new();
            for page in first..first + pages {
                let absent = !self.cached.contains(&page);
                let found = ReaderPage {
                    page,
                    left: first + pages - page,
                    end: u64::MAX,
                    absent,
                    present: !absent,
                    marked: self.marks.remove(&page),
                    congested: false,
                };
                let is_cached = |page| self.cached.contains(&page);
                let windows = self.stream.next(found, 32, is_cached);
                for window in windows.into_iter().flatten() {
                    self.cached.extend(window.range());
                    self.marks.extend(window.mark);
                    asked.push((window.start, window.pages, window.mark));
                }
            }
            self.stream.end(first + pages - 1);
            asked
        }
    }

    #[test]
    fn a_stream_of_single_pages_starts_with_16_kib_and_doubles_to_128() {
        let mut reader = Reader::default();
        let asked: Vec<_> = (0..200).flat_map(|page| reader.read(page, 1)).collect();
        let sizes: Vec<u64> = asked.iter().map(|window| window.1).collect();
        assert_eq!(sizes[..6], [4, 8, 16, 32, 32, 32]);
        assert_eq!(asked[0].2, Some(1), "the mark is behind what was asked for");
        assert_eq!(asked[1], (4, 8, Some(4)), "then at the start of the window");
    }

    #[test]
    fn a_window_is_in_flight_before_the_last_is_used_up() {
        let mut reader = Reader::default();
        for page in 0..500 {
            let asked = reader.read(page, 1);
            assert!(page == 0 || asked.iter().all(|&(start, ..)| start > page));
        }
    }

    #[test]
    fn a_small_random_read_is_read_as_it_is() {
        let mut reader = Reader::default();
        reader.read(0, 1);
        assert_eq!(reader.read(7_000, 2), [(7_000, 2, None)]);
        assert_eq!(reader.read(99_000, 1), [(99_000, 1, None)]);
    }

    #[test]
    fn pages_just_before_a_miss_are_taken_for_the_trace_of_a_stream() {
        let mut reader = Reader::default();
        reader.cached.extend(1000..1016);
        reader.stream.end(5);
        // Sixteen before and the one that is asked for: 17, the next power of two is the largest.
        assert_eq!(reader.read(1016, 1), [(1016, 64, Some(1048))]);
    }

    #[test]
    fn a_window_whose_mark_is_met_at_once_has_the_next_with_it_beside_it_within_the_largest_or_none() {
        use ReadAhead::{Linux2_6_23, Linux2_6_34, Linux4_18, Linux6_11};
        let windows = |kernel| Reader::new(kernel).read(0, 32);
        assert_eq!(windows(Linux2_6_23), [(0, 32, None), (32, 32, Some(32))]);
        assert_eq!(windows(Linux2_6_34), [(0, 64, Some(32))]);
        assert_eq!(windows(Linux4_18)[0], (0, 32, Some(16)));
        assert_eq!(windows(Linux6_11)[0], (0, 32, Some(16)));
    }

    #[test]
    fn how_much_must_lie_before_a_miss_for_a_stream_changed() {
        let window = |kernel, cached: u64| {
            let mut reader = Reader::new(kernel);
            reader.cached.extend(1000 - cached..1000);
            reader.stream.end(5);
            reader.read(1000, 2)[0]
        };
        let alone = (1000, 2, None);
        assert_eq!(window(ReadAhead::Linux2_6_23, 16), alone);
        assert_eq!(window(ReadAhead::Linux2_6_31, 1), (1000, 24, Some(1008)));
        // More than the call asks for, and then no more than both together.
        assert_eq!(window(ReadAhead::Linux3_12, 2), alone);
        assert_eq!(window(ReadAhead::Linux3_12, 3), (1000, 5, Some(1004)));
    }

    #[test]
    fn page_0_is_a_files_start_for_who_has_read_elsewhere_only_from_2_6_31_on() {
        let window = |kernel| {
            let mut reader = Reader::new(kernel);
            reader.read(7000, 1);
            reader.read(0, 1)[0]
        };
        assert_eq!(window(ReadAhead::Linux2_6_23), (0, 1, None));
        assert_eq!(window(ReadAhead::Linux2_6_31), (0, 4, Some(1)));
    }

    #[test]
    fn a_miss_where_the_next_window_would_begin_starts_anew_from_6_11_on() {
        let window = |kernel| {
            let mut reader = Reader::new(kernel);
            (0..12).for_each(|page| drop(reader.read(page, 1)));
            let end = reader.stream.start + reader.stream.size;
            reader.stream.end(50);
            reader.cached.clear();
            reader.read(end, 1)[0].1
        };
        assert_eq!(window(ReadAhead::Linux4_18), 32);
        assert_eq!(window(ReadAhead::Linux6_11), 1);
    }

    #[test]
    fn a_reader_that_has_come_to_the_end_of_its_windows_has_two_again() {
        for kernel in [ReadAhead::Linux2_6_23, ReadAhead::Linux2_6_34] {
            let mut reader = Reader::new(kernel);
            (0..100).for_each(|page| drop(reader.read(page, 1)));
            // A congested queue has ignored the mark.
            reader.marks.clear();
            let end = reader.stream.start + reader.stream.size;
            (100..end).for_each(|page| assert_eq!(reader.read(page, 1), []));
            let asked = reader.read(end, 1);
            assert_eq!(asked.iter().map(|window| window.1).sum::<u64>(), 64);
            assert_eq!(reader.read(end + 32, 1).len(), 1, "{kernel:?}");
        }
    }

    #[test]
    fn without_windows_pages_are_read_one_by_one() {
        let mut stream = Stream::new(ReadAhead::Linux4_18);
        assert_eq!(stream.next(found(7), 0, |_| false), None);
    }

    #[test]
    fn a_request_longer_than_the_largest_window_is_read_in_such_windows() {
        let mut reader = Reader::default();
        let asked = reader.read(512, 128);
        assert!(asked.iter().all(|&(_, pages, _)| pages <= 64), "{asked:?}");
        assert!((512..640).all(|page| reader.cached.contains(&page)));
    }
}
