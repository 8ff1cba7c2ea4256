//! A phase as the world takes it, and what of it the model has no mechanism for.

use base::time::Time;
use workload::check_phase::check_stops;
use workload::phase::{EngineKind, FileSpec, GroupSpec, Phase};
use workload::spec::{Arrival, JobSpec};

use crate::machine::MachineSpec;
use crate::world::{self, Path, PhaseSpec};
use events::SpecError;
use kernels::submission::WriteHints;

/// Thirty years: sums of a few such times do not overflow.
const TIME_NS_MAX: Time = 1_000_000_000_000_000_000;

/// Without the files, which only the model has.
pub(super) fn translate(phase: &Phase, machine: &MachineSpec) -> Result<PhaseSpec, SpecError> {
    let wrong = |key: &str, what: &str| Err(SpecError::of(key, what));
    if phase.verify {
        return wrong("verify", "the model moves no data that could be verified");
    }
    check_time("warm_up_ns", phase.warm_up_ns)?;
    check_time("interval_ns", phase.interval_ns)?;
    if phase.groups.is_empty() || phase.groups.iter().any(|group| group.jobs.is_empty()) {
        return wrong("groups", "nothing to do: a group without jobs");
    }
    check_stops(phase).map_err(|error| SpecError::of("stops_with", error.to_string()))?;
    check_hints(phase, machine)?;
    let groups: Result<Vec<world::GroupSpec>, SpecError> =
        phase.groups.iter().enumerate().map(|(number, group)| group_of(number, group, phase, machine)).collect();
    Ok(PhaseSpec {
        groups: groups?,
        files: Vec::new(),
        warm_up_ns: phase.warm_up_ns,
        interval_ns: phase.interval_ns,
        ends_with_first: phase.ends_with_first,
        stops_with: phase.stops_with.clone(),
        seed: phase.seed,
    })
}

/// A hint that this kernel tells no drive would change nothing.
fn check_hints(phase: &Phase, machine: &MachineSpec) -> Result<(), SpecError> {
    let kernel = machine.kernel();
    let hinted = |(_, file): &(usize, &FileSpec)| file.write_hint.is_some();
    for (number, file) in phase.files.iter().enumerate().filter(hinted) {
        let direct_only = || {
            let mut users = phase.groups.iter().filter(|group| {
                let files = group.jobs.iter().flat_map(|job| &job.files);
                files.into_iter().any(|&index| index as usize == number)
            });
            users.all(|group| group.direct)
        };
        let drive = file.place.unwrap_or(0) as usize;
        let what = match kernel.write_hints() {
            _ if drive >= machine.drive_count() => "the simulated NFS client sends no hint",
            WriteHints::OfAll => continue,
            WriteHints::OfDevices if !machine.has_filesystem(drive) && direct_only() => continue,
            WriteHints::OfDevices => {
                "from Linux 6.16 on, hints of direct writes to a drive without a filesystem reach it, and no others"
            }
            WriteHints::OfNone => {
                "this kernel tells the drive no hint; leave it out, or take 4.13 to 5.17, or from 6.16 on direct writes to a \
                 drive without a filesystem"
            }
        };
        return Err(SpecError::of(&format!("files.{number}.write_hint"), what));
    }
    Ok(())
}

