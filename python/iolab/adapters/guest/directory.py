"""Where a guest machine's files lie while it runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iolab.adapters.system import state

FOLDER = "guests"


@contextmanager
def made_directory(parent: str | None) -> Iterator[Path]:
    """A directory of the machine's own, gone with it; what killed processes left is removed first."""
    place = state.state_subdirectory(FOLDER) if parent is None else Path(parent)
    if parent is None:
        for left in place.glob("guest-*"):
            owner = left.name.split("-")[1]
            if owner.isdigit() and not Path("/proc", owner).exists():
                shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"guest-{os.getpid()}-", dir=place) as directory:
        yield Path(directory)
