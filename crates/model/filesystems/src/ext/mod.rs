//! ext2, ext3 and ext4 as who makes files sees them: directories, inodes and bitmaps, the journal of ordered mode, and what of
//! all that goes to the drive.
//!
//! Blocks come from the drive's own allocator, so that files of loads and files that are made here share its space. Sources:
//! docs/model/sources/allocators.md; docs/model/ext.md has mechanisms, parameters and limits.

mod call;
mod directory;
mod file;
mod filesystem;
mod home;
mod inodes;
mod io;
mod journal;
mod spec;
mod sync;
#[cfg(test)]
mod tests;
mod thread;

use std::collections::BTreeMap;

use crate::actor::{Actor, Caller};
use crate::allocator::Allocator;
use crate::effect::Effect;
use crate::program::Switches;
use directory::Directory;
use events::SpecError;
use events::event_queue::EventQueue;
use events::slab::Slab;
use events::smp::{Context, Rank, TaskNumber, TaskSpec};
use events::time::Time;
use file::Files;
use home::Home;
use inodes::Inodes;
use io::Purpose;
use journal::Journal;
use memory::cache::FileId;
pub use spec::{DataMode, ExtMetadata, JoinTimes, Variant};
use thread::Thread;

/// A mounted filesystem. Phases run one after the other.
pub struct Ext {
    variant: Variant,
    spec: ExtMetadata,
    cpus: u16,
    /// What a call costs that submits I/O, and copying a page.
    submit_ns: Time,
    page_copy_ns: Time,
    /// More dirty pages than these are written back at once; twice as many hold writers up.
    background_pages: u64,
    now: Time,
    began: Time,
    effects: Vec<Effect>,
    allocator: Box<dyn Allocator>,
    blocks: u64,
    inodes: Inodes,
    directories: Vec<Directory>,
    /// By the path of a thread's directory and the number in it.
    names: BTreeMap<(String, Option<u32>), usize>,
    files: Files,
    next_file: FileId,
    /// None: ext2.
    journal: Option<Journal>,
    home: Home,
    io: Slab<Purpose>,
    threads: Vec<Thread>,
    active: usize,
    /// Pieces of work, I/O and flushes that are still to come.
    in_flight: u64,
    /// By task: what the CPUs have reported of it.
    switches: Vec<Switches>,
    journal_task: TaskNumber,
    flusher_task: TaskNumber,
    /// Threads that wait for pages, for all that is dirty, and for room in the journal.
    throttled: Vec<u32>,
    all_waiting: Vec<u32>,
    without_room: Vec<u32>,
    timers: EventQueue<Timer>,
    is_armed: bool,
    is_commit_armed: bool,
}

/// What happens at a time by itself.
#[derive(Clone, Copy, Debug)]
enum Timer {
    /// What has been dirty for too long is written.
    WriteBack,
    /// The running transaction commits.
    Commit,
    /// The thread has waited for others to join its transaction.
    Joined(u32),
}

/// What a filesystem is mounted with, besides its own table.
#[derive(Clone, Copy, Debug)]
pub struct Mount {
    /// Which of the three it is, by its kernel.
    pub variant: Variant,
    /// Of the machine.
    pub cpus: u16,
    /// Its size in blocks of 4 KiB.
    pub blocks: u64,
    /// At the start of each group.
    pub group_metadata_blocks: u32,
    /// Inodes per group.
    pub group_inodes: u32,
    /// Costs of the machine's calls.
    pub submit_ns: Time,
    /// The same of a page that is copied.
    pub page_copy_ns: Time,
    /// Dirty pages that are written back at once, beyond these.
    pub background_pages: u64,
}

/// Files that are made here have numbers of their own, beside those of loads.
const FIRST_FILE: FileId = 1 << 31;

impl Ext {
    /// On a drive whose blocks `allocator` gives out.
    pub fn new(mount: &Mount, spec: ExtMetadata, allocator: Box<dyn Allocator>) -> Result<Ext, SpecError> {
        spec.check().map_err(|error| error.within("metadata"))?;
        let inodes = Inodes::new(mount.blocks, mount.group_metadata_blocks, mount.group_inodes)?;
        let mut ext = Ext {
            variant: mount.variant,
            spec,
            cpus: mount.cpus,
            submit_ns: mount.submit_ns,
            page_copy_ns: mount.page_copy_ns,
            background_pages: mount.background_pages,
            now: 0,
            began: 0,
            effects: Vec::new(),
            allocator,
            blocks: mount.blocks,
            inodes,
            directories: Vec::new(),
            names: BTreeMap::new(),
            files: Files::default(),
            next_file: FIRST_FILE,
            journal: None,
            home: Home::default(),
            io: Slab::new(),
            threads: Vec::new(),
            active: 0,
            in_flight: 0,
            switches: Vec::new(),
            journal_task: 0,
            flusher_task: 0,
            throttled: Vec::new(),
            all_waiting: Vec::new(),
            without_room: Vec::new(),
            timers: EventQueue::new(),
            is_armed: false,
            is_commit_armed: false,
        };
        ext.journal_task = ext.add_task(unbound());
        ext.flusher_task = ext.add_task(unbound());
        if mount.variant.is_journaled {
            let file = ext.new_file(0);
            let blocks = u64::from(spec.journal_blocks);
            let given = ext.allocator.allocate(0, file, 0, blocks);
            given.map_err(|_| SpecError::of("metadata.journal_blocks", "more than the filesystem has left"))?;
            ext.journal = Some(Journal::new(file, spec.journal_blocks));
        }
        Ok(ext)
    }

    /// The allocator's number of a new file in the directory of that number.
    fn new_file(&mut self, directory: u32) -> FileId {
        let file = self.next_file;
        self.next_file += 1;
        self.allocator.create(file, directory);
        file
    }

    fn add_task(&mut self, spec: TaskSpec) -> TaskNumber {
        self.effects.push(Effect::Task(spec));
        self.switches.push(Switches::default());
        self.switches.len() as TaskNumber - 1
    }

    /// A block of metadata is changed: in the running transaction, or in place.
    fn change(&mut self, block: u64) {
        match &mut self.journal {
            Some(journal) => journal.change(block, self.now),
            None => self.home.dirty(block, self.now),
        }
        self.arm();
    }

    fn change_all(&mut self, blocks: impl IntoIterator<Item = u64>) {
        blocks.into_iter().for_each(|block| self.change(block));
    }

    /// What describes blocks that were given or taken: the group's bitmap, and its descriptor.
    fn change_bitmaps(&mut self, block: u64) {
        let group = self.inodes.group_of_block(block);
        self.change(self.inodes.block_bitmap(group));
        self.change(self.inodes.descriptor(group));
    }

    fn give(&mut self, number: u32, by: Option<u16>, ns: Time) {
        let thread = &mut self.threads[number as usize];
        thread.system_ns += ns;
        self.in_flight += 1;
        self.effects.push(Effect::Work {
            task: thread.task,
            by,
            cycles: ns.clamp(1, u64::from(u32::MAX)) as u32,
            locked_cycles: 0,
            context: Context::System,
            of: Some(Actor::Caller(Caller::Thread(number))),
        });
    }
}

/// A kernel's or program's task that runs wherever there is room.
fn unbound() -> TaskSpec {
    TaskSpec { rank: Rank::Normal, last_cpu: 0, allowed: None, sleeps_for_io: false }
}
