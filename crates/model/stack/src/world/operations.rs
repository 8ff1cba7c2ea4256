//! What a system call does: I/O past the page cache or through it, and giving blocks their places.

use workload::job::{Op, OpKind};

use super::task::{Action, OpId, Operation, State};
use super::{FileLayout, Path, World};
use crate::key_reader::KeyReader;
use block_layer::{Bio, Direction, SECTOR_BYTES, TaskId};
use events::time::Time;
use filesystems::allocator::{BLOCK_BYTES, Full};
use memory::cache::{FileId, Outcome};

/// What makes a direct write durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DurableBy {
    /// A sync after it.
    Sync,
    /// Force unit access, and a sync after it, which has nothing to write any more.
    FuaAndSync,
    /// Force unit access alone.
    Fua,
}

impl World {
    /// Blocks the task if it has to wait for what it starts.
    pub(super) fn start(&mut self, now: Time, number: TaskId, job: usize, op: Op) {
        let path = self.tasks[number].path();
        let file = self.phase.file(op.file);
        if self.is_kept_out(now, number, file, &op) || self.awaits_commit(number, file) {
            let task = &mut self.tasks[number];
            task.block();
            task.resumes_with(Action::Start(job, op));
            return;
        }
        if op.kind == OpKind::Read && self.vfs.read(now, file) {
            self.inode_changes(now, file);
        }
        if op.kind.is_sync() && self.works_for_blocks(number, file, Action::Start(job, op)) {
            return;
        }
        if self.vfs.syncs_mut().take_flushed(number) {
            self.sync_is_over(now, number, file);
            self.succeeded(now, number, job, &op);
        } else if self.vfs.inode_locks_mut().was_let_in(number) {
            self.finish_sync(now, number, job, op, file);
        } else if op.kind == OpKind::Discard {
            self.start_discard(now, number, job, op, file);
        } else if let Some(mount) = self.vfs.mount_of(file) {
            self.start_on_mount(now, number, job, op, mount);
        } else if has_data_to_write(op.kind) && self.lacks_room_in_log(number, file, &op) {
            let task = &mut self.tasks[number];
            task.block();
            task.resumes_with(Action::Start(job, op));
            self.make_room_in_log(now, self.vfs.file(file).drive);
        } else if path == Path::Buffered && op.kind.is_write() && self.waits_for_inode(now, number, file) {
            let task = &mut self.tasks[number];
            task.block();
            task.resumes_with(Action::Start(job, op));
        } else if has_data_to_write(op.kind) && self.make_room(number, path, file, &op).is_err()
            || op.kind.is_sync() && self.vfs.syncs_mut().take_full(file)
        {
            if op.kind.is_sync() {
                self.sync_is_over(now, number, file);
            }
            let since_start = self.phase.since(now);
            let name = &self.vfs.file(file).name;
            self.tasks[number].found_full(job, since_start, &op, name);
        } else if path == Path::Buffered && op.kind != OpKind::WriteZeroes {
            self.start_buffered(now, number, job, op, file);
        } else {
            self.start_direct(now, number, job, op, file);
        }
    }

    /// One of the drive's own blocks: a drive that takes none, a filesystem and a server refuse it.
    fn start_discard(&mut self, now: Time, number: TaskId, job: usize, op: Op, file: FileId) {
        let spec = self.vfs.file(file);
        let drive = spec.drive;
        let taken = match spec.place {
            FileLayout::Contiguous(first) => {
                let (start, sectors) = (op.offset / SECTOR_BYTES, op.bytes / SECTOR_BYTES as u32);
                self.io[drive].discard_for(now, number, first + start, sectors.into())
            }
            FileLayout::Allocated { .. } | FileLayout::Mounted => false,
        };
        let task = &mut self.tasks[number];
        if !taken {
            self.clock.progressed(now);
            return task.refused(job, self.phase.since(now), &op);
        }
        task.block();
        task.does(Action::Start(job, op));
        self.call_drive(now, drive);
    }

