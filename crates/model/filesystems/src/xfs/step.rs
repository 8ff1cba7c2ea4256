//! What a thread does next: from stage to stage, and the time and the sleep between.

use super::allocation::CallNext;
use super::site::Site;
use super::thread::Stage;
use super::{Actor, Caller, Xfs};
use events::smp::{Context, TaskNumber};

/// What becomes of a thread that has got to a stage.
pub(super) enum StageOutcome {
    /// On to the next one, at once.
    Stage(Stage),
    /// That takes this long; then the stage.
    Work(Stage, u32),
    /// It sleeps until another task wakes it, and continues with this stage.
    Sleep(Stage, Site),
    /// The same, and where is known already.
    Wait(Stage),
    Finish,
}

impl From<CallNext> for StageOutcome {
    fn from(next: CallNext) -> StageOutcome {
        match next {
            CallNext::Stage(stage) => StageOutcome::Stage(Stage::Calls(stage)),
            CallNext::Work(stage, cycles) => StageOutcome::Work(Stage::Calls(stage), cycles),
            CallNext::Sleep(stage, site) => StageOutcome::Sleep(Stage::Calls(stage), site),
            CallNext::Deferred => StageOutcome::Wait(Stage::Answered),
            CallNext::Answered => StageOutcome::Stage(Stage::Answered),
        }
    }
}

impl Xfs {
    pub(super) fn caller_goes_on(&mut self, caller: Caller, cpu: Option<u16>) {
        match caller {
            Caller::Thread(number) => self.go_on(number, cpu),
            Caller::Flusher(number) => self.flusher_goes_on(number, cpu),
        }
    }

    pub(super) fn task_of(&self, caller: Caller) -> TaskNumber {
        match caller {
            Caller::Thread(number) => self.threads[number].task,
            Caller::Flusher(number) => self.flushers[number as usize].task,
        }
    }

    /// A thread has done what it was at, or has got what it waited for. `cpu`: where that happened; None: nowhere.
    pub(super) fn go_on(&mut self, number: u32, cpu: Option<u16>) {
        loop {
            let next = match self.threads[number].stage {
                Stage::Program => self.program(number, cpu),
                Stage::Begun => self.begun(number),
                Stage::DirectoryLocked => self.directory_locked(number, cpu),
                Stage::InodesLocked | Stage::Rolled => self.inodes_locked(number, cpu),
                Stage::Calls(call) => {
                    let caller = Caller::Thread(number);
                    self.continue_call(caller, Actor::Caller(caller), call, cpu).into()
                }
                Stage::Answered => self.answered(number),
                Stage::HasInode => self.enters(number),
                Stage::Committed => self.committed(number, cpu),
                Stage::Logs => self.logs(number),
                Stage::Written => self.written(number, cpu),
                Stage::Syncs => self.syncs(number, cpu),
                Stage::Forces => self.forces(number),
                Stage::Flushes => self.flushes(number),
                Stage::Forced => StageOutcome::Stage(Stage::Over),
                Stage::SyncsAll => self.syncs_all(number, cpu),
                Stage::Over => self.over(number),
                Stage::Finished => StageOutcome::Finish,
            };
            match next {
                StageOutcome::Stage(stage) => self.threads[number].stage = stage,
                StageOutcome::Work(stage, cycles) => {
                    self.threads[number].stage = stage;
                    let locked = self.locked_cycles(stage, cycles);
                    return self.give_thread(number, cpu, (cycles, locked));
                }
                StageOutcome::Sleep(stage, site) => {
                    self.threads[number].stage = stage;
                    return self.sleeps(number, site);
                }
                StageOutcome::Wait(stage) => {
                    self.threads[number].stage = stage;
                    return;
                }
                StageOutcome::Finish => {
                    self.sleeps(number, Site::Ends);
                    self.threads.finish_one();
                    self.machine.exits(self.threads[number].task);
                    return;
                }
            }
        }
    }

    /// The commit is the one work that locks something for itself.
    fn locked_cycles(&self, stage: Stage, cycles: u32) -> u32 {
        let commit_locked = self.volume.spec().cycles.commit_locked;
        match stage {
            Stage::Committed | Stage::Rolled if cycles > commit_locked => commit_locked,
            _ => 0,
        }
    }

    fn give_thread(&mut self, number: u32, by: Option<u16>, cycles: (u32, u32)) {
        let spent_ns = self.machine.time_of(cycles.0);
        let thread = &mut self.threads[number];
        thread.system_ns += spent_ns;
        let task = thread.task;
        let actor = Actor::Caller(Caller::Thread(number));
        self.give(task, by, cycles, Context::System, actor);
    }

    /// To any task but a daemon; the second number of cycles is with the checkpoint's list locked.
    pub(super) fn give(
        &mut self,
        task: TaskNumber,
        by: Option<u16>,
        (cycles, locked_cycles): (u32, u32),
        context: Context,
        of: Actor,
    ) {
        let cycles = (cycles.max(1), locked_cycles);
        self.machine.give(task, by, cycles, context, Some(of));
    }

    pub(super) fn give_in_user_mode(&mut self, number: u32, by: Option<u16>, cycles: u32) {
        let spent_ns = self.machine.time_of(cycles);
        let thread = &mut self.threads[number];
        thread.user_ns += spent_ns;
        let task = thread.task;
        self.machine.give(task, by, (cycles, 0), Context::User, None);
    }

    pub(super) fn sleeps(&mut self, number: u32, site: Site) {
        let task = self.threads[number].task;
        self.machine.sleeps_in(task, site);
    }
}
