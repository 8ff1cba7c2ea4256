//! The probe `block`: requests on their way through the simulated block layer, by the analysis that the host's has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trace::block::{Activity, Analysis, BlockReport};

use super::line::{names, trace_event};
use super::trace_files::{TraceFiles, TraceFormat};
use crate::drive_name::DriveName;
use block_layer::completion::Counters;
use block_layer::{QueueEvent, TaskId};
use events::time::Time;

/// The options of the probe `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockOptions {
    /// Between two points of the series.
    pub interval_ns: u64,
    /// What is written besides the report.
    pub trace: Option<TraceFormat>,
}

/// A phase under observation.
#[derive(Clone, Debug)]
pub struct BlockProbe {
    began: Time,
    drives: Vec<DriveName>,
    analysis: Analysis,
    files: Option<TraceFiles>,
}

/// What docs/reference/probes.md describes as the observation of `block`.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ModelBlockObservation")]
pub struct Observation {
    /// Counts, times and series, as from a host's trace.
    #[serde(flatten)]
    pub report: BlockReport,
    /// The model keeps all of them.
    pub trace_events_lost: u64,
    /// Notes for the reader of the report, one sentence each.
    pub notes: Vec<String>,
}

impl BlockProbe {
    /// `began`: when the phase did; times in report and traces count from there. `tasks`: what the phase's tasks are
    /// called; `drives`: what the drives are.
    pub fn new(options: &BlockOptions, began: Time, tasks: &[(TaskId, String)], drives: Vec<DriveName>) -> BlockProbe {
        BlockProbe {
            began,
            drives,
            analysis: Analysis::new(0, options.interval_ns),
            files: options.trace.map(|format| TraceFiles::new(format, names(tasks))),
        }
    }

    /// Takes what `RequestQueue::take_events` appended of all drives since the last time, each drive's in its order.
    pub fn events(&mut self, events: &mut Vec<QueueEvent>) {
        events.sort_by_key(|event| event.at);
        for event in events.drain(..) {
            let device = self.drives[usize::from(event.drive)].device;
            let (traced, message) = trace_event(&event, device, self.began);
            self.analysis.add(&traced);
            if let Some(files) = &mut self.files {
                files.add(event.drive, &traced, message.as_deref());
            }
        }
    }

    /// The observation, and by their names the files that were asked for. `worked`: by drive, if CPUs are simulated in
    /// detail, and what was counted since the beginning takes the place of what events show.
    pub fn finish(self, ended: Time, worked: &[Counters]) -> (Observation, BTreeMap<String, Vec<u8>>) {
        let mut report = self.analysis.finish(ended.saturating_sub(self.began));
        count_by_place(&mut report, &self.drives, worked);
        let observation = Observation { report, trace_events_lost: 0, notes: Vec::new() };
        let files = self.files.map(|files| files.finish(&self.drives));
        (observation, files.unwrap_or_default())
    }
}

/// Of all directions together: those of one are not counted apart.
fn count_by_place(report: &mut BlockReport, drives: &[DriveName], worked: &[Counters]) {
    let mut sum = Counters::default();
    for (drive, counters) in drives.iter().zip(worked) {
        let name = drive.device.to_string();
        let found = report.devices.iter_mut().find(|found| found.device == name);
        if let Some(found) = found {
            put(&mut found.activities.total, counters);
        }
        sum += *counters;
    }
    if !worked.is_empty() {
        put(&mut report.all.total, &sum);
    }
}

fn put(activity: &mut Activity, counters: &Counters) {
    activity.queue_local = counters.queued_local;
    activity.queue_remote = counters.queued_remote;
    activity.completions_local = counters.completed_local;
    activity.completions_remote = counters.completed_remote;
}
