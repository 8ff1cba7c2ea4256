"""The probe `extents`: where the target's files lie, looked at when the phase is over."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from iolab.machine.absent import Absent
from iolab.machine.site import Place, Site

T = TypeVar("T")

WALKED_MAX = 1_000_000
"""Of more files nobody waits for the list."""


class Extents:
    """Of the regular files below the target's directories, or of the one file that is the target."""

    def __init__(self, options: dict[str, Any], site: Site) -> None:
        self._options = options
        self._site = site

    def stop(self) -> dict[str, Any]:
        """Writes each file's dirty pages, so that what was delayed has its place."""
        from iolab import _native

        found = [
            (str(path.relative_to(root)) if path != root else path.name, str(path))
            for place in self._site.places
            for root, path in _files(place)
        ]
        return examined(found, self._options, _native.extents)


def examined(
    found: list[tuple[str, str]], options: dict[str, Any], look: Callable[[list[str], str], str]
) -> dict[str, Any]:
    """What the probe saw of the files, or of so many of them as its options say.

    Args:
        found: by the name that they are told under, their paths.
        look: paths and bounds -> JSON of `Examined` (crates/trace/src/extents/mod.rs).

    Raises:
        Absent: there is no file, or none could be looked at.
    """
    if not found:
        raise Absent("the phase left no files on a filesystem")
    chosen = evenly(found, options["files_max"])
    method = options["method"]
    bounds = {
        "extents_max": options["extents_max"],
        "listed_max": options["listed"],
        "method": None if method == "auto" else method,
    }
    seen = json.loads(look([path for _, path in chosen], json.dumps(bounds)))
    reasons = [file["absent"] for file in seen["files"] if "absent" in file]
    if len(reasons) == len(chosen):
        raise Absent(reasons[0])
    files = [{**file, "path": name} for file, (name, _) in zip(seen["files"], chosen, strict=True)]
    return {**seen, "files": files, "files_found": len(found), "files_left_out": len(found) - len(chosen)}


def evenly(found: list[T], count: int) -> list[T]:
    """All, or so many of them at even distances, the first included."""
    if len(found) <= count:
        return found
    return [found[place * len(found) // count] for place in range(count)]


def _files(place: Place) -> Iterator[tuple[Path, Path]]:
    """Each with the directory that its name is told from; in the order of names."""
    roots = [place.directory, place.own_directory if place.own_directory and place.own_directory.is_mount() else None]
    for root in filter(None, roots):
        for count, path in enumerate(_below(root)):
            if count == WALKED_MAX:
                break
            yield root, path
    if place.regions is not None and place.regions.is_file():
        yield place.regions, place.regions


def _below(root: Path) -> Iterator[Path]:
    for directory, directories, names in os.walk(root):
        directories.sort()
        for name in sorted(names):
            path = Path(directory, name)
            if path.is_file() and not path.is_symlink():
                yield path
