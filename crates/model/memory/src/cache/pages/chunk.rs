//! Sixty-four neighbouring pages of a file: five bits for each, found by their number, aged as one.

use super::{File, Pages};
use crate::cache::FileId;

pub(super) const NONE: u32 = u32::MAX;
pub(super) const CHUNK: u64 = 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) file: FileId,
    pub(super) number: u32,
    pub(super) newer: u32,
    pub(super) older: u32,
    pub(super) listed: bool,
    pub(super) present: u64,
    pub(super) reading: u64,
    pub(super) dirty: u64,
    pub(super) writing: u64,
    /// Reading on from here starts the next read-ahead.
    pub(super) marked: u64,
}

impl Chunk {
    pub(super) fn clean(&self) -> u64 {
        self.present & !self.dirty & !self.writing & !self.reading
    }

    pub(super) fn is_empty(&self) -> bool {
        self.present | self.reading | self.dirty | self.writing == 0
    }
}

impl Pages {
    #[inline]
    pub(super) fn index_of(&self, file: FileId, page: u64) -> Option<u32> {
        let index = *self.files.get(file as usize)?.index.get((page / CHUNK) as usize)?;
        (index != NONE).then_some(index)
    }

    #[inline]
    pub(super) fn find(&self, file: FileId, page: u64) -> Option<&Chunk> {
        self.index_of(file, page).map(|index| &self.chunks[index as usize])
    }

    pub(super) fn make(&mut self, file: FileId, page: u64) -> u32 {
        if let Some(index) = self.index_of(file, page) {
            return index;
        }
        let number = (page / CHUNK) as u32;
        let chunk = Chunk {
            file,
            number,
            newer: NONE,
            older: NONE,
            listed: false,
            present: 0,
            reading: 0,
            dirty: 0,
            writing: 0,
            marked: 0,
        };
        let index = match self.free_chunks.pop() {
            Some(index) => {
                self.chunks[index as usize] = chunk;
                index
            }
            None => {
                self.chunks.push(chunk);
                (self.chunks.len() - 1) as u32
            }
        };
        if self.files.len() <= file as usize {
            self.files.resize_with(file as usize + 1, File::default);
        }
        let of = &mut self.files[file as usize].index;
        if of.len() <= number as usize {
            of.resize(number as usize + 1, NONE);
        }
        of[number as usize] = index;
        index
    }

    /// Calls with each chunk of the range that is there and the bits of the range in it.
    pub(super) fn each_chunk(
        &mut self,
        file: FileId,
        start: u64,
        pages: u64,
        mut call: impl FnMut(&mut Pages, u32, u64),
    ) {
        let end = start + pages;
        let mut at = start;
        while at < end {
            let next = (at / CHUNK + 1) * CHUNK;
            let bits = (u64::MAX << (at % CHUNK)) & (u64::MAX >> (next - next.min(end)));
            if let Some(index) = self.index_of(file, at) {
                call(self, index, bits);
            }
            at = next;
        }
    }

    /// In the list of what may be forgotten if it has clean pages; gone if it has none at all.
    pub(super) fn relist(&mut self, index: u32) {
        let chunk = self.chunks[index as usize];
        match (chunk.clean() != 0, chunk.listed) {
            (true, false) => self.list(index),
            (false, true) => self.unlist(index),
            _ => {}
        }
        if chunk.is_empty() {
            self.files[chunk.file as usize].index[chunk.number as usize] = NONE;
            self.free_chunks.push(index);
        }
    }

    pub(super) fn make_room(&mut self) {
        while self.in_memory > self.memory && self.oldest != NONE {
            self.drop_clean(self.oldest, u64::MAX);
        }
    }

    pub(super) fn drop_clean(&mut self, index: u32, bits: u64) {
        let chunk = &mut self.chunks[index as usize];
        let dropped = chunk.clean() & bits;
        chunk.present &= !dropped;
        chunk.marked &= !dropped;
        self.in_memory -= u64::from(dropped.count_ones());
        self.relist(index);
    }

    pub(super) fn list(&mut self, index: u32) {
        let before = std::mem::replace(&mut self.newest, index);
        let chunk = &mut self.chunks[index as usize];
        (chunk.listed, chunk.newer, chunk.older) = (true, NONE, before);
        match before {
            NONE => self.oldest = index,
            _ => self.chunks[before as usize].newer = index,
        }
    }

    pub(super) fn unlist(&mut self, index: u32) {
        let chunk = &mut self.chunks[index as usize];
        chunk.listed = false;
        let (newer, older) = (chunk.newer, chunk.older);
        match newer {
            NONE => self.newest = older,
            _ => self.chunks[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.chunks[older as usize].newer = newer,
        }
    }
}

#[inline]
pub(super) fn bit(page: u64) -> u64 {
    1 << (page % CHUNK)
}
