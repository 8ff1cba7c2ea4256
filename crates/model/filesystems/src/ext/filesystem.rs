//! ext2, ext3 and ext4 as the machine sees them.

use std::ops::Deref;

use workload::metadata::MetadataPhase;

use super::thread::Thread;
use super::{Ext, Timer, unbound};
use crate::actor::{Actor, Caller};
use crate::allocator::{Allocator, Extent, Full};
use crate::effect::{Effect, FlushNumber};
use crate::filesystem::{Filesystem, Progress, Results};
use crate::program::{self, Switches};
use crate::switches::SwitchesOptions;
use block_layer::TaskId;
use events::smp::{CpuSet, SchedulerEvent, TaskNumber, TaskSpec, TaskUsage};
use events::station::Violation;
use events::time::Time;
use events::{Component, SpecError};
use memory::cache::FileId;

impl Component for Ext {
    type Effect = Effect;

    fn next_event(&self) -> Option<Time> {
        self.timers.next_at()
    }

    fn advance(&mut self, now: Time) {
        while self.timers.next_at().is_some_and(|at| at <= now) {
            let (at, timer) = self.timers.take().expect("one is due");
            self.now = at;
            match timer {
                Timer::WriteBack => self.look_for_expired(),
                Timer::Commit => self.commit_by_time(),
                Timer::Joined(number) => self.has_joined(number),
            }
        }
        self.now = now;
    }

    fn take_effects(&mut self, into: &mut Vec<Effect>) {
        into.append(&mut self.effects);
    }

    /// Nobody sleeps for ever, and pages, room in the journal and inodes add up.
    fn check(&self, _now: Time) -> Result<(), Violation> {
        let wrong = |what: &str| Err(Violation { station: "files that are made".to_owned(), what: what.to_owned() });
        if self.active > 0 && self.in_flight == 0 {
            return wrong("a thread sleeps for ever");
        }
        if !self.files.counts_are_right() {
            return wrong("pages are not conserved");
        }
        if self.journal.as_ref().is_some_and(|journal| !journal.counts_are_right()) {
            return wrong("the journal has lost room");
        }
        let made = self.files.count() + self.directories.len() as u64;
        if self.inodes.count() != made {
            return wrong("inodes are not conserved");
        }
        if self.active == 0 && self.directories.iter().any(|one| one.is_locked) {
            return wrong("a directory was left locked");
        }
        Ok(())
    }
}

impl Filesystem for Ext {
    fn begin(&mut self, now: Time, phase: &MetadataPhase, switches: Option<&SwitchesOptions>) -> Result<(), SpecError> {
        if switches.is_some() {
            let what = "the model shows the switches of XFS only";
            return Err(SpecError::of("probes.switches", what));
        }
        program::check(phase, self.cpus)?;
        (self.now, self.began) = (now, now);
        self.threads.clear();
        for spec in &phase.threads {
            let cpus = spec.cpus.as_ref();
            let allowed = cpus.map(|list| CpuSet::of(self.cpus, list.iter().map(|&cpu| cpu as u16)));
            let last_cpu = (self.threads.len() % usize::from(self.cpus)) as u16;
            let last_cpu = match cpus {
                Some(list) => list[usize::from(last_cpu) % list.len()] as u16,
                None => last_cpu,
            };
            let task = self.add_task(TaskSpec { last_cpu, allowed, ..unbound() });
            self.threads.push(Thread::new(spec, task, 0, now)?);
            let number = self.threads.len() as u32 - 1;
            let key = (spec.directory.clone(), None);
            let directory = match self.names.get(&key) {
                Some(&known) => known,
                None => {
                    let made = self.add_directory(number, None).ok_or_else(|| {
                        let what = "the filesystem is full, so that no directory can be made";
                        SpecError::of("threads", what)
                    })?;
                    self.names.insert(key, made);
                    made
                }
            };
            self.threads[number as usize].directory = directory;
        }
        self.active = self.threads.len();
        (0..self.active as u32).for_each(|number| self.go_on(number, None));
        Ok(())
    }

    fn stop(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.stop());
    }

    fn end(&mut self, _now: Time, process_ns: (Time, Time)) -> Results {
        let began = self.began;
        let threads = std::mem::take(&mut self.threads).into_iter().map(|thread| {
            let switches = self.switches[thread.task as usize];
            Some(thread.program.into_measured(began, switches, process_ns))
        });
        let free = self.allocator.free_blocks() as f64;
        Results {
            threads: threads.collect(),
            filesystem_used_percent: (1.0 - free / self.blocks as f64) * 100.0,
            switches: None,
        }
    }

    fn progress(&self) -> Progress {
        let threads = self.threads.iter().map(Deref::deref);
        program::progress(self.now - self.began, threads)
    }

    fn is_active(&self) -> bool {
        self.active > 0 && self.in_flight > 0
    }

    fn task_names(&self) -> Vec<(TaskNumber, String)> {
        let threads = self.threads.iter();
        let threads = threads.map(|thread| (thread.task, thread.name.clone()));
        let journal = [(self.journal_task, "journal".to_owned())];
        let own = self.journal.iter().flat_map(|_| journal.clone());
        let flusher = [(self.flusher_task, "flusher".to_owned())];
        threads.chain(own).chain(flusher).collect()
    }

    fn worked(&mut self, now: Time, actor: Actor, cpu: u16) {
        self.now = now;
        self.in_flight -= 1;
        if let Actor::Caller(Caller::Thread(number)) = actor {
            self.go_on(number, Some(cpu));
        }
    }

    fn completed(&mut self, now: Time, tag: u32) {
        self.now = now;
        self.io_ended(tag);
    }

    fn flushed(&mut self, now: Time, number: FlushNumber) {
        self.now = now;
        self.flush_ended(number);
    }

    /// The journal of loads is the page cache's.
    fn inode_changes(&mut self, _file: FileId) {}

    fn force_for_load(&mut self, _task: TaskId, _file: FileId) -> bool {
        false
    }

    fn scheduled(&mut self, _event: &SchedulerEvent) {}

    fn count_switches(&mut self, task: TaskNumber, used: &TaskUsage) {
        self.switches[task as usize] = Switches { voluntary: used.slept, involuntary: used.gave_way };
    }
}

impl Allocator for Ext {
    fn create(&mut self, file: FileId, directory: u32) {
        self.allocator.create(file, directory);
    }

    fn map(&self, file: FileId, block: u64) -> Option<(u64, u64)> {
        self.allocator.map(file, block)
    }

    fn map_blocks(&self, file: FileId) -> Vec<u64> {
        self.allocator.map_blocks(file)
    }

    fn reserve(&mut self, file: FileId, block: u64, blocks: u64) -> Result<(), Full> {
        self.allocator.reserve(file, block, blocks)
    }

    fn allocate(&mut self, task: TaskId, file: FileId, block: u64, blocks: u64) -> Result<(), Full> {
        self.allocator.allocate(task, file, block, blocks)
    }

    fn allocates_at_write(&self) -> bool {
        self.allocator.allocates_at_write()
    }

    fn close(&mut self, file: FileId) {
        self.allocator.close(file);
    }

    fn remove(&mut self, file: FileId) {
        self.allocator.remove(file);
    }

    fn extents(&self, file: FileId) -> Vec<Extent> {
        self.allocator.extents(file)
    }

    fn free_blocks(&self) -> u64 {
        self.allocator.free_blocks()
    }
}
