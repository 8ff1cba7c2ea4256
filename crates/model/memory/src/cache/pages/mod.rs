//! Which pages of files are in memory and what becomes of them: five bits a page, in chunks of 64 that age together.
//!
//! The kernel's lists age single pages; here what was used least recently is a chunk of up to 256 KiB with clean pages.

mod chunk;

use std::collections::BTreeSet;

use crate::cache::FileId;
use chunk::{CHUNK, Chunk, NONE, bit};
use events::station::Violation;

#[derive(Clone, Debug)]
pub(super) struct Pages {
    files: Vec<File>,
    chunks: Vec<Chunk>,
    free_chunks: Vec<u32>,
    /// Chunks with clean pages, the most recently used first.
    newest: u32,
    oldest: u32,
    in_memory: u64,
    memory: u64,
    reading: u64,
    dirty: u64,
    writing: u64,
    /// Dirtied again while they are written.
    both: u64,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// By chunk number: its index in `chunks`.
    index: Vec<u32>,
    dirty_chunks: BTreeSet<u32>,
    dirty: u64,
    writing: u64,
    both: u64,
}

/// What has become of a page that was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirtyOutcome {
    Now,
    Before,
    /// It is being written; it has to be again.
    WhileWriting,
}

impl Pages {
    pub(super) fn new(memory: u64) -> Pages {
        Pages {
            files: Vec::new(),
            chunks: Vec::new(),
            free_chunks: Vec::new(),
            newest: NONE,
            oldest: NONE,
            in_memory: 0,
            memory,
            reading: 0,
            dirty: 0,
            writing: 0,
            both: 0,
        }
    }

    // Questions.

    pub(super) fn dirty(&self) -> u64 {
        self.dirty
    }

    pub(super) fn writing(&self) -> u64 {
        self.writing
    }

    /// Pages that the device does not have.
    pub(super) fn unwritten(&self) -> u64 {
        self.dirty + self.writing - self.both
    }

    /// Dirty pages that are not being written.
    pub(super) fn waiting(&self) -> u64 {
        self.dirty - self.both
    }

    pub(super) fn waiting_of(&self, file: FileId) -> u64 {
        self.files.get(file as usize).map_or(0, |file| file.dirty - file.both)
    }

    pub(super) fn rewritten_of(&self, file: FileId) -> u64 {
        self.files.get(file as usize).map_or(0, |file| file.both)
    }

    pub(super) fn unwritten_of(&self, file: FileId) -> u64 {
        let file = self.files.get(file as usize);
        file.map_or(0, |file| file.dirty + file.writing - file.both)
    }

    pub(super) fn in_memory(&self) -> u64 {
        self.in_memory
    }

    #[inline]
    pub(super) fn is_present(&self, file: FileId, page: u64) -> bool {
        self.find(file, page).is_some_and(|chunk| chunk.present & bit(page) != 0)
    }

    /// In memory, or on its way there.
    pub(super) fn is_cached(&self, file: FileId, page: u64) -> bool {
        self.find(file, page).is_some_and(|chunk| (chunk.present | chunk.reading) & bit(page) != 0)
    }

    pub(super) fn is_waiting(&self, file: FileId, page: u64) -> bool {
        self.find(file, page).is_some_and(|chunk| chunk.dirty & !chunk.writing & bit(page) != 0)
    }

    pub(super) fn is_unwritten(&self, file: FileId, page: u64) -> bool {
        self.find(file, page).is_some_and(|chunk| (chunk.dirty | chunk.writing) & bit(page) != 0)
    }

    /// The first consecutive dirty pages from `from` on that are not being written, at most this many.
    pub(super) fn waiting_run(&self, file: FileId, from: u64, most: u64) -> Option<(u64, u64)> {
        let of = self.files.get(file as usize)?;
        let first = (from / CHUNK) as u32;
        let start = of.dirty_chunks.range(first..).find_map(|&number| {
            let chunk = &self.chunks[of.index[number as usize] as usize];
            let behind = if number == first { u64::MAX << (from % CHUNK) } else { u64::MAX };
            let bits = chunk.dirty & !chunk.writing & behind;
            (bits != 0).then(|| u64::from(number) * CHUNK + u64::from(bits.trailing_zeros()))
        })?;
        let end = (start + 1..start + most).find(|&page| !self.is_waiting(file, page)).unwrap_or(start + most);
        Some((start, end - start))
    }

