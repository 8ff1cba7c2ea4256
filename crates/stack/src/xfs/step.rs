//! What a thread does next, call by call and within a transaction.

use workload::metadata::Call;

use super::allocation::Space;
use super::directory::BlockUse;
use super::locks::LockName;
use super::site::Site;
use super::thread::{Stage, Transaction};
use super::{Actor, BLOCK_BYTES, Mounted};
use crate::smp::Work;
use crate::time::{SECOND, Time};

/// What becomes of a thread that has got to a stage.
enum Next {
    /// On to the next one, at once.
    Stage(Stage),
    /// That takes this long; then the stage.
    Work(Stage, u32),
    /// It sleeps until somebody has it go on, with the stage.
    Sleep(Stage, Site),
    Finish,
}

impl Mounted {
    /// A thread has done what it was at, or has got what it waited for. `cpu`: where that happened; None: nowhere.
    pub(super) fn go_on(&mut self, number: u32, cpu: Option<u16>) {
        loop {
            let next = match self.threads[number as usize].stage {
                Stage::Program => self.program(number, cpu),
                Stage::Begun => self.begun(number),
                Stage::DirectoryLocked => self.directory_locked(number, cpu),
                Stage::InodesLocked | Stage::Rolled => self.inodes_locked(number, cpu),
                Stage::HandsOver(request) if self.is_deferred() => {
                    let cpu = cpu.expect("it has just run there");
                    // It sleeps before the worker could be done.
                    self.threads[number as usize].stage = Stage::Answered;
                    self.sleeps(number, Site::Allocation);
                    self.hand_over(number, request, cpu);
                    return;
                }
                Stage::HandsOver(request) => {
                    match self.lock_space(number, &request, Actor::Thread(number)) {
                        Space::Locked(group) => Next::Stage(Stage::SpaceLocked(request, group)),
                        Space::Awaited(group) => {
                            Next::Sleep(Stage::SpaceLocked(request, group), Site::SpaceLock)
                        }
                        Space::Nowhere => Next::Stage(Stage::Answered),
                    }
                }
                Stage::SpaceLocked(request, group) => {
                    self.keep_space(number, group);
                    let cycles = self.volume.spec().cycles.allocate;
                    Next::Work(Stage::Allocates(request, group), cycles)
                }
                Stage::Allocates(request, group) => {
                    self.allocate(number, &request, group);
                    Next::Stage(Stage::Answered)
                }
                Stage::Answered => self.answered(number),
                Stage::HasInode => self.enters(number),
                Stage::Committed => self.committed(number, cpu),
                Stage::Over => self.over(number),
                Stage::Finished => Next::Finish,
            };
            match next {
                Next::Stage(stage) => self.threads[number as usize].stage = stage,
                Next::Work(stage, cycles) => {
                    self.threads[number as usize].stage = stage;
                    let work = self.work_of(stage, cycles);
                    return self.give(number, cpu, work);
                }
                Next::Sleep(stage, site) => {
                    self.threads[number as usize].stage = stage;
                    return self.sleeps(number, site);
                }
                Next::Finish => {
                    self.sleeps(number, Site::Ends);
                    self.active -= 1;
                    return;
                }
            }
        }
    }

    fn program(&mut self, number: u32, cpu: Option<u16>) -> Next {
        let (began, now) = (self.began, self.now);
        let cycles = self.volume.spec().cycles;
        let thread = &mut self.threads[number as usize];
        let call = thread.next_call(began, now);
        thread.calls_at(now);
        match call {
            Call::Done => {
                thread.stage = Stage::Finished;
                Next::Finish
            }
            Call::Close => Next::Work(Stage::Over, cycles.close),
            Call::Create(_) => {
                let begins = now + self.time_of(cycles.application);
                self.threads[number as usize].calls_at(begins);
                self.give_in_user_mode(number, cpu, cycles.application);
                Next::Work(Stage::Begun, cycles.begin)
            }
            Call::MakeDirectory { .. } | Call::Unlink(_) => Next::Work(Stage::Begun, cycles.begin),
            Call::Write { .. } | Call::Fsync | Call::SystemSync | Call::FsyncAgain(_) => {
                unreachable!("refused before the phase began")
            }
        }
    }

