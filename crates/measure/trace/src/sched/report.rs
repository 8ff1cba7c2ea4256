//! The results of the analysis of scheduler events.

use std::collections::BTreeMap;

use serde::Serialize;

pub use super::stalls::Stall;
use crate::distribution::Distribution;

/// A whole recording. docs/reference/probes.md explains each field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SwitchReport {
    /// Length of the recording in nanoseconds.
    pub elapsed_ns: u64,
    /// Events that the kernel had no room for.
    pub events_lost: u64,
    /// How often events were lost and the kernel could not report how many.
    pub losses_uncounted: u64,
    /// Context switches on all CPUs, those from and to idle tasks too, as /proc/stat counts them.
    pub switches: u64,
    /// By how the task left: `preempted`, `sleep`, `disk_sleep`, `idle`, `stopped`, `exited`; `cpu_idle` of idle tasks.
    pub by_state: BTreeMap<&'static str, u64>,
    /// From switch-out to switch-in of the same task, whatever it waited for, but for kernel threads without work.
    pub stall_ns: Distribution,
    /// From the waker's call to switch-in.
    pub wakeup_latency_ns: Distribution,
    /// From runnable (woken, or preempted) to switch-in.
    pub run_queue_delay_ns: Distribution,
    /// By number of switches; those that are not in the table are together in the last row, which has no pid.
    pub tasks: Vec<TaskReport>,
    /// By estimated number of switches.
    pub sites: Vec<SiteReport>,
    /// What became of the stack samples.
    pub stacks: Stacks,
    /// The series of each CPU (`cpu0`, ...) and of `all`.
    pub series: BTreeMap<String, Series>,
}

/// The switches of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TaskReport {
    /// The task's name.
    pub comm: String,
    /// Its number; None in the row of all others.
    pub pid: Option<u32>,
    /// How often it left its CPU.
    pub switches: u64,
    /// As in `SwitchReport`.
    pub by_state: BTreeMap<&'static str, u64>,
    /// The times that it was off its CPU.
    pub stall: Stall,
    /// The parts of stalls: until woken, and from runnable on. Only of stalls whose wake-up was seen; those of
    /// preempted tasks have the second part alone.
    pub sleeping: Stall,
    /// From runnable to running.
    pub run_queue_delay: Stall,
}

/// A place in the kernel where tasks leave their CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SiteReport {
    /// The function that waits.
    pub site: String,
    /// How it waits: the kernel stack that led there most often, innermost function first.
    pub chain: Vec<String>,
    /// Who waits there: the task's name that did most often.
    pub comm: String,
    /// Stacks that were taken here.
    pub samples: u64,
    /// Estimate: the share of the samples' weights that were here, of all switches away from tasks.
    pub switches: u64,
    /// The times off the CPU, estimated from the samples.
    pub stall: Stall,
    /// Until woken.
    pub sleeping: Stall,
    /// From runnable to running.
    pub run_queue_delay: Stall,
}

/// What became of the stack samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Stacks {
    pub taken: u64,
    /// No switch of the task was seen at that time.
    pub unmatched: u64,
}

/// Columns over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "SwitchSeries")]
pub struct Series {
    /// Begin of each interval, since the start of the recording.
    pub at_ns: Vec<u64>,
    pub columns: Columns,
}

/// What happened in each interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "SwitchColumns")]
pub struct Columns {
    /// The length of the interval; the last may be shorter.
    pub length_s: Vec<f64>,
    pub context_switches_per_s: Vec<f64>,
}
