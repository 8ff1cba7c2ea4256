"""A trial's phases as the model takes them: weighted groups in control groups of its kernel, and who lays files out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from iolab.domain import native_types as native
from iolab.domain.trial import LoadPhase, MetadataPhase, SortPhase, WeightedLoadPhase
from iolab.machines.host import metadata
from iolab.machines.host.site import place_of

ModelPhase = LoadPhase | MetadataPhase | SortPhase
"""What simulated machines run; `machine_file.refused` determines which machine runs which."""


_OF_SORT = {
    "kind",
    "name",
    "processes",
    "process_bytes",
    "memory_limit_bytes",
    "swap_bytes",
    "passes",
    "seed",
}
"""The model's part of a sort phase (crates/model/stack/src/model/sort.rs)."""


def phases_for_model(phases: Sequence[ModelPhase]) -> Mapping[str, object]:
    """Phases that begin together as the model takes them; one is its own."""
    if len(phases) == 1:
        return phase_for_model(phases[0])
    stops = [number for number, phase in enumerate(phases) if phase.beside is not None and phase.beside.stops_others]
    each = [{"kind": phase.kind, **phase_for_model(phase)} for phase in phases]
    return {"kind": "together", "phases": each, "stops_with": stops[0] if stops else None}


def phase_for_model(phase: ModelPhase) -> Mapping[str, object]:
    """The engine's phase, with the model's additional inputs."""
    if isinstance(phase, MetadataPhase):
        return {"kind": phase.kind, **metadata.placed(phase, [Path()])}
    if isinstance(phase, SortPhase):
        return phase.model_dump(include=_OF_SORT)
    if isinstance(phase, WeightedLoadPhase):
        return _in_groups(phase)
    if phase.measured:
        return phase.load
    return {**phase.load, "groups": [_layer_out(one) for one in phase.load["groups"]]}


def named_files(phases: Sequence[ModelPhase], machine: native.MachineFile) -> list[tuple[str, str]]:
    """The files of the phases that lie on a filesystem, each under its name, as the probe `extents` reports them."""
    mounted = [number for number, drive in enumerate(machine["drives"]) if drive.get("filesystem") is not None]
    files = [file for phase in phases if isinstance(phase, LoadPhase) for file in phase.load["files"]]
    names = {file["path"] for file in files if place_of(file) in mounted}
    return [(name, name) for name in sorted(names)]


def _in_groups(phase: WeightedLoadPhase) -> native.Phase:
    """Groups that have weights alone end with the first that is done, as on a host (weighted_load.py). With controller
    none the jobs are in no group."""
    group_of = phase.group_of if phase.control_groups else {}
    groups: list[native.GroupSpec] = [
        {**group, "cgroup": group_of.get(group["jobs"][0]["name"])} for group in phase.load["groups"]
    ]
    return {**phase.load, "groups": groups, "ends_with_first": not phase.groups}


def _layer_out(group: native.GroupSpec) -> native.GroupSpec:
    """Through the model's page cache files are written one call at a time; nobody measures how they came to be."""
    if group["direct"]:
        return group
    return {**group, "jobs": [{**job, "queue_depth": 1} for job in group["jobs"]]}