    fn begun(&mut self, number: u32) -> Next {
        let thread = &self.threads[number as usize];
        let subdirectory = match thread.call {
            Call::Create(place) | Call::Unlink(place) => place.subdirectory,
            _ => None,
        };
        let directory = match subdirectory {
            Some(_) => self.names[&(thread.path.clone(), subdirectory)],
            None => thread.directory,
        };
        self.threads[number as usize].transaction = Transaction {
            directory,
            ..Transaction::default()
        };
        let is_full = !matches!(self.threads[number as usize].call, Call::Unlink(_))
            && !self.volume.has_room();
        if is_full {
            self.threads[number as usize].transaction.fails = true;
            return Next::Stage(Stage::Over);
        }
        if self.locks.take(
            LockName::Directory(directory),
            number,
            Actor::Thread(number),
        ) {
            Next::Stage(Stage::DirectoryLocked)
        } else {
            Next::Sleep(Stage::DirectoryLocked, Site::DirectoryLock)
        }
    }

    fn directory_locked(&mut self, number: u32, cpu: Option<u16>) -> Next {
        let thread = &self.threads[number as usize];
        if let Call::MakeDirectory { directory } = thread.call
            && self
                .names
                .contains_key(&(thread.path.clone(), Some(directory)))
        {
            self.release_all(number, cpu);
            return Next::Stage(Stage::Over);
        }
        let from = match thread.call {
            Call::MakeDirectory { .. } => self.volume.turn_rotor(),
            Call::Unlink(place) => (thread.inode_of(place.file) >> 32) as u32,
            _ => self.volume.directory(thread.transaction.directory).group,
        };
        self.lock_inodes(number, from)
    }

    /// Of the first group from that one on that can have an inode; of an unlink, of that one.
    fn lock_inodes(&mut self, number: u32, from: u32) -> Next {
        let unlinks = matches!(self.threads[number as usize].call, Call::Unlink(_));
        let found = if unlinks {
            Some(from)
        } else {
            self.volume.group_for_inode(from)
        };
        let transaction = &mut self.threads[number as usize].transaction;
        transaction.attempt = 0;
        transaction.groups_tried += 1;
        let Some(group) = found.filter(|_| transaction.groups_tried <= self.volume.spec().ag_count)
        else {
            return self.gives_up(number);
        };
        transaction.group = Some(group);
        if self
            .locks
            .take(LockName::Inodes(group), number, Actor::Thread(number))
        {
            Next::Stage(Stage::InodesLocked)
        } else {
            Next::Sleep(Stage::InodesLocked, Site::InodesLock)
        }
    }

    fn inodes_locked(&mut self, number: u32, cpu: Option<u16>) -> Next {
        let thread = &mut self.threads[number as usize];
        if thread.stage == Stage::Rolled {
            self.release_spaces(number, cpu);
        }
        let thread = &mut self.threads[number as usize];
        let transaction = &mut thread.transaction;
        let group = transaction.group.expect("locked");
        let cycles = self.volume.spec().cycles;
        if let Call::Unlink(place) = thread.call {
            let inode = thread.forget(place.file);
            let hash = thread.hash();
            let directory = thread.transaction.directory;
            self.volume.put_inode(inode);
            self.volume.directory(directory).leave(hash);
            return Next::Work(Stage::Committed, cycles.unlink + cycles.commit);
        }
        let near = match thread.call {
            Call::Create(_) => Some(transaction.directory),
            _ => None,
        };
        if let Some(inode) = self.volume.take_inode(group, near) {
            transaction.inode = Some(inode);
            return Next::Stage(Stage::HasInode);
        }
        match self.volume.chunk_request(group, transaction.attempt) {
            Some(request) => self.request(number, request),
            None => {
                transaction.group = None;
                self.unlock(LockName::Inodes(group), number, cpu);
                self.lock_inodes(number, (group + 1) % self.volume.spec().ag_count)
            }
        }
    }

