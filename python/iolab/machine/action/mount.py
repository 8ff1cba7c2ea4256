"""Mounts."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path

from iolab.machine.action.base import Action, CannotUndo, Outcome
from iolab.machine.mounts import mount_at, users_of

UNMOUNT_PATIENCE_S = 10.0
MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Unmount(Action):
    """A filesystem was mounted."""

    mount_point: str

    def undo(self) -> Outcome | None:
        path = Path(self.mount_point)
        if mount_at(path) is None:
            return None
        deadline = time.monotonic() + UNMOUNT_PATIENCE_S
        while (error := _umount(path, 0)) == errno.EBUSY and time.monotonic() < deadline:
            time.sleep(0.02)
        if error == errno.EBUSY:
            return _unmount_lazily(path)
        if error not in (0, errno.EINVAL):
            raise CannotUndo(f"cannot unmount {path}: {os.strerror(error)}")
        return Outcome(f"unmounted {path}")


def _umount(path: Path, flags: int) -> int:
    """errno, 0 for success."""
    return 0 if _libc.umount2(os.fsencode(path), flags) == 0 else ctypes.get_errno()


def _unmount_lazily(path: Path) -> Outcome:
    users = ", ".join(users_of(path)) or "unknown"
    error = _umount(path, MNT_DETACH)
    if error:
        raise CannotUndo(f"cannot unmount {path}: {os.strerror(error)}; used by {users}")
    return Outcome(f"unmounted {path} lazily: it was in use by {users}; it is gone when they are", unusual=True)
