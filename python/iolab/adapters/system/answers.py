"""Whether a target answers at all, asked before this process itself goes there: on a network filesystem whose server is
gone every look would wait without end."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from iolab.adapters.system import bounded

if TYPE_CHECKING:
    from iolab.domain.trial import Target


def check(target: Target) -> None:
    """Returns when each of the target's paths has been looked at, whatever is there.

    Raises:
        NoAnswer: names the path.
    """
    for path in _paths(target):
        bounded.call(lambda path=path: _look(path), doing="look at it", where=path)  # type: ignore[misc]


def _paths(target: Target) -> list[str]:
    if target.kind == "device":
        return target.paths
    if target.kind == "scratch":
        return [target.backing_directory] if target.backing_directory is not None else []
    return [target.path] if target.kind in ("directory", "file") else []


def _look(path: str) -> None:
    with suppress(OSError):
        os.stat(path)  # noqa: PTH116
        os.statvfs(path)
