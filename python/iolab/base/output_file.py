"""Where a user has output go, `-o FILE`: a file is replaced whole; a device, a pipe, standard output is written to."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path

from iolab.base.errors import NO_ROOM, InputError, IolabError, MachineError

STDOUT = "-"
_REMEDY = "choose another place"
_LINKS_MAX = 40


def write(path: Path, content: bytes) -> None:
    """Readers of a file see the old one or the new one; its mode, its owner and symbolic links to it stay. What is no
    file is never replaced.

    Raises:
        InputError: a directory, a block device, or a place that can't be written.
        MachineError: no room.
        BrokenPipeError: the reader left.
    """
    try:
        descriptor = _descriptor_named(path)
        if descriptor is not None:
            _write_to(descriptor, content)
        elif (found := _state(path)) is None:
            _create(path, content)
        elif stat.S_ISREG(found.st_mode):
            _replace(path, content)
        else:
            _stream(path, found.st_mode, content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise refused(error, path) from error


def is_stdout(path: Path) -> bool:
    """Whether it goes where the command's own words go."""
    return _descriptor_named(path) == 1


def refused(error: OSError, path: Path) -> IolabError:
    """The kernel's refusal as an error with the path: MachineError where room is lacking, else InputError."""
    kind = MachineError if error.errno in NO_ROOM else InputError
    return kind(f"can't be written: {error.strerror}", where=str(path), remedy=_REMEDY)


def _descriptor_named(path: Path) -> int | None:
    """Of `-`, /dev/stdout, /dev/fd/3: what is open already is written on, wherever it stands; opened by name once more,
    a file would be written from its start."""
    if str(path) == STDOUT:
        return 1
    place = path
    for _ in range(_LINKS_MAX):
        place = place.parent.resolve() / place.name
        if re.fullmatch(rf"/proc/{os.getpid()}(/task/\d+)?/fd", str(place.parent)) and place.name.isdigit():
            return int(place.name)
        if not place.is_symlink():
            return None
        place = place.parent / place.readlink()
    return None


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise InputError(
                f"is a link to {path.readlink()}, which does not exist", where=str(path), remedy=_REMEDY
            ) from None
        return None


def _create(path: Path, content: bytes) -> None:
    umask = os.umask(0)
    os.umask(umask)
    _put_in_place(path, content, 0o666 & ~umask, None)


def _replace(path: Path, content: bytes) -> None:
    if _is_anybodys_link(path):
        raise InputError(
            "is a link that another user laid in a directory where everybody writes", where=str(path), remedy=_REMEDY
        )
    # Opened first: a file that can't be written is not replaced either.
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        opened = os.fstat(descriptor)
        real = path.resolve()
        if not os.path.samestat(opened, real.lstat()):
            raise InputError("became another file meanwhile", where=str(path), remedy=_REMEDY)
        _put_in_place(real, content, stat.S_IMODE(opened.st_mode), (opened.st_uid, opened.st_gid))
    finally:
        os.close(descriptor)


def _is_anybodys_link(path: Path) -> bool:
    """What the kernel refuses to follow as well, where fs.protected_symlinks is on."""
    link, directory = path.lstat(), path.parent.stat()
    shared = directory.st_mode & stat.S_ISVTX and directory.st_mode & stat.S_IWOTH
    return stat.S_ISLNK(link.st_mode) and bool(shared) and link.st_uid not in (os.geteuid(), directory.st_uid)


def _put_in_place(path: Path, content: bytes, mode: int, owner: tuple[int, int] | None) -> None:
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            _write_to(descriptor, content)
            if owner is not None:
                with suppress(PermissionError):
                    os.fchown(descriptor, *owner)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _stream(path: Path, mode: int, content: bytes) -> None:
    for is_kind, what in (
        (stat.S_ISDIR, "is a directory; name a file in it"),
        (stat.S_ISBLK, "is a block device; output is not written to disks"),
        (stat.S_ISSOCK, "is a socket"),
    ):
        if is_kind(mode):
            raise InputError(what, where=str(path), remedy=_REMEDY)
    descriptor = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _write_to(descriptor, content)
    finally:
        os.close(descriptor)


def _write_to(descriptor: int, content: bytes) -> None:
    if descriptor == 1 and sys.stdout is not None:
        sys.stdout.flush()
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
