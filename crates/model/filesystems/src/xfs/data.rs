//! Data of files in the page cache: what has blocks, what has none yet, and what is due to be written back.

use std::collections::{BTreeMap, VecDeque};

use super::BLOCK_BYTES;
use super::directory::map_blocks;
use super::writeback::Writeback;
use events::station::Violation;
use events::time::Time;

/// Files that have data, by inode.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    files: BTreeMap<u64, File>,
    /// Since when, and which; oldest first.
    dirty: VecDeque<(Time, u64)>,
    dirty_pages: u64,
    delayed_blocks: u64,
    discarded_blocks: u64,
    /// Files that a flusher has, or whose pages are on their way.
    flushed: u32,
    /// What was dirty then is due.
    due_before: Option<Time>,
    /// Threads that wait for a file's pages to be on the drive.
    waiting: BTreeMap<u64, Vec<u32>>,
    /// For dirty pages to become fewer.
    waiting_for_fewer: Vec<u32>,
    /// For all that was dirty when they asked.
    waiting_for_all: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct File {
    bytes: u64,
    pub(super) extents: Vec<Extent>,
    /// Of its map of extents: group and block of each.
    pub(super) map: Vec<(u32, u32)>,
    /// Records for which no map block was to be had.
    waived: u32,
    /// Blocks that it will have.
    pub(super) delayed: u32,
    pub(super) dirty: u32,
    /// Pieces of it that are on their way to the drive.
    writes: u32,
    is_queued: bool,
    is_flushed: bool,
    is_unlinked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) group: u32,
    pub(super) start: u32,
    pub(super) blocks: u32,
}

impl Files {
    /// Reserved by delayed allocation.
    pub(super) fn delayed_blocks(&self) -> u64 {
        self.delayed_blocks
    }

    pub(super) fn is_over(&self, pages: u64) -> bool {
        self.dirty_pages > pages
    }

    /// Blocks that these bytes add at the file's end.
    pub(super) fn added_blocks(&self, inode: u64, bytes: u32) -> u32 {
        let before = self.files.get(&inode).map_or(0, |file| file.bytes);
        (blocks_of(before + u64::from(bytes)) - blocks_of(before)) as u32
    }

    /// Into the cache, at its end.
    pub(super) fn write(&mut self, inode: u64, bytes: u32, now: Time) {
        let added = self.added_blocks(inode, bytes);
        let file = self.files.entry(inode).or_default();
        // A page that was partly full may be clean, or counted.
        let pages = added + u32::from(added == 0 && file.dirty == 0);
        file.bytes += u64::from(bytes);
        file.delayed += added;
        file.dirty += pages;
        self.delayed_blocks += u64::from(added);
        self.dirty_pages += u64::from(pages);
        if !std::mem::replace(&mut file.is_queued, true) {
            self.dirty.push_back((now, inode));
        }
    }

    /// The file that has been dirty for longest, if for long enough or if too much is; one flusher has it from now on.
    pub(super) fn take_due(&mut self, now: Time, writeback: &Writeback) -> Option<u64> {
        while let Some(&(since, inode)) = self.dirty.front() {
            let is_due = self.due_before.is_some_and(|before| since <= before)
                || now - since >= writeback.expire_ns
                || self.is_over(u64::from(writeback.background_blocks));
            if !is_due {
                return None;
            }
            self.dirty.pop_front();
            let Some(file) = self.files.get_mut(&inode) else {
                continue;
            };
            file.is_queued = false;
            if file.dirty > 0 && !file.is_flushed {
                file.is_flushed = true;
                self.flushed += 1;
                return Some(inode);
            }
        }
        None
    }

    /// For the thread that syncs it.
    pub(super) fn claim(&mut self, inode: u64) -> SyncClaim {
        match self.files.get_mut(&inode) {
            Some(file) if file.is_flushed => SyncClaim::Busy,
            Some(file) if file.dirty > 0 => {
                file.is_flushed = true;
                self.flushed += 1;
                SyncClaim::Dirty
            }
            _ => SyncClaim::Clean,
        }
    }

    /// The thread is among `take_waiting` when what is on its way of the file has come to the drive.
    pub(super) fn wait(&mut self, inode: u64, thread: u32) {
        self.waiting.entry(inode).or_default().push(thread);
    }

    pub(super) fn wait_for_fewer(&mut self, thread: u32) {
        self.waiting_for_fewer.push(thread);
    }

    pub(super) fn wait_for_all(&mut self, thread: u32) {
        self.waiting_for_all.push(thread);
    }

    /// Threads that have waited for the file, for at most `few` dirty pages, or for all.
    pub(super) fn take_waiting(&mut self, inode: u64, few: u64) -> Vec<u32> {
        let mut next = self.waiting.remove(&inode).unwrap_or_default();
        if !self.is_over(few) {
            next.append(&mut self.waiting_for_fewer);
        }
        if self.is_clean() {
            next.append(&mut self.waiting_for_all);
        }
        next
    }

    /// Nothing is dirty that had to be written by now, and nothing is on its way.
    pub(super) fn is_clean(&mut self) -> bool {
        while let Some(&(since, inode)) = self.dirty.front() {
            if let Some(file) = self.files.get_mut(&inode) {
                if file.dirty > 0 && !file.is_flushed {
                    let is_later = self.due_before.is_some_and(|before| since > before);
                    return is_later && self.flushed == 0;
                }
                file.is_queued = false;
            }
            self.dirty.pop_front();
        }
        self.flushed == 0
    }

    /// Whatever is dirty is due.
    pub(super) fn all_are_due(&mut self, now: Time) {
        self.due_before = Some(now);
    }

