//! The space of the log: what is committed gathers in memory, goes as a checkpoint into the log's buffers and from these to the drive.
//!
//! Source: `fs/xfs/xfs_log.c` and `xfs_log_cil.c` of 3.4. Simplified: a checkpoint goes into the buffers in one piece after
//! the one before it; its headers are part of `log_bytes_per_create`.

use std::collections::{BTreeSet, VecDeque};

use super::super::{BLOCK_BYTES, XfsSpec};
use super::items::{Items, WritableBlocks};

/// What is in the log, in memory and on the drive. Positions are bytes written since the filesystem was made; on the drive the log goes around.
#[derive(Clone, Debug)]
pub(super) struct LogSpace {
    bytes: u64,
    buffer_bytes: u64,
    /// Numbers of the buffers that are free.
    free: Vec<u32>,
    /// By buffer in flight: its checkpoint.
    in_flight: Vec<Option<u64>>,
    /// Committed since the last checkpoint began.
    pending_bytes: u64,
    pending: BTreeSet<u64>,
    head: u64,
    /// Checkpoints that are not whole on the drive, oldest first.
    checkpoints: VecDeque<Checkpoint>,
    next_number: u64,
    /// What those that are on the drive keep from being written over.
    items: Items,
}

#[derive(Clone, Debug)]
struct Checkpoint {
    number: u64,
    begin: u64,
    /// A worker still puts it together: nothing of it can go into a buffer.
    is_held: bool,
    /// Not yet in a buffer.
    left_bytes: u64,
    buffers: u32,
    blocks: BTreeSet<u64>,
}

/// A buffer on its way to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogWrite {
    pub(super) buffer: u32,
    /// From the log's first block on, and how many.
    pub(super) block: u64,
    pub(super) blocks: u32,
}

impl LogSpace {
    pub(super) fn new(blocks: u32, buffers: u32, buffer_bytes: u32) -> LogSpace {
        LogSpace {
            bytes: u64::from(blocks) * BLOCK,
            buffer_bytes: u64::from(buffer_bytes),
            free: (0..buffers).rev().collect(),
            in_flight: vec![None; buffers as usize],
            pending_bytes: 0,
            pending: BTreeSet::new(),
            head: 0,
            checkpoints: VecDeque::new(),
            next_number: 0,
            items: Items::default(),
        }
    }

    /// A transaction's changes of these blocks of the volume are in memory (`xfs_log_commit_cil`).
    pub(super) fn commit(&mut self, bytes: u32, blocks: impl IntoIterator<Item = u64>) {
        self.pending_bytes += u64::from(bytes);
        self.pending.extend(blocks);
    }

    pub(super) fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Enough is committed for a checkpoint.
    pub(super) fn is_checkpoint_due(&self, spec: &XfsSpec) -> bool {
        self.pending_bytes >= spec.checkpoint_bytes()
    }

