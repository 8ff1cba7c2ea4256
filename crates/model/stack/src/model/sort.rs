//! Phases that sort more than there is memory, and their records, in the shape that the same kind has on a host
//! (python/iolab/machines/host/sort.py).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workload::assemble::Circumstances;
use workload::metadata::ThreadRecord;
use workload::record::{GroupRecord, PhaseRecord};

use memory::swap::{Results, SortLoad, SortResult};

/// Processes that fill memory with random numbers and sort them, swapping if it is too small.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SortPhase {
    /// The phase's name in its record.
    pub name: String,
    /// How many sort at the same time, 1 to 256.
    pub processes: u32,
    /// Memory that each of them sorts.
    pub process_bytes: u64,
    /// Of all processes together.
    pub memory_limit_bytes: u64,
    /// Of the machine's area; None: all of it.
    pub swap_bytes: Option<u64>,
    /// How often each process sorts anew.
    pub passes: u32,
    /// Random seed of the numbers that are sorted.
    pub seed: u64,
}

/// What a phase that sorted came to.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ModelSortRecord")]
pub struct SortRecord {
    /// The whole phase, with a group and a job for each process.
    #[serde(flatten)]
    pub phase: PhaseRecord<ThreadRecord>,
    /// `elapsed_s_spread`, None if a process was stopped; `swap_in_bytes`, `swap_out_bytes`,
    /// `swap_out_after_first_bytes`, `swap_bytes_max` and `memory_bytes_max`.
    pub measures: BTreeMap<&'static str, Option<f64>>,
}

impl SortPhase {
    pub(super) fn load(&self) -> SortLoad {
        SortLoad {
            processes: self.processes,
            process_bytes: self.process_bytes,
            passes: self.passes,
            memory_bytes: self.memory_limit_bytes,
            swap_bytes: self.swap_bytes,
            seed: self.seed,
        }
    }
}

pub(super) fn record(phase: &SortPhase, circumstances: Circumstances, results: &Results) -> SortRecord {
    let groups: Vec<GroupRecord<ThreadRecord>> = (1..)
        .zip(&results.processes)
        .map(|(number, process)| group(format!("sort.{number}"), process, results.elapsed_ns))
        .collect();
    SortRecord {
        phase: PhaseRecord {
            phase: phase.name.clone(),
            started_unix_ns: circumstances.started_unix_ns,
            elapsed_ns: results.elapsed_ns,
            wall_clock_shift_ns: circumstances.wall_clock_shift_ns,
            measured_from_ns: 0,
            measured_to_ns: results.elapsed_ns,
            transient: None,
            stopped: circumstances.stopped,
            build_profile: circumstances.build_profile,
            clock: circumstances.clock,
            process_cpu_user_ns: groups.iter().map(|group| group.cpu_user_ns).sum(),
            process_cpu_system_ns: groups.iter().map(|group| group.cpu_system_ns).sum(),
            groups,
        },
        measures: BTreeMap::from([
            ("elapsed_s_spread", spread(&results.processes)),
            ("swap_in_bytes", Some(results.swap_in_bytes as f64)),
            ("swap_out_bytes", Some(results.swap_out_bytes as f64)),
            ("swap_out_after_first_bytes", Some(results.swap_out_after_first_bytes as f64)),
            ("swap_bytes_max", Some(results.swap_bytes_max as f64)),
            ("memory_bytes_max", Some(results.memory_bytes_max as f64)),
        ]),
    }
}

fn group(name: String, process: &SortResult, elapsed_ns: u64) -> GroupRecord<ThreadRecord> {
    let job = ThreadRecord {
        name: name.clone(),
        finished_ns: process.finished_ns.unwrap_or(elapsed_ns),
        ops: BTreeMap::new(),
        measures: BTreeMap::new(),
        errors: Vec::new(),
        mismatches_count: 0,
        mismatches: Vec::new(),
        intervals: Vec::new(),
    };
    GroupRecord::new(name, Vec::new(), process.usage, vec![job])
}

/// From the first to the last to finish, over the mean of all.
fn spread(processes: &[SortResult]) -> Option<f64> {
    let finished: Option<Vec<u64>> = processes.iter().map(|one| one.finished_ns).collect();
    let finished = finished?;
    let sum: u64 = finished.iter().sum();
    let distance = finished.iter().max()? - finished.iter().min()?;
    (sum > 0).then(|| distance as f64 * finished.len() as f64 / sum as f64)
}
