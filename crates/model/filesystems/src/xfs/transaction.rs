//! A transaction that makes or unlinks a file or makes a directory: its locks, its blocks, its commit.

use workload::metadata::Call;

use super::data::UnlinkOutcome;
use super::directory::BlockUse;
use super::locks::LockName;
use super::site::Site;
use super::step::StageOutcome;
use super::thread::{Stage, Transaction};
use super::volume::Request;
use super::{Actor, Caller, Xfs};

impl Xfs {
    pub(super) fn begun(&mut self, number: u32) -> StageOutcome {
        let is_full =
            !matches!(self.threads[number].call, Call::Unlink(_)) && !self.volume.has_room(self.reserved_blocks());
        if is_full {
            self.threads[number].transaction.fails = true;
            return StageOutcome::Stage(Stage::Over);
        }
        if let Some(waits) = self.reserve_log(number) {
            return waits;
        }
        let thread = &self.threads[number];
        let subdirectory = match thread.call {
            Call::Create(place) | Call::Unlink(place) => place.subdirectory,
            _ => None,
        };
        let directory = match subdirectory {
            Some(_) => {
                let known = self.volume.directory_at(&thread.path, subdirectory);
                known.expect("it was made before")
            }
            None => thread.directory,
        };
        self.threads[number].transaction = Transaction { directory, ..Transaction::default() };
        if self.locks.take(
            LockName::Directory(directory),
            Caller::Thread(number),
            Actor::Caller(Caller::Thread(number)),
        ) {
            StageOutcome::Stage(Stage::DirectoryLocked)
        } else {
            StageOutcome::Sleep(Stage::DirectoryLocked, Site::DirectoryLock)
        }
    }

    pub(super) fn directory_locked(&mut self, number: u32, cpu: Option<u16>) -> StageOutcome {
        let thread = &self.threads[number];
        if let Call::MakeDirectory { directory } = thread.call
            && self.volume.directory_at(&thread.path, Some(directory)).is_some()
        {
            self.release_all(number, cpu);
            return StageOutcome::Stage(Stage::Over);
        }
        let from = match thread.call {
            Call::MakeDirectory { .. } => self.volume.turn_rotor(),
            Call::Unlink(place) => (thread.inode_of(place.file) >> 32) as u32,
            _ => self.volume.directory(thread.transaction.directory).group,
        };
        self.lock_inodes(number, from)
    }

    /// Of the first group from that one on that can have an inode; of an unlink, of that one.
    pub(super) fn lock_inodes(&mut self, number: u32, from: u32) -> StageOutcome {
        let unlinks = matches!(self.threads[number].call, Call::Unlink(_));
        let found = if unlinks { Some(from) } else { self.volume.group_for_inode(from) };
        let transaction = &mut self.threads[number].transaction;
        transaction.attempt = 0;
        transaction.groups_tried += 1;
        let Some(group) = found.filter(|_| transaction.groups_tried <= self.volume.spec().ag_count) else {
            return self.gives_up(number);
        };
        transaction.group = Some(group);
        if self.locks.take(LockName::Inodes(group), Caller::Thread(number), Actor::Caller(Caller::Thread(number))) {
            StageOutcome::Stage(Stage::InodesLocked)
        } else {
            StageOutcome::Sleep(Stage::InodesLocked, Site::InodesLock)
        }
    }

    pub(super) fn inodes_locked(&mut self, number: u32, cpu: Option<u16>) -> StageOutcome {
        let thread = &mut self.threads[number];
        if thread.stage == Stage::Rolled {
            self.release_spaces(Caller::Thread(number), cpu);
        }
        let thread = &mut self.threads[number];
        let call = thread.call;
        let transaction = &mut thread.transaction;
        let group = transaction.group.expect("locked");
        let cycles = self.volume.spec().cycles;
        if let Call::Unlink(place) = call {
            let inode = thread.forget(place.file);
            thread.transaction.inode = Some(inode);
            let hash = thread.hash();
            let directory = thread.transaction.directory;
            self.remove_file(inode);
            self.volume.directory(directory).leave(hash);
            return StageOutcome::Work(Stage::Committed, cycles.unlink + cycles.commit);
        }
        let near = match call {
            Call::Create(_) => Some(transaction.directory),
            _ => None,
        };
        if let Some(inode) = self.volume.take_inode(group, near) {
            transaction.inode = Some(inode);
            return StageOutcome::Stage(Stage::HasInode);
        }
        match self.volume.chunk_request(group, transaction.attempt) {
            Some(request) => self.request(number, request),
            None => {
                transaction.group = None;
                self.unlock(LockName::Inodes(group), Caller::Thread(number), cpu);
                self.lock_inodes(number, (group + 1) % self.volume.spec().ag_count)
            }
        }
    }

