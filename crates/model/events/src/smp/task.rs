//! A task: works through what it is given, and sleeps when there is nothing left.

use std::collections::VecDeque;

use super::cpu::Active;
use super::cpu_set::CpuSet;
use super::lines::ObjectId;
use super::run_queue::Rank;
use super::usage::TaskUsage;
use super::work::Work;
use crate::time::Time;

/// How a task begins.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Which tasks it gives way to.
    pub rank: Rank,
    /// None: any.
    pub allowed: Option<CpuSet>,
    /// Where it has run before.
    pub last_cpu: u16,
    /// When it sleeps, it does so for an I/O.
    pub sleeps_for_io: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Task<T> {
    pub(super) rank: Rank,
    pub(super) allowed: CpuSet,
    pub(super) movable: bool,
    pub(super) sleeps_for_io: bool,
    /// The CPU whose idleness its wait for an I/O makes I/O wait, until it runs again.
    pub(super) waits_for_io_on: Option<u16>,
    /// Where it runs, waits, or ran last.
    pub(super) cpu: u16,
    pub(super) asleep: bool,
    pub(super) work: VecDeque<Work<T>>,
    /// What it was doing when another took its CPU.
    pub(super) suspended: Option<Active<T>>,
    pub(super) slice_left: Time,
    pub(super) object: ObjectId,
    /// Without what it has had since it got the CPU that it has.
    pub(super) used: TaskUsage,
}

impl<T> Task<T> {
    /// The task continues with this later, unless it was still being switched to and has other work to continue with.
    pub(super) fn suspend(&mut self, active: Option<Active<T>>) {
        self.suspended = self.suspended.take().or(active);
    }
}

impl TaskSpec {
    /// May run only there.
    pub fn pinned(cpus: u16, cpu: u16) -> TaskSpec {
        TaskSpec { rank: Rank::Normal, allowed: Some(CpuSet::of(cpus, [cpu])), last_cpu: cpu, sleeps_for_io: true }
    }
}
