"""Runs a metadata phase on the engine, in the root of the target's filesystem."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from iolab.errors import InputError
from iolab.machine import load, page_cache

if TYPE_CHECKING:
    from iolab import _native
    from iolab.machine.runner import Surroundings
    from iolab.machine.site import Site
    from iolab.trial import MetadataPhase


def run(phase: MetadataPhase, around: Surroundings) -> dict[str, Any]:
    """The engine's record (crates/engine/src/metadata/record.rs), of the likeness of `iolab.phase_record`.

    Raises:
        InputError: the target has no filesystem, or the engine finds the phase impossible.
        MachineError: the kernel refuses.
    """
    spec = _placed(phase, around.site)
    notes = page_cache.drop(()) if phase.drop_caches else []
    done = load.follow(phase, lambda: _start(spec), around)
    done["groups"][0]["notes"] += notes
    return done


def _placed(phase: MetadataPhase, site: Site) -> dict[str, Any]:
    """With absolute directories."""
    return {**phase.metadata, "threads": [_placed_thread(thread, site) for thread in phase.metadata["threads"]]}


def _placed_thread(thread: dict[str, Any], site: Site) -> dict[str, Any]:
    place = site.places[thread["place"]]
    if place.directory is None:
        raise InputError(
            "the workload makes files and directories, and this is no filesystem",
            where=place.label,
            remedy='give the target a filesystem, or use [target] kind = "directory"',
        )
    of_engine = {key: value for key, value in thread.items() if key != "place"}
    return {**of_engine, "directory": str(place.directory / thread["directory"])}


def _start(spec: dict[str, Any]) -> _native.MetadataLoad:
    from iolab import _native

    return _native.MetadataLoad.start(json.dumps(spec))
