//! A metadata load on the kernel: threads that make, write, sync, close and unlink files, and the time of each call.
//!
//! What comes next is `workload::metadata`'s; here are the calls, the clock and the record. Threads instead of processes,
//! but each with a table of open files of its own, so that opening and closing meets no other thread's lock.

mod calls;
mod path;
mod record;
mod thread;

use std::ffi::CString;

use serde::Deserialize;
use workload::metadata::{MetadataJob, MetadataSpec};

use crate::error::StartError;
use crate::handle::{Handle, Work, begin};
use crate::outcome::Outcome;
pub use record::{MetadataRecord, ThreadRecord};
use thread::{Prepared, ThreadMeasured};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetadataPhase {
    pub name: String,
    pub threads: Vec<ThreadSpec>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadSpec {
    /// Where the files go. It is made when it isn't there, but not its parents.
    pub directory: String,
    pub paths: PathForm,
    /// CPUs the thread may run on; null leaves it to the scheduler.
    pub cpus: Option<Vec<u32>>,
    pub job: MetadataSpec,
}

/// How a call names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathForm {
    /// By `directory` and all that it says, as most programs do; the kernel walks it anew in each call.
    Full,
    /// From a descriptor of `directory`.
    Relative,
}

/// Checks everything, makes the threads' directories, and starts.
pub fn start(phase: MetadataPhase) -> Result<Handle<MetadataPhase>, StartError> {
    if phase.threads.is_empty() {
        let what = format!("phase {:?}: nothing to do: no threads", phase.name);
        return Err(StartError::spec(what));
    }
    let threads = phase.threads.iter().enumerate();
    let prepared = threads.map(|(index, spec)| prepare(index, spec));
    let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
    begin(phase, prepared, thread::run, 0, Vec::new())
}

impl Work for MetadataPhase {
    type Measured = ThreadMeasured;
    type Record = MetadataRecord;

    fn record(&self, outcome: Outcome<ThreadMeasured>) -> MetadataRecord {
        record::assemble(self, outcome)
    }
}

fn prepare(index: usize, spec: &ThreadSpec) -> Result<Prepared, StartError> {
    let job = MetadataJob::new(&spec.job).map_err(StartError::spec)?;
    let directory = CString::new(spec.directory.as_str())
        .map_err(|_| StartError::spec("a directory's name holds a zero byte"))?;
    calls::make_directory(libc::AT_FDCWD, &directory)
        .map_err(|error| StartError::os(&error, "can't make the directory", &spec.directory))?;
    let base = match spec.paths {
        PathForm::Full => None,
        PathForm::Relative => {
            let opened = calls::open_directory(&directory);
            let what = "can't open the directory";
            Some(opened.map_err(|error| StartError::os(&error, what, &spec.directory))?)
        }
    };
    Ok(Prepared {
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
