//! XFS as the machine sees it.

use workload::metadata::MetadataPhase;

use super::{Actor, FlushNumber, Mounted, Progress, Results, SwitchesOptions};
use crate::filesystem::Filesystem;
use block_layer::TaskId;
use events::SpecError;
use events::smp::{SchedulerEvent, TaskNumber, TaskUsage};
use events::time::Time;
use memory::cache::FileId;

impl Filesystem for Mounted {
    fn begin(
        &mut self,
        now: Time,
        phase: &MetadataPhase,
        switches: Option<&SwitchesOptions>,
    ) -> Result<(), SpecError> {
        Mounted::begin(self, now, phase, switches)
    }

    fn stop(&mut self) {
        Mounted::stop(self);
    }

    fn end(&mut self, now: Time, process_ns: (Time, Time)) -> Results {
        Mounted::end(self, now, process_ns)
    }

    fn progress(&self) -> Progress {
        Mounted::progress(self)
    }

    fn is_active(&self) -> bool {
        Mounted::is_active(self)
    }

    fn task_names(&self) -> Vec<(TaskNumber, String)> {
        Mounted::task_names(self).collect()
    }

    fn worked(&mut self, now: Time, actor: Actor, cpu: u16) {
        Mounted::worked(self, now, actor, cpu);
    }

    fn completed(&mut self, now: Time, tag: u32) {
        Mounted::completed(self, now, tag);
    }

    fn flushed(&mut self, now: Time, number: FlushNumber) {
        Mounted::flushed(self, now, number);
    }

    fn force_for_load(&mut self, task: TaskId, file: FileId, times: bool) -> bool {
        Mounted::force_for_load(self, task, file, times)
    }

    fn scheduled(&mut self, event: &SchedulerEvent) {
        Mounted::scheduled(self, event);
    }

    fn count_switches(&mut self, task: TaskNumber, used: &TaskUsage) {
        Mounted::count_switches(self, task, used);
    }
}
