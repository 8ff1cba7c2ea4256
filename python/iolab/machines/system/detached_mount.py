"""A filesystem of the kernel's that is mounted nowhere: open in this process alone, gone when it closes it.

fsopen(2), fsconfig(2), fsmount(2): Linux 5.2. Their numbers are the same on every architecture.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

FSOPEN, FSCONFIG, FSMOUNT = 430, 431, 432
CLOSE_ON_EXEC = 1
"""FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC."""
CREATE = 6
"""FSCONFIG_CMD_CREATE."""

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def of(kind: str) -> Iterator[int]:
    """Yields its root directory's descriptor.

    Raises:
        OSError: no such filesystem, no right to mount, an older kernel.
    """
    context = _call(FSOPEN, kind.encode(), CLOSE_ON_EXEC)
    try:
        _call(FSCONFIG, context, CREATE, None, None, 0)
        root = _call(FSMOUNT, context, CLOSE_ON_EXEC, 0)
    finally:
        os.close(context)
    try:
        yield root
    finally:
        os.close(root)


def _call(number: int, *arguments: bytes | int | None) -> int:
    done = int(_libc.syscall(number, *arguments))
    if done < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return done
