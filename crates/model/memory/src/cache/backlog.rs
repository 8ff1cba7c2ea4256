//! What is dirty of which file, in the order in which the kernel writes it back.
//!
//! The parts of a drive that are written without a filesystem are one inode, that of the block device: it is written back
//! from its start to its end, whoever has dirtied it (`write_cache_pages` with `range_cyclic`, `mm/page-writeback.c` of 6.1).

use std::collections::VecDeque;

use crate::cache::FileId;
use crate::cache::device::DeviceId;
use crate::cache::dirty_order::DirtyOrder;
use crate::cache::folios::Folios;
use crate::cache::pages::Pages;
use crate::cache::spec::CacheVariant;
use events::station::Violation;
use events::time::Time;

/// Consecutive pages of a file: the first, and how many.
pub(super) type Piece = (FileId, u64, u64);

/// What a flusher takes of the pages before it submits a write that ends there, if it has one: these pages if they go on with
/// it, otherwise the first, with which another begins (`iomap_writepage_map`, `io_submit_add_bh` of fs/ext4/page-io.c, 6.1).
pub(super) fn up_to_submission(piece: Piece, goes_on: Option<(FileId, u64)>) -> Piece {
    let (file, page, pages) = piece;
    match goes_on.is_none_or(|end| end == (file, page)) {
        true => piece,
        false => (file, page, pages.min(1)),
    }
}

/// What is in memory.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    pub(super) pages: &'a Pages,
    pub(super) folios: &'a Folios,
}

