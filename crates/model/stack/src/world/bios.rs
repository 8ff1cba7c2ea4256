//! From a range of a file to bios in its drive's queue, and back when they are done.

use super::World;
use super::filesystem_calls::OF_FILESYSTEM;
use super::io_path::Effect;
use super::swap::OF_SWAP;
use super::task::{State, Task};
use super::vfs::FileExtent;
use crate::key_reader::KeyReader;
use block_layer::{Bio, Direction, TaskId};
use events::time::Time;
use memory::cache::PAGE_BYTES;

/// What bios are for: the high bit of their tag is set for the page cache.
pub(super) const OF_CACHE: u32 = 1 << 31;

impl World {
    pub(super) fn bio(
        &self,
        now: Time,
        task: TaskId,
        direction: Direction,
        sync: bool,
        extent: FileExtent,
        tag: u32,
    ) -> Bio {
        let owner = self.tasks.get(task);
        let cpu = match owner.map(Task::state) {
            Some(State::Running(cpu)) => cpu,
            _ => self.cpus.here().unwrap_or(0),
        };
        Bio {
            direction,
            sync,
            metadata: false,
            read_ahead: false,
            no_idle: false,
            writeback: false,
            behind_flush: false,
            force_unit_access: false,
            qos: Default::default(),
            allocated: None,
            workers: 0,
            polled: false,
            write_stream: 0,
            start: extent.start,
            sectors: extent.sectors,
            segments: extent.sectors.div_ceil((PAGE_BYTES / 512) as u32) as u16,
            task,
            group: owner.map_or(0, Task::group),
            priority: owner.map(Task::priority).unwrap_or_default(),
            cpu,
            submitted_at: now,
            tag,
            next: None,
        }
    }

    /// The drive received something: it examines it now, or is called later.
    pub(super) fn call_drive(&mut self, now: Time, number: usize) {
        self.io.call_back(now, number, &mut self.clock);
    }

    /// Collects what the drive has completed and sends it what may go.
    pub(super) fn run_drive(&mut self, now: Time, number: usize) {
        self.run_drive_after(now, number, None);
    }

    /// The same, after the request with that tag has been completed on that CPU.
    pub(super) fn run_drive_after(&mut self, now: Time, number: usize, completed: Option<(u32, u16)>) {
        let before = self.io[number].queue();
        let (by_thread, had_called) = (before.thread_runs_at() == Some(now), before.has_called_thread());
        let mut effects = self.io.run(now, number, completed, &mut self.clock);
        if let Some(spec) = self.cpus.timer_interrupts() {
            let ends_ns = if by_thread { spec.thread_ends_ns } else { 0 };
            let until = now.max(self.io[number].sent_until()) + ends_ns;
            self.cpus.occupy(now, until);
            if !had_called && self.io[number].queue().has_called_thread() {
                self.cpus.called_thread();
            }
        }
        let mut may_retry = std::mem::take(&mut self.kept.may_retry);
        let mut released = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Arrived(tag) => {
                    if self.cpus.timer_interrupts().is_none() {
                        self.touched.insert(KeyReader::Completion(number as u16));
                    }
                    let later = self.cpus.arrived(now, number, tag);
                    self.plan_reminder(later);
                }
                Effect::Sent(tag) => {
                    self.touched.insert(KeyReader::Drive(number as u16));
                    let request = self.io[number].request(tag);
                    self.cpus.sent(now, number, tag, request);
                }
                Effect::Done(bio) => self.bio_done(now, number, &bio),
                Effect::Flushed(task) => self.flushed(now, number, task),
                Effect::Retry(task) => may_retry.push(task),
                Effect::Released(bio) => released.push(bio),
            }
        }
        self.io.give_back(number, effects);
        self.update_congestion(now, number);
        let retried = !may_retry.is_empty();
        for task in may_retry.drain(..) {
            self.io.retry_worker(now, number, task);
            self.may_have_request(now, task);
        }
        self.kept.may_retry = may_retry;
        if !released.is_empty() {
            self.issue_released(now, number, released);
        } else if retried {
            self.run_drive(now, number);
        }
    }

    fn flushed(&mut self, now: Time, number: usize, task: TaskId) {
        if !self.flushed_for_journal(now, number, task) && !self.flushed_for_filesystem(now, number, task) {
            self.sync_goes_on(now, task);
        }
    }

    /// Read-ahead looks at the congestion of a queue, and so does pdflush.
    pub(super) fn update_congestion(&mut self, now: Time, number: usize) {
        let Some(cache) = self.vfs.cache() else {
            return;
        };
        let directions = match cache.looks_at_congestion() {
            true => &[Direction::Read, Direction::Write][..],
            false => &[Direction::Read],
        };
        for &direction in directions {
            if let Some(is) = self.io[number].turned_congested(direction) {
                self.with_cache(now, |cache| cache.congested(now, number, direction, is));
                // Who is about to sleep until a queue is less full lets all queues run first (`blk_congestion_wait`,
                // 2.5.67): what a plug holds back would never be done otherwise.
                if is && direction == Direction::Write {
                    self.io[number].unplug(now);
                    self.call_drive(now, number);
                }
            }
        }
    }

    fn bio_done(&mut self, now: Time, drive: usize, bio: &Bio) {
        self.clock.progressed(now);
        if bio.tag & OF_CACHE != 0 {
            self.cache_bio_done(now, bio.tag & !OF_CACHE);
            return;
        }
        if bio.tag & OF_FILESYSTEM != 0 {
            if !self.vfs.has_filesystem(drive) {
                self.journal_bio_done(now, drive, bio.tag & !OF_FILESYSTEM);
                return;
            }
            self.filesystem_bio_done(now, drive, bio.tag & !OF_FILESYSTEM);
            return;
        }
        if bio.tag & OF_SWAP != 0 {
            self.swap_bio_done(now, bio);
            return;
        }
        self.cpus.completed_for(bio.task);
        let id = self.operations.id(bio.tag);
        let operation = &mut self.operations[id];
        operation.bios_left -= 1;
        if operation.bios_left == 0 {
            self.complete_operation(now, id);
        }
    }
}
