//! Files of loads: their blocks from the same groups as everything else, by delayed allocation, with room behind their ends
//! (`xfs_iomap_prealloc_size`, dynamic from 2.6.38 on).
//!
//! Whoever writes them spends no time on it here; what is allocated goes to the log.

use std::collections::BTreeMap;

use super::group::BlockTarget;
use super::volume::Request;
use super::{Waiter, Xfs};
use crate::allocator::file_map::FileMap;
use crate::allocator::{Allocator, Extent, Full};
use crate::effect::Submitter;
use block_layer::TaskId;
use memory::cache::FileId;

/// By the machine's number of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadFiles {
    files: BTreeMap<FileId, LoadFile>,
    /// Written and without a place, of all.
    delayed: u64,
}

#[derive(Clone, Debug, Default)]
struct LoadFile {
    inode: u64,
    /// The checkpoint with the last change of its times.
    changed_in: Option<u64>,
    map: FileMap,
    mapped: u64,
    /// Behind the last block that it got: group and block.
    next: Option<(u32, u32)>,
    /// Behind its end and not used yet: from `next` on.
    claimed: u32,
    /// Written and without a place: first block to how many.
    delayed: BTreeMap<u64, u64>,
}

/// 64 KiB: what is allocated behind the end of a small file.
const CLAIM_MIN: u64 = 16;
/// 8 GiB.
const CLAIM_MAX: u64 = 2 << 20;

impl LoadFiles {
    pub(super) fn delayed_blocks(&self) -> u64 {
        self.delayed
    }

    /// Blocks that files have, with those behind their ends.
    pub(super) fn blocks(&self) -> u64 {
        self.files.values().map(|file| file.mapped + u64::from(file.claimed)).sum()
    }
}

impl LoadFile {
    /// The block is delayed already, or has a place.
    fn has(&self, block: u64) -> bool {
        self.map.get(block).is_some() || self.delayed_run(block).is_some()
    }

    /// The delayed run with the block in it.
    fn delayed_run(&self, block: u64) -> Option<(u64, u64)> {
        let (&first, &blocks) = self.delayed.range(..=block).next_back()?;
        (block < first + blocks).then_some((first, blocks))
    }

    /// One more delayed block; runs that touch become one.
    fn delay(&mut self, block: u64) {
        let before = self.delayed.range(..block).next_back();
        let (mut first, mut blocks) = (block, 1);
        if let Some((&start, &length)) = before
            && start + length == block
        {
            (first, blocks) = (start, length + 1);
        }
        if let Some(length) = self.delayed.remove(&(block + 1)) {
            blocks += length;
        }
        self.delayed.insert(first, blocks);
    }

    /// The blocks have a place now. How many of them were delayed.
    fn place_delayed(&mut self, from: u64, end: u64) -> u64 {
        let mut settled = 0;
        while let Some((first, blocks)) = self.first_delayed(from, end) {
            self.delayed.remove(&first);
            let (low, high) = (first.max(from), (first + blocks).min(end));
            settled += high - low;
            if first < low {
                self.delayed.insert(first, low - first);
            }
            if high < first + blocks {
                self.delayed.insert(high, first + blocks - high);
            }
        }
        settled
    }

    fn first_delayed(&self, from: u64, end: u64) -> Option<(u64, u64)> {
        self.delayed_run(from).or_else(|| {
            let (&first, &blocks) = self.delayed.range(from..end).next()?;
            Some((first, blocks))
        })
    }
}

impl Xfs {
    /// The file's times, size or blocks change, which is in the log then (`xfs_vn_update_time`, `xfs_setfilesize`): once for
    /// each checkpoint.
    pub fn inode_changes(&mut self, file: FileId) {
        let next = self.log.next_checkpoint();
        let Some(file) = self.loads.files.get_mut(&file) else {
            return;
        };
        if file.changed_in.replace(next) != Some(next) {
            let blocks = self.volume.inode_blocks(file.inode);
            self.commit_to_log(blocks.to_vec());
        }
    }

    /// The file's changes are to be on the drive: the task waits until it is unblocked. False: they are. What has changed
    /// of others since is not its business (`xfs_fsync_seq`, `xlog_cil_force_seq` of 6.1).
    pub fn force_for_load(&mut self, task: TaskId, file: FileId) -> bool {
        let Some(file) = self.loads.files.get(&file) else {
            return false;
        };
        let waiter = Waiter::Load(task);
        match file.changed_in {
            Some(checkpoint) if checkpoint < self.log.next_checkpoint() => self.wait_for_checkpoint(checkpoint, waiter),
            _ => {
                let blocks = self.volume.inode_blocks(file.inode);
                let is_pinned = blocks.into_iter().any(|block| self.log.pins(block));
                is_pinned && self.force_for(waiter)
            }
        }
    }

