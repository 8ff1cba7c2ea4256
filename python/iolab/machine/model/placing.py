"""A trial's phases as the model takes them: files on its drives, weighted groups in control groups of its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iolab.machine.site import place_of, regions
from iolab.trial import LoadPhase, WeightedLoadPhase

Json = dict[str, Any]


def phase_for_model(phase: LoadPhase, phases: Sequence[LoadPhase], machine: Json) -> Json:
    """The engine's phase, with what the model takes besides: each file's drive, each group's control group.

    Args:
        phases: all of the trial, which together say where on a bare drive each file lies.
    """
    files = [file for one in phases for file in one.load["files"]]
    bases = {
        number: regions([file for file in files if place_of(file) == number])[0]
        for number, drive in enumerate(machine["drives"])
        if drive.get("filesystem") is None
    }
    placed = [_placed(file, bases.get(place_of(file))) for file in phase.load["files"]]
    load = {**phase.load, "files": placed}
    return _in_groups(phase, load) if isinstance(phase, WeightedLoadPhase) else load


def named_files(phases: Sequence[LoadPhase], machine: Json) -> list[tuple[str, str]]:
    """The files of the phases that lie on a filesystem, each under its name, as the probe `extents` tells them."""
    mounted = [number for number, drive in enumerate(machine["drives"]) if drive.get("filesystem") is not None]
    names = {file["path"] for phase in phases for file in phase.load["files"] if place_of(file) in mounted}
    return [(name, name) for name in sorted(names)]


def _placed(file: Json, bases: dict[tuple[str, int], int] | None) -> Json:
    if bases is None:
        return file
    return {**file, "base_bytes": bases[file["path"], file["base_bytes"]]}


def _in_groups(phase: WeightedLoadPhase, load: Json) -> Json:
    """The first group that has no job left ends the measured part of all, as on a host (weighted_load.py). With
    controller none the jobs are threads of no group."""
    weighted = phase.controller != "none"
    group_of = {job: member.name for member in phase.members for job in member.jobs}
    groups = [{**group, "cgroup": group_of[group["name"]] if weighted else None} for group in phase.load["groups"]]
    return {**load, "groups": groups, "ends_with_first": True}
