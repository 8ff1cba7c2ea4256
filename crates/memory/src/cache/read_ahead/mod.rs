//! Read-ahead: what a stream of reads lets a kernel read before it is asked for.

mod linux_2_4;
mod linux_2_5;
mod linux_2_6_7;
mod on_demand;
mod two_windows;

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
        Window {
            start,
            pages,
            mark: None,
        }
    }
}

/// A page as a reader finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) page: u64,
    /// Pages of the call from this one on.
    pub(super) left: u64,
    /// Nobody has read it, nor is anybody about to.
    pub(super) absent: bool,
    pub(super) present: bool,
    pub(super) marked: bool,
    /// The device's queue has as many reads as it wants.
    pub(super) congested: bool,
    /// A window and the next together stay within the largest (4.18 on).
    pub(super) within: bool,
}

/// What a kernel remembers of an open file; each task has opened it for itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    Linux2_4(linux_2_4::Stream),
    Linux2_5(linux_2_5::Stream),
    Linux2_6_7(linux_2_6_7::Stream),
    OnDemand(on_demand::Stream),
}

impl Stream {
    pub(super) fn new(read_ahead: ReadAhead) -> Stream {
        match read_ahead {
            ReadAhead::Linux2_4 => Stream::Linux2_4(linux_2_4::Stream::default()),
            ReadAhead::Linux2_5 => Stream::Linux2_5(linux_2_5::Stream::default()),
            ReadAhead::Linux2_6_7 => Stream::Linux2_6_7(linux_2_6_7::Stream::new(false)),
            ReadAhead::Linux2_6_8 => Stream::Linux2_6_7(linux_2_6_7::Stream::new(true)),
            ReadAhead::OnDemand => Stream::OnDemand(on_demand::Stream::default()),
        }
    }

    /// A call begins to read pages; `most`: the largest window.
    pub(super) fn begin(&mut self, first: u64, pages: u64, most: u64) {
        if let Stream::Linux2_4(stream) = self {
            stream.begin(first, pages, most);
        }
    }

    /// Before the reader waits for the page or copies it. `is_cached` tells of any page of the file.
    #[inline]
    pub(super) fn next(
        &mut self,
        found: Found,
        most: u64,
        is_cached: impl Fn(u64) -> bool,
    ) -> Option<Window> {
        match self {
            Stream::Linux2_4(stream) => stream.next(found, most),
            Stream::Linux2_5(stream) => stream.next(found, most),
            Stream::Linux2_6_7(stream) => stream.next(found, most, is_cached),
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
    use super::Found;

    /// One page that nobody has read.
    pub(super) fn found(page: u64) -> Found {
        Found {
            page,
            left: 1,
            absent: true,
            present: false,
            marked: false,
            congested: false,
            within: false,
        }
    }
}