    fn start_direct(&mut self, now: Time, number: TaskId, job: usize, op: Op, file: FileId) {
        if op.kind.is_sync() {
            // What goes past the cache is on the drive, or in its cache, when it completes.
            self.finish_sync(now, number, job, op, file);
            return;
        }
        let (offset, bytes) = (op.offset, u64::from(op.bytes));
        if self.vfs.has_cache() {
            // What the cache has of the range is on the drive before I/O goes past it.
            self.tasks[number].block();
            let outcome = self.with_cache(now, |cache| cache.direct(now, number, file, offset, bytes));
            if outcome == Outcome::Wait {
                self.tasks[number].resumes_with(Action::Start(job, op));
                return;
            }
        }
        let mut found = std::mem::take(&mut self.kept.found);
        let drive = self.vfs.file(file).drive;
        let sectors_max = self.io[drive].bio_sectors_max();
        self.vfs.extents_of(file, offset, bytes, sectors_max, &mut found);
        let task = &mut self.tasks[number];
        let path = task.path();
        match path == Path::Direct && !found.is_empty() {
            true => task.block(),
            false => task.unblock(),
        }
        if found.is_empty() {
            // A hole: nothing to read.
            self.succeeded(now, number, job, &op);
        } else {
            self.tasks[number].submitted();
            let durable = self.durable_by(op.kind, file);
            let id = self.operations.put(Operation {
                task: number,
                job,
                op,
                syncs_after: op.kind.is_durable_write() && durable != DurableBy::Fua,
                bios_left: found.len() as u32,
            });
            let direction = match op.kind {
                kind if has_data_to_write(kind) => Direction::Write,
                _ => Direction::Read,
            };
            let workers = match path {
                Path::DirectRing => self.io.ring_workers(),
                _ => 0,
            };
            let polled = self.tasks[number].polled_drive() == Some(drive);
            let write_stream = self.write_stream_of(file, direction);
            let force_unit_access = durable != DurableBy::Sync;
            for extent in found.drain(..) {
                let sync = direction == Direction::Read || self.io.sync_writes().direct;
                let bio = Bio {
                    workers,
                    polled,
                    write_stream,
                    force_unit_access,
                    ..self.bio(now, number, direction, sync, extent, id.number())
                };
                self.submit_operation(now, drive, bio);
            }
            if !self.io.plugs_submission(number) {
                self.flush_task_plug(now);
                let is_single = self.operations[id].bios_left == 1;
                let is_device = matches!(self.vfs.file(file).place, FileLayout::Contiguous(_));
                if is_single && is_device && !self.io.waits(number) {
                    self.io[drive].took_single();
                }
                // io_submit(2) and who waits for direct I/O kick the queue (`blk_run_address_space` in `fs/aio.c` of
                // 2.6.35).
                self.io[drive].unplug(now);
                self.run_drive(now, drive);
            }
        }
        self.kept.found = found;
    }

    fn start_buffered(&mut self, now: Time, number: TaskId, job: usize, op: Op, file: FileId) {
        let (offset, bytes) = (op.offset, u64::from(op.bytes));
        // Before the call: what it waits for may be there before it returns.
        let task = &mut self.tasks[number];
        task.block();
        let State::Running(cpu) = task.state() else { unreachable!("who calls runs") };
        self.touched.extend([KeyReader::Copies, KeyReader::PageCache]);
        match op.kind {
            OpKind::Read => self.touched.insert(KeyReader::ReadAhead),
            _ => self.touched.insert(KeyReader::Writeback),
        };
        let drive = self.vfs.file(file).drive;
        if op.kind.is_write() && self.io[drive].queue().throttles() {
            self.touched.insert(KeyReader::Flushes(drive as u16));
        }
        let outcome = self.with_cache(now, |cache| match op.kind {
            OpKind::Read => cache.read(now, number, file, offset, bytes),
            OpKind::Write | OpKind::DurableWrite | OpKind::OsyncWrite => {
                cache.on_cpu(cpu);
                cache.write(now, number, file, offset, bytes)
            }
            OpKind::Fsync | OpKind::Fdatasync | OpKind::SyncFileRange => cache.fsync(now, number, file),
            OpKind::Discard | OpKind::WriteZeroes => unreachable!("started past the cache"),
        });
        match outcome {
            Outcome::Done if op.kind.is_sync() => {
                self.tasks[number].unblock();
                self.finish_sync(now, number, job, op, file);
            }
            Outcome::Done if op.kind.is_durable_write() => {
                self.sync_written(now, number, job, op);
            }
            Outcome::Done => {
                self.tasks[number].unblock();
                self.succeeded(now, number, job, &op);
            }
            Outcome::Copies(pages) => {
                let task = &mut self.tasks[number];
                task.unblock();
                task.copies_on(Action::Start(job, op), pages);
            }
            Outcome::Wait => {
                // The same call again, when the task is woken.
                self.tasks[number].resumes_with(Action::Start(job, op));
                let drive = self.vfs.file(file).drive;
                let cache = self.vfs.cache();
                if cache.is_some_and(|cache| cache.holds(number)) {
                    self.io[drive].held_a_writer(now);
                }
                self.io[drive].unplug(now);
                self.run_drive(now, drive);
            }
        }
    }

