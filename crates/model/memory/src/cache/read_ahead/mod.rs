//! Read-ahead: what a stream of reads lets a kernel read before it is asked for.

mod linux_2_4;
mod linux_2_5;
mod linux_2_6_0;
mod linux_2_6_11;
mod on_demand;
mod two_windows;

use std::ops::Range;

use crate::cache::spec::ReadAhead;

/// Pages to read, those of them that are not in the cache yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: u64,
    pub(super) pages: u64,
    /// Reading this page is the moment for the next window.
    pub(super) mark: Option<u64>,
}

impl Window {
    fn unmarked(start: u64, pages: u64) -> Window {
        Window { start, pages, mark: None }
    }

    fn range(self) -> Range<u64> {
        self.start..self.start + self.pages
    }
}

/// What a page makes a kernel read, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    pub(super) first: Window,
    pub(super) second: Option<Window>,
}

impl Windows {
    fn both(first: Option<Window>, second: Option<Window>) -> Option<Windows> {
        match first {
            Some(first) => Some(Windows { first, second }),
            None => second.map(Windows::from),
        }
    }

    fn hold(self, page: u64) -> bool {
        let holds = |window: Window| window.range().contains(&page);
        holds(self.first) || self.second.is_some_and(holds)
    }
}

impl IntoIterator for Windows {
    type Item = Window;
    type IntoIter = std::iter::Chain<std::iter::Once<Window>, std::option::IntoIter<Window>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.first).chain(self.second)
    }
}

impl From<Window> for Windows {
    fn from(first: Window) -> Windows {
        Windows { first, second: None }
    }
}

/// A page as a reader finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReaderPage {
    pub(super) page: u64,
    /// Pages of the call from this one on.
    pub(super) left: u64,
    /// The first page behind the file.
    pub(super) end: u64,
    /// Nobody has read it, nor is anybody about to.
    pub(super) absent: bool,
    pub(super) present: bool,
    pub(super) marked: bool,
    /// The device's queue has as many reads as it wants.
    pub(super) congested: bool,
}

/// What a kernel remembers of an open file; each task has opened it for itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    Linux2_4(linux_2_4::Stream),
    Linux2_5(linux_2_5::Stream),
    Linux2_6_0(linux_2_6_0::Stream),
    Linux2_6_11(linux_2_6_11::Stream),
    OnDemand(on_demand::Stream),
}

impl Stream {
    pub(super) fn new(read_ahead: ReadAhead) -> Stream {
        match read_ahead {
            ReadAhead::Linux2_4 => Stream::Linux2_4(linux_2_4::Stream::default()),
            ReadAhead::Linux2_5 => Stream::Linux2_5(linux_2_5::Stream::default()),
            kernel if kernel < ReadAhead::Linux2_6_11 => Stream::Linux2_6_0(linux_2_6_0::Stream::new(kernel)),
            kernel if kernel < ReadAhead::Linux2_6_23 => Stream::Linux2_6_11(linux_2_6_11::Stream::new(kernel)),
            kernel => Stream::OnDemand(on_demand::Stream::new(kernel)),
        }
    }

    /// A call begins to read pages; `most`: the largest window.
    pub(super) fn begin(&mut self, first: u64, pages: u64, most: u64) {
        match self {
            Stream::Linux2_4(stream) => stream.begin(first, pages, most),
            Stream::Linux2_6_11(stream) => stream.begin(first, pages),
            _ => {}
        }
    }

    /// Before the reader waits for the page or copies it. `is_cached` answers for any page of the file.
    #[inline]
    pub(super) fn next(&mut self, found: ReaderPage, most: u64, is_cached: impl Fn(u64) -> bool) -> Option<Windows> {
        match self {
            Stream::Linux2_4(stream) => stream.next(found, most).map(Windows::from),
            Stream::Linux2_5(stream) => stream.next(found, most).map(Windows::from),
            Stream::Linux2_6_0(stream) => stream.next(found, most, is_cached).map(Windows::from),
            Stream::Linux2_6_11(stream) => stream.next(found, most, is_cached),
            Stream::OnDemand(stream) => stream.next(found, most, is_cached),
        }
    }

    pub(super) fn end(&mut self, last: u64) {
        if let Stream::OnDemand(stream) = self {
            stream.end(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReaderPage;

    /// One page that nobody has read.
    pub(super) fn found(page: u64) -> ReaderPage {
        ReaderPage { page, left: 1, end: u64::MAX, absent: true, present: false, marked: false, congested: false }
    }
}
