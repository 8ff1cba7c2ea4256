"""The file of an undo journal: lines with checksums, in room that is reserved before anything is changed.

Its owner holds a lock on it (flock), which distinguishes a dead owner's file from a living one's. It becomes a journal
by its name only once it is locked: nobody takes a file that is just being made for a dead owner's.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from iolab.base import checked_lines
from iolab.base.checked_lines import Lines
from iolab.base.errors import MachineError
from iolab.base.strict_json import JsonObject
from iolab.machines.system import command, trust

SUFFIX = ".jsonl"
UNFINISHED_SUFFIX = ".new"
UNFINISHED_AGE_S = 600.0
"""From when on a file that never became a journal is a dead owner's."""
ROOM_BYTES = 64 << 10
"""Reserved at a time: some 300 changes."""


class UndoFile:
    """An undo journal's file whose lock this process holds, until the last copy of `fd` is closed: a tool that changes
    the machine for this process has one (`command.kept_open`), and a process that is forked closes its own. The
    descriptor's position is where the next line goes."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd
        command.kept_open.add(fd)

    @classmethod
    def make(cls, directory: Path, header: JsonObject) -> UndoFile:
        """A new journal of this process that holds only `header`.

        Raises:
            MachineError: it cannot be made, or the filesystem has no room for it.
        """
        path = directory / f"{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
        unfinished = path.with_suffix(UNFINISHED_SUFFIX)
        try:
            fd = trust.open_own_file(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except OSError as error:
            raise _refused(error, directory) from error
        made = cls(unfinished, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            made.reserve(ROOM_BYTES)
            made.append(header)
            unfinished.rename(path)
            made.path = path
            _sync_directory(directory)
        except OSError as error:
            made.remove()
            raise _refused(error, directory) from error
        except MachineError:
            made.remove()
            raise
        return made

    @classmethod
    def of_dead(cls, path: Path) -> UndoFile | None:
        """The file of an owner that is dead, which is this process's from now on; None while the owner lives, or when
        somebody else has just put everything back.

        Raises:
            MachineError: the file is not one of this user's own.
        """
        try:
            fd = trust.open_own_file(path, os.O_RDWR)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MachineError(f"cannot be read: {error.strerror}", where=str(path)) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), path.lstat()):
                return cls(path, fd)
        except OSError:
            pass
        os.close(fd)
        return None

    @staticmethod
    def owner(path: Path) -> int | None:
        """The process that the file was made by, if it is there. If it is not, and the file is locked, another
        process is putting everything back."""
        owner = path.name.partition("-")[0]
        return int(owner) if owner.isdecimal() and Path("/proc", owner).exists() else None

    def read(self) -> Lines:
        """All lines that are whole. The next one goes behind the last of them, over what a kill tore."""
        with os.fdopen(os.dup(self.fd), "rb") as file:
            file.seek(0)
            content = file.read()
        lines = parsed(content)
        whole, rest = content[: lines.whole_bytes], content[lines.whole_bytes :].rstrip(b"\0")
        if rest:
            mended = rest[: rest.rfind(b"}") + 1] + b"\n"
            # All of a line but for its end was not torn, but damaged since.
            if len(parsed(whole + mended).entries) > len(lines.entries):
                lines = parsed(whole + mended)
            else:
                mended = b""
            with suppress(OSError):
                os.pwrite(self.fd, mended.ljust(len(rest), b"\0"), len(whole))
        os.lseek(self.fd, lines.whole_bytes, os.SEEK_SET)
        return lines

    def reserve(self, size_bytes: int) -> None:
        """Sees to it that so much can be written whatever else fills the filesystem.

        Raises:
            MachineError: it has no room.
        """
        try:
            end = os.lseek(self.fd, 0, os.SEEK_CUR) + size_bytes
            has = os.fstat(self.fd).st_size
            if end > has:
                os.posix_fallocate(self.fd, has, max(end - has, ROOM_BYTES))
        except OSError as error:
            raise _refused(error, self.path.parent) from error

    def append(self, entry: JsonObject) -> None:
        """MachineError if the disk refuses; nothing of the entry is left then."""
        checked_lines.append(self.fd, entry, where=str(self.path), remedy="make room or repair the disk: iolab restore")

    def remove(self) -> None:
        """Removes the file from its directory, and closes it."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Closes the file; it stays where it is."""
        command.kept_open.discard(self.fd)
        os.close(self.fd)


def parsed(content: bytes) -> Lines:
    """A journal's content in lines, checked; damaged ones apart (`iolab.base.checked_lines`)."""
    return checked_lines.read(content, is_earlier=lambda header: "boot_id" in header)


def remove_unfinished(directory: Path) -> None:
    """Files of owners that died before theirs was a journal: nothing was changed under them."""
    for path in directory.glob(f"*{UNFINISHED_SUFFIX}"):
        with suppress(OSError, MachineError):
            if time.time() - path.lstat().st_mtime > UNFINISHED_AGE_S and (dead := UndoFile.of_dead(path)):
                dead.remove()


def _refused(error: OSError, directory: Path) -> MachineError:
    return MachineError(
        f"no undo journal can be kept there, so nothing is changed: {error.strerror}",
        where=str(directory),
        remedy="make room, or choose another directory: export IOLAB_STATE_DIR=DIR",
    )


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
