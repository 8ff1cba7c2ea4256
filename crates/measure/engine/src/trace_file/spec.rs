//! Which trace is meant, and what to do with it.

use std::path::PathBuf;

use serde::Deserialize;
use trace::event::{Device, TraceEvent};
use trace::input::{Gaps, ReadError};
use trace::study::Study;
use workload::traced::TraceTable;

/// Which files are one trace, and what to do with it.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// The files; `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// How the columns of a table are to be read, if it is none that is known.
    #[serde(default)]
    pub table: Option<TraceTable>,
    /// Partitions whose bios belong to a disk: `major:minor` of both.
    #[serde(default)]
    pub partitions: Vec<(String, String)>,
    /// At most this many intervals in the maps over time.
    #[serde(default)]
    pub intervals: Option<usize>,
    /// The CPUs of each hardware queue, at most 1,024 queues.
    #[serde(default)]
    pub queues: Vec<Vec<u16>>,
    /// Numbers that a text of blkparse leaves out: true: the text was filtered, false: events were lost; null: what the
    /// text itself has.
    #[serde(default)]
    pub filtered: Option<bool>,
    /// Where to write it in another form.
    #[serde(default)]
    pub output: Option<OutputSpec>,
}

impl TraceSpec {
    pub(super) fn gaps(&self) -> Gaps {
        match self.filtered {
            None => Gaps::Told,
            Some(true) => Gaps::Filtered,
            Some(false) => Gaps::Lost,
        }
    }
}

/// Another form of the trace.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// `perfetto`, `blktrace` or `iolog`.
    pub form: String,
    /// The caller's open file; of blktrace, a directory, in which each CPU's file is called by its number.
    pub descriptor: i32,
    /// Whether the times in a log are those of queueing instead of issue.
    #[serde(default)]
    pub queued: bool,
    /// The device's name in a log.
    #[serde(default)]
    pub device: String,
}

/// Events that go from thread to thread together.
pub(super) type Batch = Vec<TraceEvent>;

const QUEUES_MAX: usize = 1024;

/// What the trace is counted by.
pub(super) fn prepared(spec: &TraceSpec) -> Result<Study, ReadError> {
    if spec.queues.len() > QUEUES_MAX {
        return Err(ReadError(format!("{} hardware queues; at most {QUEUES_MAX}", spec.queues.len())));
    }
    let mut study = Study::default();
    if let Some(intervals) = spec.intervals {
        study.intervals(intervals);
    }
    study.queues(&spec.queues);
    for (partition, disk) in &spec.partitions {
        study.partition(device(partition)?, device(disk)?);
    }
    Ok(study)
}

fn device(text: &str) -> Result<Device, ReadError> {
    crate::probe::spec::parse_device(text).ok_or_else(|| ReadError(format!("{text}: not a device's major:minor")))
}
