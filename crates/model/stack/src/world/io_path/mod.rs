//! The I/O path: drives behind their request queues, and bios that are in no queue yet.

mod backlog;
mod drive;
mod poll_delay;
mod queue_run;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Index, IndexMut};

use super::clock::{Clock, Event};
use super::driven_component::DrivenComponent;
use backlog::Backlog;
use block_layer::{AllocateOutcome, Bio, QueueEvent, SubmitOutcome, TaskId, TaskPlug, Throttle};
use drive::Drive;
pub(super) use drive::Effect;
pub use drive::{DriveParts, FuaRules};
use events::Component;
use events::station::Violation;
use events::time::Time;
use kernels::submission::SyncWrites;
pub use poll_delay::{PollDelay, PollRules};
pub use queue_run::QueueRunCosts;

/// The owner of drives and of the bios on their way to them.
///
/// A bio comes in by `hold` or `enter` and goes out as an effect of its drive; no other module puts one into a queue or
/// sees those that wait for a request. A drive is a component with an event of its own: the machine may ask it anything
/// and tell it what is no bio (`IndexMut`), and then calls `call_back`, or `run` and does the effects. The I/O path
/// knows no CPU, file or state of a task; what it means for those stands in `impl World`, in `bios` and `submission`.
pub(super) struct IoPath {
    drives: Vec<DrivenComponent<Drive>>,
    /// What the running call submits is held back until its end: kernels from 2.6.39 on.
    plug: Option<TaskPlug>,
    /// By task: the plugs of calls that submit several operations.
    submissions: BTreeMap<TaskId, TaskPlug>,
    backlog: Backlog,
    /// Workers that wait for the requests of a ring, at most.
    ring_workers: u16,
    sync_writes: SyncWrites,
}

/// What has become of a bio that was to be held back.
pub(super) enum PlugOutcome {
    /// It is in the plug.
    Yes,
    /// It is not: the plug has to be flushed first.
    Full(Bio),
    /// There is no plug.
    No(Bio),
    /// There is no request for it.
    MustWait(Bio),
}

/// What has become of a task's bios that waited for a request.
pub(super) struct RetryOutcome {
    /// The drives whose queues got some.
    pub(super) entered: BTreeSet<usize>,
    /// Those that wait still: for `wait_again`, after what the task's call holds back has gone.
    pub(super) late: VecDeque<(usize, Bio)>,
}

/// Workers of a ring for each CPU: for I/O that ends (`io_init_wq_offload`, `io_wq_create` of 5.x).
const WORKERS_PER_CPU: u16 = 4;

impl IoPath {
    /// `cpus_complete`: CPUs have to do something with a request before it is completed.
    pub(super) fn new(drives: Vec<DriveParts>, plug: Option<TaskPlug>, cpus: u16, cpus_complete: bool) -> IoPath {
        IoPath {
            drives: (0..)
                .zip(drives)
                .map(|(number, parts)| DrivenComponent::new(Drive::new(number, parts, cpus_complete)))
                .collect(),
            plug,
            submissions: BTreeMap::new(),
            backlog: Backlog::default(),
            ring_workers: WORKERS_PER_CPU * cpus,
            sync_writes: SyncWrites::ALL,
        }
    }

    pub(super) fn set_sync_writes(&mut self, sync_writes: SyncWrites) {
        self.sync_writes = sync_writes;
    }

    /// By drive: whether fsync waits for the device's cache.
    pub(super) fn set_flushes(&mut self, flushes: impl IntoIterator<Item = bool>) {
        for (drive, flushes) in self.drives.iter_mut().zip(flushes) {
            drive.set_flushes(flushes);
        }
    }

    pub(super) fn set_fua(&mut self, drive: usize, rules: FuaRules) {
        self.drives[drive].set_fua(rules);
    }

    pub(super) fn set_throttle(&mut self, drive: usize, throttle: Throttle) {
        self.drives[drive].set_throttle(throttle);
    }

    /// The bio, if its group's limit lets it go on; else it waits, and comes back as an effect of the drive.
    pub(super) fn admit(&mut self, now: Time, drive: usize, bio: Bio) -> Option<Bio> {
        self.drives[drive].admit(now, bio)
    }

    pub(super) fn drives(&self) -> impl Iterator<Item = &Drive> {
        self.drives.iter().map(|drive| &**drive)
    }

    pub(super) fn drives_mut(&mut self) -> impl Iterator<Item = &mut Drive> {
        self.drives.iter_mut().map(|drive| &mut **drive)
    }

    /// Any of their queues has tags.
    pub(super) fn has_tags(&self) -> bool {
        self.drives.iter().any(|drive| drive.queue().has_tags())
    }

    pub(super) fn drive_numbers(&self) -> std::ops::Range<usize> {
        0..self.drives.len()
    }

