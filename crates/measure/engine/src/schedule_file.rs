//! The I/Os of traces' files for their replay: read once for all trials of a process.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use trace::input::{Gaps, ReadError};
use trace::schedule::Arrivals;
use workload::phase::Phase;
use workload::traced::{Schedule, TraceChoice};

use crate::trace_file::reader;

/// What was read last.
static KEPT: Mutex<Vec<CachedSchedule>> = Mutex::new(Vec::new());
/// As many traces as are replayed in turns, within reason: each takes 48 bytes an I/O.
const KEPT_MAX: usize = 2;

struct CachedSchedule {
    choice: TraceChoice,
    stamps: Vec<Stamp>,
    schedule: Arc<Schedule>,
}

/// Length and time of change of a file.
type Stamp = Option<(u64, SystemTime)>;

/// What `choice` means, read from its files.
///
/// # Errors
///
/// They can't be read, or hold nothing to replay.
pub fn schedule(choice: &TraceChoice) -> Result<Arc<Schedule>, ReadError> {
    let stamps: Vec<Stamp> = choice.paths.iter().map(|path| stamp(path)).collect();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept.iter().position(|known| known.choice == *choice && known.stamps == stamps);
    if let Some(at) = known {
        return Ok(Arc::clone(&kept[at].schedule));
    }
    let schedule = Arc::new(read(choice)?);
    kept.truncate(KEPT_MAX - 1);
    kept.insert(0, CachedSchedule { choice: choice.clone(), stamps, schedule: Arc::clone(&schedule) });
    Ok(schedule)
}

/// Gives each job of the phase that replays a trace what it is to offer.
///
/// # Errors
///
/// One line for the first trace that can't be read.
pub fn attach(phase: &mut Phase) -> Result<(), String> {
    let jobs = phase.groups.iter_mut().flat_map(|group| &mut group.jobs);
    for replay in jobs.filter_map(|job| job.replay.as_mut()) {
        let read = schedule(&replay.trace);
        replay.schedule = Some(read.map_err(|error| error.to_string())?);
    }
    Ok(())
}

fn read(choice: &TraceChoice) -> Result<Schedule, ReadError> {
    let paths: Vec<PathBuf> = choice.paths.iter().map(PathBuf::from).collect();
    let mut reader = reader(&paths, choice.table.as_ref(), Gaps::Told)?;
    let mut arrivals = Arrivals::new(choice);
    let mut batch = Vec::new();
    loop {
        let more = reader.read(&mut batch)?;
        batch.iter().try_for_each(|event| arrivals.add(event))?;
        batch.clear();
        if !more {
            break;
        }
    }
    arrivals.finish(choice, reader.about())
}

fn stamp(path: &str) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}
