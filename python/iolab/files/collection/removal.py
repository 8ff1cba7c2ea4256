"""Removes runs: only what is a run, and never one that a process writes to."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iolab.base import beneath
from iolab.base.durable import sync
from iolab.base.errors import InputError
from iolab.files.store import RunDirectory

EXPERIMENT = "experiment.toml"


def check(path: Path) -> None:
    """InputError if `path` is no run's own directory, a process writes to it, or a filesystem is mounted in it."""
    with _held(path) as (_, _, run):
        _check_mounts(path, run)


def remove(path: Path) -> None:
    """Removes the run with all that is in its directory, by descriptor: what was checked is what goes. It is gone at
    once: a kill leaves a hidden rest, no half of a run. InputError as of `check`, and if the system refuses; what could
    not be removed has its name back then."""
    with _held(path) as (parent, name, run):
        _check_mounts(path, run)
        rest = beneath.temporary_name(name)
        try:
            os.rename(name, rest, src_dir_fd=parent, dst_dir_fd=parent)
            try:
                _check_same(path, rest, parent, run)
                sync(parent)
                beneath.remove_tree(rest, parent)
            except BaseException:
                with suppress(OSError):
                    os.rename(rest, name, src_dir_fd=parent, dst_dir_fd=parent)
                raise
        except OSError as error:
            where = path / Path(error.filename).name if error.filename else path
            raise InputError(f"can't be removed: {error.strerror}", where=str(where)) from None


def _check_same(path: Path, name: str, parent: int, run: int) -> None:
    if not os.path.samestat(os.stat(name, dir_fd=parent, follow_symlinks=False), os.fstat(run)):
        raise InputError("another directory took its place", where=str(path), remedy="look at it, and try again")


def _check_mounts(path: Path, run: int) -> None:
    if (inside := beneath.mounted_in(run)) is not None:
        remedy = f"unmount it first: umount {path / inside}"
        raise InputError("a filesystem is mounted in it", where=str(path / inside), remedy=remedy)


@contextmanager
def _held(path: Path) -> Iterator[tuple[int, str, int]]:
    """Its parent's descriptor, its name there and its own descriptor, with the journal's lock, which a run in progress
    has: nobody begins to write meanwhile."""
    if path.is_symlink():
        raise InputError("is a symbolic link", where=str(path), remedy="name the run's own directory")
    RunDirectory.open(path)
    journal = RunDirectory(path).journal_file
    try:
        with beneath.named(path) as (parent, name):
            run = os.open(name, beneath.LISTED, dir_fd=parent)
            try:
                if not stat.S_ISREG(os.stat(EXPERIMENT, dir_fd=run, follow_symlinks=False).st_mode):
                    raise InputError(f"is not a run: its {EXPERIMENT} is no file", where=str(path))
                with _locked(path, os.open(journal.name, os.O_RDONLY | beneath.SAFELY, dir_fd=run)):
                    yield parent, name, run
            finally:
                os.close(run)
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", where=str(journal)) from None


@contextmanager
def _locked(path: Path, descriptor: int) -> Iterator[None]:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(
            "a process of iolab is running here", where=str(path), remedy="wait for it or stop it first"
        ) from None
    finally:
        os.close(descriptor)