    /// Of which writes schedulers see that a task waits for them.
    pub(super) fn sync_writes(&self) -> &SyncWrites {
        &self.sync_writes
    }

    pub(super) fn ring_workers(&self) -> u16 {
        self.ring_workers
    }

    /// Something of the task's has found no request.
    pub(super) fn waits(&self, task: TaskId) -> bool {
        self.backlog.has(task)
    }

    /// Whether there is a request now for what the task waits with.
    pub(super) fn finds_request(&self, task: TaskId) -> bool {
        let first = self.backlog.first(task);
        first.is_some_and(|(drive, bio)| self.drives[*drive].queue().has_room_for(bio))
    }

    /// Bios that have found no request and that no worker waits for.
    pub(super) fn late(&self) -> usize {
        self.backlog.len()
    }

    /// Into the plug of the running call: the submitter flushes the plug in the end.
    pub(super) fn hold(&mut self, drive: usize, bio: Bio) -> PlugOutcome {
        match &mut self.plug {
            None => PlugOutcome::No(bio),
            Some(plug) => {
                let limits = self.drives[drive].queue().request_limits();
                match plug.hold(drive, bio, limits) {
                    Some(bio) => PlugOutcome::Full(bio),
                    None => PlugOutcome::Yes,
                }
            }
        }
    }

    /// The task's call submits this many operations: if the kernel plugs for so many, what it submits until
    /// `end_submission` is held back.
    pub(super) fn begin_submission(&mut self, task: TaskId, operations: usize) {
        if let Some(plug) = self.plug.as_ref().filter(|plug| plug.is_for(operations)) {
            self.submissions.insert(task, plug.clone());
        }
    }

    /// As `hold`, into the plug of the task's submission, which gets its requests as bios come (`blk_mq_submit_bio`). A
    /// worker gets those of a ring's task that find none.
    pub(super) fn hold_for_submission(&mut self, now: Time, drive: usize, bio: Bio, has_waited: bool) -> PlugOutcome {
        let Some(plug) = self.submissions.get_mut(&bio.task) else {
            return PlugOutcome::No(bio);
        };
        if self.backlog.has(bio.task) {
            return PlugOutcome::MustWait(bio);
        }
        let limits = self.drives[drive].queue().request_limits();
        if plug.joins(drive, &bio, limits) {
            return PlugOutcome::Yes;
        }
        if plug.is_full() {
            return PlugOutcome::Full(bio);
        }
        match self.drives[drive].allocate_for_plug(now, bio, has_waited) {
            AllocateOutcome::Merged => PlugOutcome::Yes,
            AllocateOutcome::Plugged(bio) => {
                plug.begins(drive, bio);
                PlugOutcome::Yes
            }
            AllocateOutcome::MustWait(bio) => PlugOutcome::MustWait(bio),
        }
    }

    /// The bio has found no request: its task waits, or a worker of its ring.
    pub(super) fn wait(&mut self, drive: usize, bio: Bio) {
        match bio.workers > 0 {
            true => self.backlog.hand_over(drive, bio),
            false => self.backlog.push(drive, bio),
        }
    }

    /// The task's submission has ended: its plug, with what it holds.
    pub(super) fn end_submission(&mut self, task: TaskId) -> Option<TaskPlug> {
        self.submissions.remove(&task)
    }

    /// The task's submission goes on, with nothing held.
    pub(super) fn continue_submission(&mut self, task: TaskId, plug: TaskPlug) {
        self.submissions.insert(task, plug);
    }

    /// Whether the call that the task is in holds some back now.
    pub(super) fn holds_for_submission(&self, task: TaskId) -> bool {
        let plug = self.submissions.get(&task);
        plug.is_some_and(|plug| !plug.is_empty())
    }

    /// Whether the call that the task is in holds bios back.
    pub(super) fn plugs_submission(&self, task: TaskId) -> bool {
        self.submissions.contains_key(&task)
    }

    /// The plug with what it holds; `give_back` when that is in the queues.
    pub(super) fn take_plug(&mut self) -> Option<TaskPlug> {
        self.plug.take()
    }

    pub(super) fn give_back_plug(&mut self, plug: TaskPlug) {
        self.plug = Some(plug);
    }

    /// The bio comes into its queue. True: it is the first for which its task has to wait.
    pub(super) fn enter(&mut self, now: Time, drive: usize, bio: Bio) -> bool {
        // A ring's submission does not wait (`IOCB_NOWAIT`), but a worker does that makes it again (`io_queue_async`).
        let has_worker = bio.workers > 0;
        let waits = !has_worker && self.backlog.has(bio.task);
        if !waits && self.drives[drive].submit(now, bio.clone()) != SubmitOutcome::MustWait {
            return false;
        }
        self.wait(drive, bio);
        !has_worker && !waits
    }

