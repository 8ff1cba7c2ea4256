//! XFS as the machine sees it.

use workload::metadata::MetadataPhase;

use super::{Actor, FlushNumber, Progress, Results, SwitchesOptions, Xfs};
use crate::filesystem::Filesystem;
use block_layer::TaskId;
use events::SpecError;
use events::smp::{SchedulerEvent, TaskNumber, TaskUsage};
use events::time::Time;
use memory::cache::FileId;

impl Filesystem for Xfs {
    fn begin(&mut self, now: Time, phase: &MetadataPhase, switches: Option<&SwitchesOptions>) -> Result<(), SpecError> {
        Xfs::begin(self, now, phase, switches)
    }

    fn stop(&mut self) {
        Xfs::stop(self);
    }

    fn end(&mut self, now: Time, process_ns: (Time, Time)) -> Results {
        Xfs::end(self, now, process_ns)
    }

    fn progress(&self) -> Progress {
        Xfs::progress(self)
    }

    fn is_active(&self) -> bool {
        Xfs::is_active(self)
    }

    fn task_names(&self) -> Vec<(TaskNumber, String)> {
        Xfs::task_names(self).collect()
    }

    fn worked(&mut self, now: Time, actor: Actor, cpu: u16) {
        Xfs::worked(self, now, actor, cpu);
    }

    fn completed(&mut self, now: Time, tag: u32) {
        Xfs::completed(self, now, tag);
    }

    fn flushed(&mut self, now: Time, number: FlushNumber) {
        Xfs::flushed(self, now, number);
    }

    fn inode_changes(&mut self, file: FileId) {
        Xfs::inode_changes(self, file);
    }

    fn force_for_load(&mut self, task: TaskId, file: FileId) -> bool {
        Xfs::force_for_load(self, task, file)
    }

    fn scheduled(&mut self, event: &SchedulerEvent) {
        Xfs::scheduled(self, event);
    }

    fn count_switches(&mut self, task: TaskNumber, used: &TaskUsage) {
        Xfs::count_switches(self, task, used);
    }
}
