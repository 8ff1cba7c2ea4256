//! System calls that threads make: from stage to stage, and the time and the sleep between.

use workload::metadata::Call;

use super::Ext;
use super::directory::Directory;
use super::thread::Stage;
use crate::effect::Effect;
use events::time::Time;

/// What becomes of a thread that has got to a stage.
enum StageOutcome {
    /// On to the next one, at once.
    Stage(Stage),
    /// CPU time of this length; then the stage.
    Work(Stage, Time),
    /// It sleeps until another task wakes it, and continues with this stage.
    Sleep(Stage),
    Finish,
}

impl Ext {
    /// A thread has done what it was at, or has got what it waited for. `cpu`: where that happened; None: nowhere.
    pub(super) fn go_on(&mut self, number: u32, cpu: Option<u16>) {
        loop {
            let next = match self.threads[number as usize].stage {
                Stage::Program => self.calls(number),
                Stage::Locks => self.locks(number),
                Stage::Changes => self.changes(number),
                Stage::Copied => self.copied(number),
                Stage::Syncs => match self.syncs(number) {
                    true => StageOutcome::Sleep(Stage::Syncs),
                    false => StageOutcome::Stage(Stage::Joins),
                },
                Stage::Joins => match self.joins(number) {
                    true => StageOutcome::Sleep(Stage::Commits),
                    false => StageOutcome::Stage(Stage::Commits),
                },
                Stage::Commits => match self.commits(number) {
                    Some(then) => StageOutcome::Sleep(then),
                    None => StageOutcome::Stage(Stage::Flushes),
                },
                Stage::Flushes => match self.flushes(number) {
                    true => StageOutcome::Sleep(Stage::Over),
                    false => StageOutcome::Stage(Stage::Over),
                },
                Stage::SyncsAll => match self.syncs_all(number) {
                    true => StageOutcome::Sleep(Stage::SyncsAll),
                    false => StageOutcome::Stage(Stage::CommitsAll),
                },
                Stage::CommitsAll => match self.commits_all(number) {
                    Some(then) => StageOutcome::Sleep(then),
                    None => StageOutcome::Stage(Stage::Over),
                },
                Stage::Over => self.over(number),
                Stage::Finished => StageOutcome::Finish,
            };
            match next {
                StageOutcome::Stage(stage) => self.threads[number as usize].stage = stage,
                StageOutcome::Work(stage, ns) => {
                    self.threads[number as usize].stage = stage;
                    return self.give(number, cpu, ns);
                }
                StageOutcome::Sleep(stage) => {
                    self.threads[number as usize].stage = stage;
                    return;
                }
                StageOutcome::Finish => {
                    self.active -= 1;
                    let task = self.threads[number as usize].task;
                    self.effects.push(Effect::Exit(task));
                    return;
                }
            }
        }
    }

    pub(super) fn wake(&mut self, threads: Vec<u32>) {
        for thread in threads {
            self.go_on(thread, None);
        }
    }

    fn calls(&mut self, number: u32) -> StageOutcome {
        let (began, now) = (self.began, self.now);
        let thread = &mut self.threads[number as usize];
        let call = thread.next_call(began, now);
        thread.calls_at(now);
        let opens = self.spec.call_ns;
        match call {
            Call::Done => {
                self.threads[number as usize].stage = Stage::Finished;
                StageOutcome::Finish
            }
            Call::MakeDirectory { .. } => {
                let thread = &mut self.threads[number as usize];
                thread.at = thread.directory;
                StageOutcome::Stage(Stage::Locks)
            }
            Call::Create(place) | Call::Unlink(place) => {
                let at = self.directory_of(number, place.subdirectory);
                self.threads[number as usize].at = at;
                StageOutcome::Stage(Stage::Locks)
            }
            Call::Write { bytes } => {
                let inode = self.threads[number as usize].open;
                let (touched, _) = self.files.appended(inode, bytes);
                StageOutcome::Work(Stage::Copied, self.submit_ns + self.page_copy_ns * touched.blocks)
            }
            Call::Close => StageOutcome::Work(Stage::Over, self.submit_ns),
            Call::Fsync => StageOutcome::Work(Stage::Syncs, self.submit_ns),
            Call::SystemSync => StageOutcome::Work(Stage::SyncsAll, self.submit_ns),
            Call::FsyncAgain(place) => {
                let thread = &mut self.threads[number as usize];
                thread.open = thread.inodes[&place.file];
                StageOutcome::Work(Stage::Syncs, opens + self.submit_ns)
            }
        }
    }

