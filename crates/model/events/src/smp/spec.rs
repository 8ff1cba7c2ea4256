//! A machine's processors as numbers.

use serde::Deserialize;

use super::topology::{DISTANCES, Distance, Topology};
use crate::SpecError;
use crate::spec_error::within;
use crate::time::{SECOND, Time};

/// Everything about the processors of a machine.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SmpSpec {
    /// NUMA nodes, sockets, cores and threads.
    pub topology: Topology,
    /// The clock of all CPUs, which never changes.
    #[schemars(range(min = 1_000_000, max = 100_000_000_000_u64))]
    pub clock_hz: u64,
    /// Moving a cache line from another CPU, by how far away that is, nearest first.
    #[schemars(inner(range(max = CYCLES_MAX)))]
    pub transfer_cycles: [u32; DISTANCES],
    /// The part of each 1,000 cycles of computing in which the CPU waits for its own caches, translations or branches.
    #[schemars(range(max = 1_000))]
    pub computing_stall_per_mille: u32,
    /// Interrupts between CPUs.
    pub interrupts: InterruptSpec,
    /// The task scheduler.
    pub scheduling: SchedulingSpec,
    /// From the lightest to the deepest; none: an idle CPU is at once there.
    #[serde(default)]
    pub idle_states: Vec<IdleState>,
}

/// Interrupts that one CPU sends another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterruptSpec {
    /// What sending costs the sender.
    #[schemars(range(max = CYCLES_MAX))]
    pub send_cycles: u32,
    /// From sending to the other's noticing, within a NUMA node.
    #[schemars(range(max = SECOND))]
    pub latency_ns: Time,
    /// The same, to another NUMA node.
    #[schemars(range(max = SECOND))]
    pub latency_other_node_ns: Time,
    /// Entering and leaving it, on the other.
    #[schemars(range(max = CYCLES_MAX))]
    pub receive_cycles: u32,
}

/// The task scheduler's times and costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulingSpec {
    /// A task that has had its CPU for this long yields to a waiting task of its rank.
    #[schemars(range(min = 1_000, max = 10 * SECOND))]
    pub time_slice_ns: Time,
    /// A task that wakes up takes the CPU from another task of its rank that has had it for this long.
    #[schemars(range(max = SECOND))]
    pub preempt_after_ns: Time,
    /// Cycles that waking a task takes, spent by the task that wakes it.
    #[schemars(range(max = CYCLES_MAX))]
    pub wake_cycles: u32,
    /// From one task to another.
    #[schemars(range(max = CYCLES_MAX))]
    pub switch_cycles: u32,
    /// Cache lines of a task's state, which follow it to the CPU where it runs.
    pub task_lines: u16,
    /// Cache lines of a run queue, which move to the CPU that puts a task there.
    pub run_queue_lines: u16,
    /// A waiting task goes to an idle CPU within this distance.
    pub migrates_within: Distance,
}

/// A CPU that has been idle for `after_ns` is in this state, and comes out of it after `exit_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    /// How long the CPU has to be idle.
    pub after_ns: Time,
    /// How long it takes to come out of the state.
    #[schemars(range(max = SECOND))]
    pub exit_ns: Time,
}

pub const CPUS_MAX: u64 = 1024;
/// Longer pieces of work than 10^8 cycles are mistakes, and keep sums far from overflow.
const CYCLES_MAX: u64 = 100_000_000;

impl SmpSpec {
    /// Refuses values outside their limits; the error names the key.
    pub fn check(&self) -> Result<(), SpecError> {
        let topology = &self.topology;
        within("topology", topology.cpus(), 1, CPUS_MAX)?;
        within("clock_hz", self.clock_hz, 1_000_000, 100_000_000_000)?;
        for (number, &cycles) in self.transfer_cycles.iter().enumerate() {
            let key = format!("transfer_cycles.{number}");
            within(&key, u64::from(cycles), 0, CYCLES_MAX)?;
        }
        let share = u64::from(self.computing_stall_per_mille);
        within("computing_stall_per_mille", share, 0, 1_000)?;
        let (interrupts, scheduling) = (&self.interrupts, &self.scheduling);
        for (key, cycles) in [
            ("interrupts.send_cycles", interrupts.send_cycles),
            ("interrupts.receive_cycles", interrupts.receive_cycles),
            ("scheduling.wake_cycles", scheduling.wake_cycles),
            ("scheduling.switch_cycles", scheduling.switch_cycles),
        ] {
            within(key, u64::from(cycles), 0, CYCLES_MAX)?;
        }
        for (key, time) in [
            ("interrupts.latency_ns", interrupts.latency_ns),
            ("interrupts.latency_other_node_ns", interrupts.latency_other_node_ns),
            ("scheduling.preempt_after_ns", scheduling.preempt_after_ns),
        ] {
            within(key, time, 0, SECOND)?;
        }
        let slice = scheduling.time_slice_ns;
        within("scheduling.time_slice_ns", slice, 1_000, 10 * SECOND)?;
        for (number, pair) in self.idle_states.windows(2).enumerate() {
            if pair[1].after_ns <= pair[0].after_ns {
                let what = "expected more than the state before it has";
                let key = format!("idle_states.{}.after_ns", number + 1);
                return Err(SpecError::of(&key, what));
            }
        }
        for (number, state) in self.idle_states.iter().enumerate() {
            within(&format!("idle_states.{number}.exit_ns"), state.exit_ns, 0, SECOND)?;
        }
        Ok(())
    }
}

impl InterruptSpec {
    pub(super) fn latency(&self, distance: Option<Distance>) -> Time {
        match distance {
            Some(Distance::Machine) => self.latency_other_node_ns,
            _ => self.latency_ns,
        }
    }
}
