//! Where a CPU's time has gone.

use super::work::{CONTEXTS, Context};
use crate::time::{SECOND, Time};

/// The contexts' times add up to the time that has passed, to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    ns: [Time; CONTEXTS],
    /// Hard interrupts once more, by what each interrupted.
    interrupted_ns: [Time; CONTEXTS],
}

/// Cycles in which a CPU computed nothing although it had work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// A cache line was on its way.
    pub transfers: u64,
    /// A lock was held by another CPU.
    pub spinning: u64,
    /// Own caches, translations, branches, devices' registers.
    pub computing: u64,
}

/// How often something has happened on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The interrupts from devices and from other CPUs.
    pub interrupts: u64,
    /// From one task to another.
    pub switches: u64,
}

impl Usage {
    /// Time in a context.
    pub fn ns(&self, context: Context) -> Time {
        self.ns[context as usize]
    }

    /// The same in cycles of that clock, rounded down.
    pub fn cycles(&self, context: Context, clock_hz: u64) -> u64 {
        (u128::from(self.ns(context)) * u128::from(clock_hz) / u128::from(SECOND)) as u64
    }

    /// As a kernel counts that looks at each tick what runs: its ticks wait while interrupts are off, so hard interrupts
    /// count for what they interrupted.
    pub fn sampled_ns(&self, context: Context) -> Time {
        match context {
            Context::HardInterrupt => 0,
            _ => self.ns[context as usize] + self.interrupted_ns[context as usize],
        }
    }

    /// Time in all contexts: what has passed.
    pub fn total_ns(&self) -> Time {
        self.ns.iter().sum()
    }

    #[inline]
    pub(super) fn add(&mut self, context: Context, under: Context, ns: Time) {
        self.ns[context as usize] += ns;
        if context == Context::HardInterrupt {
            self.interrupted_ns[under as usize] += ns;
        }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        for context in 0..CONTEXTS {
            self.ns[context] += other.ns[context];
            self.interrupted_ns[context] += other.interrupted_ns[context];
        }
    }
}

impl Stalls {
    /// All of them together.
    pub fn cycles(&self) -> u64 {
        self.transfers + self.spinning + self.computing
    }
}

impl std::ops::AddAssign for Stalls {
    fn add_assign(&mut self, other: Stalls) {
        self.transfers += other.transfers;
        self.spinning += other.spinning;
        self.computing += other.computing;
    }
}

/// What a task has had of CPUs, and how often it has lost one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskUsage {
    /// CPU time in user mode.
    pub user_ns: Time,
    /// CPU time in the kernel, for it.
    pub system_ns: Time,
    /// It had nothing left to do.
    pub slept: u64,
    /// Another took its place.
    pub gave_way: u64,
}

impl TaskUsage {
    pub(super) fn add_ns(&mut self, context: Context, ns: Time) {
        match context {
            Context::User => self.user_ns += ns,
            _ => self.system_ns += ns,
        }
    }
}

impl std::ops::AddAssign for TaskUsage {
    fn add_assign(&mut self, other: TaskUsage) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.slept += other.slept;
        self.gave_way += other.gave_way;
    }
}