    /// A durable write is in the page cache: what follows is that of an fsync (`generic_write_sync`).
    pub(super) fn sync_written(&mut self, now: Time, number: TaskId, job: usize, op: Op) {
        let file = self.phase.file(op.file);
        self.tasks[number].unblock();
        if self.works_for_blocks(number, file, Action::Sync(job, op)) {
            return;
        }
        if self.vfs.syncs_mut().take_full(file) {
            self.sync_is_over(now, number, file);
            let since_start = self.phase.since(now);
            let name = &self.vfs.file(file).name;
            self.tasks[number].found_full(job, since_start, &op, name);
            return;
        }
        self.tasks[number].block();
        match self.with_cache(now, |cache| cache.fsync(now, number, file)) {
            Outcome::Wait => {
                self.tasks[number].resumes_with(Action::Sync(job, op));
                let drive = self.vfs.file(file).drive;
                self.io[drive].unplug(now);
                self.run_drive(now, drive);
            }
            _ => {
                self.tasks[number].unblock();
                self.finish_sync(now, number, job, op, file);
            }
        }
    }

    /// Whether the task, which syncs, first gives blocks to what it has written; then the action is what follows. That changes
    /// the inode, which waits for a commit that writes its block to the log (`do_get_write_access`).
    fn works_for_blocks(&mut self, number: TaskId, file: FileId, action: Action) -> bool {
        if !self.vfs.syncs().has_owed_blocks(number, file) {
            return false;
        }
        let drive = self.vfs.file(file).drive;
        let work_ns = self.vfs.allocation_ns(drive);
        let is_kept_out = self.vfs.journal_mut(drive).keeps_out(number, file);
        let task = &mut self.tasks[number];
        if is_kept_out {
            task.block();
            task.resumes_with(action);
        } else {
            task.works_before(action, work_ns);
            self.vfs.syncs_mut().gives_owed_blocks(number, file);
        }
        true
    }

    /// What a direct write is made durable by. One with O_SYNC, one to new blocks and one to a drive without such writes take
    /// a sync behind it (`iomap_dio_bio_iter`).
    fn durable_by(&self, kind: OpKind, file: FileId) -> DurableBy {
        let spec = self.vfs.file(file);
        let rules = self.io[spec.drive].fua();
        match (rules, spec.place) {
            _ if kind != OpKind::DurableWrite => DurableBy::Sync,
            (Some(rules), FileLayout::Contiguous(_)) if rules.of_device => DurableBy::FuaAndSync,
            (Some(rules), FileLayout::Allocated { .. }) if rules.of_files && !self.vfs.syncs().has_new_blocks(file) => {
                DurableBy::Fua
            }
            _ => DurableBy::Sync,
        }
    }

    /// A write that is to be durable is followed by a sync, unless it is by itself.
    pub(super) fn reaped(&mut self, now: Time, number: TaskId, operation: &Operation) {
        let (job, op) = (operation.job, operation.op);
        let file = self.phase.file(op.file);
        if operation.syncs_after && self.vfs.mount_of(file).is_none() {
            self.finish_sync(now, number, job, op, file);
        } else {
            self.succeeded(now, number, job, &op);
        }
    }

