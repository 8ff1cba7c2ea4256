"""Removes runs: only what is a run, and never one that a process writes to."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iolab.adapters.store import RunDirectory
from iolab.base.durable import sync_directory
from iolab.base.errors import InputError


def check(path: Path) -> None:
    """InputError if `path` is no run's own directory, or if a process writes to it."""
    if path.is_symlink():
        raise InputError("is a symbolic link", where=str(path), remedy="name the run's own directory")
    with _held(RunDirectory.open(path)):
        pass


def remove(path: Path) -> None:
    """Removes the run with all that is in its directory. It is gone at once: a kill leaves a hidden rest, no half of a
    run. InputError as of `check`, and where the system refuses."""
    check(path)
    with _held(RunDirectory.open(path)):
        gone = path.resolve()
        rest = gone.with_name(f".{gone.name[:200]}.{os.getpid()}.removed")
        try:
            gone.rename(rest)
            sync_directory(rest.parent)
            shutil.rmtree(rest)
        except OSError as error:
            raise InputError(f"can't be removed: {error.strerror}", where=str(error.filename or path)) from None


@contextmanager
def _held(directory: RunDirectory) -> Iterator[None]:
    """With the journal's lock, which a run in progress has: nobody begins to write meanwhile."""
    try:
        descriptor = os.open(directory.journal_file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", where=str(directory.journal_file)) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(
            "a process of iolab is running here", where=str(directory.path), remedy="wait for it or stop it first"
        ) from None
    finally:
        os.close(descriptor)
