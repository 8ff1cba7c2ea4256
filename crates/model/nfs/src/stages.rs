//! Where calls are, one stage after the other; Little's law at each.

use super::task::{Stage, Task, TaskId};
use events::slab::Slab;
use events::station::{Station, Violation};
use events::time::Time;

const STAGES: [(Stage, &str); 8] = [
    (Stage::Start, "start"),
    (Stage::Backlog, "backlog"),
    (Stage::Encode, "encode"),
    (Stage::Transmit, "transmit"),
    (Stage::RoundTrip, "round trip"),
    (Stage::Reply, "reply"),
    (Stage::SendWait, "send wait"),
    (Stage::Finish, "finish"),
];

/// All calls of a mount that are in flight, each in one stage.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    tasks: Slab<Task>,
    stations: [Station; STAGES.len()],
}

impl Tasks {
    #[inline]
    pub(super) fn start(&mut self, now: Time, task: Task) -> TaskId {
        self.stations[task.stage as usize].enter(now);
        self.tasks.put(task)
    }

    #[inline]
    pub(super) fn enter(&mut self, now: Time, task: TaskId, stage: Stage) {
        let task = &mut self.tasks[task];
        self.stations[task.stage as usize].leave(now, task.since);
        self.stations[stage as usize].enter(now);
        task.stage = stage;
        task.since = now;
    }

    #[inline]
    pub(super) fn finish(&mut self, now: Time, task: TaskId) -> Task {
        let task = self.tasks.take(task);
        self.stations[task.stage as usize].leave(now, task.since);
        task
    }

    #[inline]
    pub(super) fn of(&self, task: TaskId) -> &Task {
        &self.tasks[task]
    }

    #[inline]
    pub(super) fn of_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task]
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// How many are in one of the stages.
    #[cfg(test)]
    pub(super) fn inside(&self, stage: Stage) -> u64 {
        self.stations[stage as usize].inside()
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().map(|(_, task)| task)
    }

    pub(super) fn check(&self, now: Time) -> Result<(), Violation> {
        STAGES.iter().try_for_each(|&(stage, name)| {
            let inside = self.tasks.iter().filter(|(_, task)| task.stage == stage);
            self.stations[stage as usize].check(name, now, inside.map(|(_, task)| task.since))
        })
    }
}
