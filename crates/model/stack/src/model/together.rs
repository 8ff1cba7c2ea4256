//! Phases that begin together: a load of reads and writes, threads that make files and processes that sort, at most one of
//! each, beside one another on one machine.

use workload::record::Snapshot;

use super::observation::Probes;
use super::{AnyPhase, METADATA_DRIVE};
use crate::world::{Part, World};
use block_layer::TaskId;
use events::SpecError;

/// The error names a key of the phase.
pub(super) fn check(phases: &[AnyPhase], stops: Option<usize>) -> Result<(), SpecError> {
    let wrong = |key: &str, what: String| Err(SpecError::of(key, what));
    if phases.is_empty() {
        return wrong("phases", "expected at least one".to_owned());
    }
    for (number, phase) in phases.iter().enumerate() {
        let key = format!("phases.{number}");
        if matches!(phase, AnyPhase::Together { .. }) {
            return wrong(&key, "phases that run together hold no others".to_owned());
        }
        let kind = part_of(phase);
        if phases[..number].iter().any(|other| part_of(other) == kind) {
            let what = format!("{} are there already; a machine runs them once at a time", kind.in_words());
            return wrong(&key, what);
        }
    }
    match stops {
        Some(number) if number >= phases.len() => {
            let what = format!("there are {} phases, counted from 0", phases.len());
            wrong("stops_with", what)
        }
        _ => Ok(()),
    }
}

/// What the phases, or the machine, have no mechanism for.
pub(super) fn check_probes(probes: &Probes, phases: &[AnyPhase], has_detailed_cpus: bool) -> Result<(), SpecError> {
    let has = |part| phases.iter().any(|phase| part_of(phase) == part);
    if probes.nfs.is_some() && has(Part::Metadata) && !has(Part::Load) {
        let what = "the model makes no files on mounts, where nfs would look";
        return Err(SpecError::of("probes.nfs", what));
    }
    if probes.switches.is_some() && !has(Part::Metadata) {
        let what = "the model shows the switches of metadata phases only";
        return Err(SpecError::of("probes.switches", what));
    }
    probes.check_cpus(has_detailed_cpus)?;
    probes.check_intervals()
}

pub(super) fn part_of(phase: &AnyPhase) -> Part {
    match phase {
        AnyPhase::Load(_) | AnyPhase::Together { .. } => Part::Load,
        AnyPhase::Metadata(_) => Part::Metadata,
        AnyPhase::Sort(_) => Part::Sort,
    }
}

/// Of a phase without reads and writes.
pub(super) fn seed_of(phase: &AnyPhase) -> u64 {
    match phase {
        AnyPhase::Metadata(phase) => phase.threads.first().map_or(0, |thread| thread.job.seed),
        AnyPhase::Sort(phase) => phase.seed,
        AnyPhase::Load(phase) => phase.seed,
        AnyPhase::Together { .. } => 0,
    }
}

pub(super) fn names_of_loads(phases: &[AnyPhase]) -> Vec<(TaskId, String)> {
    let loads = phases.iter().filter_map(|phase| match phase {
        AnyPhase::Load(load) => Some(load),
        _ => None,
    });
    let groups = loads.flat_map(|load| &load.groups);
    (0..).zip(groups.map(|group| group.name.clone())).collect()
}

/// How far all are: as far as the one that stops the others, or else the furthest behind.
pub(super) fn snapshot(world: &World, phases: &[AnyPhase], stops: Option<usize>) -> Snapshot {
    let of_each = phases.iter().map(|phase| one(world, phase));
    let fraction = match stops {
        Some(number) => one(world, &phases[number]).fraction,
        None => {
            let fractions = of_each.clone().map(|snapshot| snapshot.fraction);
            fractions.reduce(|a, b| Some(a?.min(b?))).flatten()
        }
    };
    Snapshot {
        elapsed_ns: world.elapsed_ns(),
        ops: of_each.clone().map(|snapshot| snapshot.ops).sum(),
        bytes: of_each.clone().map(|snapshot| snapshot.bytes).sum(),
        errors: of_each.clone().map(|snapshot| snapshot.errors).sum(),
        fraction,
        warming_up: of_each.clone().any(|snapshot| snapshot.warming_up),
        done: false,
    }
}

fn one(world: &World, phase: &AnyPhase) -> Snapshot {
    let elapsed_ns = world.elapsed_ns();
    let nothing = Snapshot { elapsed_ns, ops: 0, bytes: 0, errors: 0, fraction: None, warming_up: false, done: false };
    match phase {
        AnyPhase::Load(load) => {
            let progress = world.progress();
            Snapshot {
                ops: progress.ops,
                bytes: progress.bytes,
                errors: progress.errors,
                fraction: progress.fraction,
                warming_up: elapsed_ns < load.warm_up_ns,
                ..nothing
            }
        }
        AnyPhase::Metadata(_) => {
            let progress = world.metadata_progress(METADATA_DRIVE);
            Snapshot { ops: progress.files, fraction: progress.fraction, ..nothing }
        }
        AnyPhase::Sort(_) => Snapshot { fraction: Some(world.sorted_so_far()), ..nothing },
        AnyPhase::Together { .. } => nothing,
    }
}