    /// All that fsync is for has been sent to the drive: its cache has to be on the medium too.
    fn finish_sync(&mut self, now: Time, number: TaskId, job: usize, op: Op, file: FileId) {
        let drive = self.vfs.file(file).drive;
        if self.vfs.has_journal(drive) {
            self.touched.insert(KeyReader::Allocation(drive as u16));
        }
        if op.kind == OpKind::SyncFileRange {
            self.sync_is_over(now, number, file);
            self.succeeded(now, number, job, &op);
            return;
        }
        if self.vfs.syncs().looks_at_caches() {
            self.touched.insert(KeyReader::Flushes(drive as u16));
        }
        let data_only = !matches!(op.kind, OpKind::Fsync | OpKind::OsyncWrite);
        if self.waits_to_force(number, file, data_only) {
            let task = &mut self.tasks[number];
            task.block();
            task.resumes_with(Action::Start(job, op));
            return self.call_drive(now, drive);
        }
        let changes = match self.vfs.inode_locks_mut().forces(number) {
            true => self.vfs.syncs().changes(file, data_only),
            false => self.vfs.syncs_mut().take_changes(file, data_only),
        };
        let commits = changes.is_some_and(|changes| {
            self.forces_log(now, drive, number, file) || self.commits_for(now, drive, number, changes)
        });
        if !commits {
            self.ends_force(now, number);
        }
        let waits = commits || self.vfs.fsync_flushes(drive) && self.io[drive].flush_for(now, number);
        if !waits {
            self.sync_is_over(now, number, file);
            self.succeeded(now, number, job, &op);
            return;
        }
        if let Some(cache) = self.vfs.cache_mut() {
            cache.fsync_commits(number, file);
        }
        let task = &mut self.tasks[number];
        task.block();
        task.resumes_with(Action::Start(job, op));
        self.call_drive(now, drive);
    }

    /// Who waits to write to the file may.
    pub(super) fn sync_is_over(&mut self, now: Time, number: TaskId, file: FileId) {
        if self.vfs.has_cache() {
            self.with_cache(now, |cache| cache.fsync_is_over(now, number, file));
        }
    }

    pub(super) fn succeeded(&mut self, now: Time, number: TaskId, job: usize, op: &Op) {
        self.clock.progressed(now);
        let since_start = self.phase.since(now);
        self.tasks[number].succeeded(job, since_start, op);
    }

    pub(super) fn complete_operation(&mut self, now: Time, id: OpId) {
        self.clock.progressed(now);
        let number = self.operations[id].task;
        self.tasks[number].completed(id);
        self.unblock(now, number);
    }

    /// Where the blocks of a write go, now or when they are written back.
    fn make_room(&mut self, number: TaskId, path: Path, file: FileId, op: &Op) -> Result<(), Full> {
        let (offset, bytes) = (op.offset, u64::from(op.bytes));
        let now = self.clock.now();
        let spec = self.vfs.file(file);
        let drive = spec.drive;
        let is_delayed = path == Path::Buffered && self.vfs.delays_allocation(drive);
        let has_cost = self.vfs.allocation_ns(drive) > 0;
        let lacks_blocks = (has_cost || !is_delayed) && self.vfs.lacks_blocks(file, offset, bytes);
        let gets_blocks = !is_delayed && lacks_blocks;
        if has_cost && lacks_blocks {
            self.vfs.syncs_mut().owes_blocks(number, file);
        }
        if self.vfs.written(now, file) {
            self.inode_changes(now, file);
        }
        if gets_blocks {
            self.got_blocks(now, file);
        }
        let spec = self.vfs.file(file);
        if !is_delayed {
            return self.allocate(number, file, offset, bytes);
        }
        if !spec.is_allocated() {
            return Ok(());
        }
        let first = offset / BLOCK_BYTES;
        let end = (offset + bytes).div_ceil(BLOCK_BYTES);
        self.with_allocator(drive, |allocator| allocator.reserve(file, first, end - first)).unwrap_or(Ok(()))
    }

    /// Gives the range its place on the drive, unless it has one.
    pub(super) fn allocate(&mut self, task: TaskId, file: FileId, offset: u64, bytes: u64) -> Result<(), Full> {
        let spec = self.vfs.file(file);
        if !spec.is_allocated() {
            return Ok(());
        }
        let drive = spec.drive;
        let first = offset / BLOCK_BYTES;
        let end = (offset + bytes).div_ceil(BLOCK_BYTES);
        let done = self.with_allocator(drive, |allocator| allocator.allocate(task, file, first, end - first));
        if done.is_some() {
            self.touched.insert(KeyReader::Filesystem(drive as u16));
        }
        done.unwrap_or(Ok(()))
    }
}

/// No simulated drive writes zeroes without their data: the kernel sends them as a write.
pub(super) fn has_data_to_write(kind: OpKind) -> bool {
    kind.is_write() || kind == OpKind::WriteZeroes
}
