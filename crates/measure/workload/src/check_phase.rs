//! What is wrong with a phase as a whole, wherever it runs: reported before anything runs.

use thiserror::Error;

use crate::check::check;
use crate::limits::{OPERATIONS_IN_FLIGHT_MAX, TRANSFER_BYTES_MAX};
use crate::phase::{EngineKind, GroupSpec, Phase};
use crate::spec::JobSpec;
use crate::verify::BLOCK_BYTES_MIN;

/// A phase that cannot be run: names the phase, group, job or file, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InvalidPhase(String);

/// Checks all that depends on the specification alone.
///
/// # Errors
///
/// The first thing found that no machine can run.
pub fn check_phase(phase: &Phase) -> Result<(), InvalidPhase> {
    if phase.groups.is_empty() || phase.groups.iter().any(|group| group.jobs.is_empty()) {
        return refused(format!("phase {:?}: nothing to do: a group without jobs", phase.name));
    }
    let sizes: Vec<u64> = phase.files.iter().map(|file| file.size_bytes).collect();
    for job in phase.groups.iter().flat_map(|group| &group.jobs) {
        check(job, &sizes).map_err(|error| InvalidPhase(error.to_string()))?;
        check_job(phase, job)?;
    }
    check_pattern(phase)?;
    check_stops(phase)?;
    phase.groups.iter().try_for_each(|group| check_group(phase, group))
}

fn check_pattern(phase: &Phase) -> Result<(), InvalidPhase> {
    let Some(pattern) = &phase.pattern else {
        return Ok(());
    };
    let length = pattern.bytes.len();
    if !phase.verify || !(1..=BLOCK_BYTES_MIN as usize).contains(&length) {
        return refused(format!(
            "phase {:?}: pattern: {length} bytes; expected verify with 1 to {BLOCK_BYTES_MIN} bytes",
            phase.name
        ));
    }
    Ok(())
}

/// Checks whose end stops the other jobs.
///
/// # Errors
///
/// A name that no job of the phase has, or one that is given twice.
pub fn check_stops(phase: &Phase) -> Result<(), InvalidPhase> {
    let Some(stops) = &phase.stops_with else {
        return Ok(());
    };
    if stops.jobs.is_empty() {
        return refused("stops_with: jobs: no name; expected at least one".into());
    }
    for (number, name) in stops.jobs.iter().enumerate() {
        let mut jobs = phase.groups.iter().flat_map(|group| &group.jobs);
        if !jobs.any(|job| job.name == *name) {
            return refused(format!("stops_with: the phase has no job {name:?}"));
        }
        if stops.jobs[..number].contains(name) {
            return refused(format!("stops_with: job {name:?} is given twice"));
        }
    }
    Ok(())
}

fn check_job(phase: &Phase, job: &JobSpec) -> Result<(), InvalidPhase> {
    let until_ns = job.until.duration_ns;
    if until_ns.is_some_and(|duration_ns| duration_ns <= phase.warm_up_ns) {
        return refused(format!(
            "job {:?}: warm_up_ns = {} leaves nothing of duration_ns to measure",
            job.name, phase.warm_up_ns
        ));
    }
    let largest = job.all_blocks().map(|block| block.bytes).max();
    if largest.is_some_and(|bytes| bytes > TRANSFER_BYTES_MAX) {
        return refused(format!(
            "job {:?}: blocks: {} bytes; no call moves more than {TRANSFER_BYTES_MAX} bytes",
            job.name,
            largest.unwrap_or(0)
        ));
    }
    if job.depth_search.is_some() && phase.groups.iter().map(|group| group.jobs.len()).sum::<usize>() > 1 {
        return refused(format!(
            "job {:?}: depth_search: expected the only job of its phase, which is measured from where it has found its depth",
            job.name
        ));
    }
    if job.depth_search.is_some() && phase.warm_up_ns > 0 {
        return refused(format!(
            "job {:?}: depth_search: expected warm_up_ns = 0, as the search itself is not measured",
            job.name
        ));
    }
    Ok(())
}

/// What the group's engine can't do.
fn check_group(phase: &Phase, group: &GroupSpec) -> Result<(), InvalidPhase> {
    let refused = |why: String| refused(format!("group {:?}: {why}", group.name));
    if (phase.ends_with_first || group.close_in_time) && !group.engine.is_serial() {
        return refused("ends_with_first and close_in_time need an engine of one operation at a time".into());
    }
    if group.engine.is_serial() && group.jobs.iter().any(|job| job.depth_search.is_some()) {
        return refused("depth_search needs an engine with a queue".into());
    }
    if group.engine == EngineKind::IoUringCmd
        && (!group.direct || group.uncached || group.atomic_writes || group.nowait_reads || group.hybrid_poll)
    {
        return refused(
            "commands to a drive pass the page cache and take no flags of calls: expected direct, and none of \
             uncached, atomic_writes, nowait_reads and hybrid_poll"
                .into(),
        );
    }
    if group.registered_waits && (!group.engine.is_ring() || group.poll) {
        return refused("registered_waits needs a ring that does not poll".into());
    }
    let files = group.jobs.iter().flat_map(|job| &job.files);
    let grows = files.filter_map(|&file| phase.files.get(file as usize)).any(|file| file.create && !file.extend);
    if grows && group.engine == EngineKind::Mmap {
        return refused("what is mapped does not grow, so its files need extend".into());
    }
    let in_flight = group.operations_in_flight();
    if in_flight > OPERATIONS_IN_FLIGHT_MAX {
        return refused(format!("{in_flight} operations in flight on one ring; at most {OPERATIONS_IN_FLIGHT_MAX}"));
    }
    Ok(())
}

fn refused(why: String) -> Result<(), InvalidPhase> {
    Err(InvalidPhase(why))
}
