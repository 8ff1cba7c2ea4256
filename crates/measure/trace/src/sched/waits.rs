//! How often a task left its CPU, or tasks did at a place, and for how long.

use std::collections::BTreeMap;

use super::report::TaskReport;
use super::stalls::Sum;

#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) stall: Sum,
    pub(super) sleeping: Sum,
    pub(super) run_queue_delay: Sum,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    pub(super) switches: u64,
    pub(super) by_state: States,
    pub(super) times: Times,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Site {
    pub(super) samples: u64,
    pub(super) switches: u64,
    pub(super) times: Times,
}

pub(super) type States = [u64; STATES.len()];

impl Task {
    pub(super) fn merge(&mut self, other: &Task) {
        self.switches += other.switches;
        self.by_state.iter_mut().zip(other.by_state).for_each(|(ours, theirs)| *ours += theirs);
        self.times.merge(&other.times);
    }

    pub(super) fn report(&self, comm: String, pid: Option<u32>) -> TaskReport {
        TaskReport {
            comm,
            pid,
            switches: self.switches,
            by_state: named(&self.by_state),
            stall: self.times.stall.report(),
            sleeping: self.times.sleeping.report(),
            run_queue_delay: self.times.run_queue_delay.report(),
        }
    }
}

impl Site {
    pub(super) fn merge(&mut self, other: &Site) {
        self.samples += other.samples;
        self.switches += other.switches;
        self.times.merge(&other.times);
    }
}

impl Times {
    pub(super) fn merge(&mut self, other: &Times) {
        self.stall.merge(&other.stall);
        self.sleeping.merge(&other.sleeping);
        self.run_queue_delay.merge(&other.run_queue_delay);
    }
}

pub(super) fn named(states: &States) -> BTreeMap<&'static str, u64> {
    STATES.iter().copied().zip(*states).collect()
}

/// In the order of `State`, then the idle tasks.
const STATES: [&str; 7] = ["preempted", "sleep", "disk_sleep", "idle", "stopped", "exited", "cpu_idle"];
pub(super) const CPU_IDLE: usize = STATES.len() - 1;
