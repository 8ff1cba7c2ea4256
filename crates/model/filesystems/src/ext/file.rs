//! Files that are made: how much of each is in memory only, and what is on its way to the drive.

use std::collections::{BTreeMap, VecDeque};

use events::time::Time;
use memory::cache::FileId;

/// By inode.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    files: BTreeMap<u64, File>,
    /// Since when, and which; oldest first.
    dirty: VecDeque<(Time, u64)>,
    /// Dirty pages, and those on their way.
    unwritten_pages: u64,
}

#[derive(Clone, Debug)]
pub(super) struct File {
    /// The allocator's number of it.
    pub(super) file: FileId,
    /// The directory's block that has its entry.
    pub(super) entry: u64,
    /// The transaction that last changed its inode.
    pub(super) changed_in: u64,
    bytes: u64,
    /// The first block that is dirty: files are written at their ends.
    dirty_from: Option<u64>,
    /// Of what is on its way.
    in_flight: u64,
    pieces: u32,
    is_queued: bool,
    is_unlinked: bool,
    pub(super) waiting: Vec<u32>,
}

/// Blocks of a file, in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dirty {
    pub(super) first: u64,
    pub(super) blocks: u64,
}

const BLOCK_BYTES: u64 = 4096;

impl Files {
    pub(super) fn add(&mut self, inode: u64, file: FileId, entry: u64) {
        let made = File {
            file,
            entry,
            changed_in: 0,
            bytes: 0,
            dirty_from: None,
            in_flight: 0,
            pieces: 0,
            is_queued: false,
            is_unlinked: false,
            waiting: Vec::new(),
        };
        self.files.insert(inode, made);
    }

    pub(super) fn get(&self, inode: u64) -> &File {
        &self.files[&inode]
    }

    pub(super) fn get_mut(&mut self, inode: u64) -> &mut File {
        self.files.get_mut(&inode).expect("the file was made")
    }

    pub(super) fn unwritten_pages(&self) -> u64 {
        self.unwritten_pages
    }

    /// The blocks that these bytes at the file's end touch, and how many of them are new.
    pub(super) fn appended(&self, inode: u64, bytes: u32) -> (Dirty, u64) {
        let before = self.get(inode).bytes;
        let first = before / BLOCK_BYTES;
        let end = (before + u64::from(bytes)).div_ceil(BLOCK_BYTES);
        let new = end - before.div_ceil(BLOCK_BYTES);
        let blocks = end - first;
        (Dirty { first, blocks }, new)
    }

    pub(super) fn append(&mut self, inode: u64, bytes: u32, now: Time) {
        let (touched, _) = self.appended(inode, bytes);
        let file = self.get_mut(inode);
        let before = file.dirty_pages();
        file.bytes += u64::from(bytes);
        file.dirty_from = Some(file.dirty_from.map_or(touched.first, |from| from.min(touched.first)));
        let added = file.dirty_pages() - before;
        let is_new = !std::mem::replace(&mut file.is_queued, true);
        self.unwritten_pages += added;
        if is_new {
            self.dirty.push_back((now, inode));
        }
    }

    /// What of it is dirty is on its way from now on; None: nothing is.
    pub(super) fn take_dirty(&mut self, inode: u64) -> Option<Dirty> {
        let file = self.files.get_mut(&inode)?;
        let first = file.dirty_from.take()?;
        let blocks = file.bytes.div_ceil(BLOCK_BYTES) - first;
        file.in_flight += blocks;
        Some(Dirty { first, blocks })
    }

    pub(super) fn dirty_of(&self, inode: u64) -> Option<Dirty> {
        let file = self.files.get(&inode)?;
        let first = file.dirty_from?;
        let blocks = file.bytes.div_ceil(BLOCK_BYTES) - first;
        Some(Dirty { first, blocks })
    }

    pub(super) fn begin_piece(&mut self, inode: u64) {
        self.get_mut(inode).pieces += 1;
    }

    /// A piece is on the drive, or was thrown away. True: all of them are.
    pub(super) fn piece_done(&mut self, inode: u64) -> bool {
        let file = self.get_mut(inode);
        file.pieces -= 1;
        if file.pieces > 0 {
            return false;
        }
        let pages = std::mem::take(&mut file.in_flight);
        self.unwritten_pages -= pages;
        true
    }

    pub(super) fn is_written(&self, inode: u64) -> bool {
        let file = self.files.get(&inode);
        file.is_none_or(|file| file.dirty_from.is_none() && file.pieces == 0)
    }

    pub(super) fn is_in_flight(&self, inode: u64) -> bool {
        self.files.get(&inode).is_some_and(|file| file.pieces > 0)
    }

    /// The file that has been dirty for longest, if since before then.
    pub(super) fn oldest_dirty(&mut self, before: Time) -> Option<u64> {
        while let Some(&(since, inode)) = self.dirty.front() {
            let is_dirty = self.dirty_of(inode).is_some();
            if is_dirty && since > before {
                return None;
            }
            self.dirty.pop_front();
            if let Some(file) = self.files.get_mut(&inode) {
                file.is_queued = false;
            }
            if is_dirty {
                return Some(inode);
            }
        }
        None
    }

    pub(super) fn has_dirty(&self) -> bool {
        self.dirty.iter().any(|&(_, inode)| self.dirty_of(inode).is_some())
    }

    /// What of it was dirty is forgotten. True: nothing of it is on its way, so that it is gone.
    pub(super) fn unlink(&mut self, inode: u64) -> bool {
        let file = self.get_mut(inode);
        let pages = file.dirty_pages();
        file.dirty_from = None;
        file.is_unlinked = true;
        let is_gone = file.pieces == 0;
        self.unwritten_pages -= pages;
        is_gone
    }

    pub(super) fn is_unlinked(&self, inode: u64) -> bool {
        self.files.get(&inode).is_some_and(|file| file.is_unlinked)
    }

    pub(super) fn remove(&mut self, inode: u64) -> File {
        self.files.remove(&inode).expect("the file was made")
    }

    /// Pages are counted once.
    pub(super) fn counts_are_right(&self) -> bool {
        let files = self.files.values();
        let sum: u64 = files.map(|file| file.dirty_pages() + file.in_flight).sum();
        sum == self.unwritten_pages
    }

    pub(super) fn count(&self) -> u64 {
        self.files.len() as u64
    }
}

impl File {
    fn dirty_pages(&self) -> u64 {
        let end = self.bytes.div_ceil(BLOCK_BYTES);
        self.dirty_from.map_or(0, |from| end - from)
    }
}
