//! What is dirty of which file, in the order in which the kernel writes it back.

use std::collections::VecDeque;

use crate::cache::FileId;
use crate::cache::device::DeviceId;
use crate::cache::dirty_order::DirtyOrder;
use crate::cache::pages::Pages;
use crate::cache::spec::CacheVariant;
use events::station::Violation;
use events::time::Time;

/// Consecutive pages of a file: the first, and how many.
pub(super) type Piece = (FileId, u64, u64);

#[derive(Clone, Debug)]
pub(super) struct Backlog {
    variant: CacheVariant,
    files: Vec<File>,
    /// By drive: dirty inodes, the one that has been so for longest first.
    inodes: Vec<VecDeque<FileId>>,
    /// Dirty pages of all files in the order of dirtying; only 2.4 has it.
    order: DirtyOrder,
}

#[derive(Clone, Debug, Default)]
struct File {
    device: DeviceId,
    pages: u64,
    /// In the order of dirtying; of 2.5 to 2.6.5.
    order: DirtyOrder,
    /// Where writeback in the order of the file continues.
    cursor: u64,
    /// In the line of inodes to be written, or with a flusher.
    queued: bool,
    dirtied_at: Time,
}

impl Backlog {
    pub(super) fn new(variant: CacheVariant, devices: usize) -> Backlog {
        Backlog {
            variant,
            files: Vec::new(),
            inodes: vec![VecDeque::new(); devices],
            order: DirtyOrder::default(),
        }
    }

    pub(super) fn place(&mut self, file: FileId, device: DeviceId) {
        self.file(file).device = device;
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
            self.files.resize_with(file as usize + 1, File::default);
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
                let order = &mut self.file(file).order;
                order.push(file, page, now);
                order.tidy(pages.waiting_of(file), is_waiting);
            }
            CacheVariant::Linux2_6_18 | CacheVariant::Linux2_6_35 | CacheVariant::Linux3_2 => {}
        }
        self.queue(now, file);
    }

    /// The file's inode is dirty (`__mark_inode_dirty`): at the end of the line, unless it is there or with a flusher.
    fn queue(&mut self, now: Time, file: FileId) {
        let of = self.file(file);
        if !of.queued {
            of.queued = true;
            of.dirtied_at = now;
            let device = of.device;
            self.inodes[device].push_back(file);
        }
    }

    /// Whether an inode is in the drive's line, and of age if it is to have been dirty since before.
    pub(super) fn has_inode(&self, device: DeviceId, before: Option<Time>) -> bool {
        let is_old = |since| before.is_none_or(|before| since <= before);
        let first = self.inodes[device].front();
        first.is_some_and(|&file| is_old(self.files[file as usize].dirtied_at))
    }

    /// The next to be written on the drive, of the inode that the flusher has or takes (`sync_sb_inodes`). `before`: only
    /// what has been dirty since then.
    pub(super) fn next(
        &mut self,
        device: DeviceId,
        before: Option<Time>,
        inode: &mut Option<FileId>,
        most: u64,
        pages: &Pages,
    ) -> Option<Piece> {
        if self.variant == CacheVariant::Linux2_4 {
            let is_old = |since| before.is_none_or(|before| since <= before);
            let is_due = self.order.oldest().is_some_and(is_old);
            let piece = is_due.then(|| {
                self.order
                    .pop(most, |file, page| pages.is_waiting(file, page))
            });
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
                true => pages
                    .waiting_run(file, of.cursor, most)
                    .or_else(|| pages.waiting_run(file, 0, most))
                    .map(|(start, count)| (file, start, count)),
                false => of
                    .order
                    .pop(most, |file, page| pages.is_waiting(file, page)),
            };
            if let Some((_, start, count)) = piece {
                of.cursor = start + count;
                return piece;
            }
            // Nothing left of this one.
            of.queued = false;
            *inode = None;
        }
    }

    /// The inode that a flusher has had: at the end of the line if pages are left. Who writes what is old leaves it its age,
    /// and so comes to it again after the others that are old (`requeue_io`); until 2.6.5 it counted as just dirtied.
    pub(super) fn put_back(
        &mut self,
        now: Time,
        device: DeviceId,
        before: Option<Time>,
        file: FileId,
        pages: &Pages,
    ) {
        let of = &mut self.files[file as usize];
        of.queued = pages.waiting_of(file) > 0;
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