    /// The allocator has said where, or that it can't.
    fn answered(&mut self, number: u32) -> Next {
        self.sleeps(number, Site::Preempted);
        let spec = *self.volume.spec();
        let transaction = &mut self.threads[number as usize].transaction;
        let answer = transaction.answer.take();
        if transaction.inode.is_none() {
            return match answer {
                Some((group, block)) => {
                    self.volume.add_chunk(group, block);
                    // The transaction rolls: it is committed, and log space for another reserved.
                    Next::Work(Stage::Rolled, spec.cycles.commit + spec.cycles.begin / 4)
                }
                None => {
                    transaction.attempt += 1;
                    Next::Stage(Stage::InodesLocked)
                }
            };
        }
        let directory = transaction.directory;
        let Some((group, block)) = answer else {
            return self.gives_up(number);
        };
        self.volume.count_directory_block();
        if std::mem::take(&mut transaction.maps) {
            return Next::Stage(Stage::HasInode);
        }
        let what = transaction
            .wanted
            .as_mut()
            .and_then(Vec::pop)
            .expect("it asked for one");
        transaction.maps =
            self.volume
                .directory(directory)
                .placed(group, block, what, spec.inode_bytes);
        Next::Stage(Stage::HasInode)
    }

    /// The entry, with all the blocks that it takes; then the commit.
    fn enters(&mut self, number: u32) -> Next {
        let spec = *self.volume.spec();
        let thread = &mut self.threads[number as usize];
        let hash = thread.hash();
        let name_bytes = thread.name_bytes();
        let transaction = &mut thread.transaction;
        let directory = self.volume.directory(transaction.directory);
        let wanted = transaction.wanted.get_or_insert_with(|| {
            let mut wanted: Vec<BlockUse> = directory.enter(hash, name_bytes, spec.inode_bytes);
            wanted.reverse();
            wanted
        });
        if !wanted.is_empty() || transaction.maps {
            let request = self.volume.block_request(transaction.directory);
            return self.request(number, request);
        }
        let blocks = directory.data_blocks();
        let cycles = spec.cycles;
        // Of blocks that are filled one after the other only the last has room.
        let scan = cycles
            .scan_block
            .saturating_mul(blocks)
            .min(SCAN_CYCLES_MAX);
        Next::Work(
            Stage::Committed,
            cycles.inode + cycles.entry + scan + cycles.commit,
        )
    }

    fn committed(&mut self, number: u32, cpu: Option<u16>) -> Next {
        let spec = *self.volume.spec();
        self.finish_transaction(number);
        self.release_all(number, cpu);
        self.checkpoint_bytes += u64::from(spec.log_bytes_per_create);
        let mut cycles = spec.cycles.end;
        if self.checkpoint_bytes >= spec.checkpoint_bytes() {
            let blocks = self.checkpoint_bytes / u64::from(BLOCK_BYTES);
            self.checkpoint_bytes = 0;
            let writing = blocks * u64::from(spec.cycles.checkpoint_block);
            cycles += writing.min(CHECKPOINT_CYCLES_MAX) as u32;
        }
        Next::Work(Stage::Over, cycles)
    }

    fn over(&mut self, number: u32) -> Next {
        let now = self.now;
        let thread = &mut self.threads[number as usize];
        if std::mem::take(&mut thread.transaction.fails) {
            thread.found_full();
        } else {
            thread.succeeded(now);
        }
        Next::Stage(Stage::Program)
    }

