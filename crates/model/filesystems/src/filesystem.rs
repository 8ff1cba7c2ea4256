//! What a filesystem whose metadata are simulated is to the machine that it is mounted on.

use workload::metadata::{MetadataPhase, ThreadMeasured};

use crate::actor::Actor;
use crate::allocator::Allocator;
use crate::effect::{Effect, FlushNumber};
use crate::switches::{SwitchesObservation, SwitchesOptions};
use block_layer::TaskId;
use events::smp::{SchedulerEvent, TaskNumber, TaskUsage};
use events::time::Time;
use events::{Component, SpecError};
use memory::cache::FileId;

/// How far a phase has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time since the start of the phase.
    pub elapsed_ns: Time,
    /// Files created by all threads.
    pub files: u64,
    /// The furthest behind of all threads; None: no bound determines it.
    pub fraction: Option<f64>,
}

/// What a phase yielded.
pub struct Results {
    /// By thread, in the order of the phase; always Some, until the maker of the record takes them.
    pub threads: Vec<Option<ThreadMeasured>>,
    /// Used blocks in percent of all, delayed allocations included.
    pub filesystem_used_percent: f64,
    /// The probe's observation; None if it was off.
    pub switches: Option<SwitchesObservation>,
}

/// A filesystem on its drive. Phases that make files run one after the other.
pub trait Filesystem: Allocator + Component<Effect = Effect> {
    /// Makes the phase's threads. The error names a key of the phase.
    fn begin(&mut self, now: Time, phase: &MetadataPhase, switches: Option<&SwitchesOptions>) -> Result<(), SpecError>;

    /// Threads begin nothing more.
    fn stop(&mut self);

    /// The results of the phase. `process_ns`: in user mode and in the kernel, of all CPUs until now. Writeback of
    /// dirty pages continues.
    fn end(&mut self, now: Time, process_ns: (Time, Time)) -> Results;

    /// How far the phase has come.
    fn progress(&self) -> Progress;

    /// Threads of a phase have something to do, and an event that lets them continue is pending.
    fn is_active(&self) -> bool;

    /// Of those that submit I/O.
    fn task_names(&self) -> Vec<(TaskNumber, String)>;

    /// A piece of work is done, on that CPU.
    fn worked(&mut self, now: Time, actor: Actor, cpu: u16);

    /// I/O of that tag has ended.
    fn completed(&mut self, now: Time, tag: u32);

    /// The drive's cache is on the medium.
    fn flushed(&mut self, now: Time, number: FlushNumber);

    /// The inode of the load's file changes: its times, size or blocks.
    fn inode_changes(&mut self, file: FileId);

    /// The load's file is to be on the drive, with its times: the task waits until it is unblocked. False: its metadata
    /// are.
    fn force_for_load(&mut self, task: TaskId, file: FileId) -> bool;

    /// Who has left a CPU for whom, in the filesystem's own numbers of tasks.
    fn scheduled(&mut self, event: &SchedulerEvent);

    /// If CPUs keep no trace of switches: the task's switches.
    fn count_switches(&mut self, task: TaskNumber, used: &TaskUsage);
}
