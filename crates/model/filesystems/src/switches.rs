//! What the probe `switches` asks of a filesystem, and what the filesystem reports.

use serde::{Deserialize, Serialize};
use trace::sched::SwitchReport;

/// What the probe is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchesOptions {
    /// Between two points of the series.
    pub interval_ns: u64,
}

/// What docs/reference/probes.md describes as the observation of `switches`. Each switch has its stack.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ModelSwitchesObservation")]
pub struct SwitchesObservation {
    /// The report that the host's probe makes too.
    #[serde(flatten)]
    pub report: SwitchReport,
    /// Always 0: the simulation loses nothing.
    pub trace_events_lost: u64,
    /// Always 0, likewise.
    pub stack_samples_lost: u64,
    /// One line each: what was left out.
    pub notes: Vec<String>,
}
