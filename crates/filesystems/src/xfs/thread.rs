//! A thread of a metadata load: its job, the call that it makes, and what it measures.

use std::collections::BTreeMap;

use workload::measure::{Failures, Sample, Usage, Verdict};
use workload::metadata::{
    CREATE, Call, MetadataJob, MetadataPhase, OP_NAMES, SyncMethod, ThreadMeasured, ThreadSpec,
};
use workload::rng;

use super::allocation::{CallStage, Held};
use super::directory::BlockUse;
use super::switches::Switches;
use events::SpecError;
use events::smp::TaskNumber;
use events::spec_error::within;
use events::time::Time;

pub(super) struct Thread {
    pub(super) task: TaskNumber,
    pub(super) name: String,
    pub(super) job: MetadataJob,
    /// The path of its directory, and that directory.
    pub(super) path: String,
    pub(super) directory: usize,
    name_bytes: u32,
    seed: u64,
    /// By number, of the files that it has made and will unlink.
    inodes: BTreeMap<u64, u64>,
    /// Its files are neither unlinked nor synced again.
    forgets: bool,
    /// That it has begun and that is to go into the log's buffers.
    pub(super) checkpoint: Option<u64>,
    /// Of the file that is open.
    open: u64,
    pub(super) call: Call,
    called_at: Time,
    pub(super) stage: Stage,
    pub(super) transaction: Transaction,
    /// What it has used since the phase began.
    pub(super) user_ns: Time,
    pub(super) system_ns: Time,
    measured: ThreadMeasured,
    written: bool,
}

/// What a thread does when it next gets to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The program's own work until the next call, and that call.
    Program,
    /// Log space is reserved; the directory is to be locked.
    Begun,
    DirectoryLocked,
    /// The inode header of the group is locked.
    InodesLocked,
    /// In the allocator.
    Calls(CallStage),
    Answered,
    /// The transaction with the new chunk is committed, and another reserved.
    Rolled,
    /// The inode is taken; the directory's entry is next.
    HasInode,
    Committed,
    /// The data are in the page cache.
    Written,
    /// A checkpoint goes into the log's buffers.
    Logs,
    /// A file's data are to be on the drive, then what the log has of it, then what the drive's cache has.
    Syncs,
    Forces,
    Flushes,
    Forced,
    /// All files' data are.
    SyncsAll,
    /// The call is over.
    Over,
    Finished,
}

/// What a transaction has and is about to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Transaction {
    pub(super) directory: usize,
    /// The group of the inode, its header locked.
    pub(super) group: Option<u32>,
    /// Groups that it has tried in vain, and calls for a chunk in the present one.
    pub(super) groups_tried: u32,
    pub(super) attempt: u32,
    pub(super) inode: Option<u64>,
    /// Blocks that the directory still has to get, last first; None: its entry has not been made yet.
    pub(super) wanted: Option<Vec<BlockUse>>,
    /// Of a block for the directory's map of its extents.
    pub(super) maps: bool,
    pub(super) held: Held,
    /// Ends without having done anything.
    pub(super) fails: bool,
}

const ENOSPC: i32 = 28;

/// What of the phase the model has no mechanism for.
pub(super) fn check(phase: &MetadataPhase, cpus: u16) -> Result<(), SpecError> {
    if phase.threads.is_empty() {
        return Err(SpecError::of("threads", "nothing to do: no threads"));
    }
    for (number, thread) in phase.threads.iter().enumerate() {
        let of = |key: &str| format!("threads.{number}.{key}");
        let wrong = |key: &str, what: &str| Err(SpecError::of(&of(key), what));
        if let Some(list) = &thread.cpus {
            if list.is_empty() {
                return wrong("cpus", "expected at least one CPU");
            }
            for &cpu in list {
                within(&of("cpus"), u64::from(cpu), 0, u64::from(cpus) - 1)?;
            }
        }
    }
    Ok(())
}

