//! I/O on the drive: what is on its way, and what its end leads to.

use super::{FlushNumber, Xfs};
use crate::effect::{BlockIo, Submitter};
use block_layer::{Direction, Priority};
use events::slab::Slab;
use events::time::Time;

/// The I/O in flight, and what has gone to the drive.
#[derive(Clone, Debug)]
pub(super) struct Io {
    /// By the tag that comes back.
    in_flight: Slab<Purpose>,
    written: SentBlocks,
    /// Whether `fsync` and the log ask the drive to empty its cache.
    flushes: bool,
    fua: bool,
}

/// Blocks that were sent to the drive until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentBlocks {
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

impl Io {
    pub(super) fn new(flushes: bool, fua: bool) -> Io {
        Io { fua, in_flight: Slab::new(), written: SentBlocks::default(), flushes }
    }

    pub(super) fn written(&self) -> SentBlocks {
        self.written
    }

    pub(super) fn flushes(&self) -> bool {
        self.flushes
    }

    /// Whether a buffer of the log is on the medium only when the cache has been emptied after it.
    pub(super) fn flushes_after_log(&self) -> bool {
        self.flushes && !self.fua
    }

    /// A write, with the tag that comes back.
    fn write(&mut self, purpose: Purpose, by: Submitter, block: u64, blocks: u32) -> BlockIo {
        let written = &mut self.written;
        *match purpose {
            Purpose::LogBuffer(_) => &mut written.log,
            Purpose::Items { .. } => &mut written.metadata,
            Purpose::Data(_) => &mut written.data,
        } += u64::from(blocks);
        let is_log = matches!(purpose, Purpose::LogBuffer(_));
        BlockIo {
            tag: self.in_flight.put(purpose).number(),
            by,
            priority: Priority::default(),
            direction: Direction::Write,
            sync: is_log,
            metadata: !matches!(purpose, Purpose::Data(_)),
            behind_flush: self.flushes && is_log,
            writeback: !is_log,
            block,
            blocks,
        }
    }

    fn take(&mut self, tag: u32) -> Purpose {
        self.in_flight.take(self.in_flight.id(tag))
    }
}

impl Xfs {
    pub(super) fn write(&mut self, purpose: Purpose, by: Submitter, block: u64, blocks: u32) {
        self.machine.submit(self.io.write(purpose, by, block, blocks));
    }

    /// I/O of that tag has ended.
    pub fn completed(&mut self, now: Time, tag: u32) {
        self.machine.set_now(now);
        self.machine.drive_is_done();
        match self.io.take(tag) {
            Purpose::LogBuffer(buffer) => self.buffer_is_on_drive(buffer),
            Purpose::Items { block, blocks } => {
                (block..block + u64::from(blocks)).for_each(|block| self.log.is_in_place(block));
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
        self.machine.flush(buffer);
    }

    pub(super) fn flush_for_thread(&mut self, number: u32) {
        self.machine.flush(FLUSHES_OF_THREADS + number);
    }

    /// The drive's cache is on the medium.
    pub fn flushed(&mut self, now: Time, number: FlushNumber) {
        self.machine.set_now(now);
        self.machine.drive_is_done();
        match number.checked_sub(FLUSHES_OF_THREADS) {
            Some(thread) => self.go_on(thread, None),
            None => self.buffer_is_flushed(number),
        }
    }
}
