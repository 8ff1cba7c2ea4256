"""Files that are whole or absent, also after a kill or a power cut."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iolab.base.errors import MachineError

TEMPORARY_SUFFIX = ".tmp"
REMEDY = "make room or mend the permissions, then resume the run"


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces `path`: readers see the old file or the new one; on return the new one survives a power cut.

    MachineError if the disk refuses.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    with refusals_explained(path):
        try:
            write_durably(temporary, content)
            temporary.rename(path)
            sync_directory(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def refusals_explained(path: Path) -> Iterator[None]:
    """Turns the kernel's refusal to write a run's file into the line that says what to do."""
    try:
        yield
    except OSError as error:
        raise MachineError(
            f"can't be written: {error.strerror}",
            where=str(path),
            remedy=REMEDY,
        ) from error


def write_durably(path: Path, content: bytes) -> None:
    """Writes a file that nobody reads yet, and syncs it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable: a renamed or removed file stays so after a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(directory: Path) -> None:
    """Removes the temporary files of writers that were killed. Only for whoever holds the run's lock."""
    for path in directory.glob(f".*{TEMPORARY_SUFFIX}"):
        if path.is_symlink() or not path.is_dir():  # a directory is no writer's
            path.unlink(missing_ok=True)
