//! Who writes the log and who waits for it.

use std::collections::{BTreeSet, VecDeque};

use super::super::Xfs;
use super::super::io::Purpose;
use super::super::machine::Timer;
use super::super::site::Site;
use super::super::step::StageOutcome;
use super::super::thread::Stage;
use super::space::LogWrite;
use crate::effect::Submitter;
use block_layer::TaskId;
use events::time::{SECOND, Time};

/// Threads by their numbers, unless stated otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    /// Open transactions: each has room in the log.
    transactions: u64,
    /// For room in the log.
    room: VecDeque<u32>,
    /// For the checkpoint of that number to be in the log's buffers.
    buffers: Vec<(u64, BufferWaiter)>,
    /// For it to be on the drive.
    written: Vec<(u64, Waiter)>,
    /// For the one that is being forced; then for one of their own.
    behind: Vec<Waiter>,
    /// The checkpoint that was forced last.
    forced: Option<u64>,
    /// Tasks of loads for whom a checkpoint was begun (`log_flushed` of `xlog_force_lsn`).
    leaders: BTreeSet<TaskId>,
    /// What is written when the drive's cache is empty, and by whom.
    flushing: Vec<(LogWrite, Submitter)>,
}

/// Who waits for the log's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferWaiter {
    /// Of those that make files.
    Thread(u32),
    /// Who writes checkpoints.
    Worker,
}

/// Who waits for the log to be forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::xfs) enum Waiter {
    /// Of those that make files.
    Thread(u32),
    /// The task of a load.
    Load(TaskId),
}

/// How often the log is forced and written in place (`xfs_syncd_centisecs`).
const SYNC_NS: Time = 30 * SECOND;

impl Waits {
    pub(super) fn for_buffers(&mut self, checkpoint: u64, waiter: BufferWaiter) {
        self.buffers.push((checkpoint, waiter));
    }

    pub(super) fn has_waiting_for_room(&self) -> bool {
        !self.room.is_empty()
    }
}

impl Xfs {
    /// Room in the log for a transaction of the thread (`xfs_log_reserve`); None: it has it.
    pub(in crate::xfs) fn reserve_log(&mut self, number: u32) -> Option<StageOutcome> {
        let transactions = self.log.waits.transactions;
        if let Some(target) = self.log.space.push_target(transactions) {
            self.push_to(target);
        }
        if self.log.space.has_room(transactions) {
            self.log.waits.transactions += 1;
            return None;
        }
        self.log.waits.room.push_back(number);
        self.make_room();
        Some(StageOutcome::Sleep(Stage::Begun, Site::LogSpace))
    }

    /// The transaction is over: what it has changed is in memory, and its room is what it took.
    pub(in crate::xfs) fn end_transaction(&mut self) {
        self.log.waits.transactions -= 1;
        self.room_goes_on();
    }

    /// The transaction's changes of the blocks are committed.
    pub(in crate::xfs) fn commit_to_log(&mut self, blocks: Vec<u64>) {
        let bytes = self.volume.spec().log_bytes_per_create;
        self.log.space.commit(bytes, blocks);
        self.machine.arm(SYNC_NS, Timer::Sync);
    }

    /// A thread's checkpoint goes into the log's buffers; while none is free, it sleeps.
    pub(in crate::xfs) fn logs(&mut self, number: u32) -> StageOutcome {
        let thread = &mut self.threads[number];
        let checkpoint = thread.checkpoint.take().expect("it has begun one");
        let by = Submitter::Own(thread.task);
        self.fill_buffers(by);
        if self.log.space.is_in_buffers(checkpoint) {
            return StageOutcome::Stage(Stage::Over);
        }
        self.log.waits.for_buffers(checkpoint, BufferWaiter::Thread(number));
        StageOutcome::Sleep(Stage::Over, Site::LogBuffers)
    }

    /// What is committed is to be on the drive. None: it is.
    pub(in crate::xfs) fn force(&mut self, number: u32) -> Option<StageOutcome> {
        let waits = self.force_for(Waiter::Thread(number));
        waits.then_some(StageOutcome::Sleep(Stage::Forced, Site::LogForce))
    }

    /// The same for anybody (`_xfs_log_force`); whether it has to wait.
    pub(in crate::xfs) fn force_for(&mut self, waiter: Waiter) -> bool {
        let is_forcing = self.log.waits.forced.is_some_and(|forced| !self.log.space.is_written(forced));
        if is_forcing && self.log.space.pending_bytes() > 0 {
            // Who comes now shares the next one with all who do.
            self.log.waits.behind.push(waiter);
            return true;
        }
        let begun = self.log.space.begin_checkpoint();
        let Some(checkpoint) = begun.or(self.log.space.newest()) else {
            return false;
        };
        if let (Waiter::Load(task), Some(_)) = (waiter, begun) {
            self.log.waits.leaders.insert(task);
        }
        self.log.waits.forced = Some(checkpoint);
        self.log.waits.written.push((checkpoint, waiter));
        // Who forces the log writes the buffer itself (`xlog_force_iclog`).
        let by = match waiter {
            Waiter::Thread(number) => Submitter::Own(self.threads[number].task),
            Waiter::Load(task) => Submitter::Load(task),
        };
        match begun {
            Some(_) => self.put_together(by),
            None => self.fill_buffers(by),
        }
        true
    }