    /// Puts what has waited into the queues, or into the plug of the task's submission, until there is no request again.
    /// None: nothing has waited.
    pub(super) fn retry(&mut self, now: Time, task: TaskId) -> Option<RetryOutcome> {
        let mut waiting = self.backlog.take(task)?;
        let mut entered = BTreeSet::new();
        let mut is_first = true;
        while let Some((drive, mut bio)) = waiting.pop_front() {
            bio.submitted_at = now;
            let has_waited = std::mem::take(&mut is_first);
            // `backlog` has none of the task's while these are here.
            let late = match self.hold_for_submission(now, drive, bio, has_waited) {
                PlugOutcome::Yes => None,
                PlugOutcome::MustWait(bio) => Some(bio),
                PlugOutcome::No(bio) | PlugOutcome::Full(bio) => {
                    let enters = self.submits_again(now, drive, &bio, has_waited);
                    (!enters).then_some(bio)
                }
            };
            if let Some(bio) = late {
                waiting.push_front((drive, bio));
                break;
            }
            entered.insert(drive);
        }
        Some(RetryOutcome { entered, late: waiting })
    }

    /// These bios of the task wait for a request again.
    pub(super) fn wait_again(&mut self, task: TaskId, late: VecDeque<(usize, Bio)>) {
        self.backlog.put_back(task, late);
    }

    /// A worker that waits for the task may have a request now; then it continues with what no worker has taken up.
    pub(super) fn retry_worker(&mut self, now: Time, drive: usize, task: TaskId) {
        let Some(mut waiting) = self.backlog.take_handed_over(drive, task) else {
            return;
        };
        let mut has_waited = true;
        while let Some(mut bio) = waiting.pop_front() {
            bio.submitted_at = now;
            let goes_on = self.submits_again(now, drive, &bio, std::mem::take(&mut has_waited));
            if !goes_on {
                waiting.push_front(bio);
            }
            // The others have a worker each.
            let others_have = waiting.len() < usize::from(self.ring_workers);
            if !goes_on || others_have && !waiting.is_empty() {
                return self.backlog.put_back_handed_over(drive, task, waiting);
            }
        }
    }

    /// Whether the bio has found a request; `has_waited`: it was woken for it.
    fn submits_again(&mut self, now: Time, drive: usize, bio: &Bio, has_waited: bool) -> bool {
        let drive = &mut self.drives[drive];
        drive.submit_after(now, bio.clone(), has_waited) != SubmitOutcome::MustWait
    }

    /// The event that `call_back` has put has come.
    #[inline]
    pub(super) fn event_came(&mut self, now: Time, drive: usize) {
        self.drives[drive].event_came(now);
    }

    /// The drive received something: an event for what it does next.
    #[inline]
    pub(super) fn call_back(&mut self, now: Time, drive: usize, clock: &mut Clock) {
        self.drives[drive].call_back(now, Event::Drive(drive as u16), clock);
    }

    /// Has the drive collect what it has completed, and that request with it, and send its device what may go. What that
    /// means for the machine; `give_back` when it is done.
    pub(super) fn run(
        &mut self,
        now: Time,
        drive: usize,
        completed: Option<(u32, u16)>,
        clock: &mut Clock,
    ) -> Vec<Effect> {
        let of_number = &mut self.drives[drive];
        if let Some((tag, cpu)) = completed {
            of_number.completed(now, tag, Some(cpu));
        }
        of_number.advance(now);
        self.call_back(now, drive, clock);
        self.drives[drive].effects()
    }

    pub(super) fn give_back(&mut self, drive: usize, effects: Vec<Effect>) {
        self.drives[drive].give_back(effects);
    }

    /// From here on the drives' queues emit their events.
    pub(super) fn tap(&mut self) {
        self.drives.iter_mut().for_each(|drive| drive.tap());
    }

    pub(super) fn untap(&mut self) {
        self.drives.iter_mut().for_each(|drive| drive.untap());
    }

    /// Appends what the drives' queues have emitted since the last time.
    pub(super) fn take_events(&mut self, into: &mut Vec<QueueEvent>) {
        for drive in &mut self.drives {
            drive.take_events(into);
        }
    }

    /// Conservation and Little's law at every drive.
    pub(super) fn check(&self, now: Time) -> Result<(), Violation> {
        self.drives.iter().try_for_each(|drive| drive.check(now))
    }

    #[cfg(test)]
    pub(super) fn hold_contract(&mut self, now: Time) -> Result<(), Violation> {
        let mut drives = self.drives.iter_mut();
        drives.try_for_each(|drive| events::component::hold_contract(&mut **drive, now))
    }
}

impl Index<usize> for IoPath {
    type Output = Drive;

    #[inline]
    fn index(&self, drive: usize) -> &Drive {
        &self.drives[drive]
    }
}

impl IndexMut<usize> for IoPath {
    #[inline]
    fn index_mut(&mut self, drive: usize) -> &mut Drive {
        &mut self.drives[drive]
    }
}
