//! From a phase's specification to groups that are ready to run: all that can be wrong is found here.

use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use workload::job::Job;
use workload::measure::{Measure, Samples};
use workload::phase::{EngineKind, GroupSpec, Phase};
use workload::spec::{JobSpec, Time};

use crate::buffers::Buffers;
use crate::contents::{Contents, check_verifiable};
use crate::error::{StartError, errno_name};
use crate::files::{OpenFile, open_all, queue_attribute, reads, writes};
use crate::group::{Group, RunningJob, Slot, State};
use crate::memory::Memory;
use crate::progress::Shared;

/// Everything of a group but its thread's own things: buffers and rings are made on the thread that uses them.
pub struct Prepared {
    pub index: usize,
    pub spec: GroupSpec,
    pub files: Vec<Option<OpenFile>>,
    /// Polled completion was asked for and can work.
    pub poll: bool,
    pub notes: Vec<String>,
    pub slots: u32,
    jobs: Vec<(JobSpec, Job)>,
    contents: Contents,
    paths: Vec<String>,
    warm_up: Time,
    interval: Time,
    ends_with_first: bool,
}

/// The most entries of a submission queue, and half of it: a polled queue has two per slot.
const SLOTS_MAX: u64 = 16_384;
/// The most that one read or write moves.
const TRANSFER_MAX: u32 = 0x7fff_f000;

pub fn prepare(phase: &Phase, memory: &Memory) -> Result<Vec<Prepared>, StartError> {
    check_phase(phase)?;
    (0..phase.groups.len())
        .map(|index| prepare_group(phase, index, memory))
        .collect()
}

fn check_phase(phase: &Phase) -> Result<(), StartError> {
    if phase.groups.is_empty() || phase.groups.iter().any(|group| group.jobs.is_empty()) {
        return Err(StartError::spec(format!(
            "phase {:?}: nothing to do: a group without jobs",
            phase.name
        )));
    }
    if let Some(file) = phase.files.iter().find(|file| file.place.is_some()) {
        return Err(StartError::spec(format!(
            "{}: only files of a modelled machine have a place",
            file.path
        )));
    }
    for job in phase.groups.iter().flat_map(|group| &group.jobs) {
        if job
            .until
            .duration_ns
            .is_some_and(|duration| duration <= phase.warm_up_ns)
        {
            return Err(StartError::spec(format!(
                "job {:?}: warm_up_ns = {} leaves nothing of duration_ns to measure",
                job.name, phase.warm_up_ns
            )));
        }
        if job.blocks.iter().any(|block| block.bytes > TRANSFER_MAX) {
            return Err(StartError::spec(format!(
                "job {:?}: no call moves more than {TRANSFER_MAX} bytes",
                job.name
            )));
        }
    }
    phase
        .groups
        .iter()
        .try_for_each(|group| check_group(phase, group))?;
    if phase.verify {
        check_verifiable(phase)
    } else {
        Ok(())
    }
}

/// What the group's engine can't do.
fn check_group(phase: &Phase, group: &GroupSpec) -> Result<(), StartError> {
    let refused = |why| Err(StartError::spec(format!("group {:?}: {why}", group.name)));
    if (phase.ends_with_first || group.close_in_time) && !is_serial(group.engine) {
        return refused(
            "ends_with_first and close_in_time need an engine of one operation at a time",
        );
    }
    if group.cgroup.is_some() {
        return refused("only a modelled machine puts a thread into a cgroup");
    }
    let files = group.jobs.iter().flat_map(|job| &job.files);
    let grows = files
        .filter_map(|&file| phase.files.get(file as usize))
        .any(|file| file.create && !file.extend);
    if grows && group.engine == EngineKind::Mmap {
        return refused("what is mapped does not grow, so its files need extend");
    }
    Ok(())
}

