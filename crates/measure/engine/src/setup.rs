//! From a phase's specification to groups that are ready to run: all that can be wrong is found here.

use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use base::time::Time;
use base::usage::Samples;
use io_uring::{IoUring, cqueue, squeue};
use workload::check_phase::check_phase;
use workload::job::Job;
use workload::measure::Measure;
use workload::phase::{EngineKind, GroupSpec, Phase};
use workload::spec::JobSpec;

use crate::buffers::Buffers;
use crate::contents::{Contents, check_verifiable};
use crate::error::{StartError, errno_name};
use crate::files::{OpenFile, open_all, reads, writes};
use crate::group::{Group, RunningJob, Slot, State};
use crate::hinted_files::set_hints;
use crate::hybrid_poll::hybrid_polled;
use crate::io_log::IoLog;
use crate::memory::Memory;
use crate::progress::PhaseState;
use crate::queue::queue_attribute;
use crate::registered_wait;
use crate::zones::{Zones, check_zones};

/// Everything of a group but its thread's own things: buffers and rings are made on the thread that uses them.
pub struct PreparedGroup {
    pub index: usize,
    pub spec: GroupSpec,
    pub files: Vec<Option<OpenFile>>,
    /// Polled completion was asked for and can work.
    pub poll: bool,
    pub notes: Vec<String>,
    pub slots: u32,
    jobs: Vec<(JobSpec, Job)>,
    /// Names of the phase's jobs whose end stops the others; empty: each continues to its own end.
    stoppers: Vec<String>,
    contents: Contents,
    paths: Vec<String>,
    warm_up: Time,
    interval: Time,
    ends_with_first: bool,
}

pub fn prepare(phase: &Phase, memory: &Memory) -> Result<Vec<PreparedGroup>, StartError> {
    check_here(phase)?;
    let mut groups: Vec<PreparedGroup> =
        (0..phase.groups.len()).map(|index| prepare_group(phase, index, memory)).collect::<Result<_, _>>()?;
    set_hints(phase, groups.iter_mut().map(|group| &mut group.files))?;
    Ok(groups)
}

/// Checks the phase, and what of it only a simulated machine has.
fn check_here(phase: &Phase) -> Result<(), StartError> {
    check_phase(phase).map_err(|error| StartError::spec(error.to_string()))?;
    if let Some(file) = phase.files.iter().find(|file| file.place.is_some()) {
        return Err(StartError::spec(format!("{}: only files of a simulated machine have a place", file.path)));
    }
    for group in &phase.groups {
        if let Some(cgroup) = group.cgroup.as_ref().filter(|path| !path.starts_with('/')) {
            return Err(StartError::spec(format!(
                "group {:?}: {cgroup:?} is no directory of a control group",
                group.name
            )));
        }
    }
    if phase.verify { check_verifiable(phase) } else { Ok(()) }
}

fn prepare_group(phase: &Phase, index: usize, memory: &Memory) -> Result<PreparedGroup, StartError> {
    let mut spec = phase.groups[index].clone();
    let mut notes = Vec::new();
    if spec.engine.is_serial() {
        make_serial(&mut spec, &mut notes);
    }
    let slots = spec.operations_in_flight();
    let sizes: Vec<u64> = phase.files.iter().map(|file| file.size_bytes).collect();
    let jobs: Result<Vec<_>, _> = spec
        .jobs
        .iter()
        .map(|job_spec| {
            let mut job = Job::new(job_spec, &sizes).map_err(|error| StartError::spec(error.to_string()))?;
            job.exclusive(phase.verify);
            Ok((job_spec.clone(), job))
        })
        .collect();
    let jobs = jobs?;
    let files = open_all(phase, &spec)?;
    check_zones(&files, &spec)?;
    if spec.engine == EngineKind::IoUring && files.iter().flatten().any(|file| file.on_tmpfs) {
        notes.push("tmpfs hands a ring's operations to worker threads; psync is faster on it".into());
    }
    let polls = spec.engine.is_ring() || spec.engine == EngineKind::Pvsync;
    let poll = polls && spec.poll && can_poll(&spec, &files, &mut notes);
    if spec.engine == EngineKind::IoUringCmd
        && let Err(error) = IoUring::<squeue::Entry128, cqueue::Entry32>::builder().build(2)
    {
        return Err(StartError::spec(format!(
            "group {:?}: no rings with room for commands ({error}): they take Linux 5.19; take engine = \"io_uring\"",
            spec.name
        )));
    }
    if spec.hybrid_poll
        && let Err(error) = hybrid_polled(2)
    {
        return Err(StartError::spec(format!(
            "group {:?}: no hybrid polling ({error}): it takes Linux 6.13; leave hybrid_poll out",
            spec.name
        )));
    }
    if spec.registered_waits
        && let Err(error) = registered_wait::probe()
    {
        return Err(StartError::spec(format!(
            "group {:?}: no registered waits ({error}): they take Linux 6.13; leave registered_waits out",
            spec.name
        )));
    }
    let contents = if phase.verify {
        Contents::stamps(&files, memory, phase.pattern.as_ref())
    } else if spec.fresh_data && spec.jobs.iter().any(writes) {
        Contents::noise(phase.seed ^ (index as u64) << 32)
    } else {
        Contents::Same
    };
    Ok(PreparedGroup {
        index,
        files,
        poll,
        notes,
        slots: slots as u32,
        jobs,
        contents,
        paths: phase.files.iter().map(|file| file.path.clone()).collect(),
        warm_up: phase.warm_up_ns,
        interval: phase.interval_ns,
        ends_with_first: phase.ends_with_first,
        stoppers: phase.stops_with.as_ref().map_or(Vec::new(), |stops| stops.jobs.clone()),
        spec,
    })
}

