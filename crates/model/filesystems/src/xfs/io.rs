//! I/O on the drive: what is on its way, and what its end leads to.

use super::{BlockIo, Effect, FlushNumber, Xfs};
use block_layer::Direction;
use events::slab::Slab;
use events::smp::TaskNumber;
use events::time::Time;

/// What is under way, and what has gone to the drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Io {
    /// By the tag that comes back.
    under_way: Slab<Purpose>,
    pub(super) written: Written,
}

/// Blocks that were sent to the drive so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Into the log.
    pub log: u64,
    /// Blocks of metadata, in their places.
    pub metadata: u64,
    /// Of files.
    pub data: u64,
}

/// What a write is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    LogBuffer(u32),
    /// Blocks of metadata in a row, in place.
    Items {
        block: u64,
        blocks: u32,
    },
    /// A file's, by its inode.
    Data(u64),
}

/// Flushes that log buffers wait for have the buffers' numbers; those that threads wait for follow.
const FLUSHES_OF_THREADS: FlushNumber = 64;

impl Xfs {
    pub(super) fn write(&mut self, purpose: Purpose, task: TaskNumber, block: u64, blocks: u32) {
        self.under_way += 1;
        let written = &mut self.io.written;
        *match purpose {
            Purpose::LogBuffer(_) => &mut written.log,
            Purpose::Items { .. } => &mut written.metadata,
            Purpose::Data(_) => &mut written.data,
        } += u64::from(blocks);
        let tag = self.io.under_way.put(purpose).number();
        self.effects.push(Effect::Io(BlockIo {
            tag,
            task,
            direction: Direction::Write,
            sync: matches!(purpose, Purpose::LogBuffer(_)),
            metadata: !matches!(purpose, Purpose::Data(_)),
            behind_flush: self.flushes && matches!(purpose, Purpose::LogBuffer(_)),
            writeback: !matches!(purpose, Purpose::LogBuffer(_)),
            block,
            blocks,
        }));
    }

    /// I/O of that tag has ended.
    pub fn completed(&mut self, now: Time, tag: u32) {
        self.now = now;
        self.under_way -= 1;
        let id = self.io.under_way.id(tag);
        match self.io.under_way.take(id) {
            Purpose::LogBuffer(buffer) => self.buffer_is_on_drive(buffer),
            Purpose::Items { block, blocks } => {
                (block..block + u64::from(blocks)).for_each(|block| self.log.items.written(block));
                self.room_goes_on();
            }
            Purpose::Data(inode) => {
                if self.files.write_done(inode) {
                    self.file_is_written(inode);
                }
            }
        }
    }

    pub(super) fn flush_for_buffer(&mut self, buffer: u32) {
        self.under_way += 1;
        self.effects.push(Effect::Flush(buffer));
    }

    pub(super) fn flush_for_thread(&mut self, number: u32) {
        self.under_way += 1;
        self.effects
            .push(Effect::Flush(FLUSHES_OF_THREADS + number));
    }

    /// The drive's cache is on the medium.
    pub fn flushed(&mut self, now: Time, number: FlushNumber) {
        self.now = now;
        self.under_way -= 1;
        match number.checked_sub(FLUSHES_OF_THREADS) {
            Some(thread) => self.go_on(thread, None),
            None => self.buffer_is_flushed(number),
        }
    }
}
