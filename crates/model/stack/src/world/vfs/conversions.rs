//! Writes to new blocks, whose blocks become the file's when the data are on the drive: of each file, by one worker.
//!
//! Source: `xfs_end_bio`, `xfs_end_io`, `iomap_sort_ioends` and `iomap_ioend_try_merge` of 6.1: the worker takes all writes
//! that have ended, in the order of their places, and makes those that lie in a row the file's at once.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use events::station::Violation;
use memory::cache::FileId;

#[derive(Default)]
pub(in crate::world) struct Conversions {
    /// On their way to the drive, by the page cache's tags.
    writes: BTreeMap<u32, Write>,
    /// By file: what its worker has to do.
    works: BTreeMap<FileId, Work>,
}

struct Write {
    file: FileId,
    pages: Range<u64>,
}

#[derive(Default)]
struct Work {
    /// Writes that have ended since the worker looked: their first pages, their ends and their tags.
    ended: Vec<(u64, u64, u32)>,
    /// The tags of those that it has taken, by what lies in a row.
    runs: VecDeque<Vec<u32>>,
}

impl Conversions {
    /// The write of that tag gives the file blocks when it is over.
    pub(in crate::world) fn starts(&mut self, tag: u32, file: FileId, pages: Range<u64>) {
        self.writes.insert(tag, Write { file, pages });
    }

    /// The I/O is over. Some: it was such a write, of that file, and whether the file's worker is to be woken.
    pub(in crate::world) fn ended(&mut self, tag: u32) -> Option<(FileId, bool)> {
        let Write { file, pages } = self.writes.remove(&tag)?;
        let is_idle = !self.works.contains_key(&file);
        self.works.entry(file).or_default().ended.push((pages.start, pages.end, tag));
        Some((file, is_idle))
    }

    /// Whether the file's worker has a run to convert; if not, it is idle.
    pub(in crate::world) fn has_run(&mut self, file: FileId) -> bool {
        let Some(work) = self.works.get_mut(&file) else {
            return false;
        };
        if work.runs.is_empty() {
            work.ended.sort_unstable();
            let in_a_row = |one: &(u64, u64, u32), next: &(u64, u64, u32)| one.1 == next.0;
            let tags = |run: &[(u64, u64, u32)]| run.iter().map(|&(_, _, tag)| tag).collect();
            work.runs = work.ended.chunk_by(in_a_row).map(tags).collect();
            work.ended.clear();
        }
        let has_run = !work.runs.is_empty();
        if !has_run {
            self.works.remove(&file);
        }
        has_run
    }

    /// The worker's run is converted: the tags of its writes.
    pub(in crate::world) fn take_run(&mut self, file: FileId) -> Vec<u32> {
        let run = self.works.get_mut(&file).and_then(|work| work.runs.pop_front());
        run.unwrap_or_default()
    }

    /// A worker that is not idle has something to do.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let idle = self.works.iter().find(|(_, work)| work.ended.is_empty() && work.runs.is_empty());
        Violation::unless(idle.is_none(), "conversions", || {
            format!("{:?}: a worker with no work", idle.map(|(file, _)| file))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: FileId = 2;

    #[test]
    fn what_ends_meanwhile_is_taken_at_once_and_in_rows() {
        let mut conversions = Conversions::default();
        for (tag, pages) in [(1, 0..1), (2, 3..4), (3, 1..2), (4, 2..3), (5, 9..12)] {
            conversions.starts(tag, FILE, pages);
        }
        assert_eq!(conversions.ended(1), Some((FILE, true)));
        assert!(conversions.has_run(FILE));
        for tag in [2, 3, 5, 4] {
            assert_eq!(conversions.ended(tag), Some((FILE, false)), "it is at work");
        }
        assert_eq!(conversions.take_run(FILE), [1]);
        assert!(conversions.has_run(FILE));
        assert_eq!(conversions.take_run(FILE), [3, 4, 2]);
        assert!(conversions.has_run(FILE));
        assert_eq!(conversions.take_run(FILE), [5]);
        assert!(!conversions.has_run(FILE));
        assert_eq!(conversions.ended(7), None, "it gives no blocks");
    }

    proptest! {
        /// However writes end between the worker's looks, each is converted once.
        #[test]
        fn every_write_is_converted_once(ends in prop::collection::vec((0u32..60, any::<bool>()), 1..120)) {
            let mut conversions = Conversions::default();
            (0..60).for_each(|tag| conversions.starts(tag, FILE, u64::from(tag) * 2..u64::from(tag) * 2 + 1 + u64::from(tag % 2)));
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            for (tag, looks) in ends {
                if conversions.ended(tag).is_some() {
                    expected.push(tag);
                }
                if looks && conversions.has_run(FILE) {
                    found.extend(conversions.take_run(FILE));
                    conversions.has_run(FILE);
                }
                prop_assert!(conversions.check().is_ok());
            }
            while conversions.has_run(FILE) {
                found.extend(conversions.take_run(FILE));
            }
            expected.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
