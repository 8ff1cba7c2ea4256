//! What a metadata load yielded: a phase's record whose jobs are threads, with operations and measures by name.

use std::collections::BTreeMap;

use serde::Serialize;

use super::call::OP_NAMES;
use super::measurement::{OpMeasured, ThreadMeasured};
use super::phase::{MetadataPhase, ThreadSpec};
use crate::assemble::Circumstances;
use crate::record::{ErrorRecord, GroupRecord, IntervalRecord, MismatchRecord, OpRecord, PhaseRecord};
use base::time::Time;
use base::usage::Usage;

/// The record of a metadata load.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct MetadataRecord {
    /// Times, groups and threads, as every phase has them.
    #[serde(flatten)]
    pub phase: PhaseRecord<ThreadRecord>,
    /// The measures of all threads: the sum of their own `files_per_s`; `files_per_s_wall`, all files by the time until
    /// the last thread had written its own; the sum of their `app_overhead_s`; and `filesystem_used_percent` after the
    /// phase.
    pub measures: Measures,
}

/// The record of one thread.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ThreadRecord {
    /// The name from its specification.
    pub name: String,
    /// When the thread was done, unlinking included.
    pub finished_ns: u64,
    /// By name, see `OP_NAMES`; one that was never called has count 0.
    pub ops: BTreeMap<&'static str, OpRecord>,
    /// `files_per_s`, by the thread's own time until its last file was written (closed, and synced again where asked
    /// for), and `app_overhead_s`, that time less the calls in it; mkdir, as in fs_mark, counts as overhead.
    pub measures: Measures,
    /// A record per operation and errno that failed.
    pub errors: Vec<ErrorRecord>,
    /// Nothing is verified and there is no time series: 0 and empty, for those who read any job.
    pub mismatches_count: u64,
    /// Always empty.
    pub mismatches: Vec<MismatchRecord>,
    /// Always empty.
    pub intervals: Vec<IntervalRecord>,
}

/// By metric; None if it could not be measured.
pub type Measures = BTreeMap<&'static str, Option<f64>>;

const FILES_PER_S: &str = "files_per_s";
const APP_OVERHEAD_S: &str = "app_overhead_s";
const CREATE: &str = "create";
/// The calls whose time is not overhead.
const TIMED: [&str; 5] = [CREATE, "write", "fsync", "system_sync", "close"];

/// `results` are by thread, in the order of the phase; None for one that never came back. `used_percent` is the
/// filesystem's, of its space.
pub fn assemble(
    phase: &MetadataPhase,
    circumstances: Circumstances,
    results: Vec<Option<ThreadMeasured>>,
    used_percent: Option<f64>,
) -> MetadataRecord {
    let back = || results.iter().flatten();
    let elapsed_ns = back().map(|thread| thread.finished_at).max().unwrap_or(0);
    let written_ns = back().map(|thread| thread.written_at).max().unwrap_or(0);
    let process = back()
        .map(|thread| thread.last_sample.process.since(thread.first_sample.process))
        .max_by_key(|used| used.cpu_user_ns + used.cpu_system_ns)
        .unwrap_or_default();
    let threads = results.into_iter().zip(&phase.threads);
    let groups: Vec<_> = threads.map(|(result, spec)| group(spec, result)).collect();
    let measures = phase_measures(&groups, written_ns, used_percent);
    MetadataRecord {
        phase: PhaseRecord {
            phase: phase.name.clone(),
            started_unix_ns: circumstances.started_unix_ns,
            elapsed_ns,
            wall_clock_shift_ns: circumstances.wall_clock_shift_ns,
            measured_from_ns: 0,
            measured_to_ns: elapsed_ns,
            transient: None,
            stopped: circumstances.stopped,
            build_profile: circumstances.build_profile,
            clock: circumstances.clock,
            groups,
            process_cpu_user_ns: process.cpu_user_ns,
            process_cpu_system_ns: process.cpu_system_ns,
        },
        measures,
    }
}

fn phase_measures(groups: &[GroupRecord<ThreadRecord>], written_ns: Time, used_percent: Option<f64>) -> Measures {
    let threads = || groups.iter().flat_map(|group| &group.jobs);
    let sum = |name| {
        let values = threads().map(|thread| thread.measures[name]);
        values.reduce(|a, b| a.zip(b).map(|(a, b)| a + b)).flatten()
    };
    let files = threads().map(|thread| thread.ops[CREATE].count).sum();
    let all_came_back = groups.iter().all(|group| !group.jobs.is_empty());
    let of_all = |value: Option<f64>| value.filter(|_| all_came_back);
    BTreeMap::from([
        (FILES_PER_S, of_all(sum(FILES_PER_S))),
        ("files_per_s_wall", of_all(per_second(files, written_ns))),
        (APP_OVERHEAD_S, of_all(sum(APP_OVERHEAD_S))),
        ("filesystem_used_percent", used_percent),
    ])
}

fn group(spec: &ThreadSpec, result: Option<ThreadMeasured>) -> GroupRecord<ThreadRecord> {
    let name = spec.job.name.clone();
    let Some(measured) = result else {
        let note = "never came back from the kernel and was left there; it has no figures";
        return GroupRecord::new(name, vec![note.into()], Usage::default(), Vec::new());
    };
    let used = measured.last_sample.thread.since(measured.first_sample.thread);
    let own_ns = measured.written_at - measured.began_at;
    let ops: BTreeMap<_, _> = OP_NAMES.into_iter().zip(measured.ops.iter().map(op_record)).collect();
    let timed_ns: f64 = TIMED.iter().map(|op| total_ns(&ops[op])).sum();
    let thread = ThreadRecord {
        name: name.clone(),
        finished_ns: measured.finished_at,
        measures: BTreeMap::from([
            (FILES_PER_S, per_second(ops[CREATE].count, own_ns)),
            (APP_OVERHEAD_S, Some((own_ns as f64 - timed_ns) / 1e9)),
        ]),
        ops,
        errors: measured.failures.into_records(),
        mismatches_count: 0,
        mismatches: Vec::new(),
        intervals: Vec::new(),
    };
    GroupRecord::new(name, measured.notes, used, vec![thread])
}

fn op_record(op: &OpMeasured) -> OpRecord {
    OpRecord::new(op.bytes, &op.latency)
}

fn total_ns(op: &OpRecord) -> f64 {
    let mean_ns = op.latency.as_ref().map_or(0.0, |latency| latency.mean_ns);
    mean_ns * op.count as f64
}

fn per_second(count: u64, time_ns: Time) -> Option<f64> {
    (time_ns > 0).then(|| count as f64 * 1e9 / time_ns as f64)
}