    /// What the committed transaction has made has a name from now on.
    fn finish_transaction(&mut self, number: u32) {
        let thread = &mut self.threads[number as usize];
        let Some(inode) = thread.transaction.inode else {
            return;
        };
        match thread.call {
            Call::Create(place) => thread.remember(place.file, inode),
            Call::MakeDirectory { directory } => {
                let key = (thread.path.clone(), Some(directory));
                let made = self.volume.add_directory(inode);
                self.locks.add_directory();
                self.names.insert(key, made);
            }
            _ => {}
        }
    }

    /// There is no room: what the transaction has taken goes back.
    fn gives_up(&mut self, number: u32) -> Next {
        let thread = &mut self.threads[number as usize];
        let hash = thread.hash();
        let transaction = &mut thread.transaction;
        transaction.fails = true;
        if let Some(inode) = transaction.inode.take() {
            self.volume.put_inode(inode);
            self.volume.directory(transaction.directory).leave(hash);
        }
        Next::Work(Stage::Committed, 1)
    }

    fn request(&mut self, number: u32, request: super::volume::Request) -> Next {
        let stage = self.calls_allocator(number, request);
        if self.is_deferred() {
            Next::Work(stage, self.volume.spec().cycles.hand_over)
        } else {
            Next::Stage(stage)
        }
    }

    fn release_all(&mut self, number: u32, cpu: Option<u16>) {
        self.release_spaces(number, cpu);
        let transaction = &mut self.threads[number as usize].transaction;
        let (group, directory) = (transaction.group.take(), transaction.directory);
        if let Some(group) = group {
            self.unlock(LockName::Inodes(group), number, cpu);
        }
        self.unlock(LockName::Directory(directory), number, cpu);
    }

    fn release_spaces(&mut self, number: u32, cpu: Option<u16>) {
        let spaces = std::mem::take(&mut self.threads[number as usize].transaction.spaces);
        for group in spaces {
            self.unlock(LockName::Space(group), number, cpu);
        }
    }

    /// Whoever has waited for it goes on.
    fn unlock(&mut self, name: LockName, transaction: u32, cpu: Option<u16>) {
        match self.locks.release(name, transaction) {
            Some(Actor::Thread(next)) => self.go_on(next, cpu),
            Some(Actor::Worker(next)) => self.worker_got_space(next, cpu),
            Some(Actor::Daemon(_)) | None => {}
        }
    }

    /// The commit is the one work that locks something for itself.
    fn work_of(&self, stage: Stage, cycles: u32) -> Work<Actor> {
        let commit_locked = self.volume.spec().cycles.commit_locked;
        match stage {
            Stage::Committed | Stage::Rolled if cycles > commit_locked => {
                Work::of(cycles).holding(self.checkpoint, commit_locked)
            }
            _ => Work::of(cycles.max(1)),
        }
    }

    fn give(&mut self, number: u32, by: Option<u16>, work: Work<Actor>) {
        let spent_ns = self.time_of(work.cycles());
        let thread = &mut self.threads[number as usize];
        thread.system_ns += spent_ns;
        let task = thread.task;
        self.smp
            .wake(self.now, task, by, work.tagged(Actor::Thread(number)));
    }

    fn give_in_user_mode(&mut self, number: u32, by: Option<u16>, cycles: u32) {
        let spent_ns = self.time_of(cycles);
        let thread = &mut self.threads[number as usize];
        thread.user_ns += spent_ns;
        let task = thread.task;
        self.smp
            .wake(self.now, task, by, Work::of(cycles).in_user_mode());
    }

    fn sleeps(&mut self, number: u32, site: Site) {
        let task = self.threads[number as usize].task;
        self.scheduling.sleeps_in(task, site);
    }

    fn time_of(&self, cycles: u32) -> Time {
        u64::from(cycles) * SECOND / self.smp.spec().clock_hz
    }
}

/// A directory of any size is looked through in so many at most, and a checkpoint of any size written.
const SCAN_CYCLES_MAX: u32 = 100_000_000;
const CHECKPOINT_CYCLES_MAX: u64 = 1_000_000_000;