impl Memory<'_> {
    /// The next consecutive pages of the file that can be written back, of one folio or of none: of a folio nothing is
    /// while a part of it is being written (`folio_prepare_writeback`).
    fn run(self, file: FileId, mut from: u64, most: u64) -> Option<(u64, u64)> {
        loop {
            let (start, count) = self.pages.waiting_run(file, from, most)?;
            match self.folios.end_of_written(file, start) {
                Some(end) => from = end,
                None => return Some((start, self.folios.room(file, start, count))),
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Backlog {
    variant: CacheVariant,
    files: Vec<File>,
    /// By drive: dirty inodes, the one that has been so for longest first.
    inodes: Vec<VecDeque<FileId>>,
    /// Dirty pages of all files in the order of dirtying; only 2.4 has it.
    order: DirtyOrder,
}

#[derive(Clone, Debug)]
struct File {
    device: DeviceId,
    pages: u64,
    /// The first of the files that are one inode with it, or itself: what follows is kept there.
    inode: FileId,
    /// The files that are this inode, each with the page at which it begins there.
    parts: Vec<(u64, FileId)>,
    /// In the order of dirtying; of 2.5 to 2.6.5.
    order: DirtyOrder,
    /// The part, and the page of it, where writeback in the order of the file continues.
    cursor: (usize, u64),
    /// In the line of inodes to be written, or with a flusher.
    queued: bool,
    dirtied_at: Time,
}

impl File {
    fn new(file: FileId) -> File {
        File {
            device: 0,
            pages: 0,
            inode: file,
            parts: vec![(0, file)],
            order: DirtyOrder::default(),
            cursor: (0, 0),
            queued: false,
            dirtied_at: 0,
        }
    }

    /// Dirty pages that nobody writes yet, of all parts.
    fn waiting(&self, pages: &Pages) -> u64 {
        let parts = self.parts.iter();
        parts.map(|&(_, file)| pages.waiting_of(file)).sum()
    }

    /// The next in the order of the inode, from the cursor to the end and, if it wraps, then from the start on: in which
    /// part, from which page on, how many.
    fn next_run(&self, most: u64, wraps: bool, at: &Memory) -> Option<(usize, u64, u64)> {
        let (first, page) = self.cursor;
        let end = if wraps { self.parts.len() } else { 0 };
        (0..=end).find_map(|step| {
            let number = (first + step) % self.parts.len();
            let from = if step == 0 { page } else { 0 };
            let run = at.run(self.parts[number].1, from, most)?;
            Some((number, run.0, run.1))
        })
    }
}

impl Backlog {
    pub(super) fn new(variant: CacheVariant, devices: usize) -> Backlog {
        Backlog { variant, files: Vec::new(), inodes: vec![VecDeque::new(); devices], order: DirtyOrder::default() }
    }

    pub(super) fn place(&mut self, file: FileId, device: DeviceId) {
        self.file(file).device = device;
    }

    /// The file is the part of that one's inode that begins with that page. One that is first is a part of its own.
    pub(super) fn join(&mut self, file: FileId, inode: FileId, start: u64) {
        self.file(file).inode = inode;
        let of = self.file(inode);
        of.parts.retain(|&(_, part)| part != file);
        let place = of.parts.partition_point(|&part| part < (start, file));
        of.parts.insert(place, (start, file));
        // Nothing of it is dirty yet: the next round begins at the start.
        of.cursor = (0, 0);
    }

    pub(super) fn device_of(&self, file: FileId) -> DeviceId {
        self.files.get(file as usize).map_or(0, |of| of.device)
    }

    /// How long the file is, in pages; 0: unknown.
    pub(super) fn size(&self, file: FileId) -> u64 {
        self.files.get(file as usize).map_or(0, |of| of.pages)
    }

    pub(super) fn set_size(&mut self, file: FileId, pages: u64) {
        self.file(file).pages = pages;
    }

    fn file(&mut self, file: FileId) -> &mut File {
        if self.files.len() <= file as usize {
            let known = self.files.len() as FileId;
            self.files.extend((known..=file).map(File::new));
        }
        &mut self.files[file as usize]
    }

    /// The page is dirty and not being written: into the lists that the kernel has.
    #[inline]
    pub(super) fn became_dirty(&mut self, now: Time, file: FileId, page: u64, pages: &Pages) {
        let is_waiting = |file, page| pages.is_waiting(file, page);
        match self.variant {
            CacheVariant::Linux2_4 => {
                self.order.push(file, page, now);
                return self.order.tidy(pages.waiting(), is_waiting);
            }
            CacheVariant::Linux2_5 => {
                let inode = self.file(file).inode;
                let of = self.file(inode);
                of.order.push(file, page, now);
                let waiting = of.waiting(pages);
                of.order.tidy(waiting, is_waiting);
            }
            CacheVariant::Linux2_6_18 | CacheVariant::Linux2_6_35 | CacheVariant::Linux3_2 => {}
        }
        self.queue(now, file);
    }

    /// The file's inode is dirty (`__mark_inode_dirty`): at the end of the line, unless it is there or with a flusher.
    fn queue(&mut self, now: Time, file: FileId) {
        let inode = self.file(file).inode;
        let of = self.file(inode);
        if !of.queued {
            of.queued = true;
            of.dirtied_at = now;
            let device = of.device;
            self.inodes[device].push_back(inode);
        }
    }

    /// A write of the file's pages is over: what could not be written meanwhile can be.
    pub(super) fn queue_what_waits(&mut self, now: Time, file: FileId, pages: &Pages) {
        if self.variant.writes_in_file_order() && pages.waiting_of(file) > 0 {
            self.queue(now, file);
        }
    }

    /// Whether pages of the inode that the file is, or is a part of, are being written.
    pub(super) fn is_being_written(&self, file: FileId, pages: &Pages) -> bool {
        let inode = self.files[file as usize].inode;
        let mut parts = self.files[inode as usize].parts.iter();
        parts.any(|&(_, part)| pages.unwritten_of(part) > pages.waiting_of(part))
    }

    /// Whether an inode is in the drive's line, and of age if it is to have been dirty since before.
    pub(super) fn has_inode(&self, device: DeviceId, before: Option<Time>) -> bool {
        let is_old = |since| before.is_none_or(|before| since <= before);
        let first = self.inodes[device].front();
        first.is_some_and(|&file| is_old(self.files[file as usize].dirtied_at))
    }

    /// The next to be written on the drive, of the inode that the flusher has or takes (`sync_sb_inodes`). `before`: only
    /// what has been dirty since then. `goes_on`: it has a write that it has not submitted, which ends there. If it does not
    /// wrap and the inode has nothing behind the last, it has come to an end.
    pub(super) fn next(
        &mut self,
        device: DeviceId,
        before: Option<Time>,
        inode: &mut Option<FileId>,
        (most, goes_on, wraps): (u64, Option<(FileId, u64)>, bool),
        at: Memory,
    ) -> Option<Piece> {
        let pages = at.pages;
        if self.variant == CacheVariant::Linux2_4 {
            let is_old = |since| before.is_none_or(|before| since <= before);
            let is_due = self.order.oldest().is_some_and(is_old);
            let piece = is_due.then(|| self.order.pop(most, |file, page| pages.is_waiting(file, page)));
            return piece.flatten();
        }
        loop {
            let file = match *inode {
                Some(file) => file,
                // The one that has been dirty for longest.
                None if self.has_inode(device, before) => self.inodes[device].pop_front()?,
                None => return None,
            };
            *inode = Some(file);
            let of = &mut self.files[file as usize];
            let piece = match self.variant.writes_in_file_order() {
                true => of.next_run(most, wraps, &at).map(|(part, start, count)| {
                    let piece = up_to_submission((of.parts[part].1, start, count), goes_on);
                    of.cursor = (part, start + piece.2);
                    piece
                }),
                false => of.order.pop(most, |file, page| pages.is_waiting(file, page)),
            };
            if piece.is_some() {
                return piece;
            }
            if !wraps {
                of.cursor = (0, 0);
                return None;
            }
            // Nothing left of this one.
            of.queued = false;
            *inode = None;
        }
    }

    /// The inode that a flusher has had: at the end of the line if pages are left. Who writes what is old leaves it its age,
    /// and so comes to it again after the others that are old (`requeue_io`); until 2.6.5 it counted as just dirtied.
    pub(super) fn put_back(&mut self, now: Time, device: DeviceId, before: Option<Time>, file: FileId, pages: &Pages) {
        let of = &mut self.files[file as usize];
        of.queued = of.waiting(pages) > 0;
        if !of.queued {
            return;
        }
        match before {
            Some(before) if self.variant.writes_in_file_order() => {
                let files = &self.files;
                let is_old = |&file: &FileId| files[file as usize].dirtied_at <= before;
                let inodes = &mut self.inodes[device];
                let place = inodes.iter().position(|file| !is_old(file));
                inodes.insert(place.unwrap_or(inodes.len()), file);
            }
            _ => {
                of.queued = false;
                self.queue(now, file);
            }
        }
    }

    /// Each inode in a line is marked as such.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let mut in_line = self.inodes.iter().flatten();
        let stray = in_line.find(|&&file| !self.files[file as usize].queued);
        Violation::unless(stray.is_none(), "backlog", || {
            format!("file {stray:?} is in the line of dirty inodes and does not know it")
        })
    }
}
