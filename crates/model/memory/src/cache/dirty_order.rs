//! Dirty pages in the order in which they became dirty: of a file, of a transaction, of all files.
//!
//! A page that something else has written meanwhile stays in the list until its turn comes, and is passed over then.

use std::collections::{BTreeSet, VecDeque};

use crate::cache::FileId;
use events::time::{SECOND, Time};

#[derive(Clone, Debug, Default)]
pub(super) struct DirtyOrder {
    runs: VecDeque<Run>,
    pages: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    file: FileId,
    page: u64,
    pages: u32,
    since: Time,
}

impl DirtyOrder {
    pub(super) fn push(&mut self, file: FileId, page: u64, now: Time) {
        self.pages += 1;
        match self.runs.back_mut() {
            // One age for a run: it must not span much time.
            Some(run)
                if run.file == file
                    && run.page + u64::from(run.pages) == page
                    && now < run.since + SECOND
                    && run.pages < u32::MAX =>
            {
                run.pages += 1;
            }
            _ => self.runs.push_back(Run { file, page, pages: 1, since: now }),
        }
    }

    /// Takes consecutive pages from the front, those that are still dirty, at most this many.
    pub(super) fn pop(&mut self, most: u64, is_dirty: impl Fn(FileId, u64) -> bool) -> Option<(FileId, u64, u64)> {
        while let Some(run) = self.runs.front_mut() {
            let (file, end) = (run.file, run.page + u64::from(run.pages));
            let start = (run.page..end).find(|&page| is_dirty(file, page)).unwrap_or(end);
            let stop =
                (start..end.min(start + most)).find(|&page| !is_dirty(file, page)).unwrap_or(end.min(start + most));
            self.pages -= stop - run.page;
            run.pages = (end - stop) as u32;
            run.page = stop;
            if stop == end {
                self.runs.pop_front();
            }
            if start < stop {
                return Some((file, start, stop - start));
            }
        }
        None
    }

    /// Since when the first has been dirty.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.runs.front().map(|run| run.since)
    }

    /// Drops what is not dirty any more, and second entries, once they are most of the list: its size follows the number
    /// of dirty pages, not time.
    pub(super) fn tidy(&mut self, dirty: u64, is_dirty: impl Fn(FileId, u64) -> bool) {
        if self.pages <= 2 * dirty + 1024 {
            return;
        }
        let mut seen = BTreeSet::new();
        let runs = std::mem::take(self).runs;
        for run in runs {
            for page in run.page..run.page + u64::from(run.pages) {
                if is_dirty(run.file, page) && seen.insert((run.file, page)) {
                    self.push(run.file, page, run.since);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_alternate_as_they_were_dirtied() {
        let mut order = DirtyOrder::default();
        for page in 0..2 {
            order.push(1, page, 0);
            order.push(2, page, 0);
        }
        let taken: Vec<_> = std::iter::from_fn(|| order.pop(32, |_, _| true)).collect();
        assert_eq!(taken, [(1, 0, 1), (2, 0, 1), (1, 1, 1), (2, 1, 1)]);
    }

    #[test]
    fn what_is_clean_by_now_is_passed_over() {
        let mut order = DirtyOrder::default();
        (0..10).for_each(|page| order.push(1, page, 0));
        let dirty = |_, page: u64| page != 0 && page != 4;
        assert_eq!(order.pop(2, dirty), Some((1, 1, 2)));
        assert_eq!(order.pop(32, dirty), Some((1, 3, 1)));
        assert_eq!(order.pop(32, dirty), Some((1, 5, 5)));
        assert_eq!(order.pop(32, dirty), None);
    }

    #[test]
    fn a_page_rewritten_for_ever_does_not_lengthen_the_list() {
        let mut order = DirtyOrder::default();
        for time in 0..100_000 {
            order.push(1, 5, time);
            order.tidy(1, |_, _| true);
        }
        assert!(order.pages <= 1027);
    }
}
