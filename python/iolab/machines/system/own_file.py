"""A file that is the target and is written to: one that iolab makes under a name that nothing has, or an empty one."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from iolab.base import replaceable
from iolab.base.errors import InputError, MachineError
from iolab.base.quantity import size_in_words
from iolab.domain import native_types as native
from iolab.machines.system import beneath, safety
from iolab.machines.system.action import RemoveFile, TruncateFile
from iolab.machines.system.identity import identity_of
from iolab.machines.system.own_directory import own_directory_for_a_moment
from iolab.machines.system.reach import status_of
from iolab.machines.system.undo import UndoJournal

CANNOT_LINK = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


@dataclass(frozen=True)
class OwnFile:
    """A file that a user named and that iolab writes to, held open while it does."""

    path: Path
    """Absolute, without symbolic links."""
    identity: str
    """As the undo journal has it (`iolab.machines.system.identity`)."""
    fd: int
    """Held until the trial is over, so that no other file gets the inode's number meanwhile."""

    def grow(self, size_bytes: int, undo: UndoJournal) -> None:
        """Gives the empty file its size, sparsely; undone by the journal. Raises MachineError."""
        undo.before(TruncateFile(str(self.path), 0, self.identity, size_bytes))
        try:
            os.truncate(beneath.itself(self.fd), size_bytes)
        except OSError as error:
            raise _refused(error, self.path, f"cannot give the file {size_in_words(size_bytes)}") from error

    def as_json(self) -> native.Identity:
        """As the engine takes it (crates/measure/workload/src/location.rs)."""
        status = os.fstat(self.fd)
        return {"device": status.st_dev, "inode": status.st_ino}


def take(path: Path, undo: UndoJournal, stack: ExitStack) -> OwnFile:
    """Checks the file, or makes it; what it holds on to is released with the stack.

    Raises:
        InputError: it must not be written; states why.
        MachineError: no permission, or nothing that a file could be known again by.
    """
    if status_of(path) is not None:
        return _existing(path, stack)
    if path.is_symlink():
        raise InputError(
            "a symbolic link that leads nowhere",
            where=str(path),
            remedy=f"name the file that it should lead to, {path.readlink()}, or remove the link",
        )
    return _made(path, undo, stack)


def _existing(path: Path, stack: ExitStack) -> OwnFile:
    replaceable.refuse_for_root(path)
    real = path.resolve()
    try:
        with beneath.opened(real.parent) as parent:
            fd = os.open(real.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        raise _refused(error, path, "cannot open the file") from error
    stack.callback(os.close, fd)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise InputError("expected a regular file", where=str(path), remedy="name another file")
    safety.check_file_writable(path, status)
    return OwnFile(real, _identity(fd, path), fd)


def _made(path: Path, undo: UndoJournal, stack: ExitStack) -> OwnFile:
    """Made in a directory of iolab's own, then linked to its name, which replaces nothing. Whenever iolab is killed,
    that name leads to nothing of iolab's, or the journal has what the file is known by."""
    with own_directory_for_a_moment(path.parent, undo) as own, own.opened() as directory:
        real = own.path.parent / path.name
        try:
            fd = os.open("file", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=directory)
            stack.callback(os.close, fd)
            identity = _identity(fd, path)
            undo.before(RemoveFile(str(real), identity))
            with beneath.opened(real.parent) as parent:
                os.link("file", real.name, src_dir_fd=directory, dst_dir_fd=parent, follow_symlinks=False)
        except FileExistsError as error:
            what = "not written to: somebody has just made a file of this name"
            raise InputError(what, where=str(path), remedy="name another file") from error
        except OSError as error:
            if error.errno in CANNOT_LINK:
                raise MachineError(
                    "this filesystem has no hard links, so that the file cannot be made without a risk to another's",
                    where=str(path),
                    remedy=f"make it yourself: touch {path}",
                ) from error
            raise _refused(error, path, "cannot make the file") from error
    return OwnFile(real, identity, fd)


def _identity(fd: int, path: Path) -> str:
    identity = identity_of(fd)
    if identity is None:
        raise MachineError(
            "this filesystem has nothing (time of birth, file handle) that a file could be known again by",
            where=str(path),
            remedy='use [target] kind = "directory"',
        )
    return identity


def _refused(error: OSError, path: Path, to_do: str) -> MachineError:
    return MachineError(
        f"{to_do}: {error.strerror}", where=str(path), remedy="name a place that you may write to, with free space"
    )