    /// Its lock (`i_sem`, `i_mutex`) goes to one after the other.
    fn locks(&mut self, number: u32) -> StageOutcome {
        let thread = &self.threads[number as usize];
        let (at, call) = (thread.at, thread.call);
        let scanned = match call {
            Call::Unlink(place) => {
                let entry = self.files.get(thread.inodes[&place.file]).entry;
                self.directories[at].scanned_to_find(entry)
            }
            _ => self.directories[at].scanned_to_enter(),
        };
        let directory = &mut self.directories[at];
        if std::mem::replace(&mut directory.is_locked, true) {
            directory.waiting.push_back(number);
            return StageOutcome::Sleep(Stage::Locks);
        }
        StageOutcome::Work(Stage::Changes, self.spec.call_ns + self.spec.scan_block_ns * scanned)
    }

    fn unlock(&mut self, at: usize) {
        self.directories[at].is_locked = false;
        if let Some(next) = self.directories[at].waiting.pop_front() {
            self.go_on(next, None);
        }
    }

    /// What the call is about is changed in memory, once the journal has room for it.
    fn changes(&mut self, number: u32) -> StageOutcome {
        if !self.has_room_for(number) {
            return StageOutcome::Sleep(Stage::Changes);
        }
        let thread = &self.threads[number as usize];
        let (at, call, hash) = (thread.at, thread.call, thread.hash());
        let done = match call {
            Call::MakeDirectory { directory } => self.make_directory(number, at, directory, hash),
            Call::Create(place) => self.create(number, at, place.file, hash),
            Call::Unlink(place) => {
                self.unlink(number, at, place.file, hash);
                Ok(())
            }
            _ => unreachable!("the call is about no directory"),
        };
        let running = self.journal.as_ref().map(|journal| journal.running());
        let thread = &mut self.threads[number as usize];
        thread.fails = done.is_err();
        if let Some(running) = running.filter(|_| self.spec.dirsync) {
            (thread.keeps_lock, thread.transaction) = (true, running);
        }
        let is_synchronous = thread.keeps_lock;
        self.commit_if_large();
        if is_synchronous {
            return StageOutcome::Stage(Stage::Joins);
        }
        self.unlock(at);
        StageOutcome::Stage(Stage::Over)
    }

    fn directory_of(&self, number: u32, subdirectory: Option<u32>) -> usize {
        let thread = &self.threads[number as usize];
        match subdirectory {
            None => thread.directory,
            Some(_) => self.names[&(thread.path.clone(), subdirectory)],
        }
    }

    fn create(&mut self, number: u32, at: usize, file: u64, hash: u32) -> Result<(), ()> {
        let parent = self.directories[at].inode;
        let inode = self.inodes.take(self.inodes.group_of(parent)).ok_or(())?;
        let Ok(entry) = self.enter(at, hash) else {
            self.inodes.give_back(inode);
            return Err(());
        };
        let own = self.new_file(self.inodes.group_of(inode) as u32);
        self.files.add(inode, own, entry);
        self.take_inode(inode);
        self.touch(inode);
        self.change(self.inodes.table_block(parent));
        let thread = &mut self.threads[number as usize];
        thread.open = inode;
        thread.inodes.insert(file, inode);
        Ok(())
    }

    /// It is taken or given back: its own block, and its group's bitmap and descriptor.
    fn take_inode(&mut self, inode: u64) {
        self.change(self.inodes.table_block(inode));
        self.change(self.inodes.bitmap(inode));
        self.change(self.inodes.descriptor(self.inodes.group_of(inode)));
    }

    /// The file's inode is changed.
    pub(super) fn touch(&mut self, inode: u64) {
        self.change(self.inodes.table_block(inode));
        if let Some(journal) = &self.journal {
            self.files.get_mut(inode).changed_in = journal.running();
        }
    }

    /// One more entry of the directory: which of its blocks has it.
    fn enter(&mut self, at: usize, hash: u32) -> Result<u64, ()> {
        let before = self.directories[at].clone();
        let entered = self.directories[at].enter(hash);
        let file = before.file;
        if let Some(new) = entered.new {
            // With the index of a directory that gets one, the blocks before it too.
            let first = entered.changed.iter().copied().min().unwrap_or(new).min(new);
            let task = self.inodes.group_of(before.inode) as u32;
            if self.allocator.allocate(task, file, first, new + 1 - first).is_err() {
                self.directories[at] = before;
                return Err(());
            }
            if let Some((physical, _)) = self.allocator.map(file, new) {
                self.change_bitmaps(physical);
            }
        }
        let changed = entered.changed.iter();
        let placed = changed.filter_map(|&block| Some(self.allocator.map(file, block)?.0));
        let placed: Vec<u64> = placed.collect();
        self.change_all(placed);
        Ok(entered.block)
    }

