"""The probe `extents`: where the target's files lie, looked at when the phase is over."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import PurePosixPath
from typing import TypeVar, cast

from iolab import _native
from iolab.domain import native_types as native
from iolab.domain.phase_record import ExtentsObservation
from iolab.domain.probe.extents import ExtentsOptions
from iolab.domain.probe.probe import ProbeOptions
from iolab.machines.host.site import Site, TargetPlace
from iolab.machines.system.beneath import itself
from iolab.machines.system.facts import FactAbsent

T = TypeVar("T")

WALKED_MAX = 1_000_000
"""The list of more files would take too long."""


class Extents:
    """The extents of the regular files below the target's directories, or of the one file that is the target."""

    def __init__(self, options: ProbeOptions, site: Site) -> None:
        self._options = options
        self._site = site

    def stop(self) -> ExtentsObservation:
        """Writes each file's dirty pages, so that what was delayed has its place."""
        with ExitStack() as stack:
            found = [one for place in self._site.places for one in _files(place, stack)]
            return examined(found, self._options, _native.extents)


def examined(
    found: list[tuple[str, str]], options: ProbeOptions, look: Callable[[list[str], str], str]
) -> ExtentsObservation:
    """What the probe saw of the files, or of as many of them as its options allow.

    Args:
        found: by the name that they are told under, their paths.
        look: paths and bounds -> JSON of `Examinations` (crates/measure/trace/src/extents/mod.rs).

    Raises:
        FactAbsent: there is no file, or none could be looked at.
    """
    if not found:
        raise FactAbsent("the phase left no files on a filesystem")
    wanted = ExtentsOptions.model_validate(options)
    chosen = evenly(found, wanted.files_max)
    bounds: native.Bounds = {
        "extents_max": wanted.extents_max,
        "listed_max": wanted.listed,
        "method": None if wanted.method == "auto" else wanted.method,
    }
    seen: native.Examinations = json.loads(look([path for _, path in chosen], json.dumps(bounds)))
    reasons = [cast(native.LayoutRefusalOfExamination, file)["absent"] for file in seen["files"] if "absent" in file]
    if len(reasons) == len(chosen):
        raise FactAbsent(reasons[0])
    for file, (name, _) in zip(seen["files"], chosen, strict=True):
        file["path"] = name
    return {**seen, "files_found": len(found), "files_left_out": len(found) - len(chosen)}


def evenly(found: list[T], count: int) -> list[T]:
    """All, or so many of them at even distances, the first included."""
    if len(found) <= count:
        return found
    return [found[place * len(found) // count] for place in range(count)]


def _files(place: TargetPlace, stack: ExitStack) -> Iterator[tuple[str, str]]:
    """Each by its name in its directory, with a path that leads there from the directory's descriptor, which the stack
    holds; in the order of names."""
    if place.directory is not None:
        root = stack.enter_context(place.directory.opened())
        yield from islice(_below(root), WALKED_MAX)
    elif place.file is not None:
        yield place.file.path.name, itself(place.file.fd)
    elif place.regions is not None and place.regions.is_file():
        yield place.regions.name, str(place.regions)


def _below(root: int) -> Iterator[tuple[str, str]]:
    for directory, directories, names, fd in os.fwalk(".", dir_fd=root):
        directories.sort()
        for name in sorted(names):
            if stat.S_ISREG(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                relative = str(PurePosixPath(directory, name))
                yield relative, f"{itself(root)}/{relative}"
