"""Reads a whole named file, up to a size."""

from __future__ import annotations

import os
import selectors
import stat
import time
from pathlib import Path

from iolab.base import beneath
from iolab.base.errors import InputError

MIB = 2**20
EXPERIMENT_BYTES_MAX = 16 * MIB
"""The size of an experiment's file, of a job file, and of each file that they name."""
PIPE_PATIENCE_S = 30.0
"""The time after which a silent pipe is given up."""

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
}


def is_file(path: Path) -> bool:
    """Whether there is a regular file; of a name that no file can have, too long or with a NUL, there is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_bounded(path: Path, limit_bytes: int, what: str, *, pipes: bool = False, within: Path | None = None) -> bytes:
    """The content of a regular file, or of a pipe if `pipes` are accepted (`<(command)`).

    Args:
        what: what it should be, for the error line: "an experiment".
        within: of a file that lies in a run or the like, that directory: no link below it is followed.

    Raises:
        InputError: it is neither, is longer than `limit_bytes`, or cannot be read; whatever `path` leads to, nothing
            waits for ever.
    """
    fd = _opened(path, within)
    try:
        kind = stat.S_IFMT(os.fstat(fd).st_mode)
        if kind == stat.S_IFIFO and pipes:
            return _read_pipe(fd, path, limit_bytes, what)
        _check_regular(kind, path, what)
        content = _read_at_most(fd, limit_bytes + 1)
    except OSError as error:
        raise InputError(f"cannot read it: {_reason(error)}", where=_shown(path)) from None
    finally:
        os.close(fd)
    return _checked(content, limit_bytes, path, what)


def read_start(path: Path, most_bytes: int, what: str, *, within: Path | None = None) -> bytes:
    """So much of what a regular file begins with. `within` and InputError as of `read_bounded`."""
    fd = _opened(path, within)
    try:
        _check_regular(stat.S_IFMT(os.fstat(fd).st_mode), path, what)
        return _read_at_most(fd, most_bytes)
    except OSError as error:
        raise InputError(f"cannot read it: {_reason(error)}", where=_shown(path)) from None
    finally:
        os.close(fd)


def _opened(path: Path, within: Path | None) -> int:
    try:
        if within is not None:
            return beneath.open_file(path, os.O_RDONLY, within)
        # Without O_NONBLOCK, opening a pipe that nobody writes to would wait.
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError(f"cannot read it: {_reason(error)}", where=_shown(path)) from None


def _check_regular(kind: int, path: Path, what: str) -> None:
    if kind != stat.S_IFREG:
        named = _KINDS.get(kind, "a pipe" if kind == stat.S_IFIFO else "no file")
        raise InputError(f"is {named}; expected {what} in a regular file", where=_shown(path))


def _read_at_most(fd: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (part := os.read(fd, min(most, MIB))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _read_pipe(fd: int, path: Path, limit_bytes: int, what: str) -> bytes:
    content = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        deadline = time.monotonic() + PIPE_PATIENCE_S
        while len(content) <= limit_bytes:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise InputError(f"a pipe without data for {PIPE_PATIENCE_S:.0f} s", where=_shown(path))
            part = os.read(fd, MIB)
            if not part:
                break
            content += part
            deadline = time.monotonic() + PIPE_PATIENCE_S
    return _checked(bytes(content), limit_bytes, path, what)


def _checked(content: bytes, limit_bytes: int, path: Path, what: str) -> bytes:
    if len(content) > limit_bytes:
        raise InputError(f"longer than {_size(limit_bytes)}, the most for {what}", where=_shown(path))
    return content


def _size(count: int) -> str:
    return f"{count // MIB} MiB" if count >= MIB else f"{count} bytes"


def _reason(error: Exception) -> str:
    return str(error.strerror) if isinstance(error, OSError) else str(error)


def _shown(path: Path) -> str:
    return str(path).replace("\0", "\\0")