impl PreparedGroup {
    /// To be called on the group's own thread, so that its buffers are near it.
    pub fn into_group(self, shared: Arc<PhaseState>) -> io::Result<(Group, GroupSpec, Vec<Option<OpenFile>>)> {
        let largest = self.spec.jobs.iter().flat_map(JobSpec::all_blocks).map(|block| block.bytes).max().unwrap_or(0);
        let any = |is: fn(&JobSpec) -> bool| self.spec.jobs.iter().any(is);
        let buffers = Buffers::new(self.slots as usize, largest as usize, any(reads), any(writes))?;
        let measure = |spec: &JobSpec| {
            let measure = Measure::new(self.warm_up, self.interval, errno_name).of_log(spec.commits);
            if self.spec.engine == EngineKind::Null { measure.of_null_operations() } else { measure }
        };
        let mut jobs = Vec::with_capacity(self.jobs.len());
        let mut slots = Vec::with_capacity(self.slots as usize);
        for (index, (spec, job)) in self.jobs.into_iter().enumerate() {
            let own: Range<u32> = slots.len() as u32..slots.len() as u32 + spec.queue_depth;
            slots.extend(own.clone().map(|_| Slot::of(index as u32)));
            let stops = self.stoppers.contains(&spec.name);
            jobs.push(RunningJob::new(spec.name.clone(), stops, job, measure(&spec), own));
        }
        let group = Group {
            index: self.index,
            jobs,
            slots,
            contents: self.contents,
            zones: Zones::of(&self.files),
            buffers: Rc::new(buffers),
            paths: self.paths,
            batch: self.spec.batch,
            samples: Samples::new(self.warm_up, self.interval),
            shared,
            ends_with_first: self.ends_with_first,
            may_be_stopped: !self.stoppers.is_empty(),
            notes: self.notes,
            log: self.spec.io_log.clone().map(IoLog::new).map(Box::new),
            state: State::default(),
        };
        Ok((group, self.spec, self.files))
    }
}

fn make_serial(spec: &mut GroupSpec, notes: &mut Vec<String>) {
    for job in spec.jobs.iter_mut().filter(|job| job.queue_depth > 1) {
        notes.push(format!("job {:?}: this engine does one operation at a time, so queue_depth is 1", job.name));
        job.queue_depth = 1;
    }
}

/// A ring that polls can't wait for anything that doesn't complete by polling, so what can't is found out before.
fn can_poll(spec: &GroupSpec, files: &[Option<OpenFile>], notes: &mut Vec<String>) -> bool {
    let obstacle = if !spec.direct {
        Some("it needs direct I/O".to_owned())
    } else if spec.engine.is_ring() && spec.jobs.iter().any(|job| job.sync.is_some() || job.sync_at_end) {
        Some("a polled ring can't sync".to_owned())
    } else {
        let unpolled = |file: &&OpenFile| queue_attribute(file.device, "io_poll").as_deref() != Some("1");
        files.iter().flatten().find(unpolled).map(|file| format!("the device under {} has no polled queue", file.path))
    };
    if let Some(obstacle) = &obstacle {
        notes.push(format!("polled completion refused: {obstacle}; waiting for interrupts"));
    }
    obstacle.is_none()
}