    /// Allocates the `missing` blocks, and more behind them if the file continues (`goes_on`) and there is room.
    fn claim(&mut self, file: &LoadFile, missing: u64, goes_on: bool) -> Result<(u32, u32, u32), Full> {
        let behind = match goes_on {
            true => file.mapped.next_power_of_two().clamp(CLAIM_MIN, CLAIM_MAX),
            false => 0,
        };
        let room = self.volume.free();
        let wanted = match room < missing + behind + self.loads.delayed {
            // Nearly full: nothing is kept for later.
            true => missing,
            false => missing + behind,
        };
        let blocks = wanted.min(u64::from(self.volume.longest())) as u32;
        if blocks == 0 {
            return Err(Full);
        }
        let (group, near) = file.next.unwrap_or_else(|| self.volume.place_of(file.inode));
        let request =
            Request { group, place: BlockTarget::Near(near), blocks, align: 1, is_data: true, elsewhere: true };
        let groups: Vec<u32> = self.volume.around(group).collect();
        for group in groups {
            if self.volume.may_fit(group, &request)
                && let Some(block) = self.volume.allocate(group, &request)
            {
                self.volume.count_allocator_call();
                self.volume.count_data_blocks(blocks);
                self.commit_to_log(self.volume.space_headers(group).to_vec());
                self.queue_checkpoint_if_due(None);
                if self.checkpoint_if_due().is_some() {
                    self.fill_buffers(Submitter::Own(self.log.pusher_task()));
                }
                return Ok((group, block, blocks));
            }
        }
        Err(Full)
    }

    /// All of the file's blocks from there on that have none get one.
    fn give_places(&mut self, file: &mut LoadFile, block: u64, end: u64) -> Result<(), Full> {
        let mut at = block;
        let mut grows = false;
        while at < end {
            if let Some((_, run)) = file.map.get(at) {
                at += run;
                continue;
            }
            grows = true;
            let hole_end = file.map.after(at).unwrap_or(u64::MAX);
            // What was written behind it gets its place at the same time.
            let written = file.delayed_run(at).map_or(end, |(first, blocks)| (first + blocks).max(end));
            let missing = hole_end.min(written) - at;
            if file.claimed == 0 {
                let (group, start, blocks) = self.claim(file, missing, hole_end == u64::MAX)?;
                (file.next, file.claimed) = (Some((group, start)), blocks);
            }
            let (group, start) = file.next.expect("claimed there");
            let found = missing.min(u64::from(file.claimed)) as u32;
            let physical = self.volume.absolute(group, start);
            file.map.put(at, physical, u64::from(found));
            self.loads.delayed -= file.place_delayed(at, at + u64::from(found));
            file.next = Some((group, start + found));
            file.claimed -= found;
            file.mapped += u64::from(found);
            at += u64::from(found);
        }
        if grows {
            // Its size, and its map of extents.
            self.commit_to_log(self.volume.inode_blocks(file.inode).to_vec());
        }
        Ok(())
    }

    fn give_claim_back(&mut self, file: &mut LoadFile) {
        let left = std::mem::take(&mut file.claimed);
        if let Some((group, start)) = file.next
            && left > 0
        {
            self.volume.give_back(group, start, left);
        }
    }
}

impl Allocator for Xfs {
    fn create(&mut self, file: FileId, directory: u32) {
        let path = format!("directory {directory} of loads");
        let directory = self.base_directory(&path);
        let inode = self.volume.lay_out_file(directory);
        let made = LoadFile { inode, ..LoadFile::default() };
        let before = self.loads.files.insert(file, made);
        assert!(before.is_none(), "file {file} is created once");
    }

    fn map(&self, file: FileId, block: u64) -> Option<(u64, u64)> {
        self.loads.files.get(&file)?.map.get(block)
    }

    fn reserve(&mut self, file: FileId, block: u64, blocks: u64) -> Result<(), Full> {
        let mut of = self.loads.files.remove(&file).expect("the file was created");
        let new: Vec<u64> = (block..block + blocks).filter(|&at| !of.has(at)).collect();
        let unused = u64::from(of.claimed);
        let wanted = (new.len() as u64).saturating_sub(unused);
        let reserved = self.loads.delayed + self.files.delayed_blocks();
        let has_room = wanted == 0 || self.volume.has_room(wanted + reserved);
        if has_room {
            self.loads.delayed += new.len() as u64;
            new.into_iter().for_each(|at| of.delay(at));
        }
        self.loads.files.insert(file, of);
        has_room.then_some(()).ok_or(Full)
    }

    fn allocate(&mut self, _task: TaskId, file: FileId, block: u64, blocks: u64) -> Result<(), Full> {
        let mut of = self.loads.files.remove(&file).expect("the file was created");
        let result = self.give_places(&mut of, block, block + blocks);
        if result.is_err() {
            // Pages that find no place are thrown away.
            self.loads.delayed -= of.place_delayed(block, block + blocks);
        }
        self.loads.files.insert(file, of);
        result
    }

    fn allocates_at_write(&self) -> bool {
        false
    }

    fn close(&mut self, file: FileId) {
        if let Some(mut of) = self.loads.files.remove(&file) {
            self.give_claim_back(&mut of);
            self.loads.files.insert(file, of);
        }
    }

    fn remove(&mut self, file: FileId) {
        self.close(file);
        if let Some(of) = self.loads.files.remove(&file) {
            self.loads.delayed -= of.delayed.values().sum::<u64>();
            for extent in of.map.extents() {
                let (group, block) = self.volume.relative(extent.physical);
                self.volume.give_back(group, block, extent.blocks as u32);
            }
            self.volume.put_inode(of.inode);
        }
    }

    fn extents(&self, file: FileId) -> Vec<Extent> {
        let of = self.loads.files.get(&file);
        of.map_or_else(Vec::new, |of| of.map.extents().collect())
    }

    fn free_blocks(&self) -> u64 {
        self.volume.free()
    }
}
