//! The window that a reader is in, and the one ahead of it, as kernels from 2.5 to 2.6.22 had them.

use super::Window;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TwoWindows {
    pub(super) start: u64,
    pub(super) size: u64,
    /// 0: there is none. Page 0 is never ahead.
    pub(super) ahead_start: u64,
    ahead_size: u64,
}

impl TwoWindows {
    /// The reader is in it.
    pub(super) fn holds(&self, page: u64) -> bool {
        page >= self.start && page < self.start + self.size
    }

    /// The reader is in it, or continues where it ends.
    pub(super) fn are_hit_by(&self, page: u64) -> bool {
        page >= self.start && page <= self.start + self.size
    }

    pub(super) fn end_with(&self, page: u64) -> bool {
        page + 1 == self.start + self.size
    }

    /// A window of this many pages from there on, and none ahead.
    pub(super) fn renew(&mut self, page: u64, pages: u64) -> Window {
        *self = TwoWindows { start: page, size: pages, ..TwoWindows::default() };
        Window::unmarked(page, pages)
    }

    /// The next of this many pages, unless there is one.
    pub(super) fn look_ahead(&mut self, pages: u64) -> Option<Window> {
        (self.ahead_start == 0).then(|| self.follow(pages))
    }

    /// A window of this many pages is ahead now.
    pub(super) fn follow(&mut self, pages: u64) -> Window {
        (self.ahead_start, self.ahead_size) = (self.start + self.size, pages);
        Window::unmarked(self.ahead_start, self.ahead_size)
    }

    /// The reader has come into the window ahead; the next is asked for with its second page.
    pub(super) fn enter_ahead(&mut self, page: u64) -> bool {
        let enters = self.ahead_start != 0 && page == self.ahead_start;
        if enters {
            self.go_ahead();
        }
        enters
    }

    /// The window ahead is the one that the reader is in now.
    pub(super) fn go_ahead(&mut self) {
        (self.start, self.size) = (self.ahead_start, self.ahead_size);
        self.forget_ahead();
    }

    pub(super) fn forget_ahead(&mut self) {
        (self.ahead_start, self.ahead_size) = (0, 0);
    }

    /// The window ahead, if there is one, counts as so long.
    pub(super) fn resize_ahead(&mut self, pages: u64) {
        if self.ahead_size != 0 {
            self.ahead_size = pages;
        }
    }
}
