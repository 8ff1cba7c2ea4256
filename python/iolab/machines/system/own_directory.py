"""A directory that iolab makes for itself and removes: `iolab-<random>`, with a marker that names its owner."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iolab.base import replaceable
from iolab.base.errors import InputError, MachineError
from iolab.machines.system import beneath
from iolab.machines.system.action import MARKER, CannotUndo, RemoveTree
from iolab.machines.system.beneath import Directory
from iolab.machines.system.identity import identity_at
from iolab.machines.system.mounts import IN_MEMORY, check_keeps_files, mount_of
from iolab.machines.system.reach import status_of
from iolab.machines.system.undo import UndoJournal


def make_own_directory(parent: Path, undo: UndoJournal) -> Directory:
    """Makes it in an existing directory; no other user may look or write into it.

    Raises:
        InputError: the parent is not a directory, or root is to write where others could put a link in its way.
        MachineError: no permission, or no space.
    """
    directory, _ = _own_directory(parent, undo)
    return directory


@contextmanager
def own_directory_for_a_moment(parent: Path, undo: UndoJournal) -> Iterator[Directory]:
    """The same, removed at the end. Raises as `make_own_directory`."""
    directory, removal = _own_directory(parent, undo)
    yield directory
    with suppress(CannotUndo):  # the journal has it still
        removal.undo()


def _own_directory(parent: Path, undo: UndoJournal) -> tuple[Directory, RemoveTree]:
    status = status_of(parent)
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise InputError("no such directory", where=str(parent), remedy=f"make it: mkdir -p {parent}")
    check_keeps_files(parent)
    replaceable.refuse_for_root(parent)
    if os.statvfs(parent).f_flag & os.ST_RDONLY:
        raise MachineError(
            "no directory can be made there: its filesystem is mounted read-only",
            where=str(parent),
            remedy="choose a directory on another filesystem, or mount it read-write",
        )
    if not os.access(parent, os.W_OK | os.X_OK, effective_ids=True):
        raise MachineError(
            "no permission to make a directory there",
            where=str(parent),
            remedy="choose a directory that you may write to, or run as a user who may",
        )
    # The name is for everybody to read; the token distinguishes iolab's from one that somebody makes under that name.
    path, token = parent.resolve() / f"iolab-{secrets.token_hex(8)}", secrets.token_hex(16)
    removal = RemoveTree(str(path), token, *_filesystem_of(path.parent))
    undo.before(removal)
    try:
        with beneath.opened(path.parent) as fd:
            return _make(path, token, fd), removal
    except OSError as error:
        raise MachineError(
            f"cannot make a directory there: {error.strerror}",
            where=str(parent),
            remedy="choose a directory that you may write to, with free space",
        ) from error


def _filesystem_of(directory: Path) -> tuple[str, str | None] | tuple[()]:
    """The mount point and what is known of it, for `RemoveTree`."""
    mount = mount_of(directory)
    if mount is None or mount.filesystem in IN_MEMORY:
        return ()
    return mount.mount_point, identity_at(Path(mount.mount_point))


def _make(path: Path, token: str, parent: int) -> Directory:
    os.mkdir(path.name, 0o700, dir_fd=parent)
    fd = os.open(path.name, beneath.LISTED, dir_fd=parent)
    try:
        # Whoever may rename in the parent could have put a directory in place of the one that was just made. With the
        # marker in it, it would be removed with all that it holds.
        if beneath.names_in(fd):
            raise beneath.replaced(path, "directory")
        # By what this filesystem calls us, which differs from the process's user if it maps users.
        if os.fstat(fd).st_uid != _write_durably(MARKER, token, fd):
            os.unlink(MARKER, dir_fd=fd)
            raise beneath.replaced(path, "directory")
        return Directory.of(path, fd)
    finally:
        os.close(fd)


def _write_durably(name: str, text: str, directory: int) -> int:
    """Whose the file is. Without its marker a directory with files in it would never be removed."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        os.write(fd, text.encode())
        os.fsync(fd)
        return os.fstat(fd).st_uid
    finally:
        os.close(fd)
