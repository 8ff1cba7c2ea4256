//! A metadata load on the kernel: threads that make, write, sync, close and unlink files, and the time of each call.
//!
//! What comes next is `workload::metadata`'s; here are the calls, the clock and the record. Threads instead of processes,
//! but each with a table of open files of its own, so that opening and closing meets no other thread's lock.

mod calls;
mod path;
mod thread;

use std::ffi::CString;

use workload::metadata::ThreadMeasured;
use workload::metadata::{MetadataJob, assemble};
pub use workload::metadata::{MetadataPhase, MetadataRecord, PathForm, ThreadRecord, ThreadSpec};

use crate::beneath::{self, Root};
use crate::error::StartError;
use crate::handle::{Handle, Work, begin};
use crate::outcome::Outcome;
use crate::progress::PhaseState;
use thread::PreparedThread;

/// Checks everything, makes the threads' directories, and starts.
pub fn start(phase: MetadataPhase) -> Result<Handle<MetadataPhase>, StartError> {
    if phase.threads.is_empty() {
        let what = format!("phase {:?}: nothing to do: no threads", phase.name);
        return Err(StartError::spec(what));
    }
    let threads = phase.threads.iter().enumerate();
    let prepared = threads.map(|(index, spec)| prepare(index, spec));
    let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
    let shared = PhaseState::new(prepared.len(), usize::MAX);
    begin(phase, prepared, thread::run, shared, (0, Vec::new()))
}

impl Work for MetadataPhase {
    type Measurement = ThreadMeasured;
    type Record = MetadataRecord;

    fn record(&self, outcome: Outcome<ThreadMeasured>) -> MetadataRecord {
        let circumstances = outcome.circumstances();
        assemble(self, circumstances, outcome.results, used_percent(self))
    }
}

fn used_percent(phase: &MetadataPhase) -> Option<f64> {
    let directory = CString::new(phase.threads.first()?.directory.as_str()).ok()?;
    let share = calls::used_share(&directory).ok()?;
    Some(share * 100.0)
}

fn prepare(index: usize, spec: &ThreadSpec) -> Result<PreparedThread, StartError> {
    let job = MetadataJob::new(&spec.job).map_err(StartError::spec)?;
    let opened = match &spec.beneath {
        Some(directory) => {
            let root = Root::open(directory)?;
            let opened = root.directory(spec.directory.as_ref())?;
            if spec.paths == PathForm::Full {
                beneath::check_leads_to(spec.directory.as_ref(), &opened)?;
            }
            opened
        }
        None => beneath::directory(spec.directory.as_ref())?,
    };
    let base = (spec.paths == PathForm::Relative).then_some(opened);
    Ok(PreparedThread {
        index,
        name: spec.job.name.clone(),
        directory: spec.directory.clone(),
        base,
        cpus: spec.cpus.clone(),
        write_bytes: u64::from(spec.job.write_bytes).min(spec.job.file_bytes) as usize,
        seed: spec.job.seed,
        job,
    })
}