    /// Whoever it is waits until the checkpoint, which has begun, is on the drive. False: it is.
    pub(in crate::xfs) fn wait_for_checkpoint(&mut self, checkpoint: u64, waiter: Waiter) -> bool {
        let waits = !self.log.space.is_written(checkpoint);
        if waits {
            self.log.waits.written.push((checkpoint, waiter));
        }
        waits
    }

    /// Nobody waits for it.
    pub(in crate::xfs) fn force_for_nobody(&mut self) {
        if self.log.space.begin_checkpoint().is_some() {
            self.fill_buffers(Submitter::Own(self.log.pusher.task));
        }
    }

    /// `xfs_sync_worker`.
    pub(in crate::xfs) fn sync_log(&mut self) {
        self.force_for_nobody();
        self.push_to(u64::MAX);
        if self.log.space.has_items() || self.log.space.newest().is_some() {
            self.machine.arm(SYNC_NS, Timer::Sync);
        }
    }

    pub(in crate::xfs) fn buffer_is_flushed(&mut self, buffer: u32) {
        let flushing = &mut self.log.waits.flushing;
        match flushing.iter().position(|(write, _)| write.buffer == buffer) {
            Some(place) => {
                let (write, by) = flushing.swap_remove(place);
                self.write_buffer(by, write);
            }
            // The second time: what it holds is on the medium too.
            None => self.buffer_is_written(buffer),
        }
    }

    /// On the drive, or in its cache.
    pub(in crate::xfs) fn buffer_is_on_drive(&mut self, buffer: u32) {
        match self.io.flushes_after_log() {
            true => self.flush_for_buffer(buffer),
            false => self.buffer_is_written(buffer),
        }
    }

    /// Whoever waits for room has it now, in line.
    pub(in crate::xfs) fn room_goes_on(&mut self) {
        while !self.log.waits.room.is_empty() && self.log.space.has_room(self.log.waits.transactions) {
            let next = self.log.waits.room.pop_front().expect("just seen");
            self.go_on(next, None);
        }
        if !self.log.waits.room.is_empty() {
            self.make_room();
        }
    }

    /// What keeps the log's oldest part goes where it belongs; what is not in the log yet goes there.
    fn make_room(&mut self) {
        if let Some(target) = self.log.space.push_target(self.log.waits.transactions) {
            self.push_to(target);
        }
        if self.log.waits.transactions == 0 && !self.log.space.has_items() {
            self.force_for_nobody();
        }
    }

    /// As many buffers as are free.
    pub(in crate::xfs) fn fill_buffers(&mut self, by: Submitter) {
        while let Some(write) = self.log.space.next_write() {
            if self.io.flushes() {
                self.log.waits.flushing.push((write, by));
                self.flush_for_buffer(write.buffer);
            } else {
                self.write_buffer(by, write);
            }
        }
    }

    fn write_buffer(&mut self, by: Submitter, write: LogWrite) {
        let block = self.volume.log_block() + write.block;
        self.write(Purpose::LogBuffer(write.buffer), by, block, write.blocks);
    }

    fn buffer_is_written(&mut self, buffer: u32) {
        self.log.space.written(buffer);
        self.fill_buffers(Submitter::Own(self.log.pusher.task));
        let log = &self.log.space;
        let in_buffers = self.log.waits.buffers.extract_if(.., |(number, _)| log.is_in_buffers(*number));
        let next: Vec<BufferWaiter> = in_buffers.map(|(_, waiter)| waiter).collect();
        let written = self.log.waits.written.extract_if(.., |(number, _)| log.is_written(*number));
        let forced: Vec<Waiter> = written.map(|(_, waiter)| waiter).collect();
        let is_over = |forced: u64| self.log.space.is_written(forced);
        let behind = match self.log.waits.forced.is_none_or(is_over) {
            true => std::mem::take(&mut self.log.waits.behind),
            false => Vec::new(),
        };
        for waiter in next {
            match waiter {
                BufferWaiter::Thread(thread) => self.go_on(thread, None),
                BufferWaiter::Worker => self.end_checkpoint_work(None),
            }
        }
        forced.into_iter().for_each(|waiter| self.is_forced(waiter));
        for waiter in behind {
            // Somebody else may have had it written meanwhile.
            if !self.force_for(waiter) {
                self.is_forced(waiter);
            }
        }
        self.room_goes_on();
    }

    fn is_forced(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Thread(thread) => self.go_on(thread, None),
            Waiter::Load(task) => {
                let flushed = self.log.waits.leaders.remove(&task);
                self.machine.unblock(task, flushed);
            }
        }
    }
}