    pub(super) fn has_dirty(&self) -> bool {
        self.dirty_pages > 0
    }

    /// This many pieces of the file go to the drive.
    pub(super) fn begin_writes(&mut self, inode: u64, pieces: u32) {
        self.of(inode).writes = pieces;
    }

    /// One of them is there. True: all are.
    pub(super) fn write_done(&mut self, inode: u64) -> bool {
        let file = self.of(inode);
        file.writes -= 1;
        file.writes == 0
    }

    pub(super) fn file(&self, inode: u64) -> &File {
        &self.files[&inode]
    }

    /// Delayed blocks have got their place.
    pub(super) fn place(&mut self, inode: u64, (group, start): (u32, u32), blocks: u32) {
        let file = self.of(inode);
        file.delayed -= blocks;
        match file.extents.last_mut() {
            Some(last) if last.group == group && last.start + last.blocks == start => {
                last.blocks += blocks;
            }
            _ => file.extents.push(Extent { group, start, blocks }),
        }
        self.delayed_blocks -= u64::from(blocks);
    }

    pub(super) fn add_map_block(&mut self, inode: u64, block: (u32, u32)) {
        self.of(inode).map.push(block);
    }

    pub(super) fn waive_map_block(&mut self, inode: u64) {
        self.of(inode).waived += 1;
    }

    /// Delayed blocks get none.
    pub(super) fn discard(&mut self, inode: u64) {
        let blocks = u64::from(std::mem::take(&mut self.of(inode).delayed));
        self.delayed_blocks -= blocks;
        self.discarded_blocks += blocks;
    }

    /// Its pages are clean. Some: it was unlinked meanwhile, and is no more.
    pub(super) fn flushed(&mut self, inode: u64, now: Time) -> Option<File> {
        self.flushed -= 1;
        let file = self.of(inode);
        file.is_flushed = false;
        // What came while its pages were submitted stays dirty.
        let left = file.delayed;
        let clean = std::mem::replace(&mut file.dirty, left) - left;
        let is_unlinked = file.is_unlinked;
        if left > 0 && !std::mem::replace(&mut file.is_queued, true) {
            self.dirty.push_back((now, inode));
        }
        self.dirty_pages -= u64::from(clean);
        if is_unlinked { self.remove(inode) } else { None }
    }

    pub(super) fn unlink(&mut self, inode: u64) -> UnlinkOutcome {
        match self.files.get_mut(&inode) {
            None => UnlinkOutcome::Had(File::default()),
            Some(file) if file.is_flushed => {
                file.is_unlinked = true;
                UnlinkOutcome::Busy
            }
            Some(_) => UnlinkOutcome::Had(self.remove(inode).expect("there")),
        }
    }

    /// No block has two owners, and pages add up. How many blocks files have.
    pub(super) fn check(&self) -> Result<u64, Violation> {
        let mut all: Vec<(u32, u32, u32)> = Vec::new();
        for file in self.files.values() {
            all.extend(file.extents.iter().map(|extent| (extent.group, extent.start, extent.blocks)));
            all.extend(file.map.iter().map(|&(group, block)| (group, block, 1)));
        }
        all.sort_unstable();
        let overlap = all.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[0].1 + pair[0].2 > pair[1].1);
        Violation::unless(!overlap, "files", || "a block belongs to two files".to_owned())?;
        let delayed: u64 = self.files.values().map(|file| u64::from(file.delayed)).sum();
        let dirty: u64 = self.files.values().map(|file| u64::from(file.dirty)).sum();
        let pages = (self.delayed_blocks, self.dirty_pages);
        Violation::unless((delayed, dirty) == pages, "files", || {
            format!("pages: {delayed} delayed and {dirty} dirty in files, {pages:?} of all")
        })?;
        Ok(all.iter().map(|&(_, _, blocks)| u64::from(blocks)).sum())
    }

    fn remove(&mut self, inode: u64) -> Option<File> {
        let file = self.files.remove(&inode)?;
        self.delayed_blocks -= u64::from(file.delayed);
        self.dirty_pages -= u64::from(file.dirty);
        Some(file)
    }

    fn of(&mut self, inode: u64) -> &mut File {
        self.files.get_mut(&inode).expect("a file with data")
    }
}

impl Files {
    pub(super) fn with_inodes(&self) -> impl Iterator<Item = (u64, &File)> {
        self.files.iter().map(|(&inode, file)| (inode, file))
    }
}

/// What a thread that syncs a file finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncClaim {
    Clean,
    /// Its pages are on their way already.
    Busy,
    /// The thread has it from now on.
    Dirty,
}

/// What a file that is unlinked leaves.
pub(super) enum UnlinkOutcome {
    Had(File),
    /// The flusher has it, and gives it back when done.
    Busy,
}

impl File {
    /// Where its last pages are, as many as are dirty: files are written at their ends.
    pub(super) fn dirty_extents(&self) -> Vec<Extent> {
        let mut left = self.dirty;
        let mut found = Vec::new();
        for extent in self.extents.iter().rev() {
            let blocks = left.min(extent.blocks);
            if blocks == 0 {
                break;
            }
            left -= blocks;
            found.push(Extent { start: extent.start + extent.blocks - blocks, blocks, ..*extent });
        }
        found.reverse();
        found
    }

    /// For its map of extents, after the last one was placed.
    pub(super) fn needs_map_block(&self, inode_bytes: u32) -> bool {
        let has = self.map.len() as u32 + self.waived;
        map_blocks(self.extents.len() as u32, inode_bytes) > has
    }
}

fn blocks_of(bytes: u64) -> u64 {
    bytes.div_ceil(u64::from(BLOCK_BYTES))
}