    /// What is pending becomes a checkpoint (`xlog_cil_push`): its number. None: nothing is.
    pub(super) fn begin_checkpoint(&mut self) -> Option<u64> {
        if self.pending_bytes == 0 {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        let left_bytes = std::mem::take(&mut self.pending_bytes).next_multiple_of(BLOCK);
        self.checkpoints.push_back(Checkpoint {
            number,
            begin: self.head + self.left_bytes(),
            is_held: false,
            left_bytes,
            buffers: 0,
            blocks: std::mem::take(&mut self.pending),
        });
        Some(number)
    }

    /// A worker puts the newest checkpoint together before any of it goes into a buffer.
    pub(super) fn hold_newest(&mut self) {
        if let Some(newest) = self.checkpoints.back_mut() {
            newest.is_held = true;
        }
    }

    /// It has put the oldest of these together.
    pub(super) fn release_oldest(&mut self) {
        if let Some(held) = self.checkpoints.iter_mut().find(|checkpoint| checkpoint.is_held) {
            held.is_held = false;
        }
    }

    /// The newest checkpoint that is not whole on the drive.
    pub(super) fn newest(&self) -> Option<u64> {
        self.checkpoints.back().map(|checkpoint| checkpoint.number)
    }

    /// Whether all of the checkpoint has gone into buffers.
    pub(super) fn is_in_buffers(&self, number: u64) -> bool {
        let mut behind = self.checkpoints.iter();
        !behind.any(|checkpoint| checkpoint.number <= number && checkpoint.left_bytes > 0)
    }

    /// Whether it is whole on the drive, and all before it are.
    pub(super) fn is_written(&self, number: u64) -> bool {
        self.checkpoints.front().is_none_or(|oldest| oldest.number > number)
    }

    /// The next buffer to write (`xlog_state_get_iclog_space`); None: none is free, or nothing is left.
    pub(super) fn next_write(&mut self) -> Option<LogWrite> {
        let checkpoint = self.checkpoints.iter_mut().find(|checkpoint| checkpoint.left_bytes > 0)?;
        if checkpoint.is_held {
            return None;
        }
        let buffer = self.free.pop()?;
        let at = self.head % self.bytes;
        let bytes = checkpoint.left_bytes.min(self.buffer_bytes).min(self.bytes - at);
        checkpoint.left_bytes -= bytes;
        checkpoint.buffers += 1;
        self.in_flight[buffer as usize] = Some(checkpoint.number);
        self.head += bytes;
        Some(LogWrite { buffer, block: at / BLOCK, blocks: (bytes / BLOCK) as u32 })
    }

    /// The buffer is on the drive (`xlog_state_done_syncing`). Checkpoints end in their order.
    pub(super) fn written(&mut self, buffer: u32) {
        let number = self.in_flight[buffer as usize].take().expect("the buffer was in flight");
        self.free.push(buffer);
        let checkpoint = self
            .checkpoints
            .iter_mut()
            .find(|checkpoint| checkpoint.number == number)
            .expect("its last buffer is not there yet");
        checkpoint.buffers -= 1;
        while let Some(oldest) = self.checkpoints.front()
            && (oldest.left_bytes, oldest.buffers) == (0, 0)
        {
            let done = self.checkpoints.pop_front().expect("just seen");
            self.items.insert(done.begin, done.blocks);
        }
    }

    /// Blocks up to that position that may be written in place, at most `most`.
    pub(super) fn take_items(&mut self, target: u64, most: usize) -> WritableBlocks {
        let (pending, checkpoints) = (&self.pending, &self.checkpoints);
        self.items.take(target, most, |block| {
            pending.contains(&block) || checkpoints.iter().any(|checkpoint| checkpoint.blocks.contains(&block))
        })
    }

    /// The block has been written in place.
    pub(super) fn is_in_place(&mut self, block: u64) {
        self.items.written(block);
    }

    /// The oldest position that keeps its part of the log from being written over.
    pub(super) fn oldest_item(&self) -> Option<u64> {
        self.items.oldest()
    }

    pub(super) fn has_items(&self) -> bool {
        !self.items.is_empty()
    }

    /// Whether changes of the block are not on the drive yet: then it may not be written in place.
    pub(super) fn pins(&self, block: u64) -> bool {
        self.pending.contains(&block) || self.checkpoints.iter().any(|checkpoint| checkpoint.blocks.contains(&block))
    }

    pub(super) fn next_checkpoint(&self) -> u64 {
        self.next_number
    }

    /// Bytes that may still be committed while this number of transactions is open.
    pub(super) fn free_bytes(&self, transactions: u64) -> u64 {
        let end = self.head + self.left_bytes() + self.pending_bytes;
        let used = end - self.tail() + transactions * RESERVATION_BYTES;
        self.bytes.saturating_sub(used)
    }

    /// Whether one more transaction has room.
    pub(super) fn has_room(&self, transactions: u64) -> bool {
        self.free_bytes(transactions) >= RESERVATION_BYTES
    }

    /// Until where items are to be written in place while less than a quarter is free (`xlog_grant_push_ail`).
    pub(super) fn push_target(&self, transactions: u64) -> Option<u64> {
        let quarter = self.bytes / 4;
        (self.free_bytes(transactions) < quarter).then(|| self.tail() + quarter)
    }

    fn left_bytes(&self) -> u64 {
        self.checkpoints.iter().map(|checkpoint| checkpoint.left_bytes).sum()
    }

    /// Before it, the log may be written over.
    fn tail(&self) -> u64 {
        let oldest = self.checkpoints.front().map(|oldest| oldest.begin);
        let tail = [self.items.oldest(), oldest].into_iter().flatten().min();
        tail.unwrap_or(self.head)
    }
}

const BLOCK: u64 = BLOCK_BYTES as u64;
/// What each transaction reserves of the log: a create's with 4 KiB blocks (an estimate from `xfs_calc_create_reservation`).
const RESERVATION_BYTES: u64 = 160 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn checkpoints_end_in_order_and_only_then_hold_the_log() {
        let mut log = LogSpace::new(512, 8, 32 << 10);
        log.commit(40 << 10, [7]);
        let first = log.begin_checkpoint().unwrap();
        log.commit(4 << 10, [9]);
        let second = log.begin_checkpoint().unwrap();
        assert_eq!(log.begin_checkpoint(), None);
        let writes: Vec<LogWrite> = std::iter::from_fn(|| log.next_write()).collect();
        assert_eq!(writes.iter().map(|write| write.blocks).collect::<Vec<_>>(), [8, 2, 1]);
        assert!(log.is_in_buffers(second) && log.pins(7));
        log.written(writes[2].buffer);
        assert!(!log.is_written(first) && !log.is_written(second));
        log.written(writes[0].buffer);
        log.written(writes[1].buffer);
        assert!(log.is_written(second) && !log.pins(7));
        assert_eq!(log.items.oldest(), Some(0));
    }

