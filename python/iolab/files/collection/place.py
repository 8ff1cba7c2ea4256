"""Where runs lie below a directory, and when each was last written to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from iolab.base.errors import InputError

DEPTH_MAX = 3
"""Directories between the collection's and a run's, such as one per host or per month."""
LABELS = "labels.json"


class RunPath(NamedTuple):
    """A run's directory. `name`: its path below the collection's; `key`: what changes when the run does; `inode`: the
    journal's."""

    name: str
    key: str
    inode: int


def check(directory: Path) -> None:
    """InputError if it is no directory, or a run itself."""
    if not directory.is_dir():
        what = "is not a directory" if directory.exists() else "does not exist"
        raise InputError(what, where=str(directory), remedy="name a directory that holds runs")
    if (directory / "journal.jsonl").exists():
        raise InputError("is a run itself", where=str(directory), remedy="name the directory that holds it")


def places(directory: Path) -> list[RunPath]:
    """Every run below the directory. Reads nothing but names and dates; hidden directories and links are left out.
    InputError if it can't be read."""
    check(directory)
    try:
        return list(_below(str(directory), "", DEPTH_MAX))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(directory)) from None


def runs_below(directory: Path) -> list[Path]:
    """The directory of every run below, sorted; none below a directory that can't be read."""
    try:
        return sorted(directory / one.name for one in _below(str(directory), "", DEPTH_MAX))
    except OSError:
        return []


def _below(directory: str, prefix: str, depth: int) -> Iterator[RunPath]:
    with os.scandir(directory) as found:
        inside = [one for one in found if not one.name.startswith(".") and one.is_dir(follow_symlinks=False)]
    for one in inside:
        try:
            journal = os.stat(f"{one.path}/journal.jsonl", follow_symlinks=False)  # noqa: PTH116 (ten thousand times)
        except NotADirectoryError:
            continue
        except OSError:
            if depth > 0:
                try:
                    yield from _below(one.path, f"{prefix}{one.name}/", depth - 1)
                except OSError:  # removed meanwhile, or somebody else's
                    continue
            continue
        yield RunPath(prefix + one.name, f"{_key(journal)} {_labels(one.path)}", journal.st_ino)


def _key(found: os.stat_result) -> str:
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"


def _labels(run: str) -> str:
    try:
        return _key(os.stat(f"{run}/{LABELS}", follow_symlinks=False))  # noqa: PTH116 (as above)
    except OSError:
        return "-"


def journals_held() -> set[int]:
    """Inodes of files that a process holds a lock of its own on (flock), such as the journals of runs in progress; as
    the kernel lists them, so that no lock has to be tried. Runs on other machines are not seen."""
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return set()
    words = [line.split() for line in lines]
    return {int(one[5].rpartition(":")[2]) for one in words if len(one) > 5 and one[1] == "FLOCK" and one[3] == "WRITE"}
