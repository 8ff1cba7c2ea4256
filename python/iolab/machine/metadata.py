"""Runs a metadata phase on the engine, in the root of the target's filesystem."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.errors import InputError
from iolab.machine import load, page_cache

if TYPE_CHECKING:
    from iolab import _native
    from iolab.machine.site import Place
    from iolab.machine.surroundings import Surroundings
    from iolab.trial import MetadataPhase


def run(phase: MetadataPhase, around: Surroundings) -> dict[str, Any]:
    """The engine's record (crates/workload/src/metadata/record.rs), of the likeness of `iolab.phase_record`.

    Raises:
        InputError: the target has no filesystem, or the engine finds the phase impossible.
        MachineError: the kernel refuses.
    """
    spec = placed(phase, [_root(place) for place in around.site.places])
    notes = page_cache.drop(()) if phase.drop_caches else []
    done = load.follow(phase, lambda: _start(spec), around)
    done["groups"][0]["notes"] += notes
    return done


def placed(phase: MetadataPhase, roots: Sequence[Path]) -> dict[str, Any]:
    """The engine's phase: each thread's directory below the root of its place."""
    return {**phase.metadata, "threads": [_placed(thread, roots) for thread in phase.metadata["threads"]]}


def _placed(thread: dict[str, Any], roots: Sequence[Path]) -> dict[str, Any]:
    of_engine = {key: value for key, value in thread.items() if key != "place"}
    return {**of_engine, "directory": str(roots[thread["place"]] / thread["directory"])}


def _root(place: Place) -> Path:
    if place.directory is None:
        raise InputError(
            "the workload makes files and directories, and this is no filesystem",
            where=place.label,
            remedy='give the target a filesystem, or use [target] kind = "directory"',
        )
    return place.directory


def _start(spec: dict[str, Any]) -> _native.MetadataLoad:
    from iolab import _native

    return _native.MetadataLoad.start(json.dumps(spec))