    fn make_directory(&mut self, number: u32, at: usize, name: u32, hash: u32) -> Result<(), ()> {
        let path = self.threads[number as usize].path.clone();
        let key = (path, Some(name));
        if self.names.contains_key(&key) {
            return Ok(());
        }
        self.enter(at, hash)?;
        let made = self.add_directory(number, Some(at)).ok_or(())?;
        let (parent, inode) = (self.directories[at].inode, self.directories[made].inode);
        self.change(self.inodes.table_block(parent));
        self.take_inode(inode);
        let file = self.directories[made].file;
        if let Some((physical, _)) = self.allocator.map(file, 0) {
            self.change_bitmaps(physical);
            self.change(physical);
        }
        self.names.insert(key, made);
        Ok(())
    }

    /// With its first block; None: no room is left. `parent`: None of a thread's own.
    pub(super) fn add_directory(&mut self, number: u32, parent: Option<usize>) -> Option<usize> {
        // Directories are spread over the groups (`find_group_dir`, `find_group_orlov` of those at the top).
        let group = self.directories.len() as u64 + u64::from(parent.is_none());
        let inode = self.inodes.take(group % self.inodes.groups())?;
        let group = self.inodes.group_of(inode) as u32;
        let file = self.new_file(group);
        if self.allocator.allocate(group, file, 0, 1).is_err() {
            self.inodes.give_back(inode);
            return None;
        }
        let name_bytes = self.threads[number as usize].name_bytes();
        let is_indexed = self.variant.is_indexed;
        self.directories.push(Directory::new(inode, file, name_bytes, is_indexed));
        Some(self.directories.len() - 1)
    }

    /// Its name first; then its blocks and its inode, unless some of it is on its way.
    fn unlink(&mut self, number: u32, at: usize, file: u64, hash: u32) {
        let thread = &mut self.threads[number as usize];
        let inode = thread.inodes.remove(&file).expect("it made the file");
        let entry = self.files.get(inode).entry;
        let block = self.directories[at].leave(hash, entry);
        let parent = self.directories[at].inode;
        let of = self.directories[at].file;
        if let Some((physical, _)) = self.allocator.map(of, block) {
            self.change(physical);
        }
        self.change(self.inodes.table_block(parent));
        if self.files.unlink(inode) {
            self.free(inode);
        }
    }

    pub(super) fn free(&mut self, inode: u64) {
        let file = self.files.remove(inode).file;
        for extent in self.allocator.extents(file) {
            self.change_bitmaps(extent.physical);
        }
        self.allocator.remove(file);
        self.take_inode(inode);
        self.inodes.give_back(inode);
        if let Some(journal) = &mut self.journal {
            journal.forget(inode);
        }
    }

    /// Into the page cache: with a place at once, or with room kept for one (`allocates_at_write`).
    fn copied(&mut self, number: u32) -> StageOutcome {
        if !self.has_room_for(number) {
            return StageOutcome::Sleep(Stage::Copied);
        }
        let thread = &self.threads[number as usize];
        let (inode, call) = (thread.open, thread.call);
        let Call::Write { bytes } = call else { unreachable!("the call writes") };
        let (touched, new) = self.files.appended(inode, bytes);
        let file = self.files.get(inode).file;
        let placed = match (new, self.allocator.allocates_at_write()) {
            (0, _) => Ok(()),
            (_, true) => self.allocate(number, inode, (touched.first, touched.blocks)),
            (_, false) => {
                let kept = self.allocator.reserve(file, touched.first, touched.blocks);
                kept.map_err(|_| ())
            }
        };
        if placed.is_err() {
            self.threads[number as usize].fails = true;
            return StageOutcome::Stage(Stage::Over);
        }
        self.files.append(inode, bytes, self.now);
        // Its size and time.
        self.touch(inode);
        self.commit_if_large();
        self.flush_if_over();
        match self.holds_writers() {
            true => {
                self.throttled.push(number);
                StageOutcome::Sleep(Stage::Over)
            }
            false => StageOutcome::Stage(Stage::Over),
        }
    }

    fn over(&mut self, number: u32) -> StageOutcome {
        let now = self.now;
        let thread = &mut self.threads[number as usize];
        if std::mem::take(&mut thread.fails) {
            thread.found_full();
        } else {
            thread.succeeded(now);
        }
        if std::mem::take(&mut thread.keeps_lock) {
            let at = thread.at;
            self.unlock(at);
        }
        let thread = &self.threads[number as usize];
        if thread.call == Call::Close {
            let file = self.files.get(thread.open).file;
            self.allocator.close(file);
        }
        StageOutcome::Stage(Stage::Program)
    }
}