    /// The allocator has returned a place, or failed.
    pub(super) fn answered(&mut self, number: u32) -> StageOutcome {
        self.sleeps(number, Site::Preempted);
        let spec = *self.volume.spec();
        let transaction = &mut self.threads[number].transaction;
        let answer = transaction.held.answer.take();
        if transaction.inode.is_none() {
            return match answer {
                Some((group, block)) => {
                    self.volume.add_chunk(group, block);
                    // The transaction rolls: it is committed, and log space for another reserved.
                    StageOutcome::Work(Stage::Rolled, spec.cycles.commit + spec.cycles.begin / 4)
                }
                None => {
                    transaction.attempt += 1;
                    StageOutcome::Stage(Stage::InodesLocked)
                }
            };
        }
        let directory = transaction.directory;
        let Some((group, block)) = answer else {
            return self.gives_up(number);
        };
        self.volume.count_directory_block();
        if std::mem::take(&mut transaction.maps) {
            return StageOutcome::Stage(Stage::HasInode);
        }
        let what = transaction.wanted.as_mut().and_then(Vec::pop).expect("it asked for one");
        transaction.maps = self.volume.directory(directory).placed(group, block, what, spec.inode_bytes);
        StageOutcome::Stage(Stage::HasInode)
    }

    /// The entry, with all the blocks that it takes (`xfs_dir_createname`); then the commit.
    pub(super) fn enters(&mut self, number: u32) -> StageOutcome {
        let spec = *self.volume.spec();
        let thread = &mut self.threads[number];
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
        let scan = cycles.scan_block.saturating_mul(blocks).min(SCAN_CYCLES_MAX);
        StageOutcome::Work(Stage::Committed, cycles.inode + cycles.entry + scan + cycles.commit)
    }

    pub(super) fn committed(&mut self, number: u32, cpu: Option<u16>) -> StageOutcome {
        let changed = self.changed_by(number);
        self.commit_to_log(changed);
        self.finish_transaction(number);
        self.release_all(number, cpu);
        self.queue_checkpoint_if_due(cpu);
        let cycles = self.volume.spec().cycles.end;
        match self.checkpoint_if_due() {
            None => StageOutcome::Work(Stage::Over, cycles),
            Some((checkpoint, writing)) => {
                self.threads[number].checkpoint = Some(checkpoint);
                StageOutcome::Work(Stage::Logs, cycles + writing)
            }
        }
    }

    /// The blocks of the volume that the thread's transaction has changed.
    fn changed_by(&self, number: u32) -> Vec<u64> {
        let thread = &self.threads[number];
        let transaction = &thread.transaction;
        let mut blocks = self.volume.entry_blocks(transaction.directory, thread.hash());
        if let Some(group) = transaction.group {
            blocks.extend(self.volume.inode_headers(group));
        }
        if let Some(inode) = transaction.inode {
            blocks.extend(self.volume.inode_blocks(inode));
        }
        for &group in &transaction.held.spaces {
            blocks.extend(self.volume.space_headers(group));
        }
        blocks
    }

    /// What the committed transaction has made has a name from now on.
    pub(super) fn finish_transaction(&mut self, number: u32) {
        let thread = &mut self.threads[number];
        let Some(inode) = thread.transaction.inode else {
            return;
        };
        match thread.call {
            Call::Create(place) => thread.remember(place.file, inode),
            Call::MakeDirectory { directory } => {
                self.volume.add_directory(inode, &thread.path, Some(directory));
                self.locks.add_directory();
            }
            _ => {}
        }
    }

    /// There is no room: what the transaction has taken goes back.
    pub(super) fn gives_up(&mut self, number: u32) -> StageOutcome {
        let thread = &mut self.threads[number];
        let hash = thread.hash();
        let transaction = &mut thread.transaction;
        transaction.fails = true;
        if let Some(inode) = transaction.inode.take() {
            self.volume.put_inode(inode);
            self.volume.directory(transaction.directory).leave(hash);
        }
        StageOutcome::Work(Stage::Committed, 1)
    }

    pub(super) fn request(&mut self, number: u32, request: Request) -> StageOutcome {
        self.begin_call(Caller::Thread(number), request).into()
    }

    /// With its data, unless the flusher has it, which does so when it is done.
    fn remove_file(&mut self, inode: u64) {
        if let UnlinkOutcome::Had(file) = self.files.unlink(inode) {
            self.volume.free_file(inode, &file);
        }
    }
}

/// A search of a directory takes at most this many, whatever its size.
const SCAN_CYCLES_MAX: u32 = 100_000_000;
