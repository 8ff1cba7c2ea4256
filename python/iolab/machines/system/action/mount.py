"""Mounts."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from iolab.machines.system.action.base import Action, CannotUndo, Outcome
from iolab.machines.system.action.path import is_in_own_directory
from iolab.machines.system.mounts import mount_at, seen_elsewhere, users_of

UNMOUNT_PATIENCE_S = 10.0
MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Unmount(Action):
    """A filesystem was mounted."""

    mount_point: str

    @property
    @override
    def to_do(self) -> str:
        return f"unmount {self.mount_point}"

    @property
    @override
    def is_iolabs_own(self) -> bool:
        return is_in_own_directory(self.mount_point, "mount")

    @override
    def undo(self) -> Outcome | None:
        outcome = self._unmount() if mount_at(Path(self.mount_point)) is not None else None
        self._check_elsewhere()
        return outcome

    def _check_elsewhere(self) -> None:
        """A mount namespace has mounts of its own, and copies of others'."""
        own_name = "/".join(["", *Path(self.mount_point).parts[-2:]])
        if found := seen_elsewhere(lambda mount: mount.mount_point.endswith(own_name)):
            process, mount = found
            raise CannotUndo(
                f"{mount.mount_point} is still mounted in the mount namespace of {process.text}; unmount it there: "
                f"sudo nsenter --mount --target {process.pid} umount {mount.mount_point}; then: iolab restore"
            )

    def _unmount(self) -> Outcome:
        path = Path(self.mount_point)
        deadline = time.monotonic() + UNMOUNT_PATIENCE_S
        while (error := _umount(path, 0)) == errno.EBUSY and time.monotonic() < deadline:
            time.sleep(0.02)
        if error == errno.EBUSY:
            return _unmount_lazily(path)
        if error not in (0, errno.EINVAL):
            raise CannotUndo(f"cannot unmount {path}: {os.strerror(error)}")
        if mount_at(path) is not None:
            raise CannotUndo(f"{path} was unmounted, and is mounted once more below that")
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
