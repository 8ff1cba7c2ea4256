"""What a path leads to, before anything is opened, and whether it can be looked at at all.

A path that this user may not follow is an error of its own. On a network filesystem whose server is gone every look
would wait without end: a child looks before this process itself goes there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError, MachineError
from iolab.machines.system import bounded_call

if TYPE_CHECKING:
    from iolab.domain.trial import Target


def status_of(path: Path) -> os.stat_result | None:
    """What is there; None if nothing is.

    Raises:
        MachineError: no permission to enter a directory on the way.
        InputError: nothing can be there (a loop of links, a name too long).
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise MachineError(
            "no permission to enter a directory on this path",
            where=str(path),
            remedy="name a place that you may enter, or run as a user who may",
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot be followed: {error.strerror}", where=str(path), remedy="name another path"
        ) from error


def check_answer(target: Target) -> None:
    """Returns when each of the target's paths has been looked at, whatever is there.

    Raises:
        NoAnswer: names the path.
    """
    for path in _paths(target):
        bounded_call.call(lambda path=path: _stat(path), doing="look at it", where=path)  # type: ignore[misc]


def _paths(target: Target) -> list[str]:
    if target.kind == "device":
        return target.paths
    if target.kind == "scratch":
        return [target.backing_directory] if target.backing_directory is not None else []
    return [target.path] if target.kind in ("directory", "file") else []


def _stat(path: str) -> None:
    with suppress(OSError):
        os.stat(path)  # noqa: PTH116
        os.statvfs(path)
