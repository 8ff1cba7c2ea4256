"""Where the kernel shows what can be changed: /sys, /proc, control groups.

A file that is missing there means that what it belonged to is gone. In a mount namespace or chroot where the whole tree
is missing, it means nothing: what was changed is still changed.
"""

from __future__ import annotations

from pathlib import Path

from iolab.adapters.system.action.base import CannotUndo
from iolab.adapters.system.mounts import mount_of
from iolab.adapters.system.state import nearest_existing

FILESYSTEMS = {
    Path("/sys/fs/cgroup"): frozenset({"cgroup", "cgroup2"}),
    Path("/sys"): frozenset({"sysfs"}),
    Path("/proc"): frozenset({"proc"}),
}
OF_THE_KERNEL = frozenset({"sysfs", "proc", "cgroup", "cgroup2"})


def is_below(path: Path) -> bool:
    """Whether the path, or where it would be, lies on a filesystem by which the kernel shows its settings."""
    mount = mount_of(nearest_existing(path))
    return mount is not None and mount.filesystem in OF_THE_KERNEL


def missing(path: Path) -> Path | None:
    """The tree that the path belongs to, where it is not mounted here."""
    for root, filesystems in FILESYSTEMS.items():
        if path.is_relative_to(root):
            mount = mount_of(nearest_existing(path))
            return root if mount is None or mount.filesystem not in filesystems else None
    return None


def require(path: Path) -> None:
    """Raises CannotUndo where nothing can be told of what the path belongs to."""
    root = missing(path)
    if root is not None:
        raise CannotUndo(
            f"cannot tell whether {path} is as it was: its filesystem is not mounted here; where it is: iolab restore"
        )