fn prepare_group(phase: &Phase, index: usize, memory: &Memory) -> Result<Prepared, StartError> {
    let mut spec = phase.groups[index].clone();
    let mut notes = Vec::new();
    if is_serial(spec.engine) {
        make_serial(&mut spec, &mut notes);
    }
    let slots: u64 = if is_serial(spec.engine) {
        1
    } else {
        spec.jobs.iter().map(|job| u64::from(job.queue_depth)).sum()
    };
    if slots > SLOTS_MAX {
        return Err(StartError::spec(format!(
            "group {:?}: {slots} operations in flight on one ring; at most {SLOTS_MAX}",
            spec.name
        )));
    }
    let sizes: Vec<u64> = phase.files.iter().map(|file| file.size_bytes).collect();
    let jobs: Result<Vec<_>, _> = spec
        .jobs
        .iter()
        .map(|job_spec| {
            let mut job =
                Job::new(job_spec, &sizes).map_err(|error| StartError::spec(error.to_string()))?;
            job.exclusive(phase.verify);
            Ok((job_spec.clone(), job))
        })
        .collect();
    let jobs = jobs?;
    let files = open_all(phase, &spec)?;
    if spec.engine == EngineKind::IoUring && files.iter().flatten().any(|file| file.on_tmpfs) {
        notes.push(
            "tmpfs hands a ring's operations to worker threads; psync is faster on it".into(),
        );
    }
    let poll =
        spec.engine == EngineKind::IoUring && spec.poll && can_poll(&spec, &files, &mut notes);
    let contents = if phase.verify {
        Contents::stamps(&files, memory)
    } else if spec.fresh_data {
        Contents::noise(phase.seed ^ (index as u64) << 32)
    } else {
        Contents::Same
    };
    Ok(Prepared {
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
        spec,
    })
}

impl Prepared {
    /// To be called on the group's own thread, so that its buffers are near it.
    pub fn into_group(
        self,
        shared: Arc<Shared>,
    ) -> io::Result<(Group, GroupSpec, Vec<Option<OpenFile>>)> {
        let largest = self
            .spec
            .jobs
            .iter()
            .flat_map(|job| &job.blocks)
            .map(|block| block.bytes)
            .max()
            .unwrap_or(0);
        let any = |is: fn(&JobSpec) -> bool| self.spec.jobs.iter().any(is);
        let buffers = Buffers::new(
            self.slots as usize,
            largest as usize,
            any(reads),
            any(writes),
        )?;
        let mut jobs = Vec::with_capacity(self.jobs.len());
        let mut slots = Vec::with_capacity(self.slots as usize);
        for (index, (spec, job)) in self.jobs.into_iter().enumerate() {
            let own: Range<u32> = slots.len() as u32..slots.len() as u32 + spec.queue_depth;
            slots.extend(own.clone().map(|_| Slot::of(index as u32)));
            jobs.push(RunningJob::new(
                spec.name.clone(),
                writes(&spec),
                job,
                Measure::new(self.warm_up, self.interval, errno_name),
                own,
            ));
        }
        let group = Group {
            index: self.index,
            jobs,
            slots,
            contents: self.contents,
            buffers: Rc::new(buffers),
            paths: self.paths,
            batch: self.spec.batch,
            samples: Samples::new(self.warm_up, self.interval),
            shared,
            ends_with_first: self.ends_with_first,
            notes: self.notes,
            state: State::default(),
        };
        Ok((group, self.spec, self.files))
    }
}

pub fn is_serial(engine: EngineKind) -> bool {
    matches!(
        engine,
        EngineKind::Psync | EngineKind::Pvsync | EngineKind::Mmap
    )
}

fn make_serial(spec: &mut GroupSpec, notes: &mut Vec<String>) {
    for job in spec.jobs.iter_mut().filter(|job| job.queue_depth > 1) {
        notes.push(format!(
            "job {:?}: this engine does one operation at a time, so queue_depth is 1",
            job.name
        ));
        job.queue_depth = 1;
    }
}

/// A ring that polls can't wait for anything that doesn't complete by polling, so what can't is found out before.
fn can_poll(spec: &GroupSpec, files: &[Option<OpenFile>], notes: &mut Vec<String>) -> bool {
    let obstacle = if !spec.direct {
        Some("it needs direct I/O".to_owned())
    } else if spec
        .jobs
        .iter()
        .any(|job| job.sync.is_some() || job.sync_at_end)
    {
        Some("a polled ring can't sync".to_owned())
    } else {
        let unpolled =
            |file: &&OpenFile| queue_attribute(file.device, "io_poll").as_deref() != Some("1");
        files
            .iter()
            .flatten()
            .find(unpolled)
            .map(|file| format!("the device under {} has no polled queue", file.path))
    };
    if let Some(obstacle) = &obstacle {
        notes.push(format!(
            "polled completion refused: {obstacle}; waiting for interrupts"
        ));
    }
    obstacle.is_none()
}
