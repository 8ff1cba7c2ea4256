"""A directory that iolab makes for itself and removes: `iolab-<token>`, with a marker that says whose it is."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from iolab.errors import InputError, MachineError
from iolab.machine.action import MARKER, RemoveTree
from iolab.machine.reach import status_of
from iolab.machine.undo import UndoJournal


def make_own_directory(parent: Path, undo: UndoJournal) -> Path:
    """Makes it in an existing directory.

    Raises:
        InputError: the parent is not a directory.
        MachineError: no permission, or no space.
    """
    status = status_of(parent)
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise InputError("no such directory", where=str(parent), remedy=f"make it: mkdir -p {parent}")
    if not os.access(parent, os.W_OK | os.X_OK, effective_ids=True):
        raise MachineError(
            "no permission to make a directory there",
            where=str(parent),
            remedy="choose a directory that you may write to, or run as a user who may",
        )
    token = secrets.token_hex(8)
    path = parent.resolve() / f"iolab-{token}"
    undo.before(RemoveTree(str(path), token))
    try:
        path.mkdir()
        _write_durably(path / MARKER, token)
    except OSError as error:
        raise MachineError(
            f"cannot make a directory there: {error.strerror}",
            where=str(parent),
            remedy="choose a directory that you may write to, with free space",
        ) from error
    return path


def _write_durably(path: Path, text: str) -> None:
    """Without its marker a directory with files in it would never be removed."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, text.encode())
        os.fsync(fd)
    finally:
        os.close(fd)
