"""Dropping the page cache, so that what is read comes from the device."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def drop(files: Iterable[Path]) -> list[str]:
    """Syncs, then drops all caches where that is permitted, else the pages of these files. Returns notes."""
    os.sync()
    if os.access(DROP_CACHES, os.W_OK):
        DROP_CACHES.write_text("3")
        return []
    for file in files:
        if file.exists():
            _forget(file)
    return ["only the files' own pages were dropped from memory: dropping all caches needs root"]


def _forget(file: Path) -> None:
    fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
