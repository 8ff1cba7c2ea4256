"""What a file is known by: not its name, under which somebody may put another, nor its inode's number alone, which the
next file gets."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

AT_EMPTY_PATH = 0x1000
STATX_BTIME = 0x800
STATX_BYTES = 256
BIRTH_AT = 0x50
"""The offset of stx_btime in struct statx: seconds, nanoseconds."""
HANDLE_BYTES_MAX = 128

_libc = ctypes.CDLL(None, use_errno=True)


def identity_of(fd: int) -> str | None:
    """The file's inode number with its time of birth and the kernel's lasting handle for it (which has the inode's
    generation), if the filesystem has them: the same text for the same file, also after a reboot, and never for
    another. None: it has neither."""
    marks = [mark for mark in (_born(fd), _handle(fd)) if mark is not None]
    return " ".join([f"inode={os.fstat(fd).st_ino}", *marks]) if marks else None


def identity_at(path: Path) -> str | None:
    """The identity of the file under this path; a symbolic link has its own. Raises OSError."""
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return identity_of(fd)
    finally:
        os.close(fd)


def _born(fd: int) -> str | None:
    try:
        statx = _libc.statx
    except AttributeError:  # a C library older than 2.28
        return None
    answer = ctypes.create_string_buffer(STATX_BYTES)
    if statx(fd, b"", AT_EMPTY_PATH, STATX_BTIME, answer) != 0:
        return None
    (stat,) = struct.unpack_from("=I", answer.raw)
    seconds, nanoseconds = struct.unpack_from("=qI", answer.raw, BIRTH_AT)
    return f"born={seconds}.{nanoseconds:09d}" if stat & STATX_BTIME else None


def _handle(fd: int) -> str | None:
    """name_to_handle_at(2)."""
    handle = ctypes.create_string_buffer(struct.pack("=Ii", HANDLE_BYTES_MAX, 0), 8 + HANDLE_BYTES_MAX)
    mount = ctypes.c_int()
    if _libc.name_to_handle_at(fd, b"", handle, ctypes.byref(mount), AT_EMPTY_PATH) != 0:
        return None
    length, kind = struct.unpack_from("=Ii", handle.raw)
    return f"handle={kind}:{handle.raw[8 : 8 + length].hex()}"