impl Thread {
    pub(super) fn new(
        spec: &ThreadSpec,
        task: TaskNumber,
        directory: usize,
        now: Time,
    ) -> Result<Thread, SpecError> {
        let job = MetadataJob::new(&spec.job).map_err(|what| SpecError::of("threads", what))?;
        let nothing = Sample {
            at: now,
            thread: Usage::default(),
            process: Usage::default(),
        };
        Ok(Thread {
            task,
            name: spec.job.name.clone(),
            job,
            path: spec.directory.clone(),
            directory,
            name_bytes: spec.job.names.bytes,
            seed: spec.job.seed,
            inodes: BTreeMap::new(),
            forgets: spec.job.keep
                && matches!(spec.job.sync, SyncMethod::None | SyncMethod::BeforeClose),
            checkpoint: None,
            open: 0,
            call: Call::Done,
            called_at: now,
            stage: Stage::Program,
            transaction: Transaction::default(),
            user_ns: 0,
            system_ns: 0,
            measured: ThreadMeasured {
                ops: Default::default(),
                failures: Failures::new(errno_name),
                notes: Vec::new(),
                first_sample: nothing,
                last_sample: nothing,
                began_at: now,
                written_at: now,
                finished_at: now,
            },
            written: false,
        })
    }

    /// The next call. `Call::Done`: there is none.
    pub(super) fn next_call(&mut self, began: Time, now: Time) -> Call {
        self.call = self.job.next(now - began);
        if !self.written && !self.job.is_writing() {
            self.written = true;
            self.measured.written_at = now;
        }
        self.measured.finished_at = now;
        self.call
    }

    pub(super) fn calls_at(&mut self, at: Time) {
        self.called_at = at;
    }

    pub(super) fn succeeded(&mut self, now: Time) {
        let op = &mut self.measured.ops[self.call.op()];
        op.latency.record(now - self.called_at);
        self.measured.failures.succeeded();
        self.job.completed(true);
    }

    /// No room is left.
    pub(super) fn found_full(&mut self) {
        let ends_when_full = self.job.ends_when_full();
        if ends_when_full {
            self.job.full();
        }
        self.job.completed(false);
        if ends_when_full {
            return;
        }
        let op = OP_NAMES[self.call.op()];
        let failures = &mut self.measured.failures;
        if failures.failed(op, self.call.grows(), ENOSPC, &self.path, 0) == Verdict::GiveUp {
            let note = format!("gave up: {op} failed with {}", errno_name(ENOSPC));
            self.measured.notes.push(note);
            self.job.stop();
        }
    }

    pub(super) fn stop(&mut self) {
        self.job.stop();
    }

    /// Of the name in its call: names that threads give are random, so their hashes are too.
    pub(super) fn hash(&self) -> u32 {
        let number = match self.call {
            Call::Create(place) | Call::Unlink(place) => place.file,
            Call::MakeDirectory { directory } => u64::MAX - u64::from(directory),
            _ => unreachable!("the call names nothing"),
        };
        rng::stream(self.seed, number).next_u64() as u32
    }

    pub(super) fn name_bytes(&self) -> u32 {
        self.name_bytes
    }

    /// It has made the file, which is open now.
    pub(super) fn remember(&mut self, file: u64, inode: u64) {
        self.open = inode;
        if !self.forgets {
            self.inodes.insert(file, inode);
        }
    }

    /// One of its own.
    pub(super) fn opens_again(&mut self, file: u64) {
        self.open = self.inode_of(file);
    }

    pub(super) fn open_inode(&self) -> u64 {
        self.open
    }

    pub(super) fn forget(&mut self, file: u64) -> u64 {
        self.inodes.remove(&file).expect("it made the file")
    }

    pub(super) fn inode_of(&self, file: u64) -> u64 {
        self.inodes[&file]
    }

    pub(super) fn files(&self) -> u64 {
        self.measured.ops[CREATE].latency.count()
    }

    pub(super) fn fraction(&self) -> Option<f64> {
        self.job.progress()
    }

    /// Times since the phase began. `process_ns`: in user mode and in the kernel, of the whole machine.
    pub(super) fn into_measured(
        self,
        began: Time,
        switches: Switches,
        process_ns: (Time, Time),
    ) -> ThreadMeasured {
        let mut measured = self.measured;
        let of_process = |(user_ns, system_ns)| Usage {
            cpu_user_ns: user_ns,
            cpu_system_ns: system_ns,
            ..Usage::default()
        };
        measured.last_sample = Sample {
            at: measured.finished_at - began,
            thread: Usage {
                context_switches_voluntary: switches.voluntary,
                context_switches_involuntary: switches.involuntary,
                ..of_process((self.user_ns, self.system_ns))
            },
            process: of_process(process_ns),
        };
        for time in [
            &mut measured.began_at,
            &mut measured.written_at,
            &mut measured.finished_at,
        ] {
            *time -= began;
        }
        measured
    }
}

fn errno_name(errno: i32) -> String {
    match errno {
        ENOSPC => "ENOSPC".to_owned(),
        other => other.to_string(),
    }
}