    #[test]
    fn a_checkpoint_that_is_put_together_holds_those_behind_it() {
        let mut log = LogSpace::new(512, 8, 32 << 10);
        log.commit(100, [1]);
        let first = log.begin_checkpoint().unwrap();
        log.hold_newest();
        log.commit(100, [2]);
        log.begin_checkpoint();
        assert_eq!(log.next_write(), None);
        log.release_oldest();
        assert!(log.next_write().is_some() && log.is_in_buffers(first) && log.next_write().is_some());
    }

    proptest! {
        /// Whatever is committed and however late buffers come back, all of it is written once, around the log, and what
        /// was written in place gives its room back.
        #[test]
        fn every_byte_is_written_once(steps in prop::collection::vec((1u32..300_000, any::<bool>()), 1..60)) {
            let mut log = LogSpace::new(1024, 4, 32 << 10);
            let (mut committed, mut written, mut in_flight) = (0, 0, VecDeque::new());
            for (number, (bytes, comes_back)) in (0u64..).zip(steps) {
                if log.has_room(0) && log.free_bytes(0) > u64::from(bytes) + BLOCK {
                    log.commit(bytes, [number]);
                    committed += u64::from(bytes).next_multiple_of(BLOCK);
                    log.begin_checkpoint();
                }
                while let Some(write) = log.next_write() {
                    prop_assert!(write.block + u64::from(write.blocks) <= 1024);
                    written += u64::from(write.blocks) * BLOCK;
                    in_flight.push_back(write.buffer);
                }
                if comes_back && let Some(buffer) = in_flight.pop_front() {
                    log.written(buffer);
                    let blocks = log.items.take(u64::MAX, 10, |_| false).blocks;
                    blocks.into_iter().for_each(|block| log.items.written(block));
                }
            }
            loop {
                while let Some(write) = log.next_write() {
                    written += u64::from(write.blocks) * BLOCK;
                    in_flight.push_back(write.buffer);
                }
                let Some(buffer) = in_flight.pop_front() else {
                    break;
                };
                log.written(buffer);
            }
            prop_assert_eq!(written, committed);
            let blocks = log.items.take(u64::MAX, usize::MAX, |_| false).blocks;
            blocks.into_iter().for_each(|block| log.items.written(block));
            prop_assert_eq!(log.free_bytes(0), 1024 * BLOCK);
        }
    }
}
