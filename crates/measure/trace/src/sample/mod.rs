//! What is read of a system at intervals: series in bounded memory, and where its CPUs' time goes.

pub mod columns;
pub mod cpu;
pub mod io_cost;
pub mod series;

use serde::Serialize;

/// When something was read, how often and at what cost.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Times {
    /// Wall-clock time of the first reading, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// From the first reading to the last.
    pub elapsed_ns: u64,
    /// Between two readings, at the end: it doubles when there would be too many intervals.
    pub interval_ns: u64,
    /// How often it was read.
    pub readings: u64,
    /// Readings that yielded nothing.
    pub readings_failed: u64,
    /// CPU time of the reading thread; absent on a simulated machine, which has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_cpu_ns: Option<u64>,
}
