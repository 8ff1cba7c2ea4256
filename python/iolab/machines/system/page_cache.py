"""Dropping the page cache, so that what is read comes from the device."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from iolab.base.errors import MachineError

DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def drop(files: Iterable[Path]) -> list[str]:
    """Syncs, then drops all caches if that is permitted, else the pages of these files. Returns notes."""
    if os.access(DROP_CACHES, os.W_OK):
        drop_all()
        return []
    os.sync()
    for file in files:
        if file.exists():
            _forget(file)
    return ["only the files' own pages were dropped from memory: dropping all caches needs root"]


def drop_all() -> None:
    """Syncs, then drops all caches. MachineError without the permission."""
    os.sync()
    try:
        DROP_CACHES.write_text("3")
    except PermissionError:
        remedy = "leave drop_caches out, or run as root: sudo iolab run ..."
        raise MachineError("to drop the page cache needs root", where=str(DROP_CACHES), remedy=remedy) from None


def _forget(file: Path) -> None:
    fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