    pub(super) fn reading(&self) -> u64 {
        self.reading
    }

    pub(super) fn is_reading(&self, file: FileId, page: u64) -> bool {
        self.find(file, page).is_some_and(|chunk| chunk.reading & bit(page) != 0)
    }

    /// Pages that can't be forgotten: being read, dirty or being written.
    pub(super) fn not_clean(&self) -> u64 {
        self.reading + self.unwritten()
    }

    /// Those of all files are those of each.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let sum = |count: fn(&File) -> u64| self.files.iter().map(count).sum::<u64>();
        let of_files = [sum(|of| of.dirty), sum(|of| of.writing), sum(|of| of.both)];
        let of_all = [self.dirty, self.writing, self.both];
        Violation::unless(of_files == of_all, "pages", || {
            format!("{of_files:?} pages of files are dirty, being written and both, {of_all:?} of all")
        })
    }

    // What happens to pages.

    /// There is this much memory for pages from now on; false: as before.
    pub(super) fn set_memory(&mut self, pages: u64) -> bool {
        let before = std::mem::replace(&mut self.memory, pages);
        self.make_room();
        before != pages
    }

    /// The page is used: true if it is in memory.
    #[inline]
    pub(super) fn touch(&mut self, file: FileId, page: u64) -> bool {
        let Some(index) = self.index_of(file, page) else {
            return false;
        };
        let chunk = &self.chunks[index as usize];
        let present = chunk.present & bit(page) != 0;
        if present && chunk.listed && self.newest != index {
            self.unlist(index);
            self.list(index);
        }
        present
    }

    pub(super) fn start_reading(&mut self, file: FileId, page: u64) {
        let index = self.make(file, page);
        let chunk = &mut self.chunks[index as usize];
        debug_assert!((chunk.present | chunk.reading) & bit(page) == 0);
        chunk.reading |= bit(page);
        self.reading += 1;
        self.in_memory += 1;
        self.make_room();
    }

    pub(super) fn mark(&mut self, file: FileId, page: u64) {
        if let Some(index) = self.index_of(file, page) {
            self.chunks[index as usize].marked |= bit(page);
        }
    }

    pub(super) fn is_marked(&self, file: FileId, page: u64) -> bool {
        let index = self.index_of(file, page);
        index.is_some_and(|index| self.chunks[index as usize].marked & bit(page) != 0)
    }

    /// Whether it was marked; it is so no more.
    pub(super) fn take_mark(&mut self, file: FileId, page: u64) -> bool {
        let Some(index) = self.index_of(file, page) else {
            return false;
        };
        let chunk = &mut self.chunks[index as usize];
        let marked = chunk.marked & bit(page) != 0;
        chunk.marked &= !bit(page);
        marked
    }

    pub(super) fn read(&mut self, file: FileId, start: u64, pages: u64) {
        self.each_chunk(file, start, pages, |cache, index, bits| {
            let chunk = &mut cache.chunks[index as usize];
            let read = chunk.reading & bits;
            chunk.present |= read;
            chunk.reading &= !bits;
            cache.reading -= u64::from(read.count_ones());
            cache.relist(index);
        });
        self.make_room();
    }

    #[inline]
    pub(super) fn write_to(&mut self, file: FileId, page: u64) -> DirtyOutcome {
        let index = self.make(file, page);
        let chunk = &mut self.chunks[index as usize];
        let bit = bit(page);
        if (chunk.present | chunk.reading) & bit == 0 {
            self.in_memory += 1;
        }
        chunk.present |= bit;
        if chunk.dirty & bit != 0 {
            return DirtyOutcome::Before;
        }
        let of = &mut self.files[file as usize];
        if chunk.dirty == 0 {
            of.dirty_chunks.insert(chunk.number);
        }
        chunk.dirty |= bit;
        self.dirty += 1;
        of.dirty += 1;
        let while_writing = chunk.writing & bit != 0;
        self.both += u64::from(while_writing);
        of.both += u64::from(while_writing);
        self.relist(index);
        self.make_room();
        if while_writing { DirtyOutcome::WhileWriting } else { DirtyOutcome::Now }
    }

    /// Dirty pages that are not being written now are.
    pub(super) fn start_writing(&mut self, file: FileId, start: u64, pages: u64) {
        self.each_chunk(file, start, pages, |cache, index, bits| {
            let chunk = &mut cache.chunks[index as usize];
            debug_assert!(chunk.dirty & !chunk.writing & bits == bits);
            chunk.dirty &= !bits;
            chunk.writing |= bits;
            if chunk.dirty == 0 {
                cache.files[file as usize].dirty_chunks.remove(&chunk.number);
            }
        });
        let of = &mut self.files[file as usize];
        of.dirty -= pages;
        of.writing += pages;
        self.dirty -= pages;
        self.writing += pages;
    }

    /// They are on the device; `again` gets those that were dirtied meanwhile.
    pub(super) fn written(&mut self, file: FileId, start: u64, pages: u64, again: &mut Vec<u64>) {
        self.each_chunk(file, start, pages, |cache, index, bits| {
            let chunk = &mut cache.chunks[index as usize];
            chunk.writing &= !bits;
            let mut dirty = chunk.dirty & bits;
            cache.both -= u64::from(dirty.count_ones());
            cache.files[file as usize].both -= u64::from(dirty.count_ones());
            while dirty != 0 {
                again.push(u64::from(chunk.number) * CHUNK + u64::from(dirty.trailing_zeros()));
                dirty &= dirty - 1;
            }
            cache.relist(index);
        });
        self.files[file as usize].writing -= pages;
        self.writing -= pages;
        self.make_room();
    }

    /// Clean pages of the range are forgotten.
    pub(super) fn forget(&mut self, file: FileId, start: u64, pages: u64) {
        self.each_chunk(file, start, pages, |cache, index, bits| {
            cache.drop_clean(index, bits);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pages: &mut Pages, file: FileId, page: u64) {
        pages.start_reading(file, page);
        pages.read(file, page, 1);
    }

    #[test]
    fn what_was_used_least_recently_is_forgotten_first() {
        let mut pages = Pages::new(3);
        (0..3).for_each(|number| read(&mut pages, 0, number * 64));
        assert!(pages.touch(0, 0));
        read(&mut pages, 0, 999);
        assert!(pages.is_present(0, 0) && !pages.is_present(0, 64) && pages.is_present(0, 128));
    }

    #[test]
    fn dirty_pages_are_not_forgotten() {
        let mut pages = Pages::new(2);
        pages.write_to(0, 5);
        (1..10).for_each(|number| read(&mut pages, 0, number * 64));
        assert!(pages.is_present(0, 5));
        assert_eq!(pages.in_memory(), 2);
    }

    #[test]
    fn a_page_that_is_dirtied_while_it_is_written_is_still_dirty_after() {
        let mut pages = Pages::new(10);
        assert_eq!(pages.write_to(0, 5), DirtyOutcome::Now);
        assert_eq!(pages.write_to(0, 5), DirtyOutcome::Before);
        pages.start_writing(0, 5, 1);
        assert_eq!(pages.write_to(0, 5), DirtyOutcome::WhileWriting);
        assert_eq!((pages.unwritten(), pages.waiting()), (1, 0));
        let mut again = Vec::new();
        pages.written(0, 5, 1, &mut again);
        assert_eq!(again, [5]);
        assert_eq!(pages.waiting_run(0, 0, 32), Some((5, 1)));
    }

    #[test]
    fn runs_of_dirty_pages_cross_chunks() {
        let mut pages = Pages::new(1000);
        (60..70).for_each(|page| {
            pages.write_to(0, page);
        });
        assert_eq!(pages.waiting_run(0, 0, 32), Some((60, 10)));
        assert_eq!(pages.waiting_run(0, 65, 3), Some((65, 3)));
        pages.start_writing(0, 60, 10);
        assert_eq!(pages.waiting_run(0, 0, 32), None);
    }
}