fn group_of(
    number: usize,
    group: &GroupSpec,
    phase: &Phase,
    machine: &MachineSpec,
) -> Result<world::GroupSpec, SpecError> {
    let wrong = |key: &str, what: String| Err(SpecError::of(&format!("groups.{number}.{key}"), what));
    let path = match (group.engine, group.direct) {
        (EngineKind::IoUring, true) if machine.kernel().has_rings() => Path::DirectRing,
        (EngineKind::IoUring | EngineKind::Libaio, true) => Path::DirectAsync,
        (EngineKind::Psync | EngineKind::Pvsync, true) => Path::Direct,
        (EngineKind::Psync | EngineKind::Pvsync, false) => Path::Buffered,
        (EngineKind::IoUring | EngineKind::Libaio, false) => {
            if let Some(job) = group.jobs.iter().find(|job| job.queue_depth > 1) {
                let what = format!(
                    "job {:?} has queue_depth = {}, and simulated buffered I/O is one at a time; say direct = true, or queue_depth = 1",
                    job.name, job.queue_depth
                );
                return wrong("direct", what);
            }
            Path::Buffered
        }
        (EngineKind::Mmap, _) => {
            let what = "the model has no page faults; take psync or io_uring";
            return wrong("engine", what.to_owned());
        }
        (EngineKind::IoUringCmd, _) => {
            let what = "the model has no NVMe commands; take io_uring";
            return wrong("engine", what.to_owned());
        }
        (EngineKind::Null, _) => {
            let what = "null does no I/O; take io_uring and a machine with a null device";
            return wrong("engine", what.to_owned());
        }
    };
    if path == Path::Buffered && is_on(group, phase, |place| place >= machine.drive_count()) {
        let what = "the simulated NFS client has no page cache; say direct = true";
        return wrong("direct", what.to_owned());
    }
    if path != Path::Buffered && is_on(group, phase, |drive| machine.journals_data(drive)) {
        let what = "ext4 makes direct I/O buffered with data = \"journal\"; say direct = false";
        return wrong("direct", what.to_owned());
    }
    if phase.ends_with_first && path.is_async() {
        let what = "ends_with_first needs an engine of one operation at a time";
        return wrong("engine", what.to_owned());
    }
    let cpus = group
        .cpus
        .as_deref()
        .map(|cpus| machine.allowed_cpus(cpus))
        .transpose()
        .map_err(|error| error.within(&format!("groups.{number}")))?;
    let later = [
        ("uncached", group.uncached),
        ("atomic_writes", group.atomic_writes),
        ("hybrid_poll", group.hybrid_poll),
        ("registered_waits", group.registered_waits),
    ];
    if let Some((key, _)) = later.into_iter().find(|&(_, asked)| asked) {
        return wrong(key, "the model's kernels come before it".to_owned());
    }
    if group.nowait_reads {
        let what = "the model's reads wait, or do not, by themselves";
        return wrong("nowait_reads", what.to_owned());
    }
    if group.sqpoll {
        let what = "the model has no kernel thread that submits";
        return wrong("sqpoll", what.to_owned());
    }
    if group.poll && !matches!(path, Path::DirectRing | Path::Direct) {
        let what = "only rings of io_uring and preadv2 poll for completions, past the page cache";
        return wrong("poll", what.to_owned());
    }
    // A polled ring can't sync.
    let is_durable = |job: &JobSpec| job.dsync_every.is_some() || job.osync_every.is_some();
    let syncs = |job: &JobSpec| job.sync.is_some() || job.sync_at_end || is_durable(job);
    let polls = group.poll && !(path == Path::DirectRing && group.jobs.iter().any(syncs));
    if group.realtime || group.io_log.is_some() {
        let key = if group.realtime { "realtime" } else { "io_log" };
        return wrong(key, "only threads of this machine have it".to_owned());
    }
    let cgroup = match &group.cgroup {
        None => 0,
        Some(name) => match machine.cgroup(name) {
            Some(number) => number,
            None => return wrong("cgroup", format!("the machine has no cgroup {name:?}")),
        },
    };
    for (of_job, job) in group.jobs.iter().enumerate() {
        check_job(job).map_err(|error| error.within(&format!("groups.{number}.jobs.{of_job}")))?;
    }
    Ok(world::GroupSpec {
        polls,
        path,
        cgroup,
        priority: machine.io_priority(),
        cpus,
        batch: group.batch,
        jobs: group.jobs.iter().map(|job| as_run(job, path)).collect(),
    })
}

/// Whether a file lies on such a place: they count drives first, then mounts.
fn is_on(group: &GroupSpec, phase: &Phase, is_such: impl Fn(usize) -> bool) -> bool {
    let files = group.jobs.iter().flat_map(|job| &job.files);
    files.filter_map(|&file| phase.files.get(file as usize)).any(|file| is_such(file.place.unwrap_or(0) as usize))
}

/// Engines of one operation at a time have no more in flight.
fn as_run(job: &JobSpec, path: Path) -> JobSpec {
    JobSpec { queue_depth: if path.is_async() { job.queue_depth } else { 1 }, ..job.clone() }
}

fn check_job(job: &JobSpec) -> Result<(), SpecError> {
    if let Some(duration_ns) = job.until.duration_ns {
        check_time("until.duration_ns", duration_ns)?;
    }
    match job.arrival {
        Arrival::Closed { think_ns, .. } => check_time("arrival.think_ns", think_ns),
        Arrival::Open { .. } => Ok(()),
    }
}

fn check_time(key: &str, time_ns: Time) -> Result<(), SpecError> {
    if time_ns <= TIME_NS_MAX {
        return Ok(());
    }
    let what = format!("expected at most 30 years, {TIME_NS_MAX} ns, found {time_ns}");
    Err(SpecError::of(key, what))
}
