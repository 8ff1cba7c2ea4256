//! Read-ahead on demand (2.6.24 on; 2.6.35 `mm/readahead.c`; the notes have its size alone).
//!
//! A miss that looks sequential starts a window of two to four times the request; a mark in it is where the reader asks for
//! the next, twice as long (four times while short), so that one window is always under way while the last is used up. `ondemand_readahead` of 4.18 for what comes with a window.

use super::{Found, Window};

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cache) struct Stream {
    start: u64,
    size: u64,
    /// So many pages before the window's end lies its mark.
    ahead: u64,
    /// The last page of the last call.
    previous: Option<u64>,
}

impl Stream {
    #[inline]
    pub(super) fn next(
        &mut self,
        found: Found,
        most: u64,
        is_cached: impl Fn(u64) -> bool,
    ) -> Option<Window> {
        if found.absent {
            Some(if most == 0 {
                Window::unmarked(found.page, found.left)
            } else {
                self.missed(found, most, is_cached)
            })
        } else if found.marked && !found.congested {
            self.met_mark(found, most, is_cached)
        } else {
            None
        }
    }

    pub(super) fn end(&mut self, last: u64) {
        self.previous = Some(last);
    }

    fn missed(&mut self, found: Found, most: u64, is_cached: impl Fn(u64) -> bool) -> Window {
        let (page, request) = (found.page, found.left);
        if page != 0 {
            if self.expects(page) {
                return self.push_on(page, most, found.within);
            }
            let sequential = self
                .previous
                .is_some_and(|previous| page == previous || page == previous + 1);
            if request <= most && !sequential {
                let history = (1..=most.min(page))
                    .take_while(|&back| is_cached(page - back))
                    .count() as u64;
                if history == 0 {
                    // One that stands alone is read as it is and leaves the stream alone.
                    return Window::unmarked(page, request);
                }
                // Pages up to the file's start: it was read from there.
                let history = if history >= page {
                    2 * history
                } else {
                    history
                };
                self.start = page;
                self.size = initial(history + request, most);
                self.ahead = self.size;
                return self.submit(page, most, found.within);
            }
        }
        self.start = page;
        self.size = initial(request, most);
        self.ahead = if self.size > request {
            self.size - request
        } else {
            self.size
        };
        self.submit(page, most, found.within)
    }

    fn met_mark(
        &mut self,
        found: Found,
        most: u64,
        is_cached: impl Fn(u64) -> bool,
    ) -> Option<Window> {
        if self.expects(found.page) {
            return Some(self.push_on(found.page, most, found.within));
        }
        // Another stream's mark, or this one has lost its place: behind what is cached.
        let hole = (found.page + 1..=found.page + most).find(|&page| !is_cached(page))?;
        self.start = hole;
        self.size = following(hole - found.page + found.left, most);
        self.ahead = self.size;
        Some(self.submit(found.page, most, found.within))
    }

    fn expects(&self, page: u64) -> bool {
        let end = self.start + self.size;
        self.size > 0 && (page == end - self.ahead || page == end)
    }

    fn push_on(&mut self, page: u64, most: u64, within: bool) -> Window {
        self.start += self.size;
        self.size = following(self.size, most);
        self.ahead = self.size;
        self.submit(page, most, within)
    }

    fn submit(&mut self, page: u64, most: u64, within: bool) -> Window {
        if page == self.start && self.size == self.ahead {
            // The reader would meet the mark at once: the window that this would start comes with it.
            let next = following(self.size, most);
            if within && self.size + next > most {
                self.size = most;
                self.ahead = most / 2;
            } else {
                self.ahead = next;
                self.size += next;
            }
        }
        Window {
            start: self.start,
            pages: self.size,
            mark: Some(self.start + self.size - self.ahead),
        }
    }
}

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

fn following(size: u64, most: u64) -> u64 {
    let next = if size < most / 16 { 4 * size } else { 2 * size };
    next.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[derive(Default)]
    struct Reader {
        within: bool,
        stream: Stream,
        cached: BTreeSet<u64>,
        marks: BTreeSet<u64>,
    }

    impl Reader {
        fn read(&mut self, first: u64, pages: u64) -> Vec<(u64, u64, Option<u64>)> {
            let mut asked = Vec::new();
            for page in first..first + pages {
                let absent = !self.cached.contains(&page);
                let found = Found {
                    page,
                    left: first + pages - page,
                    end: u64::MAX,
                    absent,
                    present: !absent,
                    marked: self.marks.remove(&page),
                    congested: false,
                    within: self.within,
                };
                if let Some(window) = self
                    .stream
                    .next(found, 32, |page| self.cached.contains(&page))
                {
                    self.cached
                        .extend(window.start..window.start + window.pages);
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
    fn a_window_is_under_way_before_the_last_is_used_up() {
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
    fn from_4_18_on_a_window_and_the_next_stay_within_the_largest() {
        let sizes = [false, true].map(|within| {
            let mut reader = Reader {
                within,
                ..Reader::default()
            };
            // As long as the largest window: its mark would be met at once.
            reader.read(0, 32)[0].1
        });
        assert_eq!(sizes, [64, 32]);
    }

    #[test]
    fn a_request_longer_than_the_largest_window_is_read_in_such_windows() {
        let mut reader = Reader::default();
        let asked = reader.read(512, 128);
        assert!(asked.iter().all(|&(_, pages, _)| pages <= 64), "{asked:?}");
        assert!((512..640).all(|page| reader.cached.contains(&page)));
    }
}
