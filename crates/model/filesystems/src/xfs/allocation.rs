//! Calls of the allocator: who runs it, and which group's free-space header it has to lock first.

use super::locks::LockName;
use super::site::Site;
use super::volume::Request;
use super::workers::{Item, Job};
use super::{Actor, Caller, Xfs};

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStage {
    /// The request goes to a worker.
    HandsOver(Request),
    LocksSpace(Request),
    /// The free-space header of the group is locked.
    SpaceLocked(Request, u32),
    /// The allocator runs.
    Allocates(Request, u32),
}

/// What becomes of a call that has got to a stage.
pub(super) enum CallNext {
    Stage(CallStage),
    /// That takes this long; then the stage.
    Work(CallStage, u32),
    /// Whoever runs it sleeps; then the stage.
    Sleep(CallStage, Site),
    /// The caller sleeps until it has the answer.
    Deferred,
    Answered,
}

/// What a caller's transaction has of the allocator.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldGroups {
    /// Groups whose free-space header it has locked, and keeps.
    pub(super) spaces: Vec<u32>,
    /// Group and first block; None: no room.
    pub(super) answer: Option<(u32, u32)>,
}

/// How the header of a group that has room could be locked.
pub(super) enum Space {
    Locked(u32),
    /// Asleep until that group's is handed over.
    Awaited(u32),
    Nowhere,
}

impl Xfs {
    /// `xfs_alloc_vextent` is called.
    pub(super) fn begin_call(&mut self, caller: Caller, request: Request) -> CallNext {
        self.volume.count_allocator_call();
        self.held(caller).answer = None;
        if self.volume.defers_call(request.is_data) {
            CallNext::Work(CallStage::HandsOver(request), self.volume.spec().cycles.hand_over)
        } else {
            CallNext::Stage(CallStage::LocksSpace(request))
        }
    }

    /// `runner`: the caller, or the worker in which it calls. `cpu`: where that happens.
    pub(super) fn continue_call(
        &mut self,
        caller: Caller,
        runner: Actor,
        stage: CallStage,
        cpu: Option<u16>,
    ) -> CallNext {
        match stage {
            CallStage::HandsOver(request) => {
                let cpu = cpu.expect("it has just run there");
                let group = None;
                let job = Job::Call { request, group };
                self.hand_over(Item { caller, job }, cpu, Site::Allocation);
                CallNext::Deferred
            }
            CallStage::LocksSpace(request) => match self.lock_space(caller, &request, runner) {
                Space::Locked(group) => CallNext::Stage(CallStage::SpaceLocked(request, group)),
                Space::Awaited(group) => CallNext::Sleep(CallStage::SpaceLocked(request, group), Site::SpaceLock),
                Space::Nowhere => CallNext::Answered,
            },
            CallStage::SpaceLocked(request, group) => {
                let cycles = self.volume.allocate_cycles(group);
                CallNext::Work(CallStage::Allocates(request, group), cycles)
            }
            CallStage::Allocates(request, group) => {
                self.run_allocator(caller, &request, group, cpu);
                CallNext::Answered
            }
        }
    }

    /// `try_take` of the first group that has room, as the passes of `__xfs_alloc_vextent` do: without waiting first, then
    /// in the order of groups only, which keeps two transactions from waiting for each other.
    pub(super) fn lock_space(&mut self, caller: Caller, request: &Request, waiter: Actor) -> Space {
        if !request.elsewhere {
            if !self.volume.may_fit(request.group, request) {
                return Space::Nowhere;
            }
            return self.wait_for_space(caller, request.group, waiter);
        }
        for group in self.volume.around(request.group) {
            if self.volume.may_fit(group, request) && self.locks.try_take(LockName::Space(group), caller) {
                return Space::Locked(group);
            }
        }
        let highest = self.held(caller).spaces.iter().max().copied();
        let found = self
            .volume
            .around(request.group)
            .find(|&group| highest.is_none_or(|held| group > held) && self.volume.may_fit(group, request));
        match found {
            Some(group) => self.wait_for_space(caller, group, waiter),
            None => Space::Nowhere,
        }
    }

    /// With the header locked, and its time spent. The transaction keeps the header to its end, whether it has found a
    /// place or not; but one that has no room any more is let go (`xfs_alloc_fix_freelist` looks again under the lock,
    /// then gives the buffer back): else a task that continues in a lower group would wait out of the groups' order.
    pub(super) fn run_allocator(&mut self, caller: Caller, request: &Request, group: u32, cpu: Option<u16>) {
        let fits = self.volume.may_fit(group, request);
        let block = fits.then(|| self.volume.allocate(group, request)).flatten();
        let held = self.held(caller);
        held.answer = block.map(|block| (group, block));
        match held.spaces.contains(&group) {
            true => {}
            false if fits => held.spaces.push(group),
            false => self.unlock(LockName::Space(group), caller, cpu),
        }
    }

    pub(super) fn held(&mut self, caller: Caller) -> &mut HeldGroups {
        match caller {
            Caller::Thread(number) => &mut self.threads[number].transaction.held,
            Caller::Flusher(number) => &mut self.flushers[number as usize].held,
        }
    }

    fn wait_for_space(&mut self, caller: Caller, group: u32, waiter: Actor) -> Space {
        if self.locks.take(LockName::Space(group), caller, waiter) {
            Space::Locked(group)
        } else {
            Space::Awaited(group)
        }
    }
}
