"""Runs a metadata phase on the engine, in the root of the target's filesystem."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iolab import _native
from iolab.base.errors import InputError
from iolab.machines.host import load
from iolab.machines.system import page_cache

if TYPE_CHECKING:
    from iolab.domain import native_types as native
    from iolab.domain.phase_record import PhaseRecord
    from iolab.domain.trial import MetadataPhase
    from iolab.domain.trial.phase import PlacedThread
    from iolab.machines.host.site import TargetPlace
    from iolab.machines.host.surroundings import Surroundings
    from iolab.machines.system.beneath import Directory


def run(phase: MetadataPhase, around: Surroundings) -> PhaseRecord:
    """The engine's record (crates/measure/workload/src/metadata/record.rs), of the likeness of
    `iolab.domain.phase_record`.

    Raises:
        InputError: the target has no filesystem, or the engine finds the phase impossible.
        MachineError: the kernel refuses.
    """
    roots = [_root(place) for place in around.site.places]
    spec = placed(phase, [root.path for root in roots], [root.as_json() for root in roots])
    notes = page_cache.drop(()) if phase.drop_caches else []
    done = load.follow(phase, lambda: _start(spec), around)
    done["groups"][0]["notes"] += notes
    return done


def placed(
    phase: MetadataPhase, roots: Sequence[Path], beneath: Sequence[native.Directory] | None = None
) -> native.MetadataPhase:
    """The engine's phase: each thread's directory below the root of its place.

    Args:
        beneath: the same roots, if they are directories that were checked (crates/measure/workload/src/location.rs).
    """
    threads = [_placed(thread, roots, beneath) for thread in phase.metadata["threads"]]
    return {"name": phase.metadata["name"], "threads": threads}


def _placed(
    thread: PlacedThread, roots: Sequence[Path], beneath: Sequence[native.Directory] | None
) -> native.ThreadSpec:
    number = thread["place"]
    of_engine: native.ThreadSpec = {
        "directory": str(roots[number] / thread["directory"]),
        "paths": thread["paths"],
        "cpus": thread.get("cpus"),
        "job": thread["job"],
    }
    if beneath is not None:
        of_engine["beneath"] = beneath[number]
    return of_engine


def _root(place: TargetPlace) -> Directory:
    if place.directory is None:
        raise InputError(
            "the workload makes files and directories, and this is no filesystem",
            where=place.label,
            remedy='give the target a filesystem, or use [target] kind = "directory"',
        )
    return place.directory


def _start(spec: native.MetadataPhase) -> _native.MetadataLoad:
    return _native.MetadataLoad.start(json.dumps(spec))
